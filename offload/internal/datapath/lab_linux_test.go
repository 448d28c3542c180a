package datapath

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// How the guest of a site is connected.
const (
	vethPeer   = iota // a veth pair into its own namespace; frames for it are put behind the pair
	vethEgress        // the same, through the pair
	ownTAP            // the host itself is the guest, by a TAP
	farTAP            // a program has the TAP open, with virtio headers, as of a virtual machine
)

var kinds = []string{"veth, peer", "veth, egress", "own TAP", "TAP of a program"}

// A site is a host with the programs attached, and nothing in user space that would help: what arrives was carried.
//
//	guest 192.168.7.X, fd07::X
//	  | veth, or TAP
//	host 192.0.2.X, 2001:db8::X: port_in or port_out; tunnel_in
//	  | eth0
type site struct {
	t       testing.TB
	h, g    *netns.Host
	dev     string // of the guest
	d       *Datapath
	kind, x int
	port    uint32
	under   uint32
	slot    uint32
}

const guestMTU = 1430

func index(t testing.TB, h *netns.Host, dev string) (i uint32) {
	t.Helper()
	h.Do(func() {
		ifi := check.Must(net.InterfaceByName(dev))(t)
		i = uint32(ifi.Index)
	})
	return i
}

func mac(t testing.TB, h *netns.Host, dev string) frame.MAC {
	t.Helper()
	return check.Must(frame.ParseMAC(h.MAC(dev)))(t)
}

// newSite makes a guest of a kind at a host that is on the wire by eth0.
func newSite(n *netns.Net, h *netns.Host, t testing.TB, kind, x int) *site {
	t.Helper()
	s := &site{t: t, h: h, g: h, kind: kind, x: x, under: index(t, h, "eth0")}
	h.Do(func() { s.d = load(t) })
	addrs := fmt.Sprintf("192.168.7.%d/24,fd07::%d/64", x, x)
	program := PortIn
	if kind == farTAP {
		s.g = n.Host(h.Name + "-guest")
		s.dev = "tap1"
		sw := check.Must(vswitch.New(nil))(t)
		vsi := check.Must(sw.VSI(1, nil))(t)
		for dev, h := range map[string]*netns.Host{"tap0": h, "tap1": s.g} {
			var p *port.Device
			h.Do(func() { p = check.Must(port.OpenTAP(dev, nil))(t) })
			check.Must(vsi.Attach(p, 0))(t)
			h.Up(dev)
		}
		s.g.Addr("tap1", addrs)
		s.port = index(t, h, "tap0")
		ran := make(chan error)
		go func() { ran <- sw.Run(context.Background()) }()
		t.Cleanup(func() { sw.Close(); <-ran })
	} else if kind == ownTAP {
		s.dev, program = "tap0", PortOut
		netns.Open(t, h, func() (*port.Device, error) { return port.OpenTAP("tap0", nil) })
		h.Up("tap0")
		h.Addr("tap0", addrs)
		s.port = index(t, h, "tap0")
	} else {
		s.g = n.Host(h.Name + "-guest")
		var dev string
		dev, s.dev = n.Link(h, "", s.g, addrs)
		s.port = index(t, h, dev)
	}
	s.g.MTU(s.dev, guestMTU)
	h.Ready() // what has just come up drops IPv6 for a moment
	s.g.Until(s.dev+" is up", func() bool { return strings.Contains(s.g.IP("link", "show", s.dev), "LOWER_UP") })
	netns.Open(t, h, func() (io.Closer, error) { return s.d.Attach(int(s.port), program) })
	netns.Open(t, h, func() (io.Closer, error) { return s.d.Attach(int(s.under), TunnelIn) })
	return s
}

// knows gives a host's device the neighbours of the far end: nothing in user space answers.
func knows(h *netns.Host, dev string, x int, m frame.MAC) {
	h.Neighbour(dev, fmt.Sprintf("192.168.7.%d", x), m.String())
	h.Neighbour(dev, fmt.Sprintf("fd07::%d", x), m.String())
}

func outerAddr(v6 bool, x int) netip.Addr {
	if v6 {
		return netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", x))
	}
	return netip.AddrFrom4([4]byte{192, 0, 2, byte(x)})
}

