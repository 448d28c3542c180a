package kernel

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A cut is three nodes of ours on one switch, and a host behind two of them that says nothing by itself. The cable of one of these is
// pulled at the switch; nobody changes any configuration or removes any entry.
//
//	          +-- B -- xb --+
//	p -- A ---+             x
//	          +-- C -- xc --+
type cut struct {
	t     *testing.T
	sw    *netns.Host
	p, x  *netns.Host
	nodes [3]*node.Node
	at    [2]*netns.Capture // xb, xc
}

const cutMAC = "02:00:00:00:0c:01" // of x

func newCut(t *testing.T, fam family, change func(i int, addrs []netip.Addr, c *node.Config)) *cut {
	n := netns.New(t)
	c := &cut{t: t, sw: n.Switch("sw"), p: n.Host("p"), x: n.Host("x")}
	c.p.Quiet()
	c.x.Quiet()
	mac := check.Must(frame.ParseMAC(cutMAC))(t)
	all := addrs(fam.addresses(3))
	var hosts []*netns.Host
	for i, a := range all {
		h := n.Host(string(rune('A' + i)))
		n.Plug(h, a.String()+fam.bits, c.sw)
		h.Ready()
		hosts = append(hosts, h)
		dev := node.Port{Name: []string{"p", "xb", "xc"}[i], DeviceConfig: port.DeviceConfig{Namespace: c.x.NS, MAC: mac}}
		if i == 0 {
			dev.DeviceConfig = port.DeviceConfig{Namespace: c.p.NS}
		}
		s := node.Segment{VNI: vni, Tunnel: "vx", Members: []node.Member{{Port: dev.Name}}}
		for k, peer := range all {
			if k != i {
				s.Flood = append(s.Flood, peer)
			}
		}
		cfg := &node.Config{Tunnels: []node.Tunnel{{Local: a}}, Ports: []node.Port{dev}, Segments: []node.Segment{s}}
		cfg.Tunnels[0].Name = "vx"
		change(i, all, cfg)
		c.nodes[i] = running(t, nil)
		h.Do(func() { check.OK(t, c.nodes[i].Apply(cfg)) })
	}
	for i, h := range hosts { // finds the neighbours
		h.Ping(all[(i+1)%3].String(), 1)
		h.Ping(all[(i+2)%3].String(), 1)
	}
	c.p.Up("p")
	for i, dev := range []string{"xb", "xc"} {
		c.x.Up(dev)
		c.at[i] = c.x.Capture(dev, "")
	}
	return c
}

// pull pulls the cable of B. A does not see that.
func (c *cut) pull() { c.sw.IP("link", "set", "eth1", "down") }

// arrives reports whether a frame from p to x comes to xb (0) or xc (1).
func (c *cut) arrives(text string, at int) bool {
	c.p.Inject("p", append(ethernet(cutMAC, nearInner, 0x88b5), text...))
	for range 20 {
		time.Sleep(5 * time.Millisecond)
		if count(c.at[at], false, text) > 0 {
			return true
		}
	}
	return false
}

// The entry for x leads to B until it has aged out. Then frames are flooded, and reach x through C.
func TestTunnelCutAges(t *testing.T) {
	inFamilies(t, func(t *testing.T, fam family) {
		const ageing = 4 * time.Second
		c := newCut(t, fam, func(_ int, _ []netip.Addr, c *node.Config) {
			c.Segments[0].VSIConfig = vswitch.VSIConfig{Ageing: ageing}
		})
		number := 0
		arrives := func(at int) bool { number++; return c.arrives(fmt.Sprintf("frame %d.", number), at) }
		heard := time.Now()
		c.x.Inject("xb", append(ethernet("ff:ff:ff:ff:ff:ff", cutMAC, 0x88b5), "here I am"...))
		c.p.Until("frames to x go to B", func() bool { return arrives(0) && count(c.at[1], false, fmt.Sprintf("frame %d.", number)) == 0 })
		c.pull()
		check.True(t, !arrives(1) || time.Since(heard) > ageing, "a frame to x is flooded before its entry is old")
		c.p.Until("frames to x come through C", func() bool { return arrives(1) })
		took := time.Since(heard)
		check.True(t, took >= ageing-time.Second && took < 3*ageing, "after %v; entries age in %v", took, ageing)
		check.True(t, count(c.at[0], false, fmt.Sprintf("frame %d.", number)) == 0, "the frame also comes through B")
	})
}

