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
	a, b, c := byte(n>>16), byte(n>>8), byte(n)
	return control.Prefix{VRF: "red", Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{20 + a, b, c, 0}), 24), Via: control.Via{
		VNI: l3vni, MAC: frame.MACFrom(0x0210_0000_0000 + uint64(n)), VTEP: netip.AddrPortFrom(netip.AddrFrom4([4]byte{172, 16 + a, b, c}), 0),
	}}
}

// BenchmarkProgram adds a row with a new VTEP beside others, and deletes it: a lease or a host.
func BenchmarkProgram(b *testing.B) {
	for _, n := range []int{100, 20_000} {
		l := newLeaf(b, control.Config{})
		var leases []control.Row
		for i := range n {
			leases = append(leases, lease(1+i))
		}
		l.add("leases", leases...)
		for name, r := range map[string]control.Row{
			"lease": lease(n + 1),
			"host":  control.MAC{VNI: red, MAC: mac(1), IP: ip(1), VTEP: at(2)},
		} {
			b.Run(fmt.Sprintf("%s/beside=%d", name, n), func(b *testing.B) {
				for b.Loop() {
					l.add("leases", r)
					l.del("leases", r)
				}
			})
		}
	}
}
