package kernel

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// oneAddress is a node of ours with one address, which the kernel of a peer sends to through a tunnel and without it, and two
// pods on either side, one for each way:
//
//	pod 65.1.5 --+                                     +-- pod 65.2.6
//	             +-- ours 10.0.0.1 ----- kernel 0.2 ---+
//	pod 66.1.5 --+     == tunnel: 65 ==                +-- pod 66.2.6
//
// With far set, a router with a small MTU is in between, and the kernel has 10.1.0.2.
type oneAddress struct {
	*node.Node
	t          *testing.T
	v6, far    bool
	typ        encap.Type
	h, b       *netns.Host // ours, the kernel's
	near, peer [2]*netns.Host
}

const (
	tunnelled = 0 // indices of pods
	plain     = 1
)

// ip returns an address: of pods in nets 65 and 66, of a link in net 0 or 1.
func (o *oneAddress) ip(net, part, host int) string {
	if o.v6 {
		return fmt.Sprintf("fd%02d:%d::%d", net, part, host)
	}
	return fmt.Sprintf("10.%d.%d.%d", net, part, host)
}

func (o *oneAddress) bits() string {
	if o.v6 {
		return "/64"
	}
	return "/24"
}

// own is our address, kernel that of the peer.
func (o *oneAddress) own() string { return o.ip(0, 0, 1) }
func (o *oneAddress) kernel() string {
	if o.far {
		return o.ip(1, 0, 2)
	}
	return o.ip(0, 0, 2)
}

var sharedMAC, routerMAC, peerMAC = frame.MAC{2, 0, 0, 0, 0xca, 1}, frame.MAC{2, 0, 0, 0, 0xaa, 1}, frame.MAC{2, 0, 0, 0, 0xbb, 1}

