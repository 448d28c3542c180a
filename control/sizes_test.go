package control_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

// What a stranger can have a control plane say many of costs no more than in proportion. Each of these took minutes when
// it cost the square.
func TestSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	const n = 100_000
	list := func(n int, row func(i int) control.Row) (rows []control.Row) {
		for i := range n {
			rows = append(rows, row(i))
		}
		return rows
	}
	six := func(i int) netip.AddrPort {
		a := netip.MustParseAddr("2001:db8::").As16()
		a[13], a[14], a[15] = byte(i>>16), byte(i>>8), byte(i)
		return netip.AddrPortFrom(netip.AddrFrom16(a), 0)
	}
	for name, rows := range map[string][]control.Row{
		"addresses of one MAC": list(n, func(i int) control.Row { return control.MAC{VNI: blue, MAC: mac(1), IP: host4(i), VTEP: at(2)} }),
		"MACs of one address":  list(n, func(i int) control.Row { return control.MAC{VNI: blue, MAC: hostMAC(i), IP: ip(1), VTEP: at(2)} }),
		"rows that wait": list(n, func(i int) control.Row {
			return control.MAC{VNI: frame.VNI(1000 + i%1000), MAC: hostMAC(i), IP: host4(i), VTEP: at(byte(2 + i%97))}
		}),
		"groups": list(n, func(i int) control.Row {
			if i%5 == 0 {
				return control.Group{VNI: red, Name: fmt.Sprint(i / 5), VTEP: at(byte(2 + i%100))}
			}
			return control.MAC{VNI: red, MAC: hostMAC(i), Group: fmt.Sprint(i / 5)}
		}),
		"VTEPs of one router": list(60_000, func(i int) control.Row {
			return control.Prefix{VRF: "red", Prefix: netip.PrefixFrom(host4(i<<8-1), 24), Via: control.Via{VNI: l3vni, MAC: mac(9), VTEP: netip.AddrPortFrom(host4(i), 0)}}
		}),
		"next hops of one prefix": list(40_000, func(i int) control.Row {
			return control.Prefix{VRF: "red", Prefix: pfx("10.1.0.0/16"), Via: control.Via{VNI: l3vni, MAC: hostMAC(i), VTEP: at(byte(2 + i%97))}}
		}),
		"groups of a flood list": list(n, func(i int) control.Row {
			return control.Flood{VNI: red, VTEP: at(byte(2 + i%97)), MAC: frame.MACFrom(0x0100_5e00_0000 + uint64(i))}
		}),
		"wrong entries of a flood list": list(20_000, func(i int) control.Row {
			if i%2 == 0 {
				return control.Flood{VNI: red, VTEP: six(i)}
			}
			return control.Flood{VNI: red, VTEP: netip.AddrPortFrom(host4(i), 0)}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeaf(t, control.Config{Owners: []string{"first", "second"}})
			begun := time.Now()
			step := func(what string, f func()) {
				was := time.Now()
				f()
				t.Logf("%s: %v", what, time.Since(was).Round(time.Millisecond))
			}
			u := control.Update{Loose: true, Add: rows}
			step("first", func() { l.program("first", u) })
			step("second", func() { l.program("second", u) })
			step("10 events", func() {
				for i := range 10 {
					l.Handle(frame.Event{Kind: frame.EventSegmentUp, VNI: frame.VNI(5000 + i)})
				}
			})
			step("Reapply", l.Reapply)
			step("Forget", func() { l.Forget("first"); l.Forget("second") })
			if d := time.Since(begun); d > 60*time.Second {
				t.Errorf("%v", d)
			}
		})
	}
}
