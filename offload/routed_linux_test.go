package offload

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// gatewayMAC is that of a site's gateway.
func gatewayMAC(site int) frame.MAC { return frame.MAC{2, 0, 0, 0xfe, 0, byte(site)} }

// An irb is the interface of a gateway on a segment.
type irb struct {
	*l3.Interface
	vsi        *vswitch.VSI
	neighbours *arp.Table
}

// gateway gives a segment an interface with these addresses.
func gateway(t testing.TB, vrf *l3.VRF, vsi *vswitch.VSI, mac frame.MAC, addrs ...string) *irb {
	t.Helper()
	x := &irb{vsi: vsi}
	cfg := &l3.InterfaceConfig{VNI: vsi.VNI(), MAC: mac, Send: vsi.Send}
	slots := vswitch.Slots{}
	if len(addrs) > 0 {
		x.neighbours = check.Must(arp.NewTable(&arp.TableConfig{VNI: vsi.VNI()}))(t)
		cfg.Neighbours = check.Must(arp.NewResponder(&arp.Config{Table: x.neighbours}))(t)
		slots.Neighbour = cfg.Neighbours
	}
	for _, a := range addrs {
		cfg.Addresses = append(cfg.Addresses, netip.MustParsePrefix(a))
	}
	x.Interface = check.Must(vrf.NewInterface(cfg))(t)
	slots.Gateway, slots.TooBig = x.Interface, x.PathMTU()
	check.OK(t, vsi.FDB().Set(mac, 0, fdb.Static))
	all := vsi.Config()
	all.Slots = slots
	check.OK(t, vsi.Configure(all))
	return x
}

// newVRF returns one of a gateway of its own.
func newVRF(t testing.TB) *l3.VRF { return check.Must(l3.NewGateway(nil))(t).VRF("red") }

// routed waits until packets from one host to another are carried as routed both ways.
func (s *site) routed(from *netns.Host, to string) {
	s.t.Helper()
	s.h.Until(to+" is reached by routed flows, both ways", func() bool {
		was := s.stats().Carried.Frames
		from.Ping(to, 10)
		return s.stats().Carried.Frames >= was+20
	})
	for e := range s.o.Flows() {
		if e.Hop == (frame.Hop{}) {
			s.t.Errorf("not routed: %+v", e)
		}
	}
}

