package node

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	"github.com/vxswitch/vxswitch/policy"
)

// inOffice is three guests of one node: 1 may ping, 2 is a web server, 3 answers for names.
const inOffice = `{
  "ports": [
    {"name": "vm1", "mac": "02:00:00:00:00:01"},
    {"name": "vm2", "mac": "02:00:00:00:00:02"},
    {"name": "vm3", "mac": "02:00:00:00:00:03"}
  ],
  "policies": [{"name": "office", "default": "deny", "pickUp": true,
    "sets": {"admins": ["10.0.0.1/32", "fd00::1/128"]},
    "rules": [
      {"name": "web", "action": "allow", "protocol": 6, "dst": ["10.0.0.2/32", "fd00::2/128"], "dstPorts": ["80", "8000-8010"]},
      {"name": "dns", "action": "allow", "protocol": 17, "dst": ["10.0.0.3/32", "fd00::3/128"], "dstPorts": ["53"]},
      {"name": "ping", "action": "allow", "protocol": 1, "icmp": ["8"], "srcSet": "admins"},
      {"name": "ping6", "action": "allow", "protocol": 58, "icmp": ["128"], "srcSet": "admins"}
    ]}],
  "segments": [{"vni": 7, "policy": "office", "members": [
    {"port": "vm1", "guard": {"macs": ["02:00:00:00:00:01"], "addrs": ["10.0.0.1/32", "fd00::1/128"]}},
    {"port": "vm2", "guard": {"macs": ["02:00:00:00:00:02"], "addrs": ["10.0.0.2/32", "fd00::2/128"]}},
    {"port": "vm3", "guard": {"macs": ["02:00:00:00:00:03"], "addrs": ["10.0.0.3/32", "fd00::3/128"]}}
  ]}]
}`

// office is that node and its guests, by number.
func office(t *testing.T) (*site, [4]*netns.Host) {
	t.Helper()
	l := newLab(t)
	s := l.start("office", "192.0.2.1", parse(t, inOffice))
	var vms [4]*netns.Host
	for i := 1; i < len(vms); i++ {
		vms[i] = s.guest(fmt.Sprintf("vm%d", i), officeIP(false, i)+"/24,"+officeIP(true, i)+"/64", "")
	}
	return s, vms
}

func officeIP(v6 bool, n int) string {
	if v6 {
		return fmt.Sprintf("fd00::%d", n)
	}
	return fmt.Sprintf("10.0.0.%d", n)
}

// Everybody tries everything; what the rules allow works, in both directions of the flow, and
// nothing else does.
func TestPolicyMatrix(t *testing.T) {
	s, vms := office(t)
	for _, v6 := range []bool{false, true} {
		for from := 1; from < len(vms); from++ {
			for to := 1; to < len(vms); to++ {
				if from == to {
					continue
				}
				addr := officeIP(v6, to)
				for _, port := range []int{80, 8005, 8011} {
					wantTCP(t, vms[from], vms[to], addr, port, to == 2 && port != 8011)
				}
				for _, port := range []int{53, 54} {
					wantUDP(t, vms[from], vms[to], addr, port, to == 3 && port == 53)
				}
				wantPing(t, vms[from], addr, from == 1)
			}
		}
	}
	st := s.Policies()["office"].Stats()
	for name, n := range st.Rules {
		if n.Packets == 0 {
			t.Errorf("rule %q has counted nothing", name)
		}
	}
	var dropped uint64
	for i := 1; i < len(vms); i++ {
		dropped += s.policyDrops(fmt.Sprintf("vm%d", i))
		if g := s.segments[7].guards[fmt.Sprintf("vm%d", i)].Stats(); g != (policy.GuardStats{}) {
			t.Errorf("guard of vm%d: %+v", i, g)
		}
	}
	if dropped == 0 || dropped != st.Default.Packets+st.Malformed {
		t.Errorf("%d frames dropped; the policy says %+v", dropped, st)
	}
}

