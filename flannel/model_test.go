package flannel

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// Leases come, change and go in any order, addresses are asked for, links change: what is left is what a new Mapper makes
// of the leases that are there.
func TestMapperModel(t *testing.T) {
	for seed := range uint64(300) {
		runModel(t, rand.New(rand.NewPCG(22, seed)), seed)
	}
}

func FuzzMapper(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { runModel(t, rand.New(rand.NewPCG(a, b)), a) })
}

// A world has few subnets, MACs and addresses, so that leases have much to do with each other.
type world struct {
	*rand.Rand
	types []string
}

func (w world) attrs() Attrs {
	a := Attrs{Type: w.types[w.IntN(len(w.types))]}
	a.IPv4 = end(fmt.Sprintf("192.0.2.%d", 1+w.IntN(6)), 1+w.IntN(6))
	a.IPv6 = end(fmt.Sprintf("2001:db8::%d", 1+w.IntN(6)), 100+w.IntN(4))
	if w.IntN(5) == 0 {
		a.IPv6.MAC = a.IPv4.MAC
	}
	if w.IntN(20) == 0 {
		a.IPv4.VNI = 2
	}
	return a
}

func (w world) key() string {
	keys := []string{fmt.Sprintf("10.3.%d.0-24", w.IntN(6)), fmt.Sprintf("10.3.%d.128-25", w.IntN(6)), fmt.Sprintf("10.3.%d.0-23", 2*w.IntN(3))}
	key := keys[w.IntN(3)]
	if w.IntN(2) == 0 {
		key += fmt.Sprintf("&fc00:3:0:%d::-64", 1+w.IntN(5))
	}
	if w.IntN(20) == 0 {
		return []string{"rubbish", "10.3.2.7-24", "10.9.0.0-24"}[w.IntN(3)]
	}
	return key
}

// inside reports whether a subnet is in another one, in a family of the network.
func (m *Mapper) inside(part, s Subnet) bool {
	return slices.ContainsFunc(families[:], func(f family) bool {
		p, q := s.prefix(f), part.prefix(f)
		return m.cfg.Network.subnets(f).IsValid() && p.IsValid() && q.IsValid() && p.Bits() <= q.Bits() && p.Contains(q.Addr())
	})
}

func runModel(t *testing.T, r *rand.Rand, seed uint64) {
	backends := []string{"vxlan", "host-gw", "ipip", "udp"}
	backend := backends[[]int{0, 0, 0, 1, 2}[r.IntN(5)]]
	direct := r.IntN(2) == 0
	text := fmt.Sprintf(`{"Network": "10.3.0.0/16", "EnableIPv6": %v, "IPv6Network": "fc00:3::/48", "Backend": {"Type": %q, "DirectRouting": %v}}`, backend != "ipip" && r.IntN(2) == 0, backend, direct)
	generation, host := 3, r.IntN(2) == 0 && backend != "ipip" && backend != "udp"
	if backend == "vxlan" {
		generation = 1 + r.IntN(3)
	}
	change := func(c *MapperConfig) { c.Generation, c.Host, c.Direct, c.VNI = generation, host, 9, 1 }
	m, to := mapper(t, text, change), model()
	w := world{r, []string{backend, backend, backend, backend, "vxlan"}}
	now := map[string]Record{}
	var links []netip.Prefix
	var asked []netip.Addr
	var kernel []Route
	revision := int64(10)
	for range 60 {
		revision++
		switch key := w.key(); r.IntN(10) {
		case 0, 1, 2, 3:
			x := record(key, revision, w.attrs())
			if old, ok := now[key]; ok && r.IntN(2) == 0 { // changed, not made anew
				x.Created = old.Created
			}
			now[key] = x
			m.Set(x)
		case 4, 5:
			delete(now, key)
			m.Delete(key)
		case 6:
			links = [][]netip.Prefix{nil, prefixes("192.0.2.0/30"), prefixes("192.0.2.0/24", "2001:db8::/64")}[r.IntN(3)]
			m.SetLinks(links)
		case 7, 8:
			ip := netip.AddrFrom4([4]byte{10, 3, byte(r.IntN(6)), byte(r.IntN(256))})
			m.Neighbour(ip, time.Unix(revision, 0))
			asked = append(asked, ip)
		default:
			var list []Record
			for k, x := range now {
				if r.IntN(4) == 0 {
					delete(now, k)
				} else {
					list = append(list, x)
				}
			}
			m.Apply(Change{Snapshot: true, Set: list})
		}
		if r.IntN(4) != 0 {
			continue
		}
		got := rows(t, m, to)
		fresh, its := mapper(t, text, change), model()
		fresh.SetLinks(links)
		var list []Record
		for _, x := range now {
			list = append(list, x)
		}
		fresh.Reset(list)
		for _, ip := range asked {
			if m.asked[ip] != nil { // else it had no lease for a while, and would be asked again
				fresh.Neighbour(ip, time.Time{})
			}
		}
		if want := rows(t, fresh, its); !slices.Equal(got, want) {
			t.Fatalf("seed %d, revision %d, %s generation %d: rows\n%q\na new one has\n%q", seed, revision, backend, generation, got, want)
		}
		m.FlushRoutes(func(u RouteUpdate) error {
			if r.IntN(8) == 0 {
				return errors.New("not now")
			}
			kernel = changed(kernel, u)
			return nil
		})
		if got, want := fmt.Sprint(m.Routes()), fmt.Sprint(fresh.Routes()); got != want || m.routed && fmt.Sprint(kernel) != want {
			t.Fatalf("seed %d: routes %s, the host has %v, a new one has %s", seed, got, kernel, want)
		}
		if got, want := fmt.Sprint(m.Refused()), fmt.Sprint(fresh.Refused()); got != want {
			t.Fatalf("seed %d: refused %s, a new one %s", seed, got, want)
		}
		for x := range m.Remotes() {
			for y := range m.Remotes() {
				if len(x.Refused)+len(y.Refused) == 0 && now[x.Key].Created > now[y.Key].Created && m.inside(x.Lease.Subnet, y.Lease.Subnet) {
					t.Fatalf("seed %d: %s is in the older %s", seed, x.Key, y.Key)
				}
			}
		}
		one := map[netip.Prefix]string{}
		for x := range m.Remotes() {
			for _, p := range x.Lease.Subnet.prefixes() {
				if len(x.Refused) > 0 || !p.Addr().Is4() && !m.cfg.Network.IPv6.IsValid() {
					continue
				}
				if one[p] != "" {
					t.Fatalf("seed %d: %v is that of %s and of %s", seed, p, one[p], x.Key)
				}
				one[p] = x.Key
			}
		}
	}
}
