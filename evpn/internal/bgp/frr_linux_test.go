package bgp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// startFRR starts the bgpd of FRR in a host, with its zebra.
func startFRR(t testing.TB, h *netns.Host, zebra, bgpd string) *frr.FRR {
	t.Helper()
	return frr.Start(t, h, frr.Daemon{Name: "zebra", Config: zebra}, frr.Daemon{Name: "bgpd", Config: bgpd})
}

const (
	oursAddr   = "192.0.2.1"
	theirsAddr = "192.0.2.2"
)

// leaf makes a host with the network 100, and 500 for layer 3, in FRR's hands, and ours beside it.
func leaf(t *testing.T, theirAS uint32, neighbour string) (us *netns.Host, f *frr.FRR) {
	n := netns.New(t)
	us, b, host := n.Host("us"), n.Router("frr"), n.Host("host")
	n.Link(us, oursAddr+"/24", b, theirsAddr+"/24")
	_, port := n.Link(host, "172.16.0.2/24", b, "")
	for _, vni := range []string{"100", "500"} {
		b.IP("link", "add", "br"+vni, "type", "bridge")
		b.IP("link", "add", "vx"+vni, "type", "vxlan", "id", vni, "local", theirsAddr, "dstport", "4789", "nolearning")
		b.IP("link", "set", "vx"+vni, "master", "br"+vni)
		b.IP("link", "set", "vx"+vni, "type", "bridge_slave", "neigh_suppress", "on", "learning", "off")
		b.IP("link", "set", "vx"+vni, "up")
		b.IP("link", "set", "br"+vni, "up")
	}
	b.Join(port, "br100")
	b.IP("addr", "add", "172.16.0.1/24", "dev", "br100")
	us.Ready()
	f = startFRR(t, b, "vni 500\n", fmt.Sprintf(`router bgp %d
 bgp router-id %s
 no bgp default ipv4-unicast
 no bgp ebgp-requires-policy
 neighbor %s remote-as 65000
 %s
 address-family ipv4 unicast
  redistribute connected
 address-family l2vpn evpn
  neighbor %[3]s activate
  advertise-all-vni
  advertise ipv4 unicast
`, theirAS, theirsAddr, oursAddr, neighbour))
	host.Ping("172.16.0.1", 1)
	return us, f
}

func confOf(us *netns.Host, as uint32) Config {
	return Config{AS: 65000, RouterID: netip.MustParseAddr(oursAddr), In: us.Do, Listen: []netip.AddrPort{netip.MustParseAddrPort(oursAddr + ":179")},
		Peers: []Peer{{Addr: netip.MustParseAddr(theirsAddr), AS: int64(as), Retry: 100 * time.Millisecond, Hold: 3 * time.Second}}}
}

// toFRR is what we say, with the keys by which FRR shows it.
func toFRR() map[string]route.Route {
	nh := ip(oursAddr)
	d := route.RDFrom(netip.MustParseAddr(oursAddr), 7)
	mac := frame.MAC{2, 0, 0, 0, 0, 1}
	unknown := route.Communities("\x06\x7f\x00\x00\x00\x00\x00\x01\x06\x08\x01\x00\x00\x00\x00\x00")
	l3 := route.Communities("\x00\x02\xfd\xe8\x00\x00\x01\xf4\x06\x03\x02\x00\x00\x00\x00\xaa")
	return map[string]route.Route{
		"[2]:[0]:[48]:[02:00:00:00:00:01]":                    {Key: route.Key{Kind: route.MACIP, RD: d, MAC: mac}, Labels: [2]uint32{100}, NumLabels: 1, NextHop: nh, Communities: rt},
		"[2]:[0]:[48]:[02:00:00:00:00:01]:[32]:[172.16.0.11]": {Key: route.Key{Kind: route.MACIP, RD: d, MAC: mac, IP: ip("172.16.0.11")}, Labels: [2]uint32{100, 500}, NumLabels: 2, NextHop: nh, Communities: rt + l3 + unknown},
		"[3]:[0]:[32]:[192.0.2.1]":                            {Key: route.Key{Kind: route.Multicast, RD: d, IP: nh}, Labels: [2]uint32{100}, NumLabels: 1, NextHop: nh, Tunnel: nh, TunnelType: tunnelIngress, Communities: rt},
		"[5]:[0]:[24]:[172.17.0.0]":                           {Key: route.Key{Kind: route.Prefix, RD: d, IP: ip("172.17.0.0"), Bits: 24}, Labels: [2]uint32{500}, NumLabels: 1, NextHop: nh, Communities: l3 + rt[8:]},
	}
}

