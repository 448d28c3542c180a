package bgp

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// A pair is two Speakers with sessions over loopback: a, 127.9.x.1, connects to b, 127.9.x.2.
type pair struct {
	a, b         *Speaker
	aConf, bConf *Config
	aNode, bNode rowsOfNode
	aStop, bStop func()
}

type rowsOfNode func() []string

func newPair(t *testing.T, edit func(a, b *Config)) *pair {
	t.Helper()
	if fake.Race {
		t.Skip("gobgp writes variables of its package when a second server starts")
	}
	port, at := free(t)
	conf := func(i byte) *Config {
		c := simple()
		c.RouterID = at(i)
		c.own(i)
		c.Peers = []Peer{{Addr: at(3 - i), AS: c.AS, Local: at(i), Port: port, Hold: 9 * time.Second}}
		return c
	}
	p := &pair{aConf: conf(1), bConf: conf(2)}
	p.bConf.Listen, p.bConf.Port, p.bConf.Peers[0].Passive = []netip.Addr{at(2)}, port, true
	if edit != nil {
		edit(p.aConf, p.bConf)
	}
	an, bn := newNode(t), newNode(t)
	p.aNode, p.bNode = func() []string { return ways(an) }, func() []string { return ways(bn) }
	p.a, p.b = check.Must(New(an, p.aConf))(t), check.Must(New(bn, p.bConf))(t)
	p.bStop = start(t, p.b)
	p.aStop = start(t, p.a)
	return p
}

// free returns a free port, and addresses of loopback for it.
func free(t *testing.T) (port uint16, at func(i byte) netip.Addr) {
	t.Helper()
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	port = uint16(l.Addr().(*net.TCPAddr).Port)
	return port, func(i byte) netip.Addr { return netip.AddrFrom4([4]byte{127, 9, byte(port >> 8), i}) }
}

// own gives the i-th Speaker addresses, blocks of both families and a host route to announce. 10.0.0.1 is the gateway of all nodes.
func (c *Config) own(i byte) {
	c.Addresses = []netip.Addr{addr(fmt.Sprintf("10.0.0.%d", 10+i)), addr(fmt.Sprintf("fd00::%d", 10+i))}
	c.Announce = prefixes(fmt.Sprintf("10.65.%d.0/26", i), fmt.Sprintf("10.65.9.%d/32", i), fmt.Sprintf("fd65:%d::/122", i))
}

// rowsBy are those that others have of it.
func rowsBy(i int) []string {
	return []string{fmt.Sprintf("10.65.%d.0/26 via vni 200 ip 10.0.0.%d", i, 10+i), fmt.Sprintf("10.65.9.%d/32 via vni 200 ip 10.0.0.%d", i, 10+i),
		fmt.Sprintf("fd65:%d::/122 via vni 200 ip fd00::%d", i, 10+i)}
}

func (r rowsOfNode) want(t *testing.T, what string, rows ...string) {
	t.Helper()
	until(t, what, func() bool { return slices.Equal(r(), rows) })
}

// Two Speakers have each other's blocks and host routes, follow a withdrawal and a new block, and have nothing when the session is lost.
func TestPair(t *testing.T) {
	p := newPair(t, nil)
	p.aNode.want(t, "b's rows at a", rowsBy(2)...)
	p.bNode.want(t, "a's rows at b", rowsBy(1)...)
	st := p.a.Status().Peers[0]
	check.Equal(t, "peer of a", fmt.Sprintf("%v %d %s %v %d %d %v", st.Addr, st.AS, st.State, st.Hold, st.Received, st.Accepted, st.Refused), fmt.Sprint(p.bConf.RouterID, " 64512 established 9s 3 3 map[]"))
	c := *p.bConf
	c.Announce = prefixes("10.65.2.0/26", "10.65.66.0/26", "10.80.0.0/16")
	check.OK(t, p.b.Configure(&c))
	p.aNode.want(t, "a change", "10.65.2.0/26 via vni 200 ip 10.0.0.12", "10.65.66.0/26 via vni 200 ip 10.0.0.12")
	until(t, "one is refused", func() bool { return p.a.Status().Peers[0].Refused[OutsidePools] == 1 })
	p.bStop()
	p.aNode.want(t, "b has gone")
	until(t, "a knows why", func() bool { st := p.a.Status().Peers[0]; return st.State != "established" && st.Why != "" })
}

// Of another AS, with a password, and as a peer of a prefix.
func TestPairExternal(t *testing.T) {
	p := newPair(t, func(a, b *Config) {
		b.AS, a.Peers[0].AS = 64513, 64513
		a.Peers[0].Password, b.Peers[0].Password = "secret", "secret"
		b.Peers[0].Prefix, b.Peers[0].Addr = netip.PrefixFrom(a.RouterID, 24).Masked(), netip.Addr{}
	})
	p.aNode.want(t, "b's rows at a", rowsBy(2)...)
	p.bNode.want(t, "a's rows at b", rowsBy(1)...)
	check.Equal(t, "peer of b", fmt.Sprint(p.b.Status().Peers[0].Addr, " ", p.b.Status().Peers[0].AS), fmt.Sprint(p.aConf.RouterID, " 64512"))
	c := *p.bConf
	c.Peers = nil
	check.OK(t, p.b.Configure(&c))
	p.aNode.want(t, "a is no peer of b any more")
	p.bNode.want(t, "nor b's")
}

