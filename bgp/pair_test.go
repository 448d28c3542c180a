package bgp

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
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
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	at := func(i byte) netip.Addr { return netip.AddrFrom4([4]byte{127, 9, byte(port >> 8), i}) }
	conf := func(i byte) *Config {
		c := simple()
		c.RouterID = at(i)
		c.Addresses = []netip.Addr{addr(fmt.Sprintf("10.0.0.%d", 10+i))} // 10.0.0.1 is the gateway of both nodes
		c.Announce = prefixes(fmt.Sprintf("10.65.%d.0/26", i), fmt.Sprintf("10.65.9.%d/32", i))
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

func rowsBy(i int) []string {
	return []string{fmt.Sprintf("10.65.%d.0/26 via vni 200 ip 10.0.0.%d", i, 10+i), fmt.Sprintf("10.65.9.%d/32 via vni 200 ip 10.0.0.%d", i, 10+i)}
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
	check.Equal(t, "peer of a", fmt.Sprintf("%v %d %s %v %d %d %v", st.Addr, st.AS, st.State, st.Hold, st.Received, st.Accepted, st.Refused), fmt.Sprint(p.bConf.RouterID, " 64512 established 9s 2 2 map[]"))
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

// A peer that announces more than its limit has no session.
func TestPairLimit(t *testing.T) {
	p := newPair(t, func(a, b *Config) { a.Peers[0].MaxRoutes = 1 })
	until(t, "the session has ended", func() bool { st := p.a.Status().Peers[0]; return st.State != "established" && st.Why != "" })
	p.aNode.want(t, "nothing is taken")
}