func newOneAddress(t *testing.T, typ encap.Type, v6, far bool) *oneAddress {
	t.Helper()
	n := netns.New(t)
	o := &oneAddress{t: t, v6: v6, far: far, typ: typ, h: n.Host("ours"), b: n.Router("kernel")}
	via := o.kernel()
	if far {
		r := n.Router("router")
		n.Link(o.h, "", r, o.ip(0, 0, 254)+o.bits())
		n.Link(r, o.ip(1, 0, 254)+o.bits(), o.b, o.kernel()+o.bits())
		r.MTU("eth1", 1400)
		r.TxOff("eth0")
		r.TxOff("eth1")
		for i := range 2 {
			r.Route(o.ip(65+i, 1, 0)+o.bits(), "via", o.own())
			r.Route(o.ip(65+i, 2, 0)+o.bits(), "via", o.kernel())
		}
		o.b.Route(o.ip(0, 0, 0)+o.bits(), "via", o.ip(1, 0, 254))
		r.Ready()
		via = o.ip(0, 0, 254)
	} else {
		n.Link(o.h, "", o.b, o.kernel()+o.bits())
	}
	o.h.Quiet()
	o.b.TxOff("eth0")
	for i := range 2 {
		o.near[i], o.peer[i] = n.Host(fmt.Sprint("near", i)), n.Host(fmt.Sprint("peer", i))
		n.Link(o.b, o.ip(65+i, 2, 1)+o.bits(), o.peer[i], o.ip(65+i, 2, 6)+o.bits())
		o.peer[i].Route("default", "via", o.ip(65+i, 2, 1))
		o.peer[i].Ready()
	}
	o.b.Ready()

	gateway := func(mac frame.MAC, addrs ...string) *node.SegmentGateway {
		g := &node.SegmentGateway{VRF: "v", Gateway: node.Gateway{MAC: mac}}
		for _, a := range addrs {
			g.Addresses = append(g.Addresses, netip.MustParsePrefix(a))
		}
		return g
	}
	addr, back := netip.MustParseAddr, netip.MustParseAddr(o.kernel())
	tunnel := node.Tunnel{
		Config: vtep.Config{Name: "t", Type: typ}, Local: addr(o.own()), Underlay: node.UnderlayPacket, UDPConfig: underlay.UDPConfig{Device: "eth0"},
	}
	if far {
		tunnel.Gateway = addr(via)
	}
	hop := node.Hop{Segment: 100, Remote: back}
	through := node.Segment{VNI: 100, Tunnel: "t", Gateway: gateway(frame.MAC{})}
	if typ == encap.TypeVXLAN {
		hop.MAC, through.Gateway = peerMAC, gateway(routerMAC)
	}
	route := func(net int, h node.Hop) node.Route {
		return node.Route{Prefix: netip.MustParsePrefix(o.ip(net, 2, 0) + o.bits()), Via: []node.Hop{h}}
	}
	cfg := &node.Config{
		Tunnels: []node.Tunnel{tunnel},
		Ports:   []node.Port{{Name: "eth0", Type: node.PortPacket}},
		Segments: []node.Segment{through, {
			VNI: 200, Members: []node.Member{{Port: "eth0"}}, Gateway: gateway(sharedMAC, o.own()+o.bits()),
		}},
		VRFs: []node.VRF{{Name: "v", Routes: []node.Route{route(65, hop), route(66, node.Hop{Segment: 200, IP: addr(via)})}}},
	}
	for i, p := range o.near {
		name := fmt.Sprint("pod", i)
		cfg.Ports = append(cfg.Ports, node.Port{Name: name, DeviceConfig: port.DeviceConfig{Namespace: p.NS}})
		cfg.Segments = append(cfg.Segments, node.Segment{
			VNI: frame.VNI(1 + i), Members: []node.Member{{Port: name}}, Gateway: gateway(frame.MAC{2, 0, 0, 0, 0xee, byte(i)}, o.ip(65+i, 1, 1)+o.bits()),
		})
	}
	o.Node = running(t, nil)
	o.h.Do(func() { check.OK(t, o.Apply(cfg)) })
	for i, p := range o.near {
		p.Addr(fmt.Sprint("pod", i), o.ip(65+i, 1, 5)+o.bits())
		p.Route("default", "via", o.ip(65+i, 1, 1))
		p.Ready()
	}

	if typ == encap.TypeVXLAN {
		o.b.VXLAN("tun0", netns.VXLAN{ID: 100, Local: o.kernel(), Remote: o.own(), Dev: "eth0", Addr: o.ip(67, 0, 2) + o.bits()})
		o.b.SetMAC("tun0", peerMAC.String())
		o.b.Neighbour("tun0", o.ip(67, 0, 1), routerMAC.String())
		o.b.Route(o.ip(65, 1, 0)+o.bits(), "via", o.ip(67, 0, 1), "dev", "tun0", "onlink")
	} else { // the kernel has no device for IP-in-IP everywhere: its raw sockets, and a TUN
		raw := running(t, nil)
		o.b.Do(func() {
			check.OK(t, raw.Apply(&node.Config{
				Tunnels:  []node.Tunnel{{Config: vtep.Config{Name: "raw", Type: typ}, Local: back}},
				Ports:    []node.Port{{Name: "tun0", Type: node.PortTUN}},
				Segments: []node.Segment{{VNI: 1, Tunnel: "raw", Members: []node.Member{{Port: "tun0"}}, CrossConnect: addr(o.own())}},
			}))
		})
		o.b.Up("tun0")
		o.b.Route(o.ip(65, 1, 0)+o.bits(), "dev", "tun0")
	}
	if next := o.own(); far {
		o.b.Route(o.ip(66, 1, 0)+o.bits(), "via", o.ip(1, 0, 254))
	} else {
		o.b.Route(o.ip(66, 1, 0)+o.bits(), "via", next)
	}
	return o
}

// onOneAddress runs a test for each encapsulation and address family.
func onOneAddress(t *testing.T, far bool, f func(t *testing.T, o *oneAddress)) {
	for _, typ := range []encap.Type{encap.TypeVXLAN, encap.TypeIPIP} {
		for _, v6 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/%s", typ, map[bool]string{false: "IPv4", true: "IPv6"}[v6]), func(t *testing.T) {
				f(t, newOneAddress(t, typ, v6, far))
			})
		}
	}
}

