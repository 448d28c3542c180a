package vtep

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// life drives a VTEP's peers and checks the count of learned ones after each step.
type life struct {
	t *testing.T
	v *VTEP
	u *fake
	r frame.Reader
}

func newLife(t *testing.T, cfg *Config) *life {
	u := fake4()
	v := newVTEP(t, cfg, u)
	check.OK(t, v.Control().Open(vni))
	return &life{t, v, u, v.Readers()[0]}
}

// hear has a frame come in from peer i, and returns the number it came in under.
func (l *life) hear(i int) uint16 {
	l.t.Helper()
	fs := l.u.hear(l.t, l.r, at(i), vx(vni, inner(i)))
	check.Need(l.t, fs[0].Drop == 0, "peer %d: %v", i, fs[0].Drop)
	return fs[0].From.Peer()
}

func (l *life) learned(want int) {
	l.t.Helper()
	check.Equal(l.t, "learned peers", l.v.Stats().Learned, want)
}

func (l *life) retire(named ...uint16) []uint16 {
	return l.v.Control().Retire(func(n uint16) bool { return slices.Contains(named, n) })
}

func (l *life) number(i int) uint16 {
	for _, p := range l.v.Stats().Peers {
		if p.Addr == at(i) {
			return p.Peer
		}
	}
	return 0
}

func TestLearnedPeerLives(t *testing.T) {
	l := newLife(t, nil)
	a, b := l.hear(1), l.hear(2)
	check.Need(t, a != 0 && l.hear(1) == a && b != a, "a peer is its address")
	l.learned(2)
	if got := l.retire(); got != nil {
		t.Fatalf("%v retired at the first look", got)
	}
	l.hear(2)
	got := l.retire() // 1 was quiet and named by nobody, twice; 2 was heard
	check.Need(t, slices.Equal(got, []uint16{a}), "%v retired", got)
	l.learned(1)
	check.True(t, l.number(1) == 0, "a retired peer is still shown")
	check.True(t, l.retire(b) == nil, "retired twice")
	again := l.hear(1)
	check.True(t, again != a && again != 0, "heard again under %d, which is not free yet", again)
	l.v.Control().Free(got)
	l.v.Control().Free(got) // twice is harmless
	if c := l.hear(3); c != a {
		t.Errorf("new peer is %d, %d was free", c, a)
	}
	check.True(t, l.hear(4) != a, "a number was given twice")
	l.learned(4)
}

func TestNamedPeerStays(t *testing.T) {
	l := newLife(t, nil)
	a := l.hear(1)
	for range 5 {
		if got := l.retire(a); got != nil {
			t.Fatalf("%v retired while named", got)
		}
	}
	check.Need(t, l.retire() == nil, "retired at the first look after it was named")
	check.Slice(t, "retire", l.retire(), []uint16{a})
}

func TestHeardPeerStays(t *testing.T) {
	l := newLife(t, nil)
	a := l.hear(1)
	for range 5 {
		if got := l.retire(); got != nil {
			t.Fatalf("%v retired while heard", got)
		}
		check.Need(t, l.hear(1) == a, "another number")
	}
}

func TestFreeOfOthersDoesNothing(t *testing.T) {
	l := newLife(t, nil)
	a := l.hear(1)
	l.v.Control().Free([]uint16{a, 0, 999})
	check.True(t, l.hear(1) == a, "freed without Retire")
}

// The count of learned peers is right through every way of being listed.
func TestLearnedCount(t *testing.T) {
	l := newLife(t, nil)
	a := l.hear(1)
	l.learned(1)
	check.True(t, addPeer(t, l.v, at(1)) == a, "AddPeer gave a known peer another number")
	l.learned(0)
	flood(t, l.v, vni, at(1), at(2))
	flood(t, l.v, 200, at(1))
	l.learned(0)
	l.v.DeletePeer(a)
	l.learned(0) // in flood lists
	check.True(t, l.retire() == nil, "retired a peer of a flood list")
	check.OK(t, l.v.SetFlood(vni))
	l.learned(1) // 2
	check.OK(t, l.v.SetFlood(200))
	l.learned(2)
	got := l.retire()
	if !slices.Equal(got, []uint16{a}) { // deleted: at once; 2 is a learned one now
		t.Errorf("%v", got)
	}
	l.learned(1)
	l.v.Control().Free(got)
	l.retire()
	l.learned(0)

	b, c := l.hear(3), l.hear(4)
	g := check.Must(l.v.Group(b, c, b))(t)
	l.learned(0)
	l.v.DeletePeer(g)
	l.learned(2)
	l.v.Control().Free(l.retire(b, c))
	l.learned(2)
	if _, err := l.v.NextHop(at(3), 7); err != nil {
		t.Error(err)
	}
	l.learned(2)
	l.v.DeletePeer(b) // never added: nothing happens
	l.learned(2)
	for range 3 {
		l.v.Control().Free(l.retire())
	}
	l.learned(0)
}

