package endp

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// A world is clients of network 7, of which the first ones are servers too. One message in five is lost, and the order is any.
type world struct {
	*rand.Rand
	now     time.Duration
	servers []*Server
	members []*Member // nil = it is down
	cut     map[[2]int]bool
	quiet   bool // nothing is lost
	fly     []flight
}

type flight struct {
	from, to int
	at       time.Duration
	m        any
}

func addr(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(n + 1)}) }

func number(a netip.Addr) int { return int(a.As4()[3]) - 1 }

func (w *world) send(from int, list []Send) {
	for _, m := range list {
		to := number(m.To)
		if !w.cut[[2]int{min(from, to), max(from, to)}] && (w.quiet || w.IntN(5) > 0) {
			w.fly = append(w.fly, flight{from, to, w.now + time.Duration(w.IntN(300))*time.Millisecond, m.Message})
		}
	}
}

func (w *world) deliver(f flight) {
	switch m := f.m.(type) {
	case Register:
		if f.to < len(w.servers) && w.members[f.to] != nil {
			w.servers[f.to].Register(w.now, 7, addr(f.from), m)
		}
	case Probe:
		if f.to < len(w.servers) && w.members[f.to] != nil {
			w.send(f.to, []Send{{addr(f.from), w.servers[f.to].Probe(w.now, 7, m)}})
		}
	case Clients:
		if c := w.members[f.to]; c != nil {
			next, _ := c.Receive(w.now, addr(f.from), m)
			w.send(f.to, next)
		}
	}
}

func (w *world) run(d time.Duration) {
	for end := w.now + d; w.now < end; w.now += 250 * time.Millisecond {
		if w.now%time.Second == 0 {
			for i, m := range w.members {
				if m != nil {
					w.send(i, m.Poll(w.now))
				}
			}
			for _, s := range w.servers {
				s.Poll(w.now)
			}
		}
		fly := w.fly
		w.fly = nil
		for _, f := range fly {
			if f.at > w.now {
				w.fly = append(w.fly, f)
			} else {
				w.deliver(f)
			}
		}
	}
}

func (w *world) start(n int) {
	m := NewMember(fmt.Sprintf("vtep%d.%d", n, w.IntN(2)))
	var addrs []netip.Addr
	for i := range w.servers {
		addrs = append(addrs, addr(i))
	}
	m.SetServers(w.now, addrs)
	if w.members[n] = m; n < len(w.servers) {
		w.servers[n] = NewServer(w.now, w.Uint64())
	}
}

func (w *world) stop(n int) {
	if w.members[n] != nil && w.IntN(2) == 0 {
		w.send(n, w.members[n].Leave())
	}
	w.members[n] = nil
}

// After quiet every client knows all others of its network, and nobody else.
func TestModel(t *testing.T) {
	for seed := range uint64(1000) {
		if testing.Short() && seed == 100 {
			break
		}
		w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), cut: map[[2]int]bool{}}
		n := 3 + w.IntN(40)
		w.servers, w.members = make([]*Server, 1+w.IntN(2)), make([]*Member, n)
		for i := range n {
			w.start(i)
		}
		for range 20 {
			switch i, s := w.IntN(n), w.IntN(len(w.servers)); w.IntN(4) {
			case 0:
				w.start(i)
			case 1:
				w.stop(i)
			case 2:
				w.start(s)
			case 3:
				l := [2]int{min(i, s), max(i, s)}
				w.cut[l] = !w.cut[l]
			}
			w.run(time.Duration(w.IntN(40)) * time.Second)
		}
		clear(w.cut)
		for i := range w.servers {
			if w.members[i] == nil {
				w.start(i)
			}
		}
		w.run(Age + Youth)
		w.quiet = true
		w.run(RegisterEvery + 2*ProbeEvery) // one of five registrations in a row may be lost each time
		want := map[netip.Addr]string{}
		for i, m := range w.members {
			if m != nil {
				want[addr(i)] = m.name
			}
		}
		for i, m := range w.members {
			if m != nil && !maps.Equal(m.List(), want) {
				t.Fatalf("seed %d: %v knows %v, want %v", seed, addr(i), m.List(), want)
			}
		}
	}
}