// What answers nothing is refused: a datagram from a port that would be right, an echo reply,
// the second packet of a connection. The same datagram passes once it has been asked for.
func TestPolicyUnsolicited(t *testing.T) {
	s, vms := office(t)
	dns := udpSocket(t, vms[3], netip.MustParseAddrPort("10.0.0.3:53"))
	other := udpSocket(t, vms[3], netip.MustParseAddrPort("10.0.0.3:54"))
	ask := udpSocket(t, vms[1], netip.MustParseAddrPort("10.0.0.1:4000"))
	for _, c := range []*net.UDPConn{dns, other, ask} {
		defer c.Close()
	}
	to := netip.MustParseAddrPort("10.0.0.1:4000")
	got := func(want string) {
		t.Helper()
		b := make([]byte, 64)
		ask.SetReadDeadline(time.Now().Add(patience(want != "")))
		n, _, _ := ask.ReadFromUDPAddrPort(b)
		if string(b[:n]) != want {
			t.Errorf("heard %q, want %q", b[:n], want)
		}
	}
	send := func(c *net.UDPConn, text string, to netip.AddrPort) {
		t.Helper()
		if _, err := c.WriteToUDPAddrPort([]byte(text), to); err != nil {
			t.Fatal(err)
		}
	}
	send(dns, "unasked", to)
	got("")
	send(ask, "question", netip.MustParseAddrPort("10.0.0.3:53"))
	vms[1].Until("the question", func() bool { return s.Policies()["office"].Stats().Flows.Opened == 1 })
	send(other, "another port", to)
	got("")
	send(dns, "answer", to)
	got("answer")

	seen := vms[1].Capture("vm1", "")
	ip := &layers.IPv4{Version: 4, TTL: 64, SrcIP: net.ParseIP("10.0.0.2"), DstIP: net.ParseIP("10.0.0.1"), Protocol: layers.IPProtocolICMPv4}
	reply := packet("02:00:00:00:00:02", "02:00:00:00:00:01", ip,
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoReply, 0), Id: 7, Seq: 1}, gopacket.Payload("reply"))
	tip := *ip
	tip.Protocol = layers.IPProtocolTCP
	seg := &layers.TCP{SrcPort: 80, DstPort: 4000, SYN: true, ACK: true, Window: 100}
	seg.SetNetworkLayerForChecksum(&tip)
	synack := packet("02:00:00:00:00:02", "02:00:00:00:00:01", &tip, seg)
	before := s.policyDrops("vm2") // what the guest's kernel sends of itself may come between
	vms[2].Inject("vm2", reply, synack)
	vms[2].Until("two frames refused", func() bool { return s.policyDrops("vm2") >= before+2 })
	for _, p := range seen.Stop() {
		if !p.Out && (slices.Equal(p.Data, reply) || slices.Equal(p.Data, synack)) {
			t.Errorf("arrived: %x", p.Data)
		}
	}
}

// packet makes a frame; what is behind the MACs tells the type.
func packet(src, dst string, ls ...gopacket.SerializableLayer) []byte {
	s, _ := net.ParseMAC(src)
	d, _ := net.ParseMAC(dst)
	eth := &layers.Ethernet{SrcMAC: s, DstMAC: d}
	switch ls[0].(type) {
	case *layers.IPv4:
		eth.EthernetType = layers.EthernetTypeIPv4
	case *layers.IPv6:
		eth.EthernetType = layers.EthernetTypeIPv6
	case *layers.ARP:
		eth.EthernetType = layers.EthernetTypeARP
	}
	return packets.Of(append([]gopacket.SerializableLayer{eth}, ls...)...)
}