func TestDeletedPeerAddedAgain(t *testing.T) {
	l := newLife(t, nil)
	a := addPeer(t, l.v, at(1))
	l.v.DeletePeer(a)
	if b := addPeer(t, l.v, at(1)); b != a {
		t.Errorf("before Retire: %d, was %d", b, a)
	}
	check.True(t, l.retire() == nil, "an added peer was retired")
	l.v.DeletePeer(a)
	got := l.retire(a) // deleted: whoever names it
	check.Need(t, slices.Equal(got, []uint16{a}), "%v", got)
	check.True(t, addPeer(t, l.v, at(1)) != a, "the number is not free yet")
	check.True(t, l.v.PeerName(a) != "", "a retired number has lost its name before Free")
	l.v.Control().Free(got)
	check.True(t, l.v.PeerName(a) == "", "a free number has a name")
}

func TestMaxPeers(t *testing.T) {
	l := newLife(t, &Config{MaxPeers: 3})
	for i := 1; i <= 3; i++ {
		check.Need(t, l.hear(i) != 0, "no number")
	}
	for i := 4; i <= 6; i++ {
		if n := l.hear(i); n != 0 {
			t.Errorf("peer %d is number %d", i, n)
		}
	}
	if st := l.v.Stats(); st.Learned != 3 || st.PeerLimit != 3 || len(st.Peers) != 3 {
		t.Errorf("%+v", st)
	}
	addPeer(t, l.v, at(1)) // one is listed now: room for another
	check.True(t, l.hear(4) != 0, "no room")
	check.True(t, l.hear(5) == 0, "one too many")
	l.retire()
	l.v.Control().Free(l.retire())
	l.learned(0)
	check.True(t, l.hear(5) != 0, "no room after Retire")
}

func TestListedOnly(t *testing.T) {
	u := fake4()
	v := newVTEP(t, &Config{Peers: ListedOnly}, u)
	check.OK(t, v.Control().Open(vni))
	r := v.Readers()[0]
	if fs := u.hear(t, r, at(1), vx(vni, inner(1))); fs[0].Drop != frame.UnknownPeer {
		t.Error(fs[0].Drop)
	}
	n := addPeer(t, v, at(1))
	if fs := u.hear(t, r, at(1), vx(vni, inner(1))); fs[0].Drop != 0 || fs[0].From.Peer() != n {
		t.Error(fs[0].Drop, fs[0].From)
	}
	// A deleted peer is no stranger until Retire; then it is.
	v.DeletePeer(n)
	v.Control().Free(v.Control().Retire(func(uint16) bool { return true }))
	if fs := u.hear(t, r, at(1), vx(vni, inner(1))); fs[0].Drop != frame.UnknownPeer {
		t.Error(fs[0].Drop)
	}
}

func TestAddPeerAims(t *testing.T) {
	u := fake4()
	v := newVTEP(t, &Config{Port: 8472}, u)
	n := addPeer(t, v, netip.AddrPortFrom(at(1).Addr(), 0))
	w := v.Writer(0)
	check.OK(t, w.Write(out(n, 1)))
	check.True(t, addPeer(t, v, netip.AddrPortFrom(at(1).Addr(), 5555)) == n, "another number for another port")
	check.OK(t, w.Write(out(n, 1)))
	if a, b := u.sent[0].to[0].Port(), u.sent[1].to[0].Port(); a != 8472 || b != 5555 {
		t.Errorf("ports %d, %d", a, b)
	}
	check.Equal(t, "PeerName", v.PeerName(n), fmt.Sprintf("%v:5555", at(1).Addr()))
}

