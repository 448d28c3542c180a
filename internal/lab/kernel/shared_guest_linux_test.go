package kernel

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/qemu"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// The kernel's own ipip, sit and ip6tnl devices, in a guest, send to the address of each family that a tunnel and a router
// of ours share, and so does the guest without them. An ip6tnl device puts a destination option in front of
// the inner packet (RFC 2473, section 4.1.1).
//
//	pod 65.1.5, 66.1.5 -- ours 10.0.0.1, fd00::1 --- guest 10.0.0.2, fd00::2 with 65.2.6 and 66.2.6
func TestOneAddressOfGuest(t *testing.T) {
	n := netns.New(t)
	h, b, pod := n.Host("ours"), n.Host("guest"), n.Host("pod")
	h.Quiet()
	n.Link(h, "", b, "")
	b.Quiet()
	g := qemu.Boot(t, b, qemu.Config{Link: "eth0", Addr: "10.0.0.2/24,fd00::2/64", Setup: []string{
		"echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter",
		"for a in 10.65.2.6/32 10.66.2.6/32 fd65:2::6/128 fd66:2::6/128 fd67:2::6/128; do ip addr add $a dev lo; done",
		"ip link add ipip0 type ipip local 10.0.0.2 remote 10.0.0.1; ip link set ipip0 up",
		"ip link add sit1 type sit local 10.0.0.2 remote 10.0.0.1; ip link set sit1 up",
		"ip link add six type ip6tnl mode any local fd00::2 remote fd00::1; ip link set six up",
		"ip route add 10.65.1.0/24 dev ipip0 src 10.65.2.6; ip route add 10.66.1.0/24 via 10.0.0.1 src 10.66.2.6",
		"ip -6 route add fd65:1::/64 dev six src fd65:2::6; ip -6 route add fd66:1::/64 via fd00::1 src fd66:2::6",
		"ip -6 route add fd67:1::/64 dev sit1 src fd67:2::6",
	}})
	addr, prefix := netip.MustParseAddr, netip.MustParsePrefix
	own := []netip.Prefix{prefix("10.0.0.1/24"), prefix("fd00::1/64")}
	pods := []netip.Prefix{prefix("10.65.1.1/24"), prefix("10.66.1.1/24"), prefix("fd65:1::1/64"), prefix("fd66:1::1/64"), prefix("fd67:1::1/64")}
	via := func(to string, h node.Hop) node.Route {
		return node.Route{Prefix: prefix(to), Via: []node.Hop{h}}
	}
	ours := running(t, nil)
	h.Do(func() {
		check.OK(t, ours.Apply(&node.Config{
			Tunnels: []node.Tunnel{{
				Config: vtep.Config{Name: "t", Type: encap.TypeIPIP}, Local: own[0].Addr(), Local6: own[1].Addr(),
				Underlay: node.UnderlayPacket, UDPConfig: underlay.UDPConfig{Device: "eth0"},
			}},
			Ports: []node.Port{{Name: "eth0", Type: node.PortPacket}, {Name: "pod", DeviceConfig: port.DeviceConfig{Namespace: pod.NS}}},
			Segments: []node.Segment{
				{VNI: 1, Members: []node.Member{{Port: "pod"}}, Gateway: &node.SegmentGateway{VRF: "v", Gateway: node.Gateway{MAC: routerMAC, Addresses: pods}}},
				{VNI: 100, Tunnel: "t", Gateway: &node.SegmentGateway{VRF: "v"}},
				{VNI: 200, Members: []node.Member{{Port: "eth0"}}, Gateway: &node.SegmentGateway{VRF: "v", Gateway: node.Gateway{MAC: frame.MAC{2, 0, 0, 0, 0xca, 1}, Addresses: own}}},
			},
			VRFs: []node.VRF{{Name: "v", Routes: []node.Route{
				via("10.65.2.0/24", node.Hop{Segment: 100, Remote: addr("10.0.0.2")}), via("10.66.2.0/24", node.Hop{Segment: 200, IP: addr("10.0.0.2")}),
				via("fd65:2::/64", node.Hop{Segment: 100, Remote: addr("fd00::2")}), via("fd66:2::/64", node.Hop{Segment: 200, IP: addr("fd00::2")}),
				via("fd67:2::/64", node.Hop{Segment: 100, Remote: addr("10.0.0.2")}),
			}}},
		}))
	})
	pod.Addr("pod", "10.65.1.5/24,10.66.1.5/24,fd65:1::5/64,fd66:1::5/64,fd67:1::5/64")
	for i, r := range []string{"10.65.2.0/24", "10.66.2.0/24", "fd65:2::/64", "fd66:2::/64", "fd67:2::/64"} {
		src := pods[i].Addr()
		for range 4 {
			src = src.Next() // .5
		}
		pod.Route(r, "via", pods[i].Addr().String(), "src", src.String())
	}
	pod.Ready()

	wire := b.Capture("eth0", "")
	for i, remote := range []string{"10.65.2.6", "10.66.2.6", "fd65:2::6", "fd66:2::6", "fd67:2::6"} {
		wantTTL(t, pod, remote, 63)
		local := pods[i].Addr().Next().Next().Next().Next().String()
		ping := "ping"
		if pods[i].Addr().Is6() {
			ping = "ping6"
		}
		g.Run(ping + " -c 2 " + local)
		g.SendTCP(pod, local, 1<<20)
	}
	g.Run("ping -c 1 -s 3000 10.0.0.1; ping6 -c 1 -s 3000 fd00::1")
	seen := wire.Stop()
	for filter, least := range map[string]int{
		"ip.proto == 4 && icmp": 6, "ip.proto == 41 && icmpv6": 6, "ipv6.dstopts && icmpv6": 3,
	} {
		if got := len(netns.Fields(t, seen, filter, "frame.number")); got < least {
			t.Errorf("%s: %d packets, want %d", filter, got, least)
		}
	}
}
