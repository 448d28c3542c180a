package table

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// No two segments say routes with one RD, whichever of ours is configured: of two with one key peers would have the last.
func TestRDs(t *testing.T) {
	for n := range uint16(8) {
		l := newLab(t, nil)
		rd := route.RDFrom(netip.MustParseAddr(ours), n)
		l.SetSegment(0, Segment{VNI: 300, VTEP: at(ours), RD: rd})
		l.SetSegment(0, Segment{VNI: 400, VTEP: at(ours)})
		l.Static("red", netip.MustParsePrefix("10.9.0.0/16"), 1)
		l.flush()
		by, prefixes := map[route.RD]frame.VNI{}, 0
		for k, r := range l.told {
			vni := frame.VNI(r.Labels[0])
			if was, ok := by[k.RD]; ok && was != vni {
				t.Errorf("%v: of %d and %d", k.RD, was, vni)
			}
			by[k.RD] = vni
			if k.Kind == route.Prefix {
				prefixes++
			}
		}
		if len(by) != 5 || by[rd] != 300 || prefixes != 1 {
			t.Errorf("%v of 300: RDs %v, %d prefixes, want those of 100, 200, 300, 400 and the VRF, and 1", rd, by, prefixes)
		}
	}
}
