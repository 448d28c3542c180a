package bgp

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// twoLinks are settings with 10.0.0.1 in segment 200 and 10.0.1.1, fd00::1 in 201.
func twoLinks() *Config {
	c := settings()
	c.Segment, c.Addresses, c.Routers = 0, nil, nil
	c.Links = []Link{
		{Segment: 200, Addresses: []netip.Addr{addr("10.0.0.1")}, Routers: []netip.Addr{addr("10.0.0.254")}},
		{Segment: 201, Addresses: []netip.Addr{addr("10.0.1.1"), addr("fd00::1")}, Routers: []netip.Addr{addr("10.0.1.254")}},
	}
	c.Peers = []Peer{
		{Addr: addr("10.0.0.2"), AS: 64512}, {Addr: addr("10.0.1.2"), AS: 64512}, {Addr: addr("192.0.2.1"), AS: 64512}, {Addr: addr("192.0.2.2"), AS: 64512, Segment: 201},
		{Addr: addr("10.0.0.3"), AS: 64512, Segment: 201}, {Prefix: prefix("10.0.1.0/25"), AS: 64512}, {Prefix: prefix("198.51.100.0/24"), AS: 64512, Segment: 201},
	}
	c.Listen = []netip.Addr{addr("10.0.0.1")}
	return c
}

var twoGateways = [][]netip.Prefix{prefixes("10.0.0.1/24"), prefixes("10.0.1.1/24", "fd00::1/64")}

// A peer is of the link of its setting, or that it is on; others are of the first. Next hops on a network of any link are reached there, and
// others by the router of the peer's link.
func TestLinks(t *testing.T) {
	c := twoLinks()
	c.Links[1].IPIP, c.Links[1].VXLAN, c.Nodes = 101, 301, []Remote{{addr("10.9.0.3"), nodeMAC}}
	check.OK(t, c.Check())
	r := newRules(c, twoGateways...)
	for _, x := range []struct{ peer, nextHops string }{
		{"10.0.0.2", "[10.0.0.1]"}, {"10.0.1.2", "[10.0.1.1 fd00::1]"}, {"192.0.2.1", "[10.0.0.1]"}, {"192.0.2.2", "[10.0.1.1 fd00::1]"}, {"10.0.0.3", "[10.0.1.1 fd00::1]"},
		{"10.0.1.0/25", "[10.0.1.1 fd00::1]"}, {"198.51.100.0/24", "[10.0.1.1 fd00::1]"},
	} {
		i := slices.IndexFunc(c.Peers, func(p Peer) bool { return p.name() == x.peer })
		check.Equal(t, "next hops for "+x.peer, fmt.Sprint(r.nextHops(&c.Peers[i])), x.nextHops)
	}
	for _, x := range []struct{ prefix, nextHop, peer, want string }{
		{"10.65.2.0/26", "10.0.0.2", "10.0.0.2", "via vni 200 ip 10.0.0.2"},
		{"10.65.2.0/26", "10.0.1.2", "10.0.1.2", "via vni 201 ip 10.0.1.2"},
		{"10.65.2.0/26", "10.0.1.9", "10.0.0.2", "via vni 201 ip 10.0.1.9"}, // on the other's network
		{"10.65.2.0/26", "10.9.0.2", "10.0.0.2", "via vni 200 ip 10.0.0.254"},
		{"10.65.2.0/26", "10.9.0.2", "10.0.1.2", "via vni 201 ip 10.0.1.254"},
		{"10.65.2.0/26", "10.9.0.2", "10.0.1.7", "via vni 201 ip 10.0.1.254"}, // of a prefix
		{"10.65.2.0/26", "10.9.0.2", "198.51.100.7", "via vni 201 ip 10.0.1.254"},
		{"10.65.2.0/26", "10.9.0.2", "192.0.2.1", "via vni 200 ip 10.0.0.254"},
		{"10.65.2.0/26", "10.9.0.2", "192.0.2.2", "via vni 201 ip 10.0.1.254"},
		{"fd65:2::/122", "fd00::2", "10.0.0.2", "via vni 201 ip fd00::2"},
		{"10.67.2.0/26", "10.0.1.2", "10.0.0.2", "via vni 201 ip 10.0.1.2"}, // of the same subnet
		{"10.67.2.0/26", "10.9.0.2", "10.0.0.2", "via vni 100 vtep 10.9.0.2:0"},
		{"10.66.2.0/26", "10.0.1.2", "10.0.0.2", "via vni 101 vtep 10.0.1.2:0"}, // of the link with the next hop
		{"10.66.2.0/26", "10.9.0.2", "10.0.1.2", "via vni 101 vtep 10.9.0.2:0"}, // of the peer's
		{"10.66.2.0/26", "10.9.0.2", "10.0.0.2", "via vni 100 vtep 10.9.0.2:0"},
		{"10.68.2.0/26", "10.9.0.3", "10.0.0.2", "via vni 300 mac 02:00:00:00:00:09 vtep 10.9.0.3:0 tunnel vx"},
		{"10.68.2.0/26", "10.9.0.3", "10.0.1.2", "via vni 301 mac 02:00:00:00:00:09 vtep 10.9.0.3:0"},
		{"10.65.2.0/26", "10.0.1.1", "10.0.0.2", "own-next-hop"},
		{"10.0.1.128/25", "10.0.0.2", "10.0.0.2", "underlay"},
	} {
		via, why := r.judge(prefix(x.prefix), addr(x.nextHop), addr(x.peer))
		got := why.String()
		if why == None {
			got = via.String()
		}
		check.Equal(t, fmt.Sprint(x.prefix, " by ", x.nextHop, " of ", x.peer), got, x.want)
	}
}