// TestRouted: guests of two segments of one site, and one behind the tunnel of the second: their packets are carried both ways, with a
// TTL that is less by one, and counted as if they were not. What gets an answer from the gateway still gets it.
func TestRouted(t *testing.T) {
	n := netns.New(t)
	a, b, g1, g3 := n.Host("a"), n.Host("b"), n.Host("g1"), n.Host("g3")
	n.Link(a, "192.0.2.1/24", b, "192.0.2.2/24")
	s := newSiteOf(t, a, g1, 1, 2)
	there := check.Must(s.sw.VSI(200, nil))(t)
	check.Must(there.Attach(s.v, 200))(t)
	check.OK(t, s.v.SetFlood(200, s.v.Flood(vni)...))
	third := netns.Open(t, a, func() (*port.Device, error) {
		return port.OpenVeth("tap3", &port.DeviceConfig{MTU: 1450, Namespace: g3.NS})
	})
	check.Must(there.Attach(third, 0))(t)
	vrf := newVRF(t)
	here := gateway(t, vrf, s.vsi, gatewayMAC(1), "192.168.7.254/24", "fd07::fe/64")
	other := gateway(t, vrf, there, gatewayMAC(2), "192.168.8.254/24", "fd08::fe/64")
	b.VXLAN("vx0", netns.VXLAN{ID: 200, Local: "192.0.2.2", Remote: "192.0.2.1", Addr: "192.168.8.2/24", Keep: true, Args: []string{"noudpcsum"}})
	g3.Addr("tap3", "192.168.8.3/24")
	g1.Addr("tap0", "fd07::1/64")
	b.Addr("vx0", "fd08::2/64")
	g3.Addr("tap3", "fd08::3/64")
	g1.Route("192.168.8.0/24", "via", "192.168.7.254")
	g1.Route("fd08::/64", "via", "fd07::fe")
	for _, h := range []*netns.Host{b, g3} {
		h.Route("192.168.7.0/24", "via", "192.168.8.254")
		h.Route("fd07::/64", "via", "fd08::fe")
	}
	routed := func() uint64 {
		s.stats() // takes the programs' counters in
		x, y := here.Stats(), other.Stats()
		return x.Routed4 + x.Routed6 + y.Routed4 + y.Routed6
	}
	for _, x := range []struct {
		peer   *netns.Host
		v4, v6 string
	}{{b, "192.168.8.2", "fd08::2"}, {g3, "192.168.8.3", "fd08::3"}} {
		for _, to := range []string{x.v4, x.v6} {
			gate := "192.168.7.254"
			if to == x.v6 {
				gate = "fd07::fe"
			}
			s.routed(g1, to)
			was, carried := routed(), s.stats().Carried.Frames
			g1.Ping(to, 20)
			if n, c := routed()-was, s.stats().Carried.Frames-carried; n < 40 || n > 42 || c < 40 { // v6: unicast ND may be among them
				t.Errorf("%s: %d packets of 20 pings routed, %d carried", to, n, c)
			}
			if ttl := g1.PingTTL(to); ttl != 63 {
				t.Errorf("%s: TTL %d", to, ttl)
			}
			if hops := g1.Traceroute(to); !slices.Equal(hops, []string{gate, to}) {
				t.Errorf("%s: hops %v", to, hops)
			}
			for _, args := range [][]string{{"-n", "100M"}, {"-n", "100M", "-R"}, {"-u", "-b", "100M", "-l", "1000", "-t", "1"}} {
				before, rx := s.stats().Carried, s.sw.Stats()
				r := g1.IPerf(x.peer, to, args...)
				t.Logf("%s, %v: %v", to, args, r)
				carried, in := s.stats().Carried, uint64(0)
				for i, p := range s.sw.Stats().Ports {
					in += p.Rx.Bytes - rx.Ports[i].Rx.Bytes
				}
				if want := uint64(r.Bytes) * 9 / 10; carried.Bytes-before.Bytes < want || in < want {
					t.Errorf("%s, %v: %d bytes carried, %d counted, of %+v: %+v", to, args, carried.Bytes-before.Bytes, in, r, s.stats())
				}
			}
		}
		for _, h := range []*netns.Host{g1, x.peer} {
			if n := h.Nstat()["TcpInCsumErrors"] + h.Nstat()["UdpInCsumErrors"]; n != 0 {
				t.Errorf("%s: %d wrong checksums", h.Name, n)
			}
		}
	}
	if st := s.stats(); st.Misses["ttl"] == 0 {
		t.Errorf("no miss by traceroute: %+v", st)
	}

	// Packets that are too long for the way out get an answer from the gateway; other fragments are carried.
	a.MTU("eth0", 1400)
	s.h.Until("the path's MTU is told", func() bool {
		out, _ := g1.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", "-M", "do", "-s", "1400", "192.168.8.2")
		return strings.Contains(out, "From 192.168.7.254") || strings.Contains(out, "mtu=1350")
	})
	g1.IPerf(b, "192.168.8.2", "-n", "20M")
	out := g1.Run("ping", "-n", "-c", "20", "-i", "0.01", "-W", "5", "-s", "4000", "192.168.8.3")
	if !strings.Contains(out, "20 received") {
		t.Errorf("fragments: %s", out)
	}

	// Without the Offload they go on.
	check.OK(t, s.o.Close())
	g1.Ping("192.168.8.2", 5)
	g1.IPerf(g3, "192.168.8.3", "-n", "50M")
}