// A guest that speaks in another's name, or as what it is not, is refused, each frame counted
// by its cause, although the policy would let it pass.
func TestGuardSpoofing(t *testing.T) {
	s, vms := office(t)
	const own, victim, target = "02:00:00:00:00:02", "02:00:00:00:00:01", "02:00:00:00:00:03"
	datagram := func(mac, src, dst string, sport, dport layers.UDPPort) []byte {
		u := &layers.UDP{SrcPort: sport, DstPort: dport}
		if strings.Contains(src, ":") {
			ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: net.ParseIP(src), DstIP: net.ParseIP(dst)}
			u.SetNetworkLayerForChecksum(ip)
			return packet(mac, target, ip, u, gopacket.Payload("spoofed"))
		}
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.ParseIP(src).To4(), DstIP: net.ParseIP(dst).To4()}
		u.SetNetworkLayerForChecksum(ip)
		return packet(mac, target, ip, u, gopacket.Payload("spoofed"))
	}
	arp := func(mac, ip string) []byte {
		hw, _ := net.ParseMAC(mac)
		to, _ := net.ParseMAC(target)
		return packet(own, target, &layers.ARP{
			AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPReply,
			SourceHwAddress: hw, SourceProtAddress: net.ParseIP(ip).To4(), DstHwAddress: to, DstProtAddress: net.ParseIP("10.0.0.3").To4(),
		})
	}
	nd := func(src string, typ uint8, l gopacket.SerializableLayer) []byte {
		ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: net.ParseIP(src), DstIP: net.ParseIP("fd00::3")}
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(typ, 0)}
		icmp.SetNetworkLayerForChecksum(ip)
		return packet(own, target, ip, icmp, l)
	}
	hw, _ := net.ParseMAC(own)
	short := datagram(own, "10.0.0.2", "10.0.0.3", 4000, 53)[:30]
	frames := []struct {
		name  string
		frame []byte
		count func(*policy.GuardStats)
	}{
		{"MAC", datagram(victim, "10.0.0.2", "10.0.0.3", 4000, 53), func(g *policy.GuardStats) { g.MAC++ }},
		{"IPv4 address", datagram(own, "10.0.0.1", "10.0.0.3", 4000, 53), func(g *policy.GuardStats) { g.Address++ }},
		{"IPv6 address", datagram(own, "fd00::1", "fd00::3", 4000, 53), func(g *policy.GuardStats) { g.Address++ }},
		{"link-local address", datagram(own, "fe80::ff:fe00:1", "fd00::3", 4000, 53), func(g *policy.GuardStats) { g.Address++ }},
		{"ARP for the victim's address", arp(own, "10.0.0.1"), func(g *policy.GuardStats) { g.ARP++ }},
		{"ARP with the victim's MAC", arp(victim, "10.0.0.2"), func(g *policy.GuardStats) { g.ARP++ }},
		{"advertisement of the victim's address", nd("fd00::2", layers.ICMPv6TypeNeighborAdvertisement, &layers.ICMPv6NeighborAdvertisement{
			Flags: 0x60, TargetAddress: net.ParseIP("fd00::1"), Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptTargetAddress, Data: hw}},
		}), func(g *policy.GuardStats) { g.ND++ }},
		{"router", nd("fe80::ff:fe00:2", layers.ICMPv6TypeRouterAdvertisement, &layers.ICMPv6RouterAdvertisement{
			HopLimit: 64, RouterLifetime: 1800, Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptSourceAddress, Data: hw}},
		}), func(g *policy.GuardStats) { g.RouterAdvertisement++ }},
		{"DHCP server", datagram(own, "10.0.0.2", "10.0.0.3", 67, 68), func(g *policy.GuardStats) { g.DHCPServer++ }},
		{"tunnel", datagram(own, "10.0.0.2", "10.0.0.3", 50000, 4789), func(g *policy.GuardStats) { g.Tunnel++ }},
		{"cut header", short, func(g *policy.GuardStats) { g.Malformed++ }},
	}
	own53 := datagram(own, "10.0.0.2", "10.0.0.3", 4000, 53)
	guard := s.segments[7].guards["vm2"]
	seen := vms[3].Capture("vm3", "")
	want := guard.Stats()
	for _, f := range frames {
		drops := s.policyDrops("vm2") // what the guest's kernel sends of itself may be among them
		f.count(&want)
		vms[2].Inject("vm2", f.frame)
		vms[2].Until(fmt.Sprintf("%s refused: %+v", f.name, want), func() bool { return guard.Stats() == want && s.policyDrops("vm2") > drops })
	}
	vms[2].Inject("vm2", own53)
	seen.Want(1, func(p netns.Packet) bool { return slices.Equal(p.Data, own53) })
	if got := guard.Stats(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, p := range seen.Stop() {
		for _, f := range frames {
			if !p.Out && slices.Equal(p.Data, f.frame) {
				t.Errorf("%s arrived", f.name)
			}
		}
	}
	if got := s.dest(7, victim); got != "" && got != "vm1" {
		t.Errorf("the victim's MAC is on %s", got)
	}
}
