package state

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A world is VTEPs joined by links that lose one message in five and deliver in any order.
type world struct {
	*rand.Rand
	now   time.Duration
	nodes []*State
	hosts [][]Host
	mesh  bool
	up    map[[2]int]bool
	fly   []flight
}

type flight struct {
	from int
	at   time.Duration
	Send
}

func addr(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(n + 1)}) }

// step sends what is due, and delivers what has arrived by the next tenth of a second.
func (w *world) step() (sent int) {
	for i, s := range w.nodes {
		for _, m := range s.Poll(w.now) {
			if sent++; w.IntN(5) > 0 {
				w.fly = append(w.fly, flight{i, w.now + time.Duration(w.IntN(300))*time.Millisecond, m})
			}
		}
	}
	w.now += 100 * time.Millisecond
	fly := w.fly
	w.fly = nil
	for _, f := range fly {
		to := int(f.To.As4()[3]) - 1
		switch {
		case f.at > w.now:
			w.fly = append(w.fly, f)
		case w.up[[2]int{min(f.from, to), max(f.from, to)}]:
			w.nodes[to].Receive(w.now, addr(f.from), f.Message)
		}
	}
	return sent
}

func (w *world) link(l [2]int, up bool) {
	w.up[l] = up
	for i := range l {
		if w.nodes[l[i]].Lost(addr(l[1-i])); up {
			w.nodes[l[i]].Adjacent(w.now, addr(l[1-i]), w.mesh)
		}
	}
}

// set changes the hosts of a VTEP, up to 300 of them: so there are parts.
func (w *world) set(n int) {
	for _, h := range w.hosts[n] {
		if w.IntN(2) == 0 {
			w.nodes[n].Remove(h.VNI, h.MAC)
		}
	}
	for range w.IntN(150) {
		w.nodes[n].Add(Host{VNI: frame.VNI(7 + w.IntN(2)), MAC: frame.MACFrom(0x0200_0000_0000 + w.Uint64N(300)), Kind: Kind(w.IntN(2)), Moves: uint16(w.IntN(3))})
	}
	w.nodes[n].Add(Host{VNI: 7})
	w.hosts[n] = nil
	for _, p := range w.nodes[n].own.parts {
		w.hosts[n] = append(w.hosts[n], p.hosts...)
	}
}

func (w *world) start(n int) {
	w.nodes[n], w.hosts[n] = New(addr(n), w.Uint64()>>2), nil
	w.set(n)
	for l, up := range w.up {
		if up && (l[0] == n || l[1] == n) {
			w.link(l, true)
		}
	}
}

// want returns who has each host and segment, from the lists of all VTEPs.
func (w *world) want() map[Key]netip.Addr {
	best := map[Key]Claim{}
	for i, hosts := range w.hosts {
		for _, h := range hosts {
			c := Claim{Owner: addr(i), Kind: h.Kind, Moves: h.Moves}
			if b, ok := best[h.key()]; !ok || c.compare(b) < 0 {
				best[h.key()] = c
			}
		}
	}
	want := map[Key]netip.Addr{}
	for k, c := range best {
		want[k] = c.Owner
	}
	return want
}

func (s *State) whole() map[Key]netip.Addr {
	at := map[Key]netip.Addr{}
	for _, vni := range s.VNIs() {
		for _, k := range s.Segment(vni) {
			c, _ := s.Best(k.VNI, k.MAC)
			at[k.Key] = c.Owner
		}
	}
	return at
}

// After quiet every VTEP says where each host is, whatever was lost, restarted or cut off before.
func TestModel(t *testing.T) {
	for seed := range uint64(1000) {
		if testing.Short() && seed == 100 {
			break
		}
		r := rand.New(rand.NewPCG(seed, 0))
		w := &world{Rand: r, up: map[[2]int]bool{}, mesh: seed%2 == 0}
		n := 2 + w.IntN(5)
		w.nodes, w.hosts = make([]*State, n), make([][]Host, n)
		for i := range n {
			w.start(i)
		}
		links := w.links(n)
		for range 20 {
			switch l := links[w.IntN(len(links))]; w.IntN(4) {
			case 0:
				w.start(w.IntN(n))
			case 1:
				w.set(w.IntN(n))
			default:
				w.link(l, !w.up[l])
			}
			for range w.IntN(20) {
				w.step()
			}
		}
		for i, l := range links {
			if !w.mesh || i < n-1 || w.IntN(3) > 0 { // a mesh may lack links to the end
				w.link(l, true)
			}
		}
		w.quiet(t, seed)
	}
}

