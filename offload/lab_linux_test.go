package offload

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const vni = 100

// A site is a switch in a host on the wire, with an Offload. The host itself is the guest, by tap0.
//
//	host 192.0.2.X: tap0 192.168.7.X -- segment -- VTEP -- UDP -- eth0
type site struct {
	t    *testing.T
	h, g *netns.Host
	x    int
	sw   *vswitch.Switch
	vsi  *vswitch.VSI
	v    *vtep.VTEP
	at   *vswitch.Attachment // of the VTEP
	tap  *port.Device
	tapA *vswitch.Attachment
	o    *Offload
}

func addr(x int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(x)}) }

func guest(x int) string { return fmt.Sprintf("192.168.7.%d", x) }

func newSite(t *testing.T, h *netns.Host, x int, peers ...int) *site {
	t.Helper()
	return newSiteOf(t, h, h, x, peers...)
}

// newSiteOf is newSite with a guest in another host, by a veth pair, if that is not h.
func newSiteOf(t *testing.T, h, g *netns.Host, x int, peers ...int) *site {
	t.Helper()
	return newSiteWith(t, h, g, nil, nil, x, peers...)
}

// newSiteWith is newSiteOf with settings of the underlay and of the tunnel.
func newSiteWith(t *testing.T, h, g *netns.Host, cfg *underlay.UDPConfig, tunnel *vtep.Config, x int, peers ...int) *site {
	t.Helper()
	s := &site{t: t, h: h, g: g, x: x}
	u := netns.Open(t, h, func() (*underlay.UDP, error) { return underlay.ListenUDP(netip.AddrPortFrom(addr(x), 4789), cfg) })
	s.v = check.Must(vtep.New(tunnel, u))(t)
	s.sw = check.Must(vswitch.New(nil))(t)
	s.vsi = check.Must(s.sw.VSI(vni, nil))(t)
	s.at = check.Must(s.vsi.Attach(s.v, vni))(t)
	var list []netip.AddrPort
	for _, p := range peers {
		list = append(list, netip.AddrPortFrom(addr(p), 4789))
	}
	check.OK(t, s.v.SetFlood(vni, list...))
	s.tap = netns.Open(t, h, func() (*port.Device, error) {
		if g == h {
			return port.OpenTAP("tap0", &port.DeviceConfig{MTU: 1450})
		}
		return port.OpenVeth("tap0", &port.DeviceConfig{MTU: 1450, Namespace: g.NS})
	})
	s.tapA = check.Must(s.vsi.Attach(s.tap, 0))(t)
	g.Addr("tap0", guest(x)+"/24")
	ended := make(chan error, 1)
	go func() { ended <- s.sw.Run(context.Background()) }()
	t.Cleanup(func() {
		s.sw.Close()
		check.OK(t, <-ended)
	})
	s.o = netns.Open(t, h, func() (*Offload, error) { return New(s.sw, nil) })
	return s
}

// two returns two hosts on a wire.
func two(t *testing.T) (a, b *netns.Host) {
	t.Helper()
	n := netns.New(t)
	a, b = n.Host("a"), n.Host("b")
	n.Link(a, "192.0.2.1/24", b, "192.0.2.2/24")
	return a, b
}

func (s *site) stats() Stats {
	s.t.Helper()
	return check.Must(s.o.Stats())(s.t)
}

// flows waits for n flows.
func (s *site) flows(n int) {
	s.t.Helper()
	s.h.Until(fmt.Sprintf("%d flows", n), func() bool { return s.stats().Flows == n })
}

