package table

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/evpn/internal/election"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// home has port 3 be on the segment.
func (l *lab) home(edit func(*EthernetSegment)) {
	c := EthernetSegment{ESI: esi, Port: "p1", VNIs: []frame.VNI{100}, Up: true}
	if edit != nil {
		edit(&c)
	}
	l.SetEthernets(l.now, []EthernetSegment{atPort3(c)})
}

// atPort3 has all members be port 3, unless they are elsewhere.
func atPort3(c EthernetSegment) EthernetSegment {
	if c.Dests == nil {
		c.Dests = slices.Repeat([]frame.Dest{frame.NewDest(3, 0)}, len(c.VNIs))
	}
	return c
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

// says checks which sequence of mac(1) peers are told, -1 for none, and on which segment.
func (l *lab) says(seq int, on route.ESI) {
	l.t.Helper()
	if n, e := l.claim(); n != seq || e != on {
		l.t.Errorf("told %d on %v, want %d on %v", n, e, seq, on)
	}
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
	all, local := esi.String(), control.MAC{VNI: 100, MAC: mac(1), Port: "p1"}.String()
	l.Learned(0, peer, by(2, whole()))
	l.Learned(0, peer, by(2, alias()))
	l.home(nil)
	theirs(3, nil)
	l.want(local)
	l.says(-1, route.ESI{})
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
		l.says(3, esi)
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
	l.says(5, esi)
	here(4) // another port: it has moved
	l.says(6, route.ESI{})
	theirs(5, nil)
	l.says(6, route.ESI{})
	theirs(7, nil)
	l.says(-1, route.ESI{})
	l.want(local)
	here(3)
	l.says(7, esi)
	other := esi
	other[9] = 2
	l.home(func(c *EthernetSegment) { c.ESI = other }) // the port is on another one: of equal claims the lower address counts
	l.says(7, other)
	l.home(nil)
	theirs(8, func(r *route.Route) { r.ESI = other })
	l.says(-1, route.ESI{})
	theirs(9, nil)
	l.says(-1, route.ESI{})
	here(3)
	l.says(9, esi)
	l.SetEthernets(l.now, nil)
	l.says(9, route.ESI{})
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

// Members of a port on an Ethernet segment that take only some frames have a Dest of their own: hosts at each are on the segment.
func TestMembersApart(t *testing.T) {
	l := newLab(t, nil)
	port, other := frame.NewDest(3, 0), frame.NewDest(9, 0)
	l.Here(0, 100, mac(1), port, false)
	l.Here(0, 200, mac(2), other, false)
	want := func(what string, one, two bool) {
		t.Helper()
		l.flush()
		for k, r := range l.told {
			if is := r.ESI == esi; k.MAC == mac(1) && is != one || k.MAC == mac(2) && is != two {
				t.Errorf("%s: %v is on %v", what, k.MAC, r.ESI)
			}
		}
	}
	both := func(c *EthernetSegment) {
		c.VNIs, c.Dests, c.Wait = []frame.VNI{100, 200}, []frame.Dest{port, other}, time.Second
	}
	l.home(both)
	want("both", true, true)
	l.now += time.Second
	l.flush()
	l.home(func(c *EthernetSegment) { both(c); c.VNIs, c.Dests = c.VNIs[1:], c.Dests[1:] })
	want("one", false, true)
	l.home(both)
	want("again", true, true)
	if x := l.Ethernets(); x[0].Waiting {
		t.Error("a member that comes has the others wait")
	}
	l.SetEthernets(l.now, nil)
	want("none", false, false)
	l.empty()
}
