package calico

import (
	"fmt"
	"net"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// A sender makes packets as a workload may make them, right and wrong ones.
type sender struct {
	mac net.HardwareAddr
	ip  net.IP
}

var (
	everyone = net.HardwareAddr{255, 255, 255, 255, 255, 255}
	nodes6   = net.ParseIP("ff02::1")
)

func hostMAC(i int) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, byte(i)} }

// ether is a frame to everyone with a packet inside.
func (s sender) ether(t layers.EthernetType, inside ...gopacket.SerializableLayer) []byte {
	return packets.Of(append([]gopacket.SerializableLayer{&layers.Ethernet{SrcMAC: s.mac, DstMAC: everyone, EthernetType: t}}, inside...)...)
}

// ip4 is a packet to a host that is nowhere.
func (s sender) ip4(p layers.IPProtocol, inside ...gopacket.SerializableLayer) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: p, SrcIP: s.ip, DstIP: net.IP{10, 192, 0, 3}}
	return s.ether(layers.EthernetTypeIPv4, append([]gopacket.SerializableLayer{ip}, inside...)...)
}

// udp is a datagram to a port, with something in it.
func (s sender) udp(port layers.UDPPort, inside ...gopacket.SerializableLayer) []byte {
	u := &layers.UDP{SrcPort: 5000, DstPort: port}
	u.SetNetworkLayerForChecksum(&layers.IPv4{SrcIP: s.ip, DstIP: net.IP{10, 192, 0, 3}})
	return s.ip4(layers.IPProtocolUDP, append([]gopacket.SerializableLayer{u}, inside...)...)
}

// udp6 is a datagram to all hosts.
func (s sender) udp6() []byte {
	ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: s.ip, DstIP: nodes6}
	u := &layers.UDP{SrcPort: 5000, DstPort: 5000}
	u.SetNetworkLayerForChecksum(ip)
	return s.ether(layers.EthernetTypeIPv6, ip, u, gopacket.Payload("ask"))
}

// arp says that an address is at the sender's MAC.
func (s sender) arp() []byte {
	return s.ether(layers.EthernetTypeARP, &layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPReply,
		SourceHwAddress: s.mac, SourceProtAddress: s.ip.To4(), DstHwAddress: everyone, DstProtAddress: s.ip.To4()})
}

// nd says it of an IPv6 address, from the address of the sender.
func (s sender) nd(target net.IP) []byte {
	ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: s.ip, DstIP: nodes6}
	c := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborAdvertisement, 0)}
	c.SetNetworkLayerForChecksum(ip)
	return s.ether(layers.EthernetTypeIPv6, ip, c, &layers.ICMPv6NeighborAdvertisement{Flags: 0x20, TargetAddress: target,
		Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptTargetAddress, Data: s.mac}}})
}

// inner is a packet of another host in an IP-in-IP packet or VXLAN.
func inner() []gopacket.SerializableLayer {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IP{10, 65, 1, 3}, DstIP: net.IP{10, 65, 1, 2}}
	u := &layers.UDP{SrcPort: 5000, DstPort: 5000}
	u.SetNetworkLayerForChecksum(ip)
	return []gopacket.SerializableLayer{ip, u, gopacket.Payload("spoofed")}
}

func (s sender) ipip() []byte { return s.ip4(layers.IPProtocolIPv4, inner()...) }
func (s sender) vxlan(port layers.UDPPort) []byte {
	eth := &layers.Ethernet{SrcMAC: hostMAC(3), DstMAC: hostMAC(2), EthernetType: layers.EthernetTypeIPv4}
	return s.udp(port, append([]gopacket.SerializableLayer{&layers.VXLAN{ValidIDFlag: true, VNI: 4096}, eth}, inner()...)...)
}

// sends injects frames of the client, and wants its guard to drop each for a cause, or with none to let them pass.
func (c *cluster) sends(what, cause string, frames ...[]byte) {
	c.t.Helper()
	rx := func() (n uint64) {
		for _, p := range c.node.Switch().Stats().Ports {
			if p.Name == c.dev("client") {
				n = p.Rx.Frames
			}
		}
		return n
	}
	was, had := map[string]uint64{}, rx()
	for cause, n := range c.of("client").Dropped.All() {
		was[cause] = n
	}
	c.hosts["client"].Inject(c.dev("client"), frames...)
	c.wait(what, func() string { return fmt.Sprint(rx() >= had+uint64(len(frames))) }, "true")
	want := map[string]uint64{cause: uint64(len(frames))}
	c.wait(what, func() string {
		text := ""
		for name, n := range c.of("client").Dropped.All() {
			if n -= was[name]; n != want[name] {
				text += fmt.Sprintf("%s: %d dropped; ", name, n)
			}
		}
		return text
	}, "")
}