// TestKernelPeer: TCP both ways between the host and a kernel's vxlan device is carried, with outer checksums, which are that
// device's default, and without, and counted as if it were not.
func TestKernelPeer(t *testing.T) {
	for _, sum := range []string{"udpcsum", "noudpcsum"} {
		t.Run(sum, func(t *testing.T) {
			const size = 200 << 20
			a, b := two(t)
			s := newSite(t, a, 1, 2)
			b.VXLAN("vx0", netns.VXLAN{ID: vni, Local: "192.0.2.2", Remote: "192.0.2.1", Addr: guest(2) + "/24", Keep: true, Args: []string{sum}})
			a.Ping(guest(2), 20)
			s.flows(2)
			carried := func(name string, args ...string) {
				t.Helper()
				before, rx := s.stats(), s.sw.Stats()
				t.Logf("%s: %v", name, a.IPerf(b, guest(2), append(args, "-n", "200M")...))
				after := s.stats()
				if n := after.Carried.Bytes - before.Carried.Bytes; n < size*9/10 {
					t.Errorf("%s: %d bytes carried: %+v", name, n, after)
				}
				var n uint64
				for i, p := range s.sw.Stats().Ports {
					n += p.Rx.Bytes - rx.Ports[i].Rx.Bytes
				}
				if n < size*9/10 { // iperf3 leaves what is in the last buffers
					t.Errorf("%s: the switch has counted %d bytes", name, n)
				}
				peer := s.v.Stats().Peers[0]
				if peer.Rx.Bytes+peer.Tx.Bytes < size*9/10 {
					t.Errorf("%s: the VTEP has counted %+v", name, peer)
				}
			}
			carried("to the kernel")
			carried("from the kernel", "-R")
			if n := b.Nstat()["TcpInCsumErrors"] + a.Nstat()["TcpInCsumErrors"]; n != 0 {
				t.Errorf("%d wrong TCP checksums", n)
			}
		})
	}
}

// TestBothCarry: two sites of ours, also after one has lost its Offload.
func TestBothCarry(t *testing.T) {
	a, b := two(t)
	s, r := newSite(t, a, 1, 2), newSite(t, b, 2, 1)
	a.Ping(guest(2), 20)
	s.flows(2)
	r.flows(2)
	a.IPerf(b, guest(2), "-n", "500M")
	t.Logf("%+v\n%+v", s.stats(), r.stats())
	check.OK(t, r.o.Close())
	a.IPerf(b, guest(2), "-n", "100M")
	a.IPerf(b, guest(2), "-n", "100M", "-R")
	check.OK(t, s.o.Close())
	a.Ping(guest(2), 3)
}

// TestUnfinishedOuterChecksum: a peer that sends by sockets with checksums leaves the outer one to a card that is not there. Such
// packets are not for the kernel, which would look for it where it is no more.
func TestUnfinishedOuterChecksum(t *testing.T) {
	a, b := two(t)
	s := newSite(t, a, 1, 2)
	newSiteWith(t, b, b, &underlay.UDPConfig{Checksum: underlay.ChecksumOn}, nil, 2, 1)
	a.Ping(guest(2), 20)
	s.flows(2)
	before := s.stats().Misses["checksum"]
	a.Ping(guest(2), 20)
	if n := s.stats().Misses["checksum"] - before; n < 20 {
		t.Errorf("%d of 20 packets are left to user space", n)
	}
}

// TestSymmetricHash: what is to leave from the same source port as the answers is left to user space, which knows it; answers are
// carried.
func TestSymmetricHash(t *testing.T) {
	a, b := two(t)
	s := newSiteWith(t, a, a, nil, &vtep.Config{SymmetricHash: true}, 1, 2)
	newSite(t, b, 2, 1)
	a.Ping(guest(2), 20)
	s.flows(1)
	if n := s.stats().Refused["hash"]; n == 0 {
		t.Errorf("refused: %v", s.stats().Refused)
	}
}