// TestSymmetricIRB: each of two sites routes what its guest sends into an L3VNI, to the MAC of the other's router, and what comes
// out of that to its guest. All is carried, at both sites both ways.
func TestSymmetricIRB(t *testing.T) {
	const l3vni = 500
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "192.0.2.1/24", b, "192.0.2.2/24")
	g := [2]*netns.Host{n.Host("g1"), n.Host("g2")}
	var sites [2]*site
	for i, h := range []*netns.Host{a, b} {
		s := newSiteOf(t, h, g[i], i+1, 2-i)
		sites[i] = s
		check.OK(t, s.v.SetFlood(vni)) // no segment is shared
		far := check.Must(s.sw.VSI(l3vni, nil))(t)
		at := check.Must(far.Attach(s.v, l3vni))(t)
		peer := check.Must(s.v.AddPeer(netip.AddrPortFrom(addr(2-i), 0)))(t)
		check.OK(t, far.FDB().Set(gatewayMAC(2-i), at.Dest(peer), fdb.Control))
		vrf := newVRF(t)
		gateway(t, vrf, s.vsi, gatewayMAC(10+i), fmt.Sprintf("192.168.%d.254/24", i+1), fmt.Sprintf("fd0%d::fe/64", i+1))
		core := gateway(t, vrf, far, gatewayMAC(i+1))
		hop := []l3.NextHop{{Interface: core.Interface, MAC: gatewayMAC(2 - i)}}
		check.OK(t, vrf.Add(l3.Route{Prefix: netip.MustParsePrefix(fmt.Sprintf("192.168.%d.0/24", 2-i)), Via: hop},
			l3.Route{Prefix: netip.MustParsePrefix(fmt.Sprintf("fd0%d::/64", 2-i)), Via: hop}))
		g[i].Addr("tap0", fmt.Sprintf("192.168.%d.1/24", i+1))
		g[i].Addr("tap0", fmt.Sprintf("fd0%d::1/64", i+1))
		g[i].Route(fmt.Sprintf("192.168.%d.0/24", 2-i), "via", fmt.Sprintf("192.168.%d.254", i+1))
		g[i].Route(fmt.Sprintf("fd0%d::/64", 2-i), "via", fmt.Sprintf("fd0%d::fe", i+1))
	}
	for _, to := range []string{"192.168.2.1", "fd02::1"} {
		for _, s := range sites {
			s.routed(g[0], to)
		}
		check.Equal(t, to+": TTL", g[0].PingTTL(to), 62)
		for _, args := range [][]string{{"-n", "100M"}, {"-n", "100M", "-R"}} {
			was := [2]uint64{sites[0].stats().Carried.Bytes, sites[1].stats().Carried.Bytes}
			r := g[0].IPerf(g[1], to, args...)
			t.Logf("%s, %v: %v", to, args, r)
			for i, s := range sites {
				if n := s.stats().Carried.Bytes - was[i]; n < uint64(r.Bytes)*9/10 {
					t.Errorf("%s, %v: site %d has carried %d bytes of %+v: %+v", to, args, i+1, n, r, s.stats())
				}
			}
		}
	}
	for _, h := range g {
		if n := h.Nstat()["TcpInCsumErrors"]; n != 0 {
			t.Errorf("%s: %d wrong checksums", h.Name, n)
		}
	}
}

// TestRoutedBack: two hosts behind one interface, in two networks of one segment, which the gateway joins: what comes in leaves by the
// same device.
func TestRoutedBack(t *testing.T) {
	n := netns.New(t)
	a, wire := n.Host("a"), n.Switch("wire")
	dev, _ := n.Plug(a, "198.51.100.1/24", wire)
	hosts := []*netns.Host{n.Host("h1"), n.Host("h2")}
	for i, h := range hosts {
		eth, _ := n.Plug(h, fmt.Sprintf("10.%d.0.1/24", i+1), wire)
		h.Addr(eth, fmt.Sprintf("fd0%d::1/64", i+1))
		h.Route(fmt.Sprintf("10.%d.0.0/24", 2-i), "via", fmt.Sprintf("10.%d.0.254", i+1))
		h.Route(fmt.Sprintf("fd0%d::/64", 2-i), "via", fmt.Sprintf("fd0%d::fe", i+1))
	}
	s := &site{t: t, h: a, sw: check.Must(vswitch.New(nil))(t)}
	s.vsi = check.Must(s.sw.VSI(vni, nil))(t)
	s.tap = netns.Open(t, a, func() (*port.Device, error) { return port.OpenInterface(dev, nil) })
	check.Must(s.vsi.Attach(s.tap, 0))(t)
	gateway(t, newVRF(t), s.vsi, gatewayMAC(1), "10.1.0.254/24", "10.2.0.254/24", "fd01::fe/64", "fd02::fe/64")
	ended := make(chan error, 1)
	go func() { ended <- s.sw.Run(context.Background()) }()
	t.Cleanup(func() { s.sw.Close(); check.OK(t, <-ended) })
	s.o = netns.Open(t, a, func() (*Offload, error) { return New(s.sw, nil) })
	for _, to := range []string{"10.2.0.1", "fd02::1"} {
		s.routed(hosts[0], to)
		check.Equal(t, to+": TTL", hosts[0].PingTTL(to), 63)
		was := s.stats().Carried.Bytes
		r := hosts[0].IPerf(hosts[1], to, "-n", "50M")
		if n := s.stats().Carried.Bytes - was; n < uint64(r.Bytes)*9/10 {
			t.Errorf("%s: %d bytes carried of %+v: %+v", to, n, r, s.stats())
		}
	}
}