// flows puts entries for both ways between the guest and a MAC behind the peer x.
func (s *site) flows(v6 bool, x int, far frame.MAC) {
	s.t.Helper()
	near := mac(s.t, s.g, s.dev)
	o := Outer{Local: outerAddr(v6, s.x), Remote: outerAddr(v6, x), Port: 4789, SrcPorts: srcPorts, VNI: vni, TTL: 64, ZeroChecksum: true, Unverified: true}
	now := Validity{s.d.Epoch(Global), s.d.Epoch(1), s.d.Epoch(2)}
	f := Flow{Slot: s.slot, SrcEpoch: 1, DstEpoch: 2, Oif: s.under, How: Neigh, Max: guestMTU + 14, Outer: o}
	s.d.Slot(f.Slot).Validate(now)
	check.OK(s.t, s.d.Put(OutKey{Ifindex: s.port, Dst: far, Src: near}, &f))
	f.Slot++
	s.d.Slot(f.Slot).Validate(Validity{now.Global, now.Dst, now.Src})
	f.SrcEpoch, f.DstEpoch = 2, 1
	f.Oif, f.How = s.port, [...]How{vethPeer: Peer, vethEgress: Egress, ownTAP: Ingress, farTAP: Egress}[s.kind]
	check.OK(s.t, s.d.Put(InKey{Peer: o.Remote.As16(), VNI: vni, Dst: near, Src: far}, &f))
	s.slot += 2
}

// traffic sends all kinds of it between two guests, both ways, and verifies what arrives.
func traffic(a, b *netns.Host, ax, bx int, size int64, uso bool) {
	a.Ready()
	b.Ready()
	for _, f := range []string{"192.168.7.%d", "fd07::%d"} {
		aa, ba := fmt.Sprintf(f, ax), fmt.Sprintf(f, bx)
		a.Ping(ba, 2)
		b.Ping(aa, 1)
		a.Transfer(b, net.JoinHostPort(ba, "0"), size)
		b.Transfer(a, net.JoinHostPort(aa, "0"), size)
		send, back := a.Datagrams(b, net.JoinHostPort(ba, "0")), b.Datagrams(a, net.JoinHostPort(aa, "0"))
		send(4000, 0) // fragments
		back(4000, 0)
		send(100, 0)
		send(8000, 1000)
		if uso {
			back(8000, 1000)
		}
	}
}

// Against the kernel's vxlan device, with every kind of guest, over IPv4 and IPv6, with and without offloads on the
// underlay.
func TestLabKernel(t *testing.T) {
	for kind := range kinds {
		for _, v6 := range []bool{false, true} {
			for _, off := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, IPv6 %v, offloads off %v", kinds[kind], v6, off), func(t *testing.T) {
					t.Parallel()
					n := netns.New(t)
					h, k := n.Host("h"), n.Host("k")
					n.Link(h, "192.0.2.1/24,2001:db8::1/64", k, "192.0.2.2/24,2001:db8::2/64")
					if off {
						h.TxOff("eth0")
						k.TxOff("eth0")
						h.Run("ethtool", "-K", "eth0", "gro", "off")
					}
					s := newSite(n, h, t, kind, 1)
					k.VXLAN("vx0", netns.VXLAN{ID: vni, Local: outerAddr(v6, 2).String(), Remote: outerAddr(v6, 1).String(), Keep: true,
						Addr: "192.168.7.2/24,fd07::2/64", Args: []string{"udp6zerocsumrx"}})
					k.MTU("vx0", guestMTU)
					far, near := mac(t, k, "vx0"), mac(t, s.g, s.dev)
					knows(s.g, s.dev, 2, far)
					knows(k, "vx0", 1, near)
					s.flows(v6, 2, far)
					var wire *netns.Capture
					size := int64(8 << 20)
					if off {
						size = 1 << 19 // tshark looks at each packet
						wire = k.Capture("eth0", "udp port 4789")
					}
					traffic(s.g, k, 1, 2, size, off || s.d.decapL4)
					for _, x := range []*netns.Host{h, s.g, k} {
						for name, n := range x.ChecksumErrors() {
							t.Errorf("%s: %s %d", x.Name, name, n)
						}
					}
					for i := range s.slot {
						packets, bytes, last := s.d.Slot(i).Counters()
						if packets < 20 || bytes < uint64(4*size) || last == 0 {
							t.Errorf("slot %d: %d packets, %d bytes, last at %v", i, packets, bytes, last)
						}
					}
					m := check.Must(s.d.Misses())(t)
					for c, n := range m.All() {
						if c == Room || c == TooBig || c == Length || c == Merged || c == OuterIP || c == Stale {
							t.Errorf("%d frames missed: %v", n, c)
						}
					}
					if off {
						complete(t, wire.Stop(), v6)
					}
				})
			}
		}
	}
}