// links returns a tree, and more: all, in a mesh.
func (w *world) links(n int) (tree [][2]int) {
	var more [][2]int
	for i := 1; i < n; i++ {
		to := w.IntN(i)
		tree = append(tree, [2]int{to, i})
		for j := range i {
			if j != to && (w.mesh || w.IntN(3) == 0) {
				more = append(more, [2]int{j, i})
			}
		}
	}
	return append(tree, more...)
}

// quiet waits until all is well, at most 100 s, which all links need; then all stays so.
func (w *world) quiet(t *testing.T, seed uint64) {
	t.Helper()
	want := w.want()
	for end := w.now + 100*time.Second; w.now < end; {
		w.step()
	}
	for i, s := range w.nodes {
		if got := s.whole(); !maps.Equal(got, want) {
			t.Fatalf("seed %d: %v has %d hosts, want %d, and these", seed, addr(i), len(got), len(want))
		}
		if n, _ := s.Adverts(); n != len(s.db.ages) || n != len(s.db.order) {
			t.Fatalf("seed %d: %v has %d advertisements, %d in order, %d by age", seed, addr(i), n, len(s.db.order), len(s.db.ages))
		}
		for _, p := range s.sorted {
			if p.flying > len(p.due) || p.flying < 0 {
				t.Fatalf("seed %d: %d of %d are under way to %v", seed, p.flying, len(p.due), p.addr)
			}
		}
	}
}

// All is silent between refreshes, with a neighbour that is not of the mesh.
func TestSilence(t *testing.T) {
	w := &world{Rand: rand.New(rand.NewPCG(0, 0)), up: map[[2]int]bool{}, nodes: make([]*State, 2), hosts: make([][]Host, 2)}
	w.start(0)
	w.start(1)
	w.link([2]int{0, 1}, true)
	for w.now < 20*time.Second {
		if n := w.step(); n > 0 && w.now > 15*time.Second {
			t.Fatalf("%d messages after %v", n, w.now)
		}
	}
}

// A change goes to each VTEP of a mesh once.
func TestMesh(t *testing.T) {
	const n = 20
	var nodes []*State
	for i := range n {
		nodes = append(nodes, New(addr(i), 1))
		for j := range n {
			if i != j {
				nodes[i].Adjacent(0, addr(j), true)
			}
		}
		nodes[i].gossips = time.Hour
	}
	nodes[3].Add(Host{VNI: 7})
	sent := 0
	for range 5 {
		for i, s := range nodes {
			for _, m := range s.Poll(0) {
				sent++
				nodes[m.To.As4()[3]-1].Receive(0, addr(i), m.Message)
			}
		}
	}
	if sent != 2*(n-1) {
		t.Errorf("%d messages, want %d with acknowledgements", sent, 2*(n-1))
	}
}

func advert(n int, seq uint64, hosts ...Host) Advert {
	return Advert{ID{addr(n), 0}, Head{seq, sum(hosts)}, Hold, hosts}
}

// What its owner no longer refreshes is gone after its hold time.
func TestAge(t *testing.T) {
	s := New(addr(0), 1)
	s.Adjacent(0, addr(1), false)
	s.Receive(0, addr(1), Update{advert(1, 1, Host{VNI: 7, MAC: frame.MACFrom(0x0200_0000_0001)})})
	if s.Poll(Hold - 1); len(s.Changes()) != 1 || len(s.whole()) != 1 {
		t.Error("the host is gone too early")
	}
	if s.Poll(Hold); len(s.Changes()) != 1 || len(s.whole()) != 0 {
		t.Error("the host is there still")
	}
}