// A workload sends as nobody but itself, whatever changes at its endpoint, and makes no tunnels but those that the cluster allows. Calico's
// tests of spoofed packets, and of packets in IP and VXLAN made by workloads.
func TestWorkloadSpoofs(t *testing.T) {
	c := newCluster(t)
	me, db := sender{hostMAC(1), net.IP{10, 65, 1, 1}}, sender{hostMAC(1), net.IP{10, 65, 1, 3}}
	v6 := func(s string) sender { return sender{hostMAC(1), net.ParseIP(s)} }
	c.hosts["client"].Inject(c.dev("client"), me.arp(), me.udp(5000))
	closed := func() uint64 { return c.node.PortFilters()["cali1"].Policy.Stats().Rules["closed"].Packets }
	c.wait("the first frames of a port whose endpoint is not known", func() string { return fmt.Sprint(closed() >= 2) }, "true")

	c.three()
	const addrs6 = `,"ipNetworks":["10.65.1.1/32","fd65::1/128"]`
	c.workload("prod", "client", `"app":"client"`, addrs6)
	c.run()
	c.want("workloads as they are", map[string]bool{"client > web tcp 8080": true, "db > web tcp 8080": true, "client > db icmp": true})
	conn, other := c.open("client", "web"), c.open("db", "web")

	own := [][]byte{me.arp(), me.udp(5000), v6("fd65::1").udp6(), v6("fd65::1").nd(net.ParseIP("fd65::1")), v6("fe80::ff:fe00:1").udp6(), v6("fe80::ff:fe00:1").nd(net.ParseIP("fe80::ff:fe00:1"))}
	c.sends("its own", "", own...)
	c.sends("the address of another", "address", db.udp(5000), v6("fd65::3").udp6(), v6("fe80::ff:fe00:3").udp6())
	c.sends("the MAC of another", "mac", sender{hostMAC(3), me.ip}.udp(5000), sender{hostMAC(3), me.ip}.arp())
	c.sends("ARP for another", "arp", db.arp())
	c.sends("neighbour discovery for another", "nd", v6("fd65::1").nd(net.ParseIP("fd65::3")))
	c.sends("neighbour discovery as another", "address", v6("fd65::3").nd(net.ParseIP("fd65::3")))
	c.sends("tunnels", "tunnel", me.ipip(), me.vxlan(4789))
	c.sends("tunnels as another", "address", db.ipip(), db.vxlan(4789))
	conn.alive("others are spoofed")
	other.alive("it is spoofed")

	felix := func(spec string) { c.put("felixconfigurations/default", value("FelixConfiguration", "default", spec)) }
	guard := func() string {
		g := c.of("client").Guard
		return fmt.Sprint(g.Addrs, g.IPIP, g.VXLAN, g.VXLANPorts)
	}
	c.sends("VXLAN at another port", "", me.vxlan(4444))
	felix(`{"vxlanPort":4444,"allowIPIPPacketsFromWorkloads":true}`)
	c.wait("a FelixConfiguration", guard, "[10.65.1.1/32 fd65::1/128] true false [4444]")
	c.sends("IP in IP is allowed", "", me.ipip())
	c.sends("VXLAN is not", "tunnel", me.vxlan(4444), me.vxlan(4789))
	conn.alive("a FelixConfiguration")

	c.workload("prod", "client", `"app":"client"`, addrs6+`,"allowSpoofedSourcePrefixes":["10.65.1.3/32"]`)
	c.wait("prefixes that are not allowed", c.policies("client"),
		"prod/a-k8s-client-eth0 [] spec.allowSpoofedSourcePrefixes is there, and no felixconfigurations of the node has workloadSourceSpoofing: Any")
	c.want("prefixes that are not allowed", map[string]bool{"client > web tcp 8080": false, "db > web tcp 8080": true})
	felix(`{"workloadSourceSpoofing":"Any"}`)
	c.wait("prefixes that are allowed", guard, "[10.65.1.1/32 fd65::1/128 10.65.1.3/32] false false []")
	c.sends("an address that is allowed", "", db.udp(5000), me.udp(5000))
	c.want("prefixes that are allowed", map[string]bool{"client > web tcp 8080": true})

	// The endpoint has another address: nobody is at the old one.
	conn = c.open("client", "web")
	c.workload("prod", "client", `"app":"client"`, `,"ipNetworks":["10.65.1.7/32"]`)
	c.wait("another address", guard, "[10.65.1.7/32] false false []")
	c.sends("the address that it had", "address", me.udp(5000))
	c.sends("the address that it has", "", sender{me.mac, net.IP{10, 65, 1, 7}}.udp(5000), sender{me.mac, net.IP{10, 65, 1, 7}}.arp())
	c.workload("prod", "client", `"app":"client"`, addrs6)
	c.wait("the first address", guard, "[10.65.1.1/32 fd65::1/128] false false []")
	conn.alive("the address is back")
	other.alive("another endpoint has changed")

	c.del("workloadendpoints/prod/a-k8s-client-eth0")
	c.wait("no endpoint", c.policies("client"), " [] no WorkloadEndpoint of the node is known")
	was := closed()
	c.hosts["client"].Inject(c.dev("client"), own...)
	c.wait("what is sent without an endpoint", func() string { return fmt.Sprint(closed() >= was+uint64(len(own))) }, "true")
}