// An entry with two peers leads some flows to B. BFD finds B dead, and all flows go to C. When the cable is back, so are the flows.
func TestTunnelCutIsFound(t *testing.T) {
	inFamilies(t, func(t *testing.T, fam family) {
		c := newCut(t, fam, func(i int, all []netip.Addr, c *node.Config) {
			c.Tunnels[0].BFD = probed
			if i == 0 {
				c.Segments[0].FDB = []node.FDB{{MAC: check.Must(frame.ParseMAC(cutMAC))(t), Remotes: all[1:]}}
			}
		})
		alive(t, c.nodes[0], 2)
		const flows = 64
		number := 0
		// ways sends a frame of each flow, and returns how many come to xb, and to xc.
		ways := func() (n [2]int) {
			number++
			for k := range flows {
				ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: []byte{192, 168, 7, 1}, DstIP: []byte{192, 168, 7, 2}}
				udp := &layers.UDP{SrcPort: layers.UDPPort(5000 + k), DstPort: 9}
				udp.SetNetworkLayerForChecksum(ip)
				p := packets.Of(ip, udp, gopacket.Payload(fmt.Sprintf("round %d flow %d.", number, k)))
				c.p.Inject("p", append(ethernet(cutMAC, nearInner, 0x0800), p...))
			}
			last := 0
			for range 40 {
				time.Sleep(5 * time.Millisecond)
				for at := range n {
					n[at] = 0
					for _, p := range c.at[at].Seen() {
						if !p.Out && bytes.Contains(p.Data, fmt.Appendf(nil, "round %d flow ", number)) {
							n[at]++
						}
					}
				}
				if n[0]+n[1] == flows || last == n[0]+n[1] && last > 0 {
					break
				}
				last = n[0] + n[1]
			}
			return n
		}
		both := func() bool { n := ways(); return n[0] > flows/8 && n[1] > flows/8 && n[0]+n[1] == flows }
		c.p.Until("both carry flows", both)
		c.pull()
		start := time.Now()
		c.p.Until("C carries all", func() bool { return ways() == [2]int{0, flows} })
		t.Logf("all flows arrive %v after the cut", time.Since(start))
		c.sw.Up("eth1")
		c.p.Until("both carry flows again", both)
	})
}

// One of four links between the routers of two nodes is cut. Flows inside the tunnel take the other three.
func TestFabricLinkCut(t *testing.T) {
	for _, tunnel := range []node.Tunnel{{}, {Underlay: node.UnderlayPacket}} {
		t.Run(tunnel.Underlay.String(), func(t *testing.T) {
			x := newPaths(t, false, "1", [2]node.Tunnel{tunnel, tunnel})
			for _, r := range x.rs {
				r.Sysctl("net.ipv4.conf.all.ignore_routes_with_linkdown", "1")
			}
			all := newFlows(t, x.pods[0], x.pods[1], "192.168.7.2", 200)
			check.Equal(t, "flows", len(all.arrive()), 200)
			x.rs[1].IP("link", "set", "eth1", "down")
			x.rs[1].Until("all flows arrive", func() bool { return len(all.arrive()) == 200 })
			devs := []string{"eth0", "eth1", "eth2", "eth3"}
			used := map[int]bool{}
			for _, k := range all.ways(x.rs[1], devs, "udp dst port 4789", 14+20+8+8+14) {
				used[k] = true
			}
			check.True(t, !used[1] && len(used) >= 2, "flows are on links %v", used)
		})
	}
}