// A message that breaks a rule changes nothing.
func TestRefused(t *testing.T) {
	for name, change := range map[string]func(*Advert){
		"owner":    func(a *Advert) { a.Owner = netip.Addr{} },
		"sequence": func(a *Advert) { a.Seq = MaxSeq + 1 },
		"hold":     func(a *Advert) { a.Hold = Hold + 1 },
		"aged":     func(a *Advert) { a.Hold = 0 },
		"checksum": func(a *Advert) { a.Sum++ },
		"hosts":    func(a *Advert) { a.Hosts = make([]Host, PartHosts+1); a.Sum = sum(a.Hosts) },
		"twice":    func(a *Advert) { a.Hosts = append(a.Hosts, a.Hosts[0]); a.Sum = sum(a.Hosts) },
		"VNI":      func(a *Advert) { a.Hosts[0].VNI = frame.MaxVNI + 1; a.Sum = sum(a.Hosts) },
		"MAC":      func(a *Advert) { a.Hosts[0].MAC[0] = 1; a.Sum = sum(a.Hosts) },
		"kind":     func(a *Advert) { a.Hosts[0].Kind = Static + 1; a.Sum = sum(a.Hosts) },
		"segment":  func(a *Advert) { a.Hosts[0].MAC, a.Hosts[0].Moves = frame.MAC{}, 1; a.Sum = sum(a.Hosts) },
	} {
		s, a := New(addr(0), 1), advert(1, 1, Host{VNI: 7, MAC: frame.MACFrom(0x0200_0000_0001)})
		s.Adjacent(0, addr(1), false)
		change(&a)
		if err := s.Receive(0, addr(1), Update{a}); err != ErrRefused || len(s.db.held) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := New(addr(0), 1)
	if err := s.Receive(0, addr(1), Update{advert(1, 1)}); err != ErrRefused || len(s.db.held) != 0 {
		t.Error("a stranger is heard")
	}
	s.Adjacent(0, addr(1), false)
	s.Poll(0)
	if err := s.Receive(0, addr(1), Want{s.epoch, make([]ID, MaxEntries+1)}); err != ErrRefused {
		t.Error("an answer that is too long is heard")
	}
}

// There is a limit to advertisements, and what is over it is acknowledged.
func TestFull(t *testing.T) {
	s := New(addr(0), 1)
	s.Adjacent(0, addr(1), false)
	for n := range uint32(MaxOwners + 1) {
		a := advert(1, 1)
		a.Owner = netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
		if err := s.Receive(0, addr(1), Update{a}); (err == ErrFull) != (n == MaxOwners) {
			t.Fatalf("advertisement %d: %v", n, err)
		}
		if out := s.Poll(0); !slices.Contains(out, Send{addr(1), Ack{Entry{a.ID, a.Head}}}) {
			t.Fatalf("advertisement %d: %v, not acknowledged", n, out)
		}
	}
	if n, _ := s.Adverts(); n != MaxOwners {
		t.Errorf("%d advertisements", n)
	}
}

// What waits for a neighbour that acknowledges nothing is each advertisement once, however often these change.
func TestDeaf(t *testing.T) {
	s := New(addr(0), 1)
	s.Adjacent(0, addr(1), false)
	s.Adjacent(0, addr(2), false)
	now := time.Duration(0)
	for seq := range uint64(1000) {
		for n := range 200 {
			s.Receive(now, addr(1), Update{advert(10+n, seq+1)})
		}
		now += 20 * time.Second
		s.Poll(now)
	}
	if p := s.peers[addr(2)]; len(p.wait) > 500 {
		t.Errorf("%d advertisements wait", len(p.wait))
	}
}

// There is a limit to our own hosts too.
func TestHosts(t *testing.T) {
	s := New(addr(0), 1)
	for n := range uint64(MaxHosts) {
		if !s.Add(Host{VNI: 7, MAC: frame.MACFrom(0x0200_0000_0000 + n)}) {
			t.Fatalf("no room for host %d", n)
		}
	}
	if s.Add(Host{VNI: 7, MAC: frame.MACFrom(0x0200_0001_0000)}) || s.OwnHosts() != MaxHosts {
		t.Error("there is no limit")
	}
	s.Remove(7, frame.MACFrom(0x0200_0000_0000))
	if !s.Add(Host{VNI: 7, MAC: frame.MACFrom(0x0200_0001_0000)}) {
		t.Error("no room where one left")
	}
}

// A VTEP that restarts jumps over its advertisement from the past at once, and what it has now is what goes out.
func TestRestart(t *testing.T) {
	s := New(addr(0), 1)
	s.Adjacent(0, addr(1), false)
	s.Poll(0)
	s.Receive(0, addr(1), Update{advert(0, 1000, Host{VNI: 7, MAC: frame.MACFrom(0x0200_0000_0001)})})
	for _, m := range s.Poll(0) {
		if u, ok := m.Message.(Update); ok && u.Seq == 1001 && len(u.Hosts) == 0 {
			return
		}
	}
	t.Error("no advertisement 1001 without hosts")
}

// Summaries go range by range, and both ends have all after them.
func TestSummary(t *testing.T) {
	a, b := New(addr(0), 1), New(addr(1), 1)
	for n := range uint64(5000) {
		[]*State{a, b}[n%2].Add(Host{VNI: 7, MAC: frame.MACFrom(0x0200_0000_0001 + n)})
	}
	a.Poll(0)
	b.Poll(0)
	a.Adjacent(0, addr(1), false)
	b.Adjacent(0, addr(0), false)
	for range 100 {
		for _, m := range a.Poll(0) {
			b.Receive(0, addr(0), m.Message)
		}
		for _, m := range b.Poll(0) {
			a.Receive(0, addr(1), m.Message)
		}
	}
	for _, s := range []*State{a, b} {
		if got := s.whole(); len(got) != 5000 {
			t.Errorf("%v has %d hosts, want all", s.self, len(got))
		}
	}
}

// Somebody who sends the highest number in the name of another VTEP is believed until that ages out, and no longer.
func TestHighest(t *testing.T) {
	w := &world{Rand: rand.New(rand.NewPCG(1, 1)), nodes: make([]*State, 2), hosts: make([][]Host, 2), up: map[[2]int]bool{{0, 1}: true}}
	for n := range w.nodes {
		w.nodes[n] = New(addr(n), 1)
	}
	w.link([2]int{0, 1}, true)
	w.nodes[0].Add(Host{VNI: 7})
	run := func(d time.Duration) bool {
		for end := w.now + d; w.now < end; {
			w.step()
		}
		return w.nodes[1].Has(7, addr(0))
	}
	if !run(Hold) {
		t.Fatal("the segment is not known")
	}
	w.nodes[1].Receive(w.now, addr(0), Update{Advert{ID{addr(0), 0}, Head{MaxSeq, sum(nil)}, Hold, nil}})
	if run(Hold / 2) {
		t.Error("the highest number does not count")
	}
	if !run(2 * Hold) {
		t.Error("the segment is not known again")
	}
}

// A VTEP that leaves takes back all it has, also what is more than a window.
func TestLeave(t *testing.T) {
	s := New(addr(0), 1)
	s.Adjacent(0, addr(1), true)
	const parts = 3 * Window
	for n := range uint64(parts * PartHosts) {
		s.Add(Host{VNI: 7, MAC: frame.MACFrom(0x0200_0000_0000 + n)})
	}
	for _, m := range s.Poll(0) {
		if u, ok := m.Message.(Update); ok && u.Part%2 == 0 { // the others are under way
			s.Receive(0, addr(1), Ack{Entry{u.ID, u.Head}})
		}
	}
	gone := map[uint8]bool{}
	for _, m := range s.Leave(0) {
		if u, ok := m.Message.(Update); ok && len(u.Hosts) == 0 {
			gone[u.Part] = true
		}
	}
	if len(gone) != parts || s.OwnHosts() != 0 {
		t.Errorf("%d parts are taken back, want %d; %d hosts are left", len(gone), parts, s.OwnHosts())
	}
}
