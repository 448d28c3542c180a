package control_test

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/control/controltest"
	"github.com/vxswitch/vxswitch/frame"
)

// fixture is what both Programmers are tested with.
func fixture() controltest.Fixture {
	return controltest.Fixture{
		VNIs: [2]frame.VNI{red, blue}, VTEPs: [3]netip.AddrPort{at(2), at(3), at(4)}, Port: "pipe",
		VRF: "red", Links: [2]control.Via{{VNI: red, IP: ip(1)}, {VNI: ipip, VTEP: at(7)}},
		Router: control.Via{VNI: l3vni, MAC: mac(0xfc), VTEP: at(5)}, Owners: [2]string{"second name", "first name"},
	}
}

func owners() []string { return []string{"second name", "first name", "bgp"} }

// What only writing shows to be wrong.
var bad = map[string]control.Row{
	"route":  control.Prefix{VRF: "red", Prefix: pfx("10.66.0.0/16"), Via: control.Via{VNI: l3vni, IP: ip(1)}}, // it has no neighbours
	"peer":   control.MAC{VNI: red, MAC: mac(0x77), VTEP: six},
	"far":    control.MAC{VNI: red, MAC: mac(0x77), VTEP: six, FarVNI: 7},
	"group":  control.Group{VNI: red, Name: "six", VTEP: six},
	"flood":  control.Flood{VNI: blue, VTEP: six},
	"router": control.Prefix{VRF: "red", Prefix: pfx("10.77.0.0/16"), Via: control.Via{VNI: l3vni, MAC: mac(0x78), VTEP: six}},
}

// six is of an address family that the VTEP has no underlay of.
var six = netip.MustParseAddrPort("[fd00::1]:0")

func TestPlaneConforms(t *testing.T) {
	for name, row := range bad {
		t.Run(name, func(t *testing.T) {
			controltest.Run(t, func(t *testing.T) controltest.Fixture {
				l := newLeaf(t, control.Config{Owners: owners()})
				f := fixture()
				f.Programmer, f.Tables, f.Bad, f.Writes = l, l, row, l.writes
				t.Cleanup(func() {
					l.check()
					for _, o := range l.Owners() {
						l.Forget(o)
					}
					if !l.Empty() || len(listed(l.vtep)) != 0 || len(listed(l.tun)) != 0 {
						t.Errorf("something is left: peers %v %v", listed(l.vtep), listed(l.tun))
					}
				})
				return f
			})
		})
	}
}

// model returns the golden model of a leaf.
func model() *controltest.Model {
	return &controltest.Model{
		VNIs: []frame.VNI{red, blue, l3vni}, Ports: map[frame.VNI][]string{red: {"pipe"}},
		VRFs: map[string][]frame.VNI{"red": {red, l3vni, ipip}}, Owners: owners(),
		Refuse: func(r control.Row) error {
			if r == bad["route"] {
				return errBad
			}
			return nil
		},
	}
}

func TestModelConforms(t *testing.T) {
	controltest.Run(t, func(t *testing.T) controltest.Fixture {
		m := model()
		f := fixture()
		f.Programmer, f.Tables, f.Bad = m, m, bad["route"]
		return f
	})
}