// complete verifies every checksum of packets, and that they were cut.
func complete(t *testing.T, ps []netns.Packet, v6 bool) {
	t.Helper()
	outer := 50
	if v6 {
		outer = 70
	}
	for _, p := range ps {
		if len(p.Data) > guestMTU+14+outer || p.Unfinished {
			t.Fatalf("a packet of %d bytes, unfinished %v", len(p.Data), p.Unfinished)
		}
	}
	rows := netns.Fields(t, ps, "vxlan", "ip.checksum.status", "udp.checksum.status", "tcp.checksum.status", "icmp.checksum.status", "icmpv6.checksum.status", "vxlan.vni", "vxlan.flags")
	if len(rows) != len(ps) || len(rows) < 1000 {
		t.Errorf("%d of %d packets are VXLAN", len(rows), len(ps))
	}
	bad := 0
	for i, r := range rows {
		sums := strings.Split(strings.Join(r[:5], ","), ",")
		for _, x := range sums {
			if x == "0" { // 1 is good, 2 not checked, 3 not there
				if bad++; bad < 4 {
					t.Errorf("packet %d: %v\n%x", i, r, ps[i].Data)
				}
			}
		}
		if r[5] != "4100" || r[6] != "0x0800" {
			t.Fatalf("packet %d: %v", i, r)
		}
	}
	t.Logf("%d packets, %d with a wrong checksum", len(rows), bad)
}

// Two hosts with the programs, all the way without user space and without the kernel's tunnels.
func TestLabBoth(t *testing.T) {
	for kind := range kinds {
		for _, v6 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, IPv6 %v", kinds[kind], v6), func(t *testing.T) {
				t.Parallel()
				n := netns.New(t)
				a, b := n.Host("a"), n.Host("b")
				n.Link(a, "192.0.2.1/24,2001:db8::1/64", b, "192.0.2.2/24,2001:db8::2/64")
				s1, s2 := newSite(n, a, t, kind, 1), newSite(n, b, t, (kind+1)%len(kinds), 2)
				m1, m2 := mac(t, s1.g, s1.dev), mac(t, s2.g, s2.dev)
				knows(s1.g, s1.dev, 2, m2)
				knows(s2.g, s2.dev, 1, m1)
				s1.flows(v6, 2, m2)
				s2.flows(v6, 1, m1)
				a.TxOff("eth0") // so that USO superframes are cut before the tunnel ends
				b.TxOff("eth0")
				traffic(s1.g, s2.g, 1, 2, 4<<20, true)
				for _, x := range []*netns.Host{a, b, s1.g, s2.g} {
					for name, n := range x.ChecksumErrors() {
						t.Errorf("%s: %s %d", x.Name, name, n)
					}
				}
			})
		}
	}
}

