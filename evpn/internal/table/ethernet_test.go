package table

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/evpn/internal/election"
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

// A VTEP that leaves the segment costs one row, whatever the number of hosts (RFC 7432, section 8.2).
func TestMassWithdrawal(t *testing.T) {
	for _, mode := range []bool{false, true} {
		l := newLab(t, nil)
		flush := func() int {
			var c counter
			if err := l.Flush(0, "evpn", &c, l); err != nil {
				t.Fatal(err)
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

// home has port 3 be on the segment.
func (l *lab) home(edit func(*EthernetSegment)) {
	c := EthernetSegment{ESI: esi, Port: "p1", Dest: frame.NewDest(3, 0), VNIs: []frame.VNI{100}, Up: true}
	if edit != nil {
		edit(&c)
	}
	l.SetEthernets(l.now, []EthernetSegment{c})
}

func (l *lab) claim() (seq int, on route.ESI) {
	l.t.Helper()
	l.flush()
	for k, r := range l.told {
		if k.Kind == route.MACIP && k.MAC == mac(1) {
			n, _ := r.Communities.Mobility()
			return int(n), r.ESI
		}
	}
	return -1, route.ESI{}
}

// A host of our segment that another VTEP says is at our port as long as that is there, and it has not moved: neither VTEP takes it from
// the other, and both say one sequence.
func TestOurSegment(t *testing.T) {
	l := newLab(t, nil)
	theirs := func(seq uint32, edit func(*route.Route)) {
		r := onSegment(by(2, macIP(mac(1), "")))
		communities2(r, target(65000, 100), route.Mobility(seq, false))
		if edit != nil {
			edit(r)
		}
		l.Learned(l.now, peer, r)
	}
	says := func(seq int, on route.ESI) {
		t.Helper()
		if n, e := l.claim(); n != seq || e != on {
			t.Errorf("told %d on %v, want %d on %v", n, e, seq, on)
		}
	}
	all, local := esi.String(), control.MAC{VNI: 100, MAC: mac(1), Port: "p1"}.String()
	l.Learned(0, peer, by(2, whole()))
	l.Learned(0, peer, by(2, alias()))
	l.home(nil)
	theirs(3, nil)
	l.want(local)
	says(-1, route.ESI{})
	l.home(func(c *EthernetSegment) { c.Up = false })
	l.want(behind(1, all), member(all, 2))
	l.home(func(c *EthernetSegment) { c.SingleActive = true; c.Wait = time.Minute })
	l.want(behind(1, all), member(all, 2)) // blocked
	l.home(nil)
	l.want(local)

	here := func(port uint32) { l.Here(l.now, 100, mac(1), frame.NewDest(uint16(port), 0), false) }
	for range 20 { // more than would make a duplicate
		l.now += time.Second
		here(3)
		says(3, esi)
		l.want()
		theirs(3, nil)
		l.flush()
		l.Gone(l.now, 100, mac(1))
		l.want(local)
		l.Withdrawn(l.now, peer, &onSegment(by(2, macIP(mac(1), ""))).Key)
		l.want()
		theirs(3, nil)
	}
	here(3)
	theirs(5, nil) // it was elsewhere meanwhile, and is back there
	says(5, esi)
	here(4) // another port: it has moved
	says(6, route.ESI{})
	theirs(5, nil)
	says(6, route.ESI{})
	theirs(7, nil)
	says(-1, route.ESI{})
	l.want(local)
	here(3)
	says(7, esi)
	other := esi
	other[9] = 2
	l.home(func(c *EthernetSegment) { c.ESI = other }) // the port is on another one: of equal claims the lower address counts
	says(7, other)
	l.home(nil)
	theirs(8, func(r *route.Route) { r.ESI = other })
	says(-1, route.ESI{})
	theirs(9, nil)
	says(-1, route.ESI{})
	here(3)
	says(9, esi)
	l.SetEthernets(l.now, nil)
	says(9, route.ESI{})
	l.Gone(l.now, 100, mac(1))
	l.want(behind(1, all), member(all, 2))
	l.Down(l.now, peer)
	l.want()
	for n := range l.Duplicates() {
		t.Errorf("a duplicate at %v", n)
	}
}

// A host route of a VTEP that has left the segment goes, and one of a host at our own port is not needed.
func TestSegmentRoutes(t *testing.T) {
	l := newLab(t, nil)
	routes := func(want int) {
		t.Helper()
		l.flush()
		n := 0
		for _, r := range l.rows.Rows("evpn") {
			if _, ok := r.(control.Prefix); ok {
				n++
			}
		}
		if n != want {
			t.Errorf("%q: want %d routes", l.list(), want)
		}
	}
	for _, n := range []byte{2, 3} {
		r := onSegment(by(n, macVRF(mac(2), "10.2.0.2")))
		r.Communities += route.Join(route.Mobility(uint32(n), false))
		l.Learned(0, peer, r)
	}
	routes(0)
	l.Learned(0, peer, by(2, whole()))
	routes(1)
	l.Learned(0, peer, by(3, whole()))
	routes(2)
	l.Withdrawn(0, peer, &by(2, whole()).Key)
	routes(1)
	l.home(func(c *EthernetSegment) { c.VNIs = []frame.VNI{200} })
	routes(0)
	l.SetEthernets(0, nil)
	routes(1)
	l.Down(0, peer)
	routes(0)
	l.empty()
}

// Routes of a segment of ours, while the port is there.
func TestOurRoutes(t *testing.T) {
	l := newLab(t, nil)
	count := func(whole, nets, four int) {
		t.Helper()
		l.flush()
		n := [3]int{}
		for k, r := range l.told {
			single, labelled := r.Communities.ESILabel()
			switch {
			case k.Kind == route.Segment:
				n[2]++
				if k.Segment != esi || k.IP != at(ours) || r.NextHop != at(ours) || !r.Communities.ESImports(esi) || r.Communities.Election().Algorithm != 1 {
					t.Errorf("%+v", r)
				}
			case k.Kind == route.AutoDiscovery && k.Tag == route.AllTags:
				if n[0]++; !labelled || !single || r.Labels[0] != 0 || r.NumLabels != 1 {
					t.Errorf("%+v", r)
				}
			case k.Kind == route.AutoDiscovery:
				if n[1]++; labelled || k.Tag != 0 || r.Labels[0] == 0 {
					t.Errorf("%+v", r)
				}
			}
		}
		if want := [3]int{whole, nets, four}; n != want {
			t.Errorf("%v routes, want %v", n, want)
		}
	}
	edit := func(up bool, vnis ...frame.VNI) {
		l.home(func(c *EthernetSegment) {
			c.Up, c.VNIs, c.SingleActive, c.Election.Algorithm = up, vnis, true, election.HRW
		})
	}
	edit(true, 100)
	count(1, 1, 1)
	edit(true, 100, 200)
	count(1, 2, 1)
	edit(false, 100, 200)
	count(0, 0, 0)
	var vnis []frame.VNI
	for i := range 250 {
		vnis = append(vnis, frame.VNI(1000+i))
		l.SetSegment(0, Segment{VNI: frame.VNI(1000 + i), VTEP: at(ours)})
	}
	edit(true, vnis...)
	count(3, 250, 1)
	rds := map[route.RD]bool{}
	for k, r := range l.told {
		if k.Kind == route.AutoDiscovery && k.Tag == route.AllTags {
			rds[k.RD] = true
			if r.Communities.Len() > 128 {
				t.Errorf("%d communities", r.Communities.Len())
			}
		}
	}
	if len(rds) != 3 {
		t.Errorf("%d route distinguishers", len(rds))
	}
	l.DeleteSegment(1000)
	count(3, 249, 1)
	l.SetEthernets(0, nil)
	count(0, 0, 0)
	l.empty()
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

// The switch is told what the port does, and nothing twice.
func TestRoles(t *testing.T) {
	l := newLab(t, nil)
	want := func(text string) {
		t.Helper()
		l.flush()
		if got := fmt.Sprint(l.roles[100]); got != text {
			t.Errorf("%s, want %s", got, text)
		}
	}
	all := func(up bool) { l.home(func(c *EthernetSegment) { c.Wait, c.Up = 3*time.Second, up }) }
	all(true)
	want("{false true []}") // it waits
	l.now = 2 * time.Second
	l.Learned(l.now, peer, by(2, multicast())) // there is somebody now who may know others: it waits anew
	l.now = 4 * time.Second
	want("{false true []}")
	l.now = 5 * time.Second
	want("{false false []}")
	l.Learned(l.now, peer, by(2, rival())) // 100 modulo 2 is 0: we, the lower one
	want("{false false [192.0.2.2]}")
	r := by(9, rival())
	r.IP = at("10.0.0.1")
	l.Learned(l.now, peer, r) // 100 modulo 3 is 1
	want("{false false [192.0.2.2 192.0.2.9]}")
	l.Withdrawn(l.now, peer, &by(2, rival()).Key)
	want("{false true [192.0.2.9]}")
	all(false)
	l.Withdrawn(l.now, peer, &r.Key)
	want("{false true []}")
	all(true)
	l.now += 3 * time.Second
	want("{false false []}")
	l.home(func(c *EthernetSegment) { c.SingleActive = true })
	want("{false false []}")
	l.Learned(l.now, peer, r)
	want("{true false []}")
	if x := l.Ethernets(); len(x) != 1 || len(x[0].Candidates) != 2 || x[0].Networks[0].Forward || x[0].Port != "p1" || !x[0].SingleActive || x[0].Waiting || !x[0].Up {
		t.Errorf("%+v", x)
	}
	if got := fmt.Sprint(l.roles[200]); got != "{true false []}" { // not a member: if it becomes one, it begins so
		t.Error(got)
	}
	l.SetEthernets(l.now, nil)
	want("{false false []}")
	if slices.Contains(l.list(), "p1") {
		t.Error(l.list())
	}
}