// encapsulated is how tshark selects what is in a tunnel.
func (o *oneAddress) encapsulated() string {
	switch {
	case o.typ == encap.TypeVXLAN:
		return "vxlan"
	case o.v6:
		return "ipv6.nxt == 41"
	}
	return "ip.proto == 4"
}

// walk pings both ways from pod to pod, on both ways, two hops each.
func (o *oneAddress) walk() {
	o.t.Helper()
	for i := range 2 {
		wantTTL(o.t, o.near[i], o.ip(65+i, 2, 6), 62)
		wantTTL(o.t, o.peer[i], o.ip(65+i, 1, 5), 62)
	}
}

// One address is that of a tunnel and that of a router: pods reach each other with and without the tunnel, hosts ping
// the address, and everything is answered once.
func TestOneAddress(t *testing.T) {
	onOneAddress(t, false, func(t *testing.T, o *oneAddress) {
		wire := o.b.Capture("eth0", "")
		o.walk()
		o.b.IP("neigh", "flush", "dev", "eth0")
		wantTTL(t, o.b, o.own(), 64)
		wantTTL(t, o.near[plain], o.kernel(), 63)
		o.b.Run("ping", "-n", "-c", "1", "-W", "2", "-s", "4000", o.own()) // in fragments
		echoes := "(icmp.type == 8 || icmp.type == 0 || icmpv6.type == 128 || icmpv6.type == 129)"
		asked, told := "arp.opcode == 1 && arp.dst.proto_ipv4 == "+o.own(), "arp.opcode == 2 && arp.src.proto_ipv4 == "+o.own()
		if o.v6 {
			asked, told = "icmpv6.type == 135 && icmpv6.nd.ns.target_address == "+o.own(), "icmpv6.type == 136 && icmpv6.nd.na.flag.s == 1 && icmpv6.nd.na.target_address == "+o.own()
		}
		asked += " && eth.src == " + o.b.MAC("eth0") // not the announcement of the address
		seen := wire.Stop()
		n := func(filter string) int { return len(netns.Fields(t, seen, filter, "frame.number")) }
		check.Equal(t, "echoes in the tunnel", n(o.encapsulated()+" && "+echoes), 4)
		check.True(t, n(asked) > 0 && n(asked) == n(told), "%d questions, %d answers", n(asked), n(told))
		check.Equal(t, "ICMP errors", n("icmp.type == 3 || icmpv6.type == 1"), 0)

		// The kernel joins packets, in IP too (GRO), when it may wait for them: superframes to a pod arrive in one piece.
		o.h.Run("ethtool", "-K", "eth0", "gro", "on")
		o.h.Run("sh", "-c", "cd /sys/class/net/eth0; echo 500000 >gro_flush_timeout; echo 50 >napi_defer_hard_irqs")
		whole := o.h.Capture("eth0", "greater 3000 and (ip proto 4 or ip6 proto 41)")
		for i := range 2 {
			for _, addr := range []string{o.ip(65+i, 2, 6), o.ip(65+i, 1, 5)} {
				from, to := o.near[i], o.peer[i]
				if addr == o.ip(65+i, 1, 5) {
					from, to = to, from
				}
				if o.v6 {
					addr = "[" + addr + "]"
				}
				from.Transfer(to, addr+":0", 4<<20)
			}
		}
		joined := len(whole.Stop())
		check.True(t, (joined > 0) == (o.typ == encap.TypeIPIP), "%d superframes in IP", joined)
	})
}