// Between two guests of one host.
func TestLabPortToPort(t *testing.T) {
	for kind := range kinds[:2] {
		t.Run(kinds[kind], func(t *testing.T) {
			n := netns.New(t)
			h := n.Host("h")
			other := n.Host("o")
			n.Link(h, "192.0.2.1/24", other, "192.0.2.2/24")
			s := newSite(n, h, t, kind, 1)
			g2 := n.Host("guest2")
			dev, dev2 := n.Link(h, "", g2, "192.168.7.2/24,fd07::2/64")
			p2 := index(t, h, dev)
			g2.MTU(dev2, guestMTU)
			netns.Open(t, h, func() (io.Closer, error) { return s.d.Attach(int(p2), PortIn) })
			m1, m2 := mac(t, s.g, s.dev), mac(t, g2, dev2)
			knows(s.g, s.dev, 2, m2)
			knows(g2, dev2, 1, m1)
			how := [...]How{vethPeer: Peer, vethEgress: Egress}[kind]
			for i, f := range []struct {
				k   OutKey
				oif uint32
			}{{OutKey{Ifindex: s.port, Dst: m2, Src: m1}, p2}, {OutKey{Ifindex: p2, Dst: m1, Src: m2}, s.port}} {
				s.d.Slot(uint32(i)).Validate(Validity{1, 0, 0})
				check.OK(t, s.d.Put(f.k, &Flow{Slot: uint32(i), SrcEpoch: 1, DstEpoch: 2, Oif: f.oif, How: how, Max: guestMTU + 14}))
			}
			traffic(s.g, g2, 1, 2, 4<<20, true)
		})
	}
}

// Each way to end a flow ends it at once, and its frames are then as they would be without the programs.
func TestLabStop(t *testing.T) {
	n := netns.New(t)
	h, k := n.Host("h"), n.Host("k")
	n.Link(h, "192.0.2.1/24,2001:db8::1/64", k, "192.0.2.2/24,2001:db8::2/64")
	s := newSite(n, h, t, vethEgress, 1)
	far := frame.MAC{2, 0, 0, 0, 0, 99}
	s.flows(false, 2, far)
	near := mac(t, s.g, s.dev)
	f := shape{dst: far, src: near, size: 200}.bytes()
	back := shape{dst: near, src: far, size: 200}.bytes()
	outer := received(0, vxlan(back), 0)
	eth0 := mac(t, h, "eth0")
	copy(outer, eth0[:])
	copy(outer[26:], outerAddr(false, 2).AsSlice())
	copy(outer[30:], outerAddr(false, 1).AsSlice())
	sealed(outer)
	h.Neighbour("eth0", "192.0.2.2", k.MAC("eth0"))
	out, in := s.d.Slot(0), s.d.Slot(1)
	validate := func() {
		now := Validity{s.d.Epoch(Global), s.d.Epoch(1), s.d.Epoch(2)}
		out.Validate(now)
		in.Validate(Validity{now.Global, now.Dst, now.Src})
	}
	for name, stop := range map[string]func(){
		"global epoch": func() { s.d.Bump(Global) },
		"one MAC":      func() { s.d.Bump(1) },
		"the other":    func() { s.d.Bump(2) },
		"slot":         func() { out.Kill(); in.Kill() },
	} {
		validate()
		for _, carried := range []bool{true, false} {
			if !carried {
				stop()
				check.OK(t, Grace())
			}
			// Where it goes if it is carried; where it stays if not: beyond the program, in the host's stack.
			wire, guest := k.Capture("eth0", "udp port 4789"), s.g.Capture(s.dev, "udp port 1000")
			stack := h.Nstat()["UdpNoPorts"]
			missed := check.Must(s.d.Misses())(t)[Stale]
			for range 10 {
				s.g.Inject(s.dev, f)
				k.Inject("eth0", outer)
			}
			count := func(ps []netns.Packet, out bool, want string) (n int) {
				for _, p := range ps {
					if p.Out == out {
						n++
						check.True(t, want == "" || string(p.Data) == want, "%s: another packet: %x", name, p.Data)
					}
				}
				return n
			}
			want := 0
			if carried {
				want = 10
			}
			time.Sleep(50 * time.Millisecond)
			if got := count(wire.Stop(), false, ""); got != want {
				t.Errorf("%s, carried %v: %d packets on the wire", name, carried, got)
			}
			if got := count(guest.Stop(), false, string(back)); got != want {
				t.Errorf("%s, carried %v: %d frames at the guest", name, carried, got)
			}
			if got := check.Must(s.d.Misses())(t)[Stale] - missed; got != uint64(20-2*want) {
				t.Errorf("%s, carried %v: %d stale", name, carried, got)
			}
			if got := h.Nstat()["UdpNoPorts"] - stack; got != 10-want {
				t.Errorf("%s, carried %v: %d packets in the stack", name, carried, got)
			}
		}
	}
}
