package kernel

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

const equalPaths = 4

// Between two nodes are two Linux routers with four equal paths. They hash over addresses and UDP ports, or over IPv6 over the
// flow label (fib_multipath_hash_policy). 1,000 TCP flows inside the tunnel use each path within 20% of a quarter. With
// SymmetricHash both directions of a flow take one.
//
// The hashes of nodes and routers have random secrets, and so shares are random: with 1,024 source ports one try in 30 is worse
// (docs/figures.md). Hence there are three.
func TestEqualPaths(t *testing.T) {
	const ports = "1" // of the hash policies: addresses, protocol, ports
	for _, c := range []struct {
		name   string
		v6     bool
		policy string
		tunnel node.Tunnel
		mixed  bool // node 1 has packet sockets
	}{
		{"UDP sockets", false, ports, node.Tunnel{UDPConfig: underlay.UDPConfig{SrcPortCount: 1024}}, false},
		{"UDP sockets over IPv6", true, ports, node.Tunnel{UDPConfig: underlay.UDPConfig{SrcPortCount: 1024}}, false},
		{"UDP sockets, flow label", true, "0", node.Tunnel{}, false},
		{"packet sockets", false, ports, node.Tunnel{Underlay: node.UnderlayPacket}, false},
		{"packet sockets over IPv6", true, ports, node.Tunnel{Underlay: node.UnderlayPacket}, false},
		{"packet sockets, flow label", true, "0", node.Tunnel{Underlay: node.UnderlayPacket}, false},
		{"symmetric, UDP sockets", false, ports, node.Tunnel{
			Config: vtep.Config{SymmetricHash: true}, UDPConfig: underlay.UDPConfig{SrcPorts: underlay.PortRange{Lo: 50000, Hi: 51023}, SrcPortCount: 1024},
		}, false},
		{"symmetric, UDP and packet sockets", false, ports, node.Tunnel{
			Config: vtep.Config{SymmetricHash: true}, UDPConfig: underlay.UDPConfig{SrcPorts: underlay.PortRange{Lo: 50000, Hi: 51023}, SrcPortCount: 1024},
		}, true},
		{"symmetric, packet sockets", true, ports, node.Tunnel{Config: vtep.Config{SymmetricHash: true}, Underlay: node.UnderlayPacket}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ends := [2]node.Tunnel{c.tunnel, c.tunnel}
			if c.mixed {
				ends[1].Underlay, ends[1].SrcPortCount = node.UnderlayPacket, 0
			}
			for try := 1; ; try++ {
				x := newPaths(t, c.v6, c.policy, ends)
				there, back := x.carry(1000)
				if c.tunnel.SymmetricHash {
					for port, way := range there {
						check.Need(t, back[port] == way, "port %d: %+v there, %+v back", port, way, back[port])
					}
				}
				even, count := true, [equalPaths]int{}
				for _, way := range there {
					count[way.path]++
				}
				for _, n := range count {
					even = even && n >= 200 && n <= 300
				}
				t.Logf("flows by path: %v", count)
				if even {
					return
				}
				check.Need(t, try < 3, "%v flows by path; each must have 200 to 300", count)
			}
		})
	}
}

// paths are two hosts with a node each, and four paths between their routers.
type paths struct {
	t    *testing.T
	pods [2]*netns.Host
	rs   [2]*netns.Host
	tcp  int // where the inner TCP header begins
	to   *net.TCPListener
}

