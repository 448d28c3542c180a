package table

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// A mesh is Tables that tell each other, each link at its own pace.
type mesh struct {
	t     *testing.T
	now   time.Duration
	labs  []*lab
	up    []bool // their ports
	cut   map[[2]int]bool
	heard map[[2]int]map[route.Key]route.Route // from, to
}

func newMesh(t *testing.T, n int, edit func(i int, c *EthernetSegment)) *mesh {
	m := &mesh{t: t, up: make([]bool, n), cut: map[[2]int]bool{}, heard: map[[2]int]map[route.Key]route.Route{}}
	for i := range n {
		l := newLab(t, nil)
		l.SetVRF(VRF{Name: "red"})
		for _, vni := range []frame.VNI{100, 200} {
			l.SetSegment(0, Segment{VNI: vni, VTEP: route.AddrFrom(m.addr(i))})
		}
		m.labs = append(m.labs, l)
		for k := range n {
			m.heard[[2]int{i, k}] = map[route.Key]route.Route{}
		}
	}
	for i := range n {
		m.port(i, true, edit)
	}
	return m
}

func (m *mesh) addr(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}) }

func (m *mesh) port(i int, up bool, edit func(int, *EthernetSegment)) {
	m.up[i] = up
	l := m.labs[i]
	l.now = m.now
	l.home(func(c *EthernetSegment) {
		c.Up, c.Wait, c.VNIs = up, 3*time.Second, []frame.VNI{100, 200}
		edit(i, c)
	})
	l.flush()
}

// pass lets a link pass what there is, or with part only some of it.
func (m *mesh) pass(from, to int, part func() bool) {
	a, b := m.labs[from], m.labs[to]
	link := [2]int{from, to}
	if from == to || m.cut[link] {
		return
	}
	a.now, b.now = m.now, m.now
	a.flush()
	for k, r := range a.told {
		if was, ok := m.heard[link][k]; (!ok || was != r) && part() {
			m.heard[link][k] = r
			b.Learned(m.now, m.addr(from), &r)
		}
	}
	for k := range m.heard[link] {
		if _, ok := a.told[k]; !ok && part() {
			delete(m.heard[link], k)
			b.Withdrawn(m.now, m.addr(from), &k)
		}
	}
	b.flush()
}

func (m *mesh) split(i, k int) {
	for _, link := range [][2]int{{i, k}, {k, i}} {
		m.cut[link] = true
		clear(m.heard[link])
		m.labs[link[1]].Down(m.now, m.addr(link[0]))
	}
}

func (m *mesh) join(i, k int) { delete(m.cut, [2]int{i, k}); delete(m.cut, [2]int{k, i}) }

func (m *mesh) forwarders(vni frame.VNI) (list []int) {
	for i, l := range m.labs {
		if r := l.roles[vni]; !r.Blocked && !r.NoFlood {
			list = append(list, i)
		}
	}
	return list
}

// Whatever ports and sessions do, once it is quiet one VTEP forwards to each network of the segment, and all know the same others.
func TestForwarders(t *testing.T) {
	seeds := 200
	if testing.Short() {
		seeds = 40
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		single, mixed := r.IntN(2) == 0, r.IntN(3) == 0
		algorithm := uint8(r.IntN(3))
		edit := func(i int, c *EthernetSegment) {
			c.SingleActive, c.Election.Algorithm, c.Election.Preference = single, algorithm, uint16(i%2)
			if mixed {
				c.Election.Algorithm = uint8(i % 3)
			}
		}
		m := newMesh(t, 2+r.IntN(3), edit)
		n := len(m.labs)
		var log []string
		for range 40 {
			i, k := r.IntN(n), r.IntN(n)
			switch r.IntN(6) {
			case 0:
				up := r.IntN(2) == 0
				log = append(log, fmt.Sprint("port ", i, up))
				m.port(i, up, edit)
			case 1:
				m.split(i, k)
				log = append(log, fmt.Sprint("split ", i, k))
			case 2:
				m.join(i, k)
				log = append(log, fmt.Sprint("join ", i, k))
			case 3:
				m.now += time.Duration(r.IntN(4000)) * time.Millisecond
			default:
				m.pass(i, k, func() bool { return r.IntN(2) == 0 })
			}
		}
		clear(m.cut)
		ups := 0
		for _, up := range m.up {
			if up {
				ups++
			}
		}
		for range 3 {
			for i := range n {
				for k := range n {
					m.pass(i, k, func() bool { return true })
				}
			}
			m.now += 3 * time.Second
		}
		for _, l := range m.labs {
			l.now = m.now
			l.flush()
		}
		for _, vni := range []frame.VNI{100, 200} {
			if got := m.forwarders(vni); len(got) != min(ups, 1) {
				t.Fatalf("seed %d: %d forward in VNI %d, of ports %v, after %q", seed, got, vni, m.up, log)
			}
		}
		for i, l := range m.labs {
			if x := l.Ethernets(); len(x) != 1 && ups > 0 || len(x[0].VTEPs) != ups-map[bool]int{true: 1}[m.up[i]] {
				t.Fatalf("seed %d: %d of %d ports, seen by %d: %+v", seed, ups, n, i, x)
			}
		}
	}
}

// When news travels in less than the wait, no two forward at any time, and one that goes is replaced as soon as it is known.
func TestHandover(t *testing.T) {
	for _, algorithm := range []uint8{0, 1, 2} {
		edit := func(i int, c *EthernetSegment) { c.Election.Algorithm, c.Election.Preference = algorithm, uint16(i) }
		m := newMesh(t, 3, edit)
		alone := algorithm == 0 // by ordinal, two that stay may change places, one before the other hears of it
		all := func() {         // the news has travelled
			t.Helper()
			for range 2 {
				for i := range m.labs {
					for k := range m.labs {
						m.pass(i, k, func() bool { return true })
						for _, vni := range []frame.VNI{100, 200} {
							if got := m.forwarders(vni); len(got) > 1 && !alone {
								t.Errorf("algorithm %d: %d forward in VNI %d at once", algorithm, got, vni)
							}
						}
					}
				}
			}
		}
		most := func(at string, want int) {
			t.Helper()
			for _, vni := range []frame.VNI{100, 200} {
				if got := m.forwarders(vni); len(got) > 1 || want == 1 && len(got) != 1 {
					t.Errorf("algorithm %d, %s: %d forward in VNI %d, want %d", algorithm, at, got, vni, want)
				}
			}
		}
		tick := func(at string) {
			for range 8 {
				all()
				most(at, 0)
				m.now += 500 * time.Millisecond
			}
			all()
		}
		tick("start")
		most("after the start", 1)
		for i := range m.labs {
			m.port(i, false, edit)
			all()
			most(fmt.Sprintf("%d has lost its port", i), 1)
			m.port(i, true, edit)
			tick(fmt.Sprintf("the port of %d is back", i))
			most(fmt.Sprintf("the port of %d is back", i), 1)
		}
		for i := range m.labs {
			for k := range m.labs {
				if k != i {
					m.split(i, k)
				}
			}
			alone = true
			all()
			alive := 0
			for _, vni := range []frame.VNI{100, 200} {
				for _, k := range m.forwarders(vni) {
					if k != i {
						alive++
					}
				}
			}
			if alive != 2 {
				t.Errorf("algorithm %d, %d is away: the others forward %d networks of 2", algorithm, i, alive)
			}
			clear(m.cut)
			m.port(i, false, edit)
			tick("")
			alone = algorithm == 0
			m.port(i, true, edit)
			tick(fmt.Sprintf("%d is back", i))
			most(fmt.Sprintf("%d is back", i), 1)
		}
	}
}
