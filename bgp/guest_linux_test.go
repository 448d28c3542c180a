package bgp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/qemu"
)

// A guest is node 9, with the kernel's own device for IP in IP, which its BIRD says when to use.
type guest struct {
	*qemu.Guest
	h *netns.Host // the wire
}

// move gives the guest an address, and a device to ours.
func (g *guest) move(addr, router string) {
	g.Run("birdc -s /run/ctl down >/dev/null 2>&1; ip link del tun1 2>/dev/null; ip addr flush dev eth0; ip addr add " + addr + "/24 dev eth0; ip route add default via " + router)
	g.Run("ip link add tun1 type ipip local " + addr + " remote 10.0.1.1 ttl 64 && ip addr add 10.65.9.0/32 dev tun1 && ip link set tun1 up")
}

// bird has BIRD use the tunnel unless the next hop is in direct.
func (g *guest) bird(addr, direct string) {
	g.Run("cat >/run/conf <<'EOF'\n" + fmt.Sprintf(`router id %[1]s;
%[3]sprotocol device { scan time 2; }
protocol direct { ipv4; interface "eth0"; }
protocol kernel { ipv4 { import none; export where source = RTS_BGP; }; }
protocol bgp ours { local %[1]s as 64512; neighbor 10.0.1.101 as 64512; multihop; connect delay time 1; connect retry time 1; error wait time 1, 2;
  ipv4 { gateway recursive; add paths on; import filter { if !(bgp_next_hop ~ %[2]s) then ifname = "tun1"; accept; }; export filter blocks; }; }
`, addr, direct, blockOf(9)) + "EOF\nbirdc -s /run/ctl configure >/dev/null 2>&1 || bird -c /run/conf -s /run/ctl -P /run/pid")
}

// reach pings our pod from the guest's until there is an answer with a TTL, and the guest's pod from ours.
func (g *guest) reach(l *lab, ttl int) {
	l.t.Helper()
	last := ""
	g.h.Until("ping of the guest's pod", func() bool {
		last, _ = g.Try("ip netns exec pod ping -c 1 -W 2 " + pod1)
		return strings.Contains(last, " ttl=")
	})
	check.True(l.t, strings.Contains(last, fmt.Sprintf(" ttl=%d ", ttl)), "TTL at the guest's pod: %s", last)
	check.Equal(l.t, "TTL of the guest's pod", reach(l.ours.pod, "10.65.9.6"), ttl)
}

// A pool with IP in IP and a node with the kernel's device: always, and across subnets, for which the node moves to another one.
func TestIPIPPoolGuest(t *testing.T) {
	l, on := newSubnets(t)
	g := &guest{h: l.n.Host("wire")}
	g.h.Quiet()
	sw := on("")
	l.n.Plug(g.h, "", sw.sw)
	g.Guest = qemu.Boot(t, g.h, qemu.Config{Link: "eth0", Modules: []string{"veth"}, Programs: map[string]string{"/sbin/bird": "bird", "/sbin/birdc": "birdc"}, Setup: []string{
		"mkdir -p /run /var/run; echo 1 >/proc/sys/net/ipv4/ip_forward; echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter",
		"ip netns add pod; ip link add veth0 type veth peer name eth0 netns pod; ip addr add 10.65.9.1/26 dev veth0; ip link set veth0 up",
		"ip -n pod addr add 10.65.9.6/26 dev eth0; ip -n pod link set eth0 up; ip -n pod route add default via 10.65.9.1",
	}})
	g.move("10.0.1.9", "10.0.1.254")
	g.bird("10.0.1.9", "203.0.113.0/24")
	c := l.tunnelled(encap.TypeIPIP, on("10.0.1.101"), Pool{Encapsulation: IPIP, Segment: 100}, "10.0.1.9")
	c.Peers[0].BFD = nil
	l.ours.set(c)

	// carried has the pods reach each other, in IP or as they are.
	carried := func(tunnel bool) {
		t.Helper()
		in, plain := g.h.Capture("eth0", "ip proto 4"), g.h.Capture("eth0", "icmp and net 10.65.0.0/16")
		arp := g.h.Capture("eth0", podARP)
		g.reach(l, 62)
		n, p := len(in.Stop()), len(plain.Stop())
		check.True(t, tunnel && n >= 4 && p == 0 || !tunnel && n == 0 && p >= 4, "packets in IP: %d; as they are: %d; in the tunnel: %v", n, p, tunnel)
		check.Equal(t, "ARP of pods", len(arp.Stop()), 0)
	}
	l.ours.want("always in IP", to(9, "10.0.1.9", "100 vtep 10.0.1.9:0"))
	carried(true)
	l.hops(l.ours.pod, "10.65.9.6", "10.65.1.1", "10.65.9.0", "10.65.9.6")

	c.Pools[0].Mode = CrossSubnet
	l.ours.set(c)
	g.bird("10.0.1.9", "10.0.1.0/24")
	l.ours.want("directly on the subnet", to(9, "10.0.1.9", "200 ip 10.0.1.9"))
	carried(false)

	g.move("10.0.2.9", "10.0.2.254")
	l.ours.want("the node has gone")
	g.bird("10.0.2.9", "10.0.2.0/24")
	c.Peers[0].Addr = addr("10.0.2.9")
	l.ours.set(c)
	l.ours.want("in IP across subnets", to(9, "10.0.2.9", "100 vtep 10.0.2.9:0"))
	carried(true)

	g.Run("birdc -s /run/ctl disable own")
	l.ours.want("the block is withdrawn")
	g.Run("birdc -s /run/ctl enable own")
	l.ours.want("and is back", to(9, "10.0.2.9", "100 vtep 10.0.2.9:0"))
	carried(true)
}
