package table

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

var esi = route.ESI{3, 2, 0, 0, 0, 0, 5, 0, 0, 1}

// whole is a route of type 1 about the segment, alias one about network 100 of it, rival one of type 4.
func whole() *route.Route {
	return &route.Route{Key: route.Key{Kind: route.AutoDiscovery, RD: route.RD{7: 9}, Tag: route.AllTags, Segment: esi}, NumLabels: 1, NextHop: at("192.0.2.2"),
		Communities: route.Join(target(65000, 100), target(65000, 200), route.ESILabel(false))}
}

func alias() *route.Route {
	r := &route.Route{Key: route.Key{Kind: route.AutoDiscovery, RD: route.RD{7: 7}, Segment: esi}, NumLabels: 1, NextHop: at("192.0.2.2"), Communities: route.Join(target(65000, 100))}
	r.Labels[0] = 100
	return r
}

func rival() *route.Route {
	return &route.Route{Key: route.Key{Kind: route.Segment, RD: route.RD{7: 9}, Segment: esi, IP: at("192.0.2.2")}, NextHop: at("192.0.2.2"), Communities: route.Join(route.ESImport(esi))}
}

// by has a route be of another VTEP.
func by(n byte, r *route.Route) *route.Route {
	r.RD[6] = n
	r.NextHop = route.AddrFrom(netip.AddrFrom4([4]byte{192, 0, 2, n}))
	if r.Kind == route.Segment {
		r.IP = r.NextHop
	}
	return r
}

func onSegment(r *route.Route) *route.Route { r.ESI = esi; return r }

func single(r *route.Route) *route.Route {
	communities2(r, target(65000, 100), route.ESILabel(true))
	return r
}

func member(name string, vtep byte) string {
	return control.Group{VNI: 100, Name: name, VTEP: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, vtep}), 0)}.String()
}

func behind(n byte, name string) string {
	return control.MAC{VNI: 100, MAC: mac(n), Group: name}.String()
}

// empty checks that nothing is kept of Ethernet segments.
func (l *lab) empty() {
	l.t.Helper()
	if len(l.ethernets)+len(l.homed)+len(l.ports)+l.far.size+len(l.far.of)+len(l.stirred) != 0 {
		l.t.Fatalf("%d Ethernet segments, %d of ours, %d ports, %d of peers are left", len(l.ethernets), len(l.homed), len(l.ports), l.far.size)
	}
}

// A host goes to all VTEPs that have its segment and take its network, those that have not said the host as well (RFC 7432, section 8.4).
func TestAliasing(t *testing.T) {
	l := newLab(t, nil)
	all := esi.String()
	l.Learned(0, peer, onSegment(by(2, macIP(mac(1), ""))))
	l.want(behind(1, all+" 192.0.2.2")) // the segment is not said: the host waits
	l.Learned(0, peer, by(2, whole()))
	l.want(behind(1, all+" 192.0.2.2"), member(all+" 192.0.2.2", 2)) // nobody takes the network for it
	l.Learned(0, peer, by(3, alias()))
	l.want(behind(1, all+" 192.0.2.2"), member(all+" 192.0.2.2", 2)) // 3 is not on the segment
	l.Learned(0, peer, by(2, alias()))
	l.want(behind(1, all), member(all, 2))
	l.Learned(0, peer, by(3, whole()))
	l.want(behind(1, all), member(all, 2), member(all, 3))
	l.Learned(0, peer, by(2, macIP(mac(2), ""))) // not on the segment
	l.Learned(0, peer, onSegment(by(2, macIP(mac(1), "10.0.0.1"))))
	l.Learned(0, peer, onSegment(by(3, macIP(mac(1), "10.0.0.2"))))
	one := func(ip string) string {
		return control.MAC{VNI: 100, MAC: mac(1), IP: netip.MustParseAddr(ip), Group: all}.String()
	}
	l.want(one("10.0.0.1"), one("10.0.0.2"), row(2, 100, "").String(), member(all, 2), member(all, 3))
	// Another VNI at the far end.
	l.Learned(0, peer, with(by(3, alias()), func(r *route.Route) { r.Labels[0] = 7001 }))
	l.want(one("10.0.0.1"), one("10.0.0.2"), row(2, 100, "").String(), member(all, 2), control.Group{VNI: 100, Name: all, VTEP: netip.MustParseAddrPort("192.0.2.3:0"), FarVNI: 7001}.String())
	l.Down(0, peer)
	l.want()
	l.empty()
}

// counter counts the rows that are written.
type counter int

func (c *counter) Program(_ string, u control.Update) error {
	*c += counter(len(u.Add) + len(u.Del))
	return nil
}

// FRR 8.4 as a reflector has 0 in place of the label of type 1: the VTEPs take part with the VNI of the network.
func TestAliasingLabelZero(t *testing.T) {
	l := newLab(t, nil)
	all := esi.String()
	for _, n := range []byte{2, 3} {
		l.Learned(0, peer, by(n, whole()))
		l.Learned(0, peer, by(n, with(alias(), func(r *route.Route) { r.Labels[0] = 0 })))
	}
	l.Learned(0, peer, onSegment(by(2, macIP(mac(1), ""))))
	l.want(behind(1, all), member(all, 2), member(all, 3))
}