// FRR within the AS and outside of it, with and without MD5: routes of types 2, 3 and 5 in both directions, and their withdrawal.
func TestFRR(t *testing.T) {
	for _, c := range []struct {
		name      string
		as        uint32
		neighbour string
		edit      func(*Peer)
	}{
		{"iBGP", 65000, "neighbor 192.0.2.1 timers 10 30", func(*Peer) {}},
		{"eBGP", 70000, "neighbor 192.0.2.1 passive", func(*Peer) {}},
		{"MD5", 65000, "neighbor 192.0.2.1 password secret", func(p *Peer) { p.Password, p.Passive = "secret", true }},
		{"TTL security", 65001, "neighbor 192.0.2.1 ttl-security hops 1", func(p *Peer) { p.Hops = 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			us, f := leaf(t, c.as, c.neighbour)
			conf := confOf(us, c.as)
			conf.Peers[0].Hold = DefaultHold // no session is to be lost on a busy machine
			c.edit(&conf.Peers[0])
			b, h, _ := start(t, conf)
			for _, r := range toFRR() {
				b.Advertise(r)
			}
			for key := range toFRR() {
				us.Until("FRR has "+key, func() bool { return f.HasEVPN(key) })
			}
			wantFromFRR(t, us, h)
			s := b.Status()[0]
			delete(s.LeftOut, "as-loop") // from another AS, FRR says our own routes back
			if s.State != "established" || len(s.LeftOut) > 0 {
				t.Errorf("%+v", s)
			}
			for key, r := range toFRR() {
				b.Withdraw(r.Key)
				us.Until("FRR no longer has "+key, func() bool { return !f.HasEVPN(key) })
			}
			if c, err := h.counts(); c.downs > 0 {
				t.Errorf("down: %v", err)
			}
		})
	}
}

// wantFromFRR waits for its routes of types 2 (one and two labels), 3 and 5.
func wantFromFRR(t *testing.T, us *netns.Host, h *heard) {
	t.Helper()
	us.Until("FRR's routes", func() bool {
		var got []string
		h.do(func() {
			for _, r := range h.routes[netip.MustParseAddr(theirsAddr)] {
				if r.NextHop == ip(theirsAddr) {
					got = append(got, fmt.Sprint(r.Kind, r.IP, r.Bits, r.Labels))
				}
			}
		})
		return slices.Contains(got, "3 192.0.2.2 0 [100 0]") && slices.Contains(got, "5 172.16.0.0 24 [500 0]") &&
			slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "2 none 0 [100") }) &&
			slices.Contains(got, "2 172.16.0.2 0 [100 500]")
	})
}

// The session is lost 20 times, then nothing passes for longer than the hold time: all comes back.
func TestFRRSessionLost(t *testing.T) {
	t.Parallel()
	us, f := leaf(t, 65000, "neighbor 192.0.2.1 timers 1 3")
	b, h, _ := start(t, confOf(us, 65000))
	for _, r := range toFRR() {
		b.Advertise(r)
	}
	ups := func() int { c, _ := h.counts(); return c.ups }
	us.Until("a session", func() bool { return ups() > 0 })
	for range 20 {
		before := ups()
		f.Do("clear bgp l2vpn evpn *")
		us.Until("another", func() bool { return ups() > before }) // FRR may end that one too, which makes two
	}
	wantFromFRR(t, us, h)
	f.Host.Run("nft", "table inet t { chain c { type filter hook input priority 0; tcp sport 179 drop; tcp dport 179 drop; }; }")
	us.Until("the hold timer expires", func() bool {
		n, _ := b.Status()[0].Last.(*Notification)
		return n != nil && n.Code == errHold && !n.Received && h.count() == 0
	})
	f.Host.Run("nft", "delete table inet t")
	wantFromFRR(t, us, h)
	for key := range toFRR() {
		us.Until("FRR has "+key, func() bool { return f.HasEVPN(key) })
	}
}
