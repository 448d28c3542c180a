package control_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

// lease is the subnet of a node, behind its VTEP.
func lease(n int) control.Row {
	b := [4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}
	return control.Prefix{VRF: "red", Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{20 + b[1], b[2], b[3], 0}), 24), Via: control.Via{
		VNI: l3vni, MAC: frame.MACFrom(0x0210_0000_0000 + uint64(n)), VTEP: netip.AddrPortFrom(netip.AddrFrom4([4]byte{172, 16 + b[1], b[2], b[3]}), 0),
	}}
}

// BenchmarkProgram adds a row beside others, and deletes it: with a new VTEP, with one of them, and a host on a VTEP.
func BenchmarkProgram(b *testing.B) {
	for _, n := range []int{100, 20_000} {
		l := newLeaf(b, control.Config{})
		var rows []control.Row
		for i := range n {
			rows = append(rows, lease(1+i))
		}
		l.must(l.Program("leases", control.Update{Snapshot: true, Add: rows}))
		for name, r := range map[string]control.Row{
			"lease": lease(n + 1),
			"host":  control.MAC{VNI: red, MAC: mac(1), IP: netip.MustParseAddr("192.168.7.1"), VTEP: netip.MustParseAddrPort("10.0.0.2:0")},
		} {
			b.Run(fmt.Sprintf("%s/beside=%d", name, n), func(b *testing.B) {
				for b.Loop() {
					l.must(l.Program("leases", control.Update{Add: []control.Row{r}}))
					l.must(l.Program("leases", control.Update{Del: []control.Row{r}}))
				}
			})
		}
	}
}
