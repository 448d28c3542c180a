package bgp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// established lists the peers with a session.
func (m *member) established() (list []string) {
	for _, p := range m.ask().Peers {
		if p.State == "established" {
			list = append(list, p.Addr.String())
		}
	}
	return list
}

// wantSessions waits until these peers have one, and no others.
func (m *member) wantSessions(what string, peers ...string) {
	m.t.Helper()
	m.h.Until(what, func() bool { return fmt.Sprint(m.established()) == fmt.Sprint(peers) })
}

// Peers of a prefix with a password: who has another one, or none, has no session, and gets one with the right one. When the password
// changes, the sessions end.
func TestPeersPassword(t *testing.T) {
	m := newMesh(t)
	file := filepath.Join(t.TempDir(), "password")
	check.OK(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	c := memberSettings()
	c.Peers = []Peer{{Prefix: prefix("10.0.0.0/28"), AS: 64512, PasswordFile: file, Hold: 9 * time.Second}}
	m.ours.set(c)
	word := func(w string) string { return fmt.Sprintf("password %q;", w) }
	m.birds[2].Configure(birdConf(2, nothing, word("secret")))
	m.ours.wantSessions("one has the password", "10.0.0.2")
	m.ours.want("its route", way2)
	m.up(3, false, "ours")
	m.birds[3].Configure(birdConf(3, ourOwn, word("guess")))
	m.up(3, false, "ours")
	check.Equal(t, "sessions", fmt.Sprint(m.ours.established()), "[10.0.0.2]")
	m.birds[3].Configure(birdConf(3, ourOwn, word("secret")))
	m.ours.wantSessions("both have it", "10.0.0.2", "10.0.0.3")
	m.ours.want("routes of both", way2, way3)

	check.OK(t, os.WriteFile(file, []byte("another"), 0o600))
	m.ours.set(c)
	m.ours.wantSessions("another password")
	m.ours.want("no routes")
	m.birds[2].Configure(birdConf(2, nothing, word("another")))
	m.ours.wantSessions("one follows", "10.0.0.2")
}

// Who connects from outside of a prefix is no peer; one in it with too many routes has no session and no routes, and the others stay.
func TestPeersLimit(t *testing.T) {
	m := newMesh(t)
	c := memberSettings()
	c.Peers = []Peer{{Prefix: prefix("10.0.0.2/32"), AS: 64512, MaxRoutes: 2, Hold: 9 * time.Second}}
	m.ours.set(c)
	m.ours.wantSessions("of the prefix", "10.0.0.2")
	m.ours.want("routes of it", way2)
	m.up(3, false, "ours")

	c.Peers[0].Prefix = prefix("10.0.0.2/31")
	m.ours.set(c)
	m.ours.want("both", way2, way3)
	three := edit(t, birdConf(3, ourOwn, ""), "route 10.65.3.0/26 blackhole;", "route 10.65.3.0/26 blackhole; route 10.65.33.0/26 blackhole; route 10.65.34.0/26 blackhole;")
	m.birds[3].Configure(three)
	m.ours.want("too many", way2)
	m.ours.wantSessions("too many", "10.0.0.2")
	m.birds[3].Configure(birdConf(3, ourOwn, ""))
	c.Peers[0].MaxRoutes = 3 // begins anew
	m.ours.set(c)
	m.ours.want("few again", way2, way3)
	m.birds[3].Configure(three)
	direct := func(n int) string {
		return fmt.Sprintf("10.65.%d.0/26 next hop 10.0.0.3 of 10.0.0.3 via vni 200 ip 10.0.0.3", n)
	}
	m.ours.want("three are allowed", way2, way3, direct(33), direct(34))
}

// A reflector has a network of clients with BIRD: 2, 3 and 4 announce a block, and 5 has nothing.
type reflector struct {
	*mesh
	c *Config
}

func newReflector(t *testing.T) *reflector {
	t.Helper()
	r := &reflector{mesh: &mesh{newLab(t)}, c: memberSettings()}
	sw := r.n.Switch("sw")
	r.c.Peers, r.c.Pools = nil, r.c.Pools[:1]
	for i := 2; i <= 5; i++ {
		r.host(i, plug{sw, fmt.Sprintf("10.0.0.%d/24", i)})
		r.c.Peers = append(r.c.Peers, Peer{Addr: addr(fmt.Sprintf("10.0.0.%d", i)), AS: 64512, Local: addr("10.0.0.101"), Hold: 9 * time.Second, Client: true, AllPaths: true})
		r.bird(i, r.conf(i, i < 5, i))
	}
	r.member(rack, []plug{{sw, "10.0.0.101/24"}}, r.c)
	return r
}

// conf is that of client i, with a session with ours alone, which announces 10.65.50.0/26 by a link of some width.
func (r *reflector) conf(i int, announces bool, width int) string {
	bits := map[int]string{2: "0x49742400", 3: "0x49f42400", 4: "0x49742400"}[width] // 1e6, 2e6
	conf := edit(r.t, birdConf(i, nothing, ""), fmt.Sprintf("protocol bgp mesh from calico { neighbor 10.0.0.%d as 64512; }", 5-i), "")
	if !announces {
		return edit(r.t, conf, fmt.Sprintf("route 10.65.%d.0/26 blackhole;", i), "")
	}
	return edit(r.t, conf, fmt.Sprintf("route 10.65.%d.0/26 blackhole;", i), "route 10.65.50.0/26 blackhole;",
		birdExport, strings.Replace(birdExport, "if net", fmt.Sprintf("bgp_ext_community.add((generic, 0x4004fc00, %s));\n    if net", bits), 1))
}

// hops are the next hops that client 5 has for the block, in the order of the addresses.
func (r *reflector) hops() (list []string) {
	out := r.birds[5].Try("show", "route", "10.65.50.0/26", "all")
	for i := 2; i <= 4; i++ {
		if a := fmt.Sprintf("10.0.0.%d", i); strings.Contains(out, "BGP.next_hop: "+a+"\n") {
			list = append(list, a)
		}
	}
	return list
}

func (r *reflector) wantHops(what string, n int) {
	r.t.Helper()
	r.hosts[5].Until(what, func() bool { return len(r.hops()) == n })
}

// A client gets all paths of a prefix, or the best alone, as its settings say. Ours has all, with the widths of the links.
func TestReflectorPaths(t *testing.T) {
	r := newReflector(t)
	const row = "10.65.50.0/26 next hop 10.0.0.%d of 10.0.0.%d bandwidth %s via vni 200 ip 10.0.0.%d"
	way := func(i int, width string) string { return fmt.Sprintf(row, i, i, width, i) }
	r.ours.want("three ways", way(2, "1e+06"), way(3, "2e+06"), way(4, "1e+06"))
	r.wantHops("all paths", 3)
	r.hosts[5].Until("all in BIRD's kernel", func() bool { return strings.Count(r.hosts[5].IP("route", "show", "10.65.50.0/26"), "nexthop via") == 3 })
	out := r.birds[5].Try("show", "route", "10.65.50.0/26", "all")
	for _, want := range []string{"BGP.originator_id: 10.0.0.3\n", "(unknown 0x4004, 64512, 1240736768)", "BGP.cluster_list: 10.0.0.101\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	r.birds[3].Configure(r.conf(3, false, 0))
	r.ours.want("one withdrawn", way(2, "1e+06"), way(4, "1e+06"))
	r.hosts[5].Until("one withdrawn", func() bool { return fmt.Sprint(r.hops()) == "[10.0.0.2 10.0.0.4]" })
	r.birds[3].Configure(r.conf(3, true, 2))
	r.ours.want("back, with another width", way(2, "1e+06"), way(3, "1e+06"), way(4, "1e+06"))

	r.c.Peers[3].AllPaths = false
	r.ours.set(r.c)
	r.wantHops("the best alone", 1)
	r.c.Peers[3].AllPaths = true
	r.ours.set(r.c)
	r.wantHops("all again", 3)
}