// Who is connected as a peer of a prefix, and then gets settings of its own, by a longer prefix or by its address, has a session with these.
// Without them it is one of the prefix again.
func TestPairOfItsOwn(t *testing.T) {
	p := newPair(t, func(a, b *Config) {
		b.Peers[0].Prefix, b.Peers[0].Addr = netip.PrefixFrom(a.RouterID, 24).Masked(), netip.Addr{}
	})
	hold := func(want time.Duration) {
		t.Helper()
		until(t, "hold time "+want.String(), func() bool {
			st := p.b.Status().Peers
			return len(st) == 1 && st[0].State == "established" && st[0].Hold == want
		})
		p.bNode.want(t, "a's rows at b", rowsBy(1)...)
	}
	hold(9 * time.Second)
	all := p.bConf.Peers
	own := func(hold time.Duration, edit func(x *Peer)) {
		t.Helper()
		c := *p.bConf
		x := Peer{AS: c.AS, Local: all[0].Local, Passive: true, Hold: hold}
		edit(&x)
		all = append(all, x)
		c.Peers = all
		check.OK(t, p.b.Configure(&c))
	}
	own(7*time.Second, func(x *Peer) { x.Prefix = netip.PrefixFrom(p.aConf.RouterID, 31).Masked() })
	hold(7 * time.Second)
	own(6*time.Second, func(x *Peer) { x.Addr = p.aConf.RouterID })
	hold(6 * time.Second)
	check.OK(t, p.b.Configure(p.bConf))
	hold(9 * time.Second)
}

// Without a session it is said why there is none, and no more once there is one.
func TestPairWhy(t *testing.T) {
	p := newPair(t, func(a, b *Config) { a.Peers[0].AS, b.Peers[0].Passive = 64513, true })
	why := func(want string) {
		t.Helper()
		until(t, want, func() bool { return strings.Contains(p.a.Status().Peers[0].Why, want) })
	}
	why("bad peer as")
	c := *p.aConf
	c.Peers = slices.Clone(c.Peers)
	c.Peers[0].AS, c.Peers[0].Local = 64512, addr("192.0.2.99")
	check.OK(t, p.a.Configure(&c))
	why("bind: cannot assign requested address")
	c.Peers = slices.Clone(c.Peers)
	c.Peers[0].Local = p.aConf.Peers[0].Local
	check.OK(t, p.a.Configure(&c))
	until(t, "a session", func() bool { st := p.a.Status().Peers[0]; return st.State == "established" && st.Why == "" })
}

// A peer that announces more than its limit has no session.
func TestPairLimit(t *testing.T) {
	p := newPair(t, func(a, b *Config) { a.Peers[0].MaxRoutes = 1 })
	until(t, "the session has ended", func() bool {
		st := p.a.Status().Peers[0]
		return st.State != "established" && st.Why == "more routes than its limit, 1"
	})
	p.aNode.want(t, "nothing is taken")
}

// The log says why a session has ended, also that of a peer that may restart, which begins anew.
func TestPairDead(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprint(restarts), func(t *testing.T) {
			var log check.Log
			p := newPair(t, func(a, b *Config) {
				a.Log, a.Peers[0].GracefulRestart = slog.New(slog.NewTextHandler(&log, nil)), restarts
			})
			p.aNode.want(t, "b's rows at a", rowsBy(2)...)
			p.a.dead(p.bConf.RouterID)
			until(t, "the session ends", func() bool { return log.Count("session down") == 1 })
			check.True(t, log.Count(`reason="the path is dead"`) == 1, "the log is %s", log.String())
			until(t, "a session again", func() bool { return log.Count("session established") == 2 })
		})
	}
}

// Clients of a route reflector have each other's routes from it, with the next hops that these have.
func TestReflector(t *testing.T) {
	if fake.Race {
		t.Skip("gobgp writes variables of its package when a second server starts")
	}
	port, at := free(t)
	var nodes [4]rowsOfNode
	for i := byte(1); i <= 3; i++ {
		c := simple()
		c.RouterID, c.Peers = at(i), nil
		c.own(i)
		if i == 3 {
			c.Listen, c.Port, c.Announce = []netip.Addr{at(3)}, port, nil
			for k := byte(1); k <= 2; k++ {
				c.Peers = append(c.Peers, Peer{Addr: at(k), AS: c.AS, Local: at(3), Passive: true, Client: true})
			}
		} else {
			c.Peers = []Peer{{Addr: at(3), AS: c.AS, Local: at(i), Port: port}}
		}
		n := newNode(t)
		nodes[i] = func() []string { return ways(n) }
		start(t, check.Must(New(n, c))(t))
	}
	nodes[1].want(t, "the second's at the first", rowsBy(2)...)
	nodes[2].want(t, "the first's at the second", rowsBy(1)...)
	nodes[3].want(t, "both at the reflector", slices.Sorted(slices.Values(slices.Concat(rowsBy(1), rowsBy(2))))...)
}
