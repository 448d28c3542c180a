package table

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// The link of a host fails: we say it on the Ethernet segment still, but go to it by another VTEP, until it speaks here again, or has not for
// long.
func TestAbsent(t *testing.T) {
	l := newLab(t, nil)
	all := esi.String()
	failed := func(c *EthernetSegment) { c.Up = false }
	l.Learned(0, peer, by(2, whole()))
	l.Learned(0, peer, by(2, alias()))
	here := func() { l.Here(l.now, 100, mac(1), frame.NewDest(3, 0), false) }
	for range 3 {
		l.home(nil)
		here()
		l.Speaks(100, mac(1), netip.MustParseAddr("10.1.0.7"), false)
		l.says(0, esi)
		l.want()

		l.home(failed)
		l.Mark(100) // the switch has flushed the port
		l.Sweep(l.now, 100)
		l.Gone(l.now, 100, mac(1))
		l.Silent(100, mac(1), netip.MustParseAddr("10.1.0.7"))
		l.says(0, esi)
		l.want(control.MAC{VNI: 100, MAC: mac(1), IP: netip.MustParseAddr("10.1.0.7"), Group: all}.String(), member(all, 2))

		l.home(nil) // it is back, and the host has not spoken yet
		l.says(0, esi)
		l.want(control.MAC{VNI: 100, MAC: mac(1), IP: netip.MustParseAddr("10.1.0.7"), Port: "p1"}.String())
		here()
		l.says(0, esi)
		l.want()
	}

	l.home(failed)
	l.now += absence / 2
	l.says(0, esi)
	l.now += absence
	l.says(-1, route.ESI{})
	l.want()
	if len(l.absent) != 0 {
		t.Errorf("%d are absent", len(l.absent))
	}

	l.home(nil)
	here()
	l.home(failed)
	l.PortGone(l.now, 100, frame.NewDest(3, 0))
	l.says(-1, route.ESI{})
	l.want()

	l.home(nil) // one that moves while it is absent
	here()
	l.home(failed)
	r := by(2, macIP(mac(1), ""))
	communities2(r, target(65000, 100), route.Mobility(9, false))
	l.Learned(l.now, peer, r)
	l.says(-1, route.ESI{})
	l.want(control.MAC{VNI: 100, MAC: mac(1), VTEP: netip.AddrPortFrom(netip.MustParseAddr("192.0.2.2"), 0)}.String())
	l.now += 2 * absence
	l.flush()
	if len(l.absent) != 0 {
		t.Errorf("%d are absent", len(l.absent))
	}
}