func newPaths(t *testing.T, v6 bool, policy string, tunnels [2]node.Tunnel) *paths {
	n := netns.New(t)
	x := &paths{t: t, tcp: 14 + 20 + 8 + 8 + 14 + 20}
	addr, family, bits := func(net, host int) string { return fmt.Sprintf("10.0.%d.%d", net, host) }, "ipv4", "/24"
	if v6 {
		addr = func(net, host int) string { return fmt.Sprintf("fd00:0:0:%x::%x", net, host) }
		family, bits, x.tcp = "ipv6", "/64", x.tcp+20
	}
	var homes [2]*netns.Host
	for i := range homes {
		homes[i], x.pods[i], x.rs[i] = n.Host(fmt.Sprint("node", i)), n.Host(fmt.Sprint("pod", i)), n.Router(fmt.Sprint("router", i))
		x.rs[i].Sysctl("net."+family+".fib_multipath_hash_policy", policy)
	}
	for k := range equalPaths {
		n.Link(x.rs[0], addr(10+k, 1)+bits, x.rs[1], addr(10+k, 2)+bits)
	}
	for i, h := range homes {
		n.Link(h, addr(i, 100)+bits, x.rs[i], addr(i, 254)+bits)
		h.Route("default", "via", addr(i, 254))
		far := []string{addr(1-i, 0) + bits}
		for k := range equalPaths {
			far = append(far, "nexthop", "via", addr(10+k, 2-i))
		}
		x.rs[i].Route(far[0], far[1:]...)
	}
	// Packet sockets have an address that the host does not have.
	local := func(i int) netip.Addr {
		return netip.MustParseAddr(addr(i, map[node.Underlay]int{node.UnderlayPacket: 5, node.UnderlayUDP: 100}[tunnels[i].Underlay]))
	}
	for i, h := range homes {
		h.Ready()
		x.rs[i].Ready()
		cfg := tunnels[i]
		cfg.Name, cfg.Local = "vx", local(i)
		if cfg.Underlay == node.UnderlayPacket {
			cfg.Device, cfg.Prefix, cfg.Gateway = "eth0", netip.PrefixFrom(cfg.Local, cfg.Local.BitLen()/2), netip.MustParseAddr(addr(i, 254))
			if !v6 {
				cfg.Prefix = netip.PrefixFrom(cfg.Local, 24)
			}
			cfg.Prefix = cfg.Prefix.Masked()
		}
		y := running(t, nil)
		h.Do(func() {
			check.OK(t, y.Apply(&node.Config{
				Tunnels:  []node.Tunnel{cfg},
				Ports:    []node.Port{{Name: "pod", DeviceConfig: port.DeviceConfig{Namespace: x.pods[i].NS}}},
				Segments: []node.Segment{{VNI: vni, Members: []node.Member{{Port: "pod"}}, Tunnels: []node.SegmentTunnel{{Tunnel: "vx", Flood: []netip.Addr{local(1 - i)}}}}},
			}))
		})
		x.pods[i].Addr("pod", fmt.Sprintf("192.168.7.%d/24", 1+i))
	}
	x.pods[1].Do(func() {
		l := check.Must(net.Listen("tcp4", "192.168.7.2:9000"))(t)
		x.to = l.(*net.TCPListener)
	})
	t.Cleanup(func() { x.to.Close() })
	go func() {
		for {
			c, err := x.to.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	x.pods[0].Ping("192.168.7.2", 1)
	return x
}

// A way is how a packet of a flow came through.
type way struct{ path, port int }

// carry opens n TCP connections from pod 0 to pod 1, and returns the way of each in both directions, by the port of pod 0.
func (x *paths) carry(n int) (there, back map[int]way) {
	x.t.Helper()
	var seen [2][]*netns.Capture
	for i, h := range x.rs {
		for k := range equalPaths {
			seen[i] = append(seen[i], h.Capture(fmt.Sprint("eth", k), "udp dst port 4789"))
		}
	}
	x.pods[0].Do(func() {
		for range n {
			c := check.Must(net.DialTimeout("tcp4", "192.168.7.2:9000", 5*time.Second))(x.t)
			x.t.Cleanup(func() { c.Close() })
		}
	})
	ways := func(seen []*netns.Capture, at int) map[int]way {
		x.t.Helper()
		m := map[int]way{}
		for k, c := range seen {
			for _, p := range c.Stop() {
				if b := p.Data; !p.Out && len(b) >= x.tcp+20 && binary.BigEndian.Uint16(b[x.tcp-20-2:]) == 0x0800 && b[x.tcp-20+9] == 6 {
					flow, w := int(binary.BigEndian.Uint16(b[x.tcp+at:])), way{k, int(binary.BigEndian.Uint16(b[x.tcp-20-14-8-8:]))}
					if old, ok := m[flow]; ok && old != w {
						x.t.Fatalf("flow %d: %+v and %+v", flow, old, w)
					}
					m[flow] = w
				}
			}
		}
		check.True(x.t, len(m) == n, "%d of %d flows", len(m), n)
		return m
	}
	return ways(seen[1], 0), ways(seen[0], 2)
}