// Links whose networks have the same addresses are told apart by the peers, and a next hop that both links lead to is two.
func TestLinksAlike(t *testing.T) {
	c := twoLinks()
	c.Peers = []Peer{{Addr: addr("10.0.0.2"), AS: 64512, Segment: 200}, {Addr: addr("10.0.0.3"), AS: 64512, Segment: 201}}
	x := newTable(c)
	x.configure(c, prefixes("10.0.0.1/24"), prefixes("10.0.0.7/24"))
	for _, nextHop := range []string{"10.0.0.9", "10.9.0.9"} {
		p := "10.65.2.0/26"
		if nextHop == "10.9.0.9" {
			p = "10.65.3.0/26"
		}
		x.learned(pathTo(p, "10.0.0.2", 0, nextHop))
		x.learned(pathTo(p, "10.0.0.3", 0, nextHop))
	}
	hop := func(vni frame.VNI, ip string) way { return way{Via: control.Via{VNI: vni, IP: addr(ip)}} }
	check.Slice(t, "on both networks", x.ways(prefix("10.65.2.0/26")), []way{hop(200, "10.0.0.9"), hop(201, "10.0.0.9")})
	check.Slice(t, "by both routers", x.ways(prefix("10.65.3.0/26")), []way{hop(200, "10.0.0.254"), hop(201, "10.0.1.254")})
	x.down(addr("10.0.0.2"))
	check.Slice(t, "by one peer", x.ways(prefix("10.65.2.0/26")), []way{hop(201, "10.0.0.9")})
}

// The link of a peer follows the addresses of gateways.
func TestLinkMoves(t *testing.T) {
	n, f, c := newNode(t), newFake(), simple()
	c.Segment, c.Addresses, c.Announce = 0, nil, nil
	c.Links = []Link{{Segment: 1, Addresses: []netip.Addr{addr("10.70.0.1")}}, {Segment: 200, Addresses: []netip.Addr{addr("10.0.0.1")}}}
	s := check.Must(newSpeaker(n, c, f))(t)
	start(t, s)
	<-f.ready
	is := func(want string) {
		t.Helper()
		until(t, "next hops "+want, func() (ok bool) {
			f.do(func() { ok = fmt.Sprint(f.peers[0].NextHops) == want })
			return ok
		})
	}
	is("[10.0.0.1]")
	check.OK(t, n.Update(nodeAddress("10.9.0.1/24")))
	is("[10.70.0.1]") // on no network: the first link
	check.OK(t, n.Update(nodeAddress("10.0.0.1/24")))
	is("[10.0.0.1]")
}

// A peer gets the next hops of its link, or the address of the session; a change of these ends no session.
func TestPairLinks(t *testing.T) {
	p := newPair(t, func(a, _ *Config) {
		a.Links = []Link{{Segment: 201, Addresses: []netip.Addr{addr("10.0.0.21")}}, {Segment: 200, Addresses: a.Addresses}}
		a.Segment, a.Addresses, a.Peers[0].Segment = 0, nil, 200
		a.Filters, a.Peers[0].Filters = []Filter{{Name: "f", ExportV4: []FilterRule{{Prefix: prefix("10.65.9.1/32"), Operations: []Operation{{AddCommunity: "1:1"}}}}}}, []string{"f"}
	})
	p.bNode.want(t, "a's rows at b", rowsBy(1)...)
	since := p.a.Status().Peers[0].Since
	c := *p.aConf
	c.Peers = slices.Clone(c.Peers)
	c.Peers[0].Segment = 201
	check.OK(t, p.a.Configure(&c))
	p.bNode.want(t, "of the other link, which has no IPv6", "10.65.1.0/26 via vni 200 ip 10.0.0.21", "10.65.9.1/32 via vni 200 ip 10.0.0.21")
	c.Peers[0].NextHopSelf = true
	check.OK(t, p.a.Configure(&c))
	until(t, "the address of the session", func() bool {
		rs := p.b.Routes()
		return len(rs) == 2 && rs[0].NextHop == p.aConf.RouterID && rs[1].NextHop == p.aConf.RouterID
	})
	check.OK(t, p.a.Configure(p.aConf))
	p.bNode.want(t, "as before", rowsBy(1)...)
	check.Equal(t, "since", p.a.Status().Peers[0].Since, since)
}
