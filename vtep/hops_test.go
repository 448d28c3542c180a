package vtep

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
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
	must(t, v.Control().Open(vni))
	return &life{t, v, u, v.Readers()[0]}
}

// hear has a frame come in from peer i, and returns the number it came in under.
func (l *life) hear(i int) uint16 {
	l.t.Helper()
	fs := l.u.hear(l.t, l.r, at(i), vx(vni, inner(i)))
	if fs[0].Drop != 0 {
		l.t.Fatalf("peer %d: %v", i, fs[0].Drop)
	}
	return fs[0].From.Peer()
}

func (l *life) learned(want int) {
	l.t.Helper()
	if n := l.v.Stats().Learned; n != want {
		l.t.Errorf("%d learned peers, want %d", n, want)
	}
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
	if a == 0 || l.hear(1) != a || b == a {
		t.Fatal("a peer is its address")
	}
	l.learned(2)
	if got := l.retire(); got != nil {
		t.Fatalf("%v retired at the first look", got)
	}
	l.hear(2)
	got := l.retire() // 1 was quiet and named by nobody, twice; 2 was heard
	if !slices.Equal(got, []uint16{a}) {
		t.Fatalf("%v retired", got)
	}
	l.learned(1)
	if l.number(1) != 0 {
		t.Error("a retired peer is still shown")
	}
	if l.retire(b) != nil {
		t.Error("retired twice")
	}
	again := l.hear(1)
	if again == a || again == 0 {
		t.Errorf("heard again under %d, which is not free yet", again)
	}
	l.v.Control().Free(got)
	l.v.Control().Free(got) // twice is harmless
	if c := l.hear(3); c != a {
		t.Errorf("new peer is %d, %d was free", c, a)
	}
	if d := l.hear(4); d == a {
		t.Error("a number was given twice")
	}
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
	if l.retire() != nil {
		t.Fatal("retired at the first look after it was named")
	}
	if got := l.retire(); !slices.Equal(got, []uint16{a}) {
		t.Errorf("%v", got)
	}
}

func TestHeardPeerStays(t *testing.T) {
	l := newLife(t, nil)
	a := l.hear(1)
	for range 5 {
		if got := l.retire(); got != nil {
			t.Fatalf("%v retired while heard", got)
		}
		if l.hear(1) != a {
			t.Fatal("another number")
		}
	}
}

func TestFreeOfOthersDoesNothing(t *testing.T) {
	l := newLife(t, nil)
	a := l.hear(1)
	l.v.Control().Free([]uint16{a, 0, 999})
	if l.hear(1) != a {
		t.Error("freed without Retire")
	}
}

// The count of learned peers is right through every way of being listed.
func TestLearnedCount(t *testing.T) {
	l := newLife(t, nil)
	a := l.hear(1)
	l.learned(1)
	if addPeer(t, l.v, at(1)) != a {
		t.Error("AddPeer gave a known peer another number")
	}
	l.learned(0)
	flood(t, l.v, vni, at(1), at(2))
	flood(t, l.v, 200, at(1))
	l.learned(0)
	l.v.DeletePeer(a)
	l.learned(0) // in flood lists
	if l.retire() != nil {
		t.Error("retired a peer of a flood list")
	}
	must(t, l.v.SetFlood(vni))
	l.learned(1) // 2
	must(t, l.v.SetFlood(200))
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
	g, err := l.v.Group(b, c, b)
	must(t, err)
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
	if l.retire() != nil {
		t.Error("an added peer was retired")
	}
	l.v.DeletePeer(a)
	got := l.retire(a) // deleted: whoever names it
	if !slices.Equal(got, []uint16{a}) {
		t.Fatalf("%v", got)
	}
	if b := addPeer(t, l.v, at(1)); b == a {
		t.Error("the number is not free yet")
	}
	if l.v.PeerName(a) == "" {
		t.Error("a retired number has lost its name before Free")
	}
	l.v.Control().Free(got)
	if l.v.PeerName(a) != "" {
		t.Error("a free number has a name")
	}
}