// TestUnderlayChanges: a route that moves, and a smaller MTU, are followed.
func TestUnderlayChanges(t *testing.T) {
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "192.0.2.1/24", b, "192.0.2.2/24")
	n.Link(a, "198.51.100.1/24", b, "198.51.100.2/24")
	s := newSite(t, a, 1, 2)
	b.VXLAN("vx0", netns.VXLAN{ID: vni, Local: "192.0.2.2", Remote: "192.0.2.1", Addr: guest(2) + "/24", Keep: true, Args: []string{"noudpcsum"}})
	for _, h := range []*netns.Host{a, b} {
		for _, dev := range []string{"eth0", "eth1"} {
			h.Sysctl("net.ipv4.conf."+dev+".rp_filter", "0")
		}
	}
	a.Ping(guest(2), 20)
	s.flows(2)
	a.IP("route", "add", "192.0.2.2/32", "via", "198.51.100.2")
	sent := a.Counter("eth1", "tx_packets")
	a.Ping(guest(2), 10)
	if got := a.Counter("eth1", "tx_packets") - sent; got < 10 {
		t.Errorf("%d packets by the new route", got)
	}
	carried := s.stats().Carried.Frames
	a.Ping(guest(2), 20)
	s.h.Until("flows by the new route", func() bool { a.Ping(guest(2), 5); return s.stats().Carried.Frames > carried })
	a.IP("route", "del", "192.0.2.2/32")
	a.Ping(guest(2), 10)

	// Longer frames than the underlay takes are for user space, which tells the host.
	a.MTU("eth0", 1200)
	s.h.Until("the host knows the path's MTU", func() bool {
		_, err := a.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", "-M", "do", "-s", "1300", guest(2))
		return err != nil
	})
	a.Ping(guest(2), 5)
	a.IPerf(b, guest(2), "-n", "20M")
}

// TestVethGuests: two sites whose guests are in namespaces of their own, by veth ports: both directions are carried, also from guest
// to guest of one site.
func TestVethGuests(t *testing.T) {
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "192.0.2.1/24", b, "192.0.2.2/24")
	g1, g2, g3 := n.Host("g1"), n.Host("g2"), n.Host("g3")
	s, r := newSiteOf(t, a, g1, 1, 2), newSiteOf(t, b, g2, 2, 1)
	third := netns.Open(t, a, func() (*port.Device, error) {
		return port.OpenVeth("tap0", &port.DeviceConfig{MTU: 1450, Namespace: g3.NS})
	})
	check.Must(s.vsi.Attach(third, 0))(t)
	g3.Addr("tap0", guest(3)+"/24")
	for _, to := range []*site{r, nil} {
		peer, x := g3, 3
		if to != nil {
			peer, x = g2, 2
		}
		g1.Ping(guest(x), 20)
		before := s.stats()
		for _, args := range [][]string{{"-n", "200M"}, {"-n", "200M", "-R"}, {"-u", "-b", "100M", "-l", "64", "-t", "1"}} {
			t.Logf("to guest %d, %v: %v", x, args, g1.IPerf(peer, guest(x), args...))
		}
		st := s.stats()
		if got := st.Carried.Bytes - before.Carried.Bytes; got < 400<<20*9/10 {
			t.Errorf("to guest %d: %d bytes carried: %+v", x, got, st)
		}
		for _, h := range []*netns.Host{g1, peer} {
			if n := h.Nstat()["TcpInCsumErrors"] + h.Nstat()["UdpInCsumErrors"]; n != 0 {
				t.Errorf("%s: %d wrong checksums", h.Name, n)
			}
		}
	}
	// A guest that stops being carried goes on.
	check.OK(t, s.o.Close())
	g1.Ping(guest(2), 5)
	g1.IPerf(g2, guest(2), "-n", "50M")
}

// TestIPsec: nothing of the tunnel is carried while the host has an IPsec policy: it would leave in clear text.
func TestIPsec(t *testing.T) {
	a, b := two(t)
	s := newSite(t, a, 1, 2)
	b.VXLAN("vx0", netns.VXLAN{ID: vni, Local: "192.0.2.2", Remote: "192.0.2.1", Addr: guest(2) + "/24", Keep: true, Args: []string{"noudpcsum"}})
	s.h.Until("two flows", func() bool { a.Ping(guest(2), 10); return s.stats().Flows == 2 })
	policy := strings.Fields("src 192.0.2.1/32 dst 203.0.113.9/32 dir out tmpl src 192.0.2.1 dst 203.0.113.9 proto esp mode transport")
	a.IP(append([]string{"xfrm", "policy", "add"}, policy...)...)
	s.flows(0)
	a.Ping(guest(2), 20)
	if st := s.stats(); st.Flows != 0 || st.Refused["ipsec"] == 0 {
		t.Errorf("%+v", st)
	}
	a.IP("xfrm", "policy", "flush")
	s.h.Until("two flows again", func() bool { a.Ping(guest(2), 10); return s.stats().Flows == 2 })
}