// A router's error about a packet of the tunnel reaches the underlay, and the pod is told what fits.
func TestOneAddressPathMTU(t *testing.T) {
	onOneAddress(t, true, func(t *testing.T, o *oneAddress) {
		for i := range 2 {
			wantTTL(t, o.near[i], o.ip(65+i, 2, 6), 62-i)
		}
		size := 1400 - o.typ.Overhead(o.v6)
		told := fmt.Sprintf("mtu = %d", size)
		if o.v6 {
			told = fmt.Sprintf("mtu=%d", size)
		}
		o.near[tunnelled].Until("the pod is told", func() bool {
			out, _ := o.near[tunnelled].Try(t.Context(), "ping", "-n", "-M", "do", "-c", "1", "-W", "1", "-s", fmt.Sprint(size-20), o.ip(65, 2, 6))
			return strings.Contains(out, told)
		})
		addr := o.ip(65, 2, 6)
		if o.v6 {
			addr = "[" + addr + "]"
		}
		o.near[tunnelled].Transfer(o.peer[tunnelled], addr+":0", 1<<20)
	})
}

// A gateway that comes, goes and gets another MAC while pods ping through the tunnel: the tunnel stays, and its underlay
// answers for the address when no gateway does.
func TestOneAddressChanges(t *testing.T) {
	onOneAddress(t, false, func(t *testing.T, o *oneAddress) {
		o.walk()
		v := o.Tunnels()["t"]
		stop := o.near[tunnelled].Pinging(o.ip(65, 2, 6))
		update := func(f func(c *node.Config)) {
			t.Helper()
			o.h.Do(func() { check.OK(t, o.Update(func(c *node.Config) error { f(c); return nil })) })
			time.Sleep(50 * time.Millisecond)
			o.near[tunnelled].Ping(o.ip(65, 2, 6), 2)
			o.peer[tunnelled].Ping(o.ip(65, 1, 5), 2)
		}
		answers := func(mac string, pings bool) {
			t.Helper()
			o.b.IP("neigh", "flush", "dev", "eth0")
			_, err := o.b.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", o.own())
			check.True(t, (err == nil) == pings, "ping of the address: %v", err)
			o.b.Until("the neighbour is known", func() bool { return strings.Contains(o.b.IP("neigh", "show", o.own()), mac) })
		}
		answers(sharedMAC.String(), true)
		update(func(c *node.Config) { c.Tunnels[0].Prefix = c.Segments[1].Gateway.Addresses[0].Masked() })
		base := o.Config()
		update(func(c *node.Config) { c.Segments[1].Gateway.MAC[5] = 9 })
		answers("02:00:00:00:ca:09", true)
		update(func(c *node.Config) { // no gateway, and no way without the tunnel
			c.Segments[1].Gateway, c.VRFs[0].Routes = nil, c.VRFs[0].Routes[:1]
		})
		answers(o.h.MAC("eth0"), false)
		update(func(c *node.Config) { // no port
			c.Segments, c.Ports = append(c.Segments[:1:1], c.Segments[2:]...), c.Ports[1:]
		})
		answers(o.h.MAC("eth0"), false)
		update(func(c *node.Config) { *c = *base })
		answers(sharedMAC.String(), true)
		o.walk()
		sent, answered := stop()
		t.Logf("%d of %d pings answered", answered, sent)
		check.True(t, sent > 0 && answered*10 >= sent*9, "%d of %d pings answered", answered, sent)
		check.True(t, o.Tunnels()["t"] == v, "the tunnel was made anew")

		// Without the tunnel, what was for it is the gateway's.
		o.h.Do(func() {
			check.OK(t, o.Update(func(c *node.Config) error {
				c.Tunnels, c.VRFs[0].Routes = nil, c.VRFs[0].Routes[1:]
				c.Segments = c.Segments[1:]
				return nil
			}))
		})
		wantTTL(t, o.near[plain], o.ip(66, 2, 6), 62)
		wire := o.b.Capture("eth0", "icmp or icmp6")
		o.peer[tunnelled].Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", o.ip(65, 1, 5))
		got := netns.Fields(t, wire.Stop(), "icmp.type == 3 || icmpv6.type == 1", "frame.number")
		check.True(t, len(got) > 0, "no answer to what comes through no tunnel")
		o.h.Do(func() { check.OK(t, o.Apply(base)) })
		o.walk()
	})
}