// While no server answers, and while a new one waits for clients, the last list holds.
func TestServersGone(t *testing.T) {
	w := &world{Rand: rand.New(rand.NewPCG(1, 1)), cut: map[[2]int]bool{}, servers: make([]*Server, 1), members: make([]*Member, 3)}
	for i := range w.members {
		w.start(i)
	}
	w.run(time.Minute)
	server := w.members[0]
	w.members[0] = nil // without a word
	for range 200 {
		if w.run(time.Second); len(w.members[1].List()) != 3 {
			t.Fatalf("%v: %v", w.now, w.members[1].List())
		}
	}
	if w.members[1].Servers()[0].Up {
		t.Error("the server is up")
	}
	w.members[0], w.servers[0] = server, NewServer(w.now, 99)
	for range 60 {
		if w.run(time.Second); len(w.members[1].List()) != 3 {
			t.Fatalf("%v: %v", w.now, w.members[1].List())
		}
	}
}

// Networks know nothing of each other, and one without clients is forgotten.
func TestNetworks(t *testing.T) {
	s := NewServer(0, 1)
	s.Register(0, 7, addr(1), Register{Name: "a"})
	s.Register(0, 8, addr(2), Register{Name: "b"})
	if a := s.Probe(0, 8, Probe{}); len(a.List) != 1 || a.List[0].Name != "b" {
		t.Errorf("%v", a.List)
	}
	if s.Poll(Age); len(s.networks) != 0 || s.Clients() != 0 {
		t.Errorf("%d networks are there still", len(s.networks))
	}
}

// A server has room for so many clients, and forgets who left long ago.
func TestLimits(t *testing.T) {
	at := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}) }
	s := NewServer(0, 1)
	for n := range MaxClients + 1 {
		if ok := s.Register(0, 7, at(n), Register{}); ok != (n < MaxClients) {
			t.Errorf("client %d: room is %v", n, ok)
		}
	}
	if s.Clients() != MaxClients {
		t.Errorf("%d clients", s.Clients())
	}
	before := s.version
	for n := range 3 * MaxGone {
		s.Register(0, 7, at(n), Register{Leave: true})
	}
	if n := s.networks[7]; len(n.clients)-n.live > MaxGone || len(n.log) > 3*len(n.clients)+64 {
		t.Errorf("%d that left are known, and %d changes", len(n.clients)-n.live, len(n.log))
	}
	if a := s.Probe(0, 7, Probe{Life: 1, Version: before}); a.Since != 0 {
		t.Error("a client does not begin anew after changes that are forgotten")
	}
}

// A server that lists clients without end, of one life or of many, is believed as many as a server has.
func TestEndless(t *testing.T) {
	for _, lives := range []bool{false, true} {
		m, from := NewMember("us"), netip.MustParseAddr("192.0.2.1")
		m.SetServers(0, []netip.Addr{from})
		next := netip.MustParseAddr("10.0.0.0")
		a := Clients{Life: 1, Young: lives}
		for n := range 2 * MaxClients / MaxPage {
			a.List = nil
			for range MaxPage {
				next = next.Next()
				a.List = append(a.List, Client{Addr: next})
			}
			if a.Since, a.Version, a.More = a.Version, a.Version+MaxPage, true; lives && n%100 == 99 {
				a.Life, a.Since = a.Life+1, 0
			}
			if _, ok := m.Receive(0, from, a); !ok {
				t.Fatal("not heard")
			}
		}
		if s := m.servers[0]; len(s.list) != MaxClients || len(s.fresh) > MaxClients {
			t.Errorf("lives %v: %d and %d clients", lives, len(s.list), len(s.fresh))
		}
	}
}

// Who left many networks is remembered for so many of them alone, and the count is that of the networks.
func TestGone(t *testing.T) {
	at := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}) }
	s := NewServer(0, 1)
	count := func() (gone int) {
		for _, n := range s.networks {
			gone += len(n.clients) - n.live
		}
		return gone
	}
	for id := range uint32(1000) {
		s.Register(0, id, at(0), Register{}) // stays
		for n := range 100 {
			s.Register(0, id, at(1+n), Register{})
			s.Register(0, id, at(1+n), Register{Leave: true})
			if n%3 == 0 {
				s.Register(0, id, at(1+n/2), Register{}) // is back
				s.Register(0, id, at(1+n/2), Register{Leave: true})
			}
		}
	}
	if n := count(); n > MaxClients+1000 || n != s.gone {
		t.Errorf("%d that left are remembered, counted as %d", n, s.gone)
	}
	for id := range uint32(1000) {
		s.Register(0, id, at(0), Register{Leave: true})
	}
	if s.gone != 0 || len(s.networks) != 0 || s.Clients() != 0 {
		t.Errorf("%d, %d networks, %d clients", s.gone, len(s.networks), s.Clients())
	}
}
