package state

import (
	"maps"
	"math/rand/v2"
	"net/netip"
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
			w.nodes[l[i]].Adjacent(w.now, addr(l[1-i]))
		}
	}
}

func (w *world) set(n int) {
	w.hosts[n] = nil
	for m := range 4 {
		if w.IntN(2) == 0 {
			w.hosts[n] = append(w.hosts[n], Host{VNI: 7, MAC: frame.MACFrom(0x0200_0000_0000 + uint64(n*4+m)), Kind: Kind(w.IntN(2))})
		}
	}
	w.nodes[n].Set(w.now, w.hosts[n])
}

func (w *world) start(n int) {
	w.nodes[n] = New(addr(n), w.Uint64()>>2)
	w.set(n)
	for l, up := range w.up {
		if up && (l[0] == n || l[1] == n) {
			w.link(l, true)
		}
	}
}

// After quiet every VTEP says where each host is, whatever was lost, restarted or cut off before, and quiet stays.
func TestModel(t *testing.T) {
	for seed := range uint64(1000) {
		if testing.Short() && seed == 100 {
			break
		}
		w := &world{Rand: rand.New(rand.NewPCG(seed, 0)), up: map[[2]int]bool{}}
		n := 2 + w.IntN(5)
		w.nodes, w.hosts = make([]*State, n), make([][]Host, n)
		for i := range n {
			w.start(i)
		}
		var links [][2]int // a tree, and more
		for i := 1; i < n; i++ {
			links = append(links, [2]int{w.IntN(i), i})
			if w.IntN(2) == 0 && links[len(links)-1][0] != 0 {
				links = append(links, [2]int{0, i})
			}
		}
		for range 30 {
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
		for _, l := range links {
			if !w.up[l] {
				w.link(l, true)
			}
		}
		want := map[frame.MAC]netip.Addr{}
		for i, hosts := range w.hosts {
			w.nodes[i].Set(w.now, hosts) // so that none is refreshed for 25 s
			for _, h := range hosts {
				want[h.MAC] = addr(i)
			}
		}
		last := w.now
		for end := w.now + Hold/3 - time.Second; w.now < end; {
			if w.step() > 0 {
				last = w.now
			}
		}
		if w.now-last < 2*Retransmit {
			t.Fatalf("seed %d: messages are sent still", seed)
		}
		for i, s := range w.nodes {
			if got := s.Hosts(7); !maps.Equal(got, want) {
				t.Fatalf("seed %d: %v has %v, want %v", seed, addr(i), got, want)
			}
		}
	}
}

// What its owner no longer refreshes is gone after its hold time.
func TestAge(t *testing.T) {
	s := New(addr(0), 1)
	s.Adjacent(0, addr(1))
	hosts := []Host{{VNI: 7, MAC: frame.MACFrom(0x0200_0000_0001)}}
	s.Receive(0, addr(1), Update{Advert{addr(1), Head{1, sum(hosts)}, Hold, hosts}})
	if s.Poll(Hold - 1); len(s.Hosts(7)) != 1 {
		t.Error("the host is gone too early")
	}
	if s.Poll(Hold); len(s.Hosts(7)) != 0 {
		t.Error("the host is there still")
	}
}

// A message that breaks a rule changes nothing.
func TestRefused(t *testing.T) {
	hosts := []Host{{VNI: 7, MAC: frame.MACFrom(0x0200_0000_0001)}}
	good := Advert{addr(1), Head{1, sum(hosts)}, Hold, hosts}
	for name, change := range map[string]func(*Advert){
		"owner":    func(a *Advert) { a.Owner = netip.Addr{} },
		"sequence": func(a *Advert) { a.Seq = MaxSeq + 1 },
		"hold":     func(a *Advert) { a.Hold = Hold + 1 },
		"aged":     func(a *Advert) { a.Hold = 0 },
		"checksum": func(a *Advert) { a.Sum++ },
		"hosts":    func(a *Advert) { a.Hosts = make([]Host, MaxHosts+1); a.Sum = sum(a.Hosts) },
	} {
		s, a := New(addr(0), 1), good
		s.Adjacent(0, addr(1))
		change(&a)
		if s.Receive(0, addr(1), Update{a}); s.Refused() != 1 || len(s.db) != 0 {
			t.Errorf("%s: taken", name)
		}
	}
	s := New(addr(0), 1)
	if s.Receive(0, addr(1), Update{good}); s.Refused() != 1 || len(s.db) != 0 {
		t.Error("a stranger is heard")
	}
}

// A VTEP that restarts jumps over its advertisement from the past at once, and what it has now is what goes out.
func TestRestart(t *testing.T) {
	s := New(addr(0), 1)
	s.Set(0, nil)
	s.Adjacent(0, addr(1))
	s.Poll(0)
	hosts := []Host{{VNI: 7, MAC: frame.MACFrom(0x0200_0000_0001)}}
	s.Receive(0, addr(1), Update{Advert{addr(0), Head{1000, sum(hosts)}, Hold, hosts}})
	for _, m := range s.Poll(0) {
		if u, ok := m.Message.(Update); ok && u.Seq == 1001 && len(u.Hosts) == 0 {
			return
		}
	}
	t.Error("no advertisement 1001 without hosts")
}

// A summary has both ends send what the other lacks, also if only one of them began anew.
func TestSummary(t *testing.T) {
	a, b := New(addr(0), 1), New(addr(1), 1)
	for i, s := range []*State{a, b} {
		s.Set(0, []Host{{VNI: 7, MAC: frame.MACFrom(0x0200_0000_0001 + uint64(i))}})
	}
	b.peers[addr(0)] = &peer{pending: map[netip.Addr]time.Duration{}} // which needs no summary
	a.Adjacent(0, addr(1))
	for range 4 {
		for _, m := range a.Poll(0) {
			b.Receive(0, addr(0), m.Message)
		}
		for _, m := range b.Poll(0) {
			a.Receive(0, addr(1), m.Message)
		}
	}
	for _, s := range []*State{a, b} {
		if got := s.Hosts(7); len(got) != 2 {
			t.Errorf("%v has %v, want both hosts", s.self, got)
		}
	}
}