// A VTEP that leaves the segment costs one row, whatever the number of hosts (RFC 7432, section 8.2).
func TestMassWithdrawal(t *testing.T) {
	for _, mode := range []bool{false, true} {
		l := newLab(t, nil)
		flush := func() int {
			var c counter
			for more := true; more; more = l.More() {
				if err := l.Flush(0, "evpn", &c, l); err != nil {
					t.Fatal(err)
				}
			}
			return int(c)
		}
		say := func(vtep byte) {
			r := by(vtep, whole())
			communities2(r, target(65000, 100), route.ESILabel(mode))
			l.Learned(0, peer, r)
			l.Learned(0, peer, by(vtep, alias()))
		}
		say(2)
		say(3)
		const hosts = 10000
		for i := range hosts {
			l.Learned(0, peer, onSegment(by(2, macIP(frame.MAC{2, 1, 0, 0, byte(i >> 8), byte(i)}, ""))))
		}
		if n := flush(); n < hosts {
			t.Fatalf("%d rows", n)
		}
		l.Withdrawn(0, peer, &by(2, whole()).Key)
		want := 1
		if mode {
			want = 2 // the other one comes in place of it
		}
		if n := flush(); n != want {
			t.Errorf("single-active %v: %d rows", mode, n)
		}
		l.Learned(0, peer, func() *route.Route {
			r := by(2, whole())
			communities2(r, target(65000, 100), route.ESILabel(mode))
			return r
		}())
		if n := flush(); n != want {
			t.Errorf("single-active %v: %d rows when it is back", mode, n)
		}
	}
}

// Where one VTEP at a time forwards, a host is at the one that says it, and when that has left the segment, at the other, if there is one
// only (RFC 7432, section 14.1.1).
func TestSingleActive(t *testing.T) {
	l := newLab(t, nil)
	name := esi.String() + " 192.0.2.2"
	for _, n := range []byte{2, 3} {
		l.Learned(0, peer, single(by(n, whole())))
		l.Learned(0, peer, by(n, alias()))
	}
	l.Learned(0, peer, onSegment(by(2, macIP(mac(1), ""))))
	l.want(behind(1, name), member(name, 2))
	l.Withdrawn(0, peer, &by(2, whole()).Key)
	l.want(behind(1, name), member(name, 3))
	l.Learned(0, peer, single(by(4, whole())))
	l.Learned(0, peer, by(4, alias()))
	l.want(behind(1, name)) // which of them is not known: frames are flooded
	l.Withdrawn(0, peer, &by(4, alias()).Key)
	l.want(behind(1, name), member(name, 3))
	// The forwarder that has taken over says the host.
	l.Learned(0, peer, onSegment(by(3, macIP(mac(1), ""))))
	l.Withdrawn(0, peer, &onSegment(by(2, macIP(mac(1), ""))).Key)
	name = esi.String() + " 192.0.2.3"
	l.want(behind(1, name), member(name, 3))
	// One that says all forward does not make it so.
	l.Learned(0, peer, by(2, whole()))
	l.want(behind(1, name), member(name, 3))
	for _, n := range []byte{3, 4} {
		l.Learned(0, peer, by(n, whole()))
	}
	l.want(behind(1, esi.String()), member(esi.String(), 2), member(esi.String(), 3))
}

// What peers may say of Ethernet segments is bounded; a VTEP that says much makes room for others.
func TestWorstEthernets(t *testing.T) {
	const limit = 64
	l := newLab(t, func(c *Config) { c.MaxEthernets = limit })
	l.home(nil)
	id := func(r *route.Route, i int) *route.Route {
		r.Segment = route.ESI{3, 9, byte(i >> 8), byte(i)}
		return r
	}
	for i := range 10 * limit {
		l.Learned(0, peer, id(by(99, whole()), i))
		l.Learned(0, peer, id(by(99, alias()), i))
	}
	for i := range 10 {
		l.Learned(0, peer, id(by(2, whole()), 5000+i))
		l.Learned(0, peer, id(by(2, alias()), 5000+i))
	}
	l.flush()
	kept := 0
	for e := range l.ethernets {
		if l.ethernets[e].has(at("192.0.2.2")) {
			kept++
		}
	}
	worst.Kept(t, "Ethernet segments of EVPN VTEPs", 10, kept)
	if l.far.size != limit || l.Left()[leftESLimit] != 2*(10*limit-limit+10) {
		t.Errorf("%d segments, left out %v", l.far.size, l.Left())
	}
	l.Down(0, peer)
	// Candidates of an election, and VTEPs on one segment.
	for i := range 10 * maxPaths {
		r := by(99, rival())
		r.IP = route.AddrOf([]byte{10, 9, byte(i >> 8), byte(i)})
		l.Learned(0, peer, r)
		w := by(99, whole())
		w.RD[4], w.RD[5] = byte(i>>8), byte(i)
		l.Learned(0, peer, w)
		a := by(99, alias())
		a.RD[4], a.RD[5] = byte(i>>8), byte(i)
		l.Learned(0, peer, a)
	}
	for i := range byte(10) {
		for _, r := range []*route.Route{rival(), whole(), alias()} {
			l.Learned(0, peer, by(2+i, r))
		}
	}
	l.Learned(0, peer, onSegment(by(2, with(macIP(mac(1), ""), func(r *route.Route) {}))))
	l.flush()
	e := l.ethernets[esi]
	if len(e.rivals) != maxRivals || len(e.whole) != maxPaths || len(e.homed.others()) != 11 || len(e.vteps) != 11 {
		t.Errorf("%d candidates of %d VTEPs, %d paths of %d", len(e.rivals), len(e.homed.others()), len(e.whole), len(e.vteps))
	}
	l.Down(0, peer)
	l.SetEthernets(0, nil)
	l.want()
	l.empty()
	if len(l.Left()) != 0 {
		t.Error(l.Left())
	}
}