func TestNextHop(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	n := check.Must(v.NextHop(at(1), 7777))(t)
	p := addPeer(t, v, at(1))
	check.Need(t, n != p && n != 0, "numbers %d, %d", n, p)
	m := check.Must(v.NextHop(at(1), 7778))(t)
	outs := out(n, 3)
	outs[1].Peer, outs[2].Peer = p, m
	check.OK(t, v.Writer(0).Write(outs))
	for i, want := range []frame.VNI{7777, vni, 7778} {
		if got := string(u.sent[i].payload); got != string(vx(want, inner(i))) {
			t.Errorf("% x", got)
		}
		check.True(t, u.sent[i].to[0] == at(1), "%v", u.sent[i].to)
	}
	check.Equal(t, "PeerName", v.PeerName(n), at(1).String()+" vni 7777")
	// What comes from there comes from the peer, not from the next hop.
	check.OK(t, v.Control().Open(vni))
	if fs := u.hear(t, v.Readers()[0], at(1), vx(vni, inner(1))); fs[0].From.Peer() != p {
		t.Errorf("from %v", fs[0].From)
	}
	v.DeletePeer(n)
	v.Control().Free(v.Control().Retire(func(uint16) bool { return false }))
	outs = out(n, 1)
	check.OK(t, v.Writer(0).Write(outs))
	check.Equal(t, "Drop", outs[0].Drop, frame.NoPeer)
}

// Rendezvous hashing: flows spread evenly, and a member that goes moves only its own.
func TestGroup(t *testing.T) {
	const flows = 4000
	u := fake4()
	v := newVTEP(t, nil, u)
	var peers []uint16
	for i := range 4 {
		peers = append(peers, addPeer(t, v, at(i+1)))
	}
	choices := func(g uint16) (c []netip.AddrPort) {
		u.sent = nil
		check.OK(t, v.Writer(0).Write(out(g, flows)))
		for _, s := range u.sent {
			if s.seg == 0 {
				s.seg = len(s.payload)
			}
			// Neighbours that happen to hash alike leave as one run.
			for p := range slices.Chunk(s.payload, s.seg) {
				if len(s.to) != 1 || string(p) != string(vx(vni, inner(len(c)))) {
					t.Fatalf("flow %d: %v", len(c), s.to)
				}
				c = append(c, s.to[0])
			}
		}
		return c
	}
	four := check.Must(v.Group(peers...))(t)
	three := check.Must(v.Group(peers[0], peers[1], peers[3]))(t)
	a, b := choices(four), choices(three)
	count := map[netip.AddrPort]int{}
	for i := range a {
		count[a[i]]++
		if a[i] != at(3) && a[i] != b[i] {
			t.Fatalf("flow %d went to %v, and to %v when %v had gone", i, a[i], b[i], at(3))
		}
		check.Need(t, b[i] != at(3), "to a member that is not there")
	}
	for p, n := range count {
		if n < flows/4-150 || n > flows/4+150 { // five standard deviations
			t.Errorf("%v has %d of %d flows", p, n, flows)
		}
	}
	moved := map[netip.AddrPort]int{}
	for i := range a {
		if a[i] == at(3) {
			moved[b[i]]++
		}
	}
	for p, n := range moved {
		if n < count[at(3)]/3-90 || n > count[at(3)]/3+90 {
			t.Errorf("%v took over %d of %d flows", p, n, count[at(3)])
		}
	}
	check.True(t, slices.Equal(a, choices(four)), "a flow changed its way")
	// A member that is down is passed over as if it were not there, also by its other numbers.
	check.OK(t, v.SetDown(at(3).Addr(), true))
	check.True(t, slices.Equal(b, choices(four)), "flows with a dead member")
	other := check.Must(v.NextHop(at(3), 77))(t)
	alone := check.Must(v.Group(peers[2]))(t)
	check.True(t, v.Down(peers[2]) && v.Down(other) && v.Down(alone) && !v.Down(four) && !v.Down(peers[0]) && !v.Down(9999), "Down")
	check.Need(t, len(choices(alone)) == flows, "a group whose members are all dead")
	check.OK(t, v.SetDown(at(3).Addr(), false))
	check.True(t, slices.Equal(a, choices(four)) && !v.Down(other), "flows do not come back")
	check.True(t, v.SetDown(netip.MustParseAddr("239.0.0.1"), true) != nil, "a group address")
	v.DeletePeer(alone)
	v.DeletePeer(other)
	for range 3 {
		v.Control().Free(v.Control().Retire(func(uint16) bool { return false }))
	}
	if s := v.PeerName(four); s != "group of 198.51.0.1:4789, 198.51.0.2:4789, 198.51.0.3:4789, 198.51.0.4:4789" {
		t.Error(s)
	}
	check.True(t, check.Err(v.Group(four)) != nil, "a group of groups")
	// A member of a group is not retired, a group that is deleted lets go of it.
	for _, p := range peers {
		v.DeletePeer(p)
	}
	if got := v.Control().Retire(func(uint16) bool { return false }); got != nil {
		t.Errorf("%v retired", got)
	}
	v.DeletePeer(four)
	v.DeletePeer(three)
	var gone []uint16
	for range 3 {
		got := v.Control().Retire(func(uint16) bool { return false })
		v.Control().Free(got)
		gone = append(gone, got...)
	}
	if len(gone) != 6 || len(v.Stats().Peers) != 0 {
		t.Errorf("%v gone, %+v left", gone, v.Stats().Peers)
	}
}