func TestMaxPeers(t *testing.T) {
	l := newLife(t, &Config{MaxPeers: 3})
	for i := 1; i <= 3; i++ {
		if l.hear(i) == 0 {
			t.Fatal("no number")
		}
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
	if l.hear(4) == 0 {
		t.Error("no room")
	}
	if l.hear(5) != 0 {
		t.Error("one too many")
	}
	l.retire()
	l.v.Control().Free(l.retire())
	l.learned(0)
	if l.hear(5) == 0 {
		t.Error("no room after Retire")
	}
}

func TestListedOnly(t *testing.T) {
	u := fake4()
	v := newVTEP(t, &Config{Peers: ListedOnly}, u)
	must(t, v.Control().Open(vni))
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
	must(t, w.Write(out(n, 1)))
	if addPeer(t, v, netip.AddrPortFrom(at(1).Addr(), 5555)) != n {
		t.Error("another number for another port")
	}
	must(t, w.Write(out(n, 1)))
	if a, b := u.sent[0].to[0].Port(), u.sent[1].to[0].Port(); a != 8472 || b != 5555 {
		t.Errorf("ports %d, %d", a, b)
	}
	if got := v.PeerName(n); got != fmt.Sprintf("%v:5555", at(1).Addr()) {
		t.Error(got)
	}
}

func TestNextHop(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	n, err := v.NextHop(at(1), 7777)
	must(t, err)
	p := addPeer(t, v, at(1))
	if n == p || n == 0 {
		t.Fatalf("numbers %d, %d", n, p)
	}
	m, err := v.NextHop(at(1), 7778)
	must(t, err)
	outs := out(n, 3)
	outs[1].Peer, outs[2].Peer = p, m
	must(t, v.Writer(0).Write(outs))
	for i, want := range []frame.VNI{7777, vni, 7778} {
		if got := string(u.sent[i].payload); got != string(vx(want, inner(i))) {
			t.Errorf("% x", got)
		}
		if u.sent[i].to[0] != at(1) {
			t.Error(u.sent[i].to)
		}
	}
	if s := v.PeerName(n); s != at(1).String()+" vni 7777" {
		t.Error(s)
	}
	// What comes from there comes from the peer, not from the next hop.
	must(t, v.Control().Open(vni))
	if fs := u.hear(t, v.Readers()[0], at(1), vx(vni, inner(1))); fs[0].From.Peer() != p {
		t.Errorf("from %v", fs[0].From)
	}
	v.DeletePeer(n)
	v.Control().Free(v.Control().Retire(func(uint16) bool { return false }))
	outs = out(n, 1)
	must(t, v.Writer(0).Write(outs))
	if outs[0].Drop != frame.NoPeer {
		t.Error(outs[0].Drop)
	}
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
		must(t, v.Writer(0).Write(out(g, flows)))
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
	four, err := v.Group(peers...)
	must(t, err)
	three, err := v.Group(peers[0], peers[1], peers[3])
	must(t, err)
	a, b := choices(four), choices(three)
	count := map[netip.AddrPort]int{}
	for i := range a {
		count[a[i]]++
		if a[i] != at(3) && a[i] != b[i] {
			t.Fatalf("flow %d went to %v, and to %v when %v had gone", i, a[i], b[i], at(3))
		}
		if b[i] == at(3) {
			t.Fatal("to a member that is not there")
		}
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
	if !slices.Equal(a, choices(four)) {
		t.Error("a flow changed its way")
	}
	if s := v.PeerName(four); s != "group of 198.51.0.1:4789, 198.51.0.2:4789, 198.51.0.3:4789, 198.51.0.4:4789" {
		t.Error(s)
	}
	if _, err := v.Group(four); err == nil {
		t.Error("a group of groups")
	}
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
	a, err := v.NextHop(at(1), 11)
	must(t, err)
	b, err := v.NextHop(at(2), 22)
	must(t, err)
	g, err := v.Group(a, b)
	must(t, err)
	must(t, v.Writer(0).Write(out(g, 64)))
	n := map[netip.AddrPort]int{}
	for i, s := range u.sent {
		n[s.to[0]]++
		want := frame.VNI(11)
		if s.to[0] == at(2) {
			want = 22
		}
		if string(s.payload) != string(vx(want, inner(i))) {
			t.Fatalf("% x", s.payload)
		}
	}
	if n[at(1)] == 0 || n[at(2)] == 0 {
		t.Errorf("%v", n)
	}
}

// A batch says that peers have lost their numbers since theirs were looked up.
func TestBatchKnowsOfGonePeers(t *testing.T) {
	l := newLife(t, nil)
	l.hear(1)
	b := frame.NewBatch(nil)
	l.u.in = append(l.u.in, packetIn{src: endpoint(t, at(1)), data: vx(vni, inner(1))})
	must(t, l.r.Read(b))
	for range 2 { // in the first, it may have been heard since
		if nums := l.retire(l.number(1)); nums != nil || b.Gone.Load() != b.Known {
			t.Fatalf("%v retired, %d, was %d", nums, b.Gone.Load(), b.Known)
		}
	}
	for n := 0; len(l.retire()) == 0; n++ {
		if n == 3 {
			t.Fatal("not retired")
		}
	}
	if b.Gone.Load() == b.Known {
		t.Error("the batch is believed")
	}
	must(t, func() error {
		l.u.in = append(l.u.in, packetIn{src: endpoint(t, at(2)), data: vx(vni, inner(1))})
		return l.r.Read(b)
	}())
	if b.Gone.Load() != b.Known {
		t.Error("one that was read later is not")
	}
}

// A number leads to the peer that it has, or one of which it has.
func TestLeads(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	one, two, three := addPeer(t, v, at(1)), addPeer(t, v, at(2)), addPeer(t, v, at(3))
	far, err := v.NextHop(netip.AddrPortFrom(at(2).Addr(), 4999), 7)
	must(t, err)
	group, err := v.Group(one, far)
	must(t, err)
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