// The group's members may send with VNIs of their own.
func TestGroupOfNextHops(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	a := check.Must(v.NextHop(at(1), 11))(t)
	b := check.Must(v.NextHop(at(2), 22))(t)
	g := check.Must(v.Group(a, b))(t)
	check.OK(t, v.Writer(0).Write(out(g, 64)))
	n := map[netip.AddrPort]int{}
	for i, s := range u.sent {
		n[s.to[0]]++
		want := frame.VNI(11)
		if s.to[0] == at(2) {
			want = 22
		}
		check.Need(t, string(s.payload) == string(vx(want, inner(i))), "% x", s.payload)
	}
	check.True(t, n[at(1)] != 0 && n[at(2)] != 0, "%v", n)
}

// A batch says that peers have lost their numbers since theirs were looked up.
func TestBatchKnowsOfGonePeers(t *testing.T) {
	l := newLife(t, nil)
	l.hear(1)
	b := frame.NewBatch(nil)
	l.u.in = append(l.u.in, packetIn{src: endpoint(t, at(1)), data: vx(vni, inner(1))})
	check.OK(t, l.r.Read(b))
	for range 2 { // in the first, it may have been heard since
		if nums := l.retire(l.number(1)); nums != nil || b.Gone.Load() != b.Known {
			t.Fatalf("%v retired, %d, was %d", nums, b.Gone.Load(), b.Known)
		}
	}
	for n := 0; len(l.retire()) == 0; n++ {
		check.Need(t, n != 3, "not retired")
	}
	check.True(t, b.Gone.Load() != b.Known, "the batch is believed")
	check.OK(t, func() error {
		l.u.in = append(l.u.in, packetIn{src: endpoint(t, at(2)), data: vx(vni, inner(1))})
		return l.r.Read(b)
	}())
	check.True(t, b.Gone.Load() == b.Known, "one that was read later is not")
}

// A number leads to the peer that it has, or one of which it has.
func TestLeads(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	one, two, three := addPeer(t, v, at(1)), addPeer(t, v, at(2)), addPeer(t, v, at(3))
	far := check.Must(v.NextHop(netip.AddrPortFrom(at(2).Addr(), 4999), 7))(t)
	group := check.Must(v.Group(one, far))(t)
	for _, c := range []struct {
		to   uint16
		want [3]bool
	}{{one, [3]bool{true}}, {far, [3]bool{1: true}}, {group, [3]bool{true, true}}, {0, [3]bool{}}, {999, [3]bool{}}} {
		if got := [3]bool{v.Leads(c.to, one), v.Leads(c.to, two), v.Leads(c.to, three)}; got != c.want {
			t.Errorf("%d leads to %v, want %v", c.to, got, c.want)
		}
		if v.Leads(c.to, 0) || v.Leads(c.to, group) {
			t.Errorf("%d leads to a number that nobody sends under", c.to)
		}
	}
}
