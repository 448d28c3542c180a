package kernel

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/node"
)

// fabric is nodes of ours on one underlay, its leaves; Linux hosts behind them; perhaps a
// VTEP of the kernel. Host n of subnet s has the addresses 10.0.s.n and fd00:s::n.
type fabric struct {
	t      *testing.T
	n      *netns.Net
	wire   *netns.Host // a switch or, between nodes of different subnets, a router
	routed bool
	names  map[string]string // of MACs and of underlay addresses
	leaves []*leaf
	hosts  []*netns.Host // on the underlay
}

// leaf is a node that may be a gateway, and its host.
type leaf struct {
	*ourNode
	f    *fabric
	h    *netns.Host
	name string
	addr string // on the underlay
	own  frame.MAC
}

// newFabric starts nodes A, B and so on.
func newFabric(t *testing.T, leaves int) *fabric {
	t.Helper()
	return startFabric(t, leaves, false)
}

// overFabrics runs a test with nodes on one link, and with a router between them.
func overFabrics(t *testing.T, leaves int, test func(t *testing.T, f *fabric)) {
	t.Run("one link", func(t *testing.T) { test(t, startFabric(t, leaves, false)) })
	t.Run("routed", func(t *testing.T) { test(t, startFabric(t, leaves, true)) })
}

func startFabric(t *testing.T, leaves int, routed bool) *fabric {
	t.Helper()
	f := &fabric{t: t, n: netns.New(t), routed: routed, names: map[string]string{frame.Broadcast.String(): "all"}}
	if routed {
		f.wire = f.n.Router("wire")
	} else {
		f.wire = f.n.Switch("wire")
	}
	for i := range leaves {
		s := &leaf{f: f, name: string(rune('A' + i)), own: frame.MAC{2, 0, 0, 0xee, 0, byte(i + 1)}}
		s.h, s.addr = f.plug(s.name)
		f.names[s.own.String()] = s.name
		s.ourNode = newNode(t, s.h, s.addr, settings{})
		f.leaves = append(f.leaves, s)
	}
	return f
}

// plug joins a host to the underlay. What it sends is seen there packet by packet.
func (f *fabric) plug(name string) (h *netns.Host, addr string) {
	f.t.Helper()
	h, addr = f.n.Host(name), fmt.Sprintf("192.0.2.%d", len(f.hosts)+1)
	f.hosts = append(f.hosts, h)
	if f.routed {
		net := fmt.Sprintf("198.18.%d.", len(f.hosts))
		addr = net + "1"
		f.n.Link(h, addr+"/24", f.wire, net+"254/24")
		h.Route("default", "via", net+"254")
	} else {
		f.n.Plug(h, addr+"/24", f.wire)
	}
	h.TxOff("eth0")
	h.Ready()
	f.names[addr] = name
	return h, addr
}

// mesh joins leaves in a VNI.
func (f *fabric) mesh(vni frame.VNI, members ...*leaf) {
	f.t.Helper()
	for _, m := range members {
		var peers []string
		for _, o := range members {
			if o != m {
				peers = append(peers, o.addr)
			}
		}
		m.vsi(vni, peers...)
	}
}

func in4(subnet, n byte) string { return fmt.Sprintf("10.0.%d.%d", subnet, n) }
func in6(subnet, n byte) string { return fmt.Sprintf("fd00:%d::%d", subnet, n) }

const gatewayNo = 254 // of the gateway in each subnet

// host starts a host in a VNI of a leaf, with the gateway of its subnet as default router. Its
// device has its name.
func (s *leaf) host(vni frame.VNI, subnet, n byte, mtu int) *netns.Host {
	s.t.Helper()
	mac := hostMAC(subnet, n)
	h := s.f.vm(vni, subnet, n)
	s.tapMTU(vni, h, h.Name, mac, mtu)
	behind(h, h.Name, subnet, n)
	return h
}

func hostMAC(subnet, n byte) frame.MAC { return frame.MAC{2, 0, 0, 0, subnet, n} }

// vm makes a host without devices; named VM and its number.
func (f *fabric) vm(vni frame.VNI, subnet, n byte) *netns.Host {
	f.t.Helper()
	name := fmt.Sprintf("VM%d", n)
	f.names[hostMAC(subnet, n).String()] = name
	h := f.n.Host(fmt.Sprintf("%s-%d", name, vni))
	h.Sysctl("net.ipv6.conf.default.router_solicitations", "0")
	return h
}

// behind gives a device the addresses of host n of a subnet, and the subnet's gateway.
func behind(h *netns.Host, dev string, subnet, n byte) {
	h.Addr(dev, in4(subnet, n)+"/24,"+in6(subnet, n)+"/64")
	h.Route("default", "via", in4(subnet, gatewayNo))
	h.IP("-6", "route", "add", "default", "via", in6(subnet, gatewayNo))
}

// anycastMAC is that of a gateway that is on several nodes; named G.
var anycastMAC = frame.MAC{2, 0, 0, 0xff, 0, 0}

// gatewayMAC is that of the only gateway of a subnet; named G and the subnet.
func gatewayMAC(subnet byte) frame.MAC { return frame.MAC{2, 0, 0, 0xff, 0, subnet} }

// gateway puts a VRF's gateway into a VNI of the leaf. An anycast one suppresses questions
// too: nobody else's node has to answer for a host that is known.
func (s *leaf) gateway(vrf string, vni frame.VNI, subnet byte, anycast bool) *l3.Interface {
	s.t.Helper()
	g := node.Gateway{
		MAC:       gatewayMAC(subnet),
		Addresses: []netip.Prefix{netip.MustParsePrefix(in4(subnet, gatewayNo) + "/24"), netip.MustParsePrefix(in6(subnet, gatewayNo) + "/64")},
	}
	s.f.names[g.MAC.String()] = fmt.Sprintf("G%d", subnet)
	if anycast {
		g.MAC, g.VTEPMAC, g.Anycast = anycastMAC, s.own, true
		s.f.names[anycastMAC.String()] = "G"
		s.must(s.segment(vni).Update(func(c *node.Segment) error {
			c.Neighbours = &node.Neighbours{Config: arp.Config{Mode: arp.Suppress}}
			return nil
		}))
	}
	s.must(s.segment(vni).Gateway(vrf, g))
	return s.Gateway().VRF(vrf).Interface(vni)
}

// router is the MAC of the leaf's router on L3VNIs; named R and the leaf.
func (s *leaf) router() frame.MAC {
	m := s.own
	m[3] = 0xdd
	s.f.names[m.String()] = "R" + s.name
	return m
}

// l3vni makes a VNI of the leaf one that has only the gateway and the VTEP.
func (s *leaf) l3vni(vrf string, vni frame.VNI) *l3.Interface {
	s.t.Helper()
	s.vsi(vni)
	s.must(s.segment(vni).Gateway(vrf, node.Gateway{MAC: s.router()}))
	return s.Gateway().VRF(vrf).Interface(vni)
}

// reach adds routes to a router behind the tunnel, as a control plane would.
func (s *leaf) reach(i *l3.Interface, vrf string, router frame.MAC, at string, prefixes ...string) {
	s.t.Helper()
	via := []node.Hop{{Segment: i.VNI(), MAC: router, Remote: netip.MustParseAddr(at)}}
	s.must(s.Update(func(c *node.Config) error {
		v := slices.IndexFunc(c.VRFs, func(v node.VRF) bool { return v.Name == vrf })
		for _, p := range prefixes {
			c.VRFs[v].Routes = append(c.VRFs[v].Routes, node.Route{Prefix: netip.MustParsePrefix(p), Via: via})
		}
		return nil
	}))
}

// A watch is what VTEPs send on the underlay.
type watch struct {
	f    *fabric
	caps []*netns.Capture
}

func (f *fabric) watch() *watch {
	f.t.Helper()
	w := &watch{f: f}
	for _, h := range f.hosts {
		w.caps = append(w.caps, h.Capture("eth0", "udp port 4789"))
	}
	return w
}

// steps ends the watch and returns what was sent, in order and in words:
//
//	A>C 10 VM1>all who-has 10.0.10.254     (ARP, or neighbour solicitation)
//	C>A 10 G10>VM1 10.0.10.254 is-at G10
//	A>C 10 VM1>G10 ping 64                 (its TTL)
//
// It leaves out what IPv6 hosts say of themselves: multicast reports.
func (w *watch) steps() (list []string) {
	w.f.t.Helper()
	for _, p := range netns.Sent(w.caps...) {
		if s := w.f.words(p.Data); s != "" {
			list = append(list, s)
		}
	}
	return list
}

// want compares the steps with those that should have been.
func (w *watch) want(steps ...string) {
	w.f.t.Helper()
	got := w.steps()
	check.True(w.f.t, slices.Equal(got, steps),
		"on the underlay\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(steps, "\n\t"))
}

func (f *fabric) name(x fmt.Stringer) string {
	s := x.String()
	if n := f.names[s]; n != "" {
		return n
	}
	if strings.HasPrefix(s, "33:33:") {
		return "all"
	}
	return s
}

// words says what a tunnel packet is, "" for a multicast report.
func (f *fabric) words(b []byte) string {
	p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
	vx, ok := p.Layer(layers.LayerTypeVXLAN).(*layers.VXLAN)
	if !ok {
		return "no VXLAN"
	}
	out := p.NetworkLayer().(*layers.IPv4)
	what := f.inside(vx.LayerPayload())
	if what == "" {
		return ""
	}
	return fmt.Sprintf("%s>%s %d %s", f.name(out.SrcIP), f.name(out.DstIP), vx.VNI, what)
}

// inside says what a frame is.
func (f *fabric) inside(b []byte) string {
	p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
	eth, ok := p.LinkLayer().(*layers.Ethernet)
	if !ok {
		return "no Ethernet"
	}
	what := "other " + eth.EthernetType.String()
	ttl := uint8(0)
	switch ip := p.NetworkLayer().(type) {
	case *layers.IPv4:
		if ttl = ip.TTL; ip.FragOffset != 0 || ip.Flags&layers.IPv4MoreFragments != 0 {
			return fmt.Sprintf("%s>%s fragment at %d, %d bytes, ttl %d", f.name(eth.SrcMAC), f.name(eth.DstMAC), 8*int(ip.FragOffset), ip.Length, ttl)
		}
	case *layers.IPv6:
		ttl = ip.HopLimit
	}
	for _, l := range p.Layers() {
		switch l := l.(type) {
		case *layers.ARP:
			what = "who-has " + net.IP(l.DstProtAddress).String()
			if l.Operation == layers.ARPReply {
				what = net.IP(l.SourceProtAddress).String() + " is-at " + f.name(net.HardwareAddr(l.SourceHwAddress))
			}
		case *layers.ICMPv6NeighborSolicitation:
			what = "who-has " + l.TargetAddress.String()
		case *layers.ICMPv6NeighborAdvertisement:
			what = l.TargetAddress.String() + " is-at"
			for _, o := range l.Options {
				if o.Type == layers.ICMPv6OptTargetAddress {
					what += " " + f.name(net.HardwareAddr(o.Data))
				}
			}
		case *layers.ICMPv4:
			what = icmpWords(l.TypeCode.Type(), l.TypeCode.Code(), ttl, layers.ICMPv4TypeEchoRequest, layers.ICMPv4TypeEchoReply)
		case *layers.ICMPv6:
			switch l.TypeCode.Type() {
			case layers.ICMPv6TypeMLDv1MulticastListenerReportMessage, layers.ICMPv6TypeMLDv1MulticastListenerDoneMessage,
				layers.ICMPv6TypeMLDv2MulticastListenerReportMessageV2:
				return ""
			}
			what = icmpWords(l.TypeCode.Type(), l.TypeCode.Code(), ttl, layers.ICMPv6TypeEchoRequest, layers.ICMPv6TypeEchoReply)
		}
	}
	return f.name(eth.SrcMAC) + ">" + f.name(eth.DstMAC) + " " + what
}

func icmpWords(typ, code, ttl, ping, pong uint8) string {
	switch typ {
	case ping:
		return fmt.Sprintf("ping %d", ttl)
	case pong:
		return fmt.Sprintf("pong %d", ttl)
	}
	return fmt.Sprintf("icmp %d/%d ttl %d", typ, code, ttl)
}

// inWords ends a capture of frames and returns them in words.
func (f *fabric) inWords(c *netns.Capture) (list []string) {
	f.t.Helper()
	for _, p := range c.Stop() {
		if s := f.inside(p.Data); s != "" {
			list = append(list, s)
		}
	}
	return list
}

// macs returns what is in the FDBs of the leaf, by VNI, hosts by name.
func (s *leaf) macs(vnis ...frame.VNI) string {
	s.t.Helper()
	all := map[frame.VNI][]string{}
	for _, vni := range vnis {
		all[vni] = nil
	}
	for _, vsi := range s.Switch().VSIs() {
		for e := range vsi.FDB().All() {
			all[vsi.VNI()] = append(all[vsi.VNI()], s.f.name(e.MAC))
		}
		slices.Sort(all[vsi.VNI()])
	}
	return fmt.Sprint(all)
}

// inject sends a frame in a tunnel packet from the leaf's address to another leaf.
func (s *leaf) inject(to *leaf, vni frame.VNI, inner []byte) {
	s.t.Helper()
	payload := append([]byte{8, 0, 0, 0, byte(vni >> 16), byte(vni >> 8), byte(vni), 0}, inner...)
	s.h.Do(func() {
		c, err := net.Dial("udp", to.addr+":4789")
		if err == nil {
			_, err = c.Write(payload)
			c.Close()
		}
		check.OK(s.t, err)
	})
}

// inner4 is a UDP packet.
func inner4(src, dst string) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.ParseIP(src), DstIP: net.ParseIP(dst)}
	u := &layers.UDP{SrcPort: 1000, DstPort: 9}
	u.SetNetworkLayerForChecksum(ip)
	return packets.Of(ip, u, gopacket.Payload("inner payload"))
}

// dropped returns how many packets out of the tunnel were dropped.
func (s *leaf) dropped() uint64 {
	s.t.Helper()
	d := s.port("vtep").RxDrops
	return d.Total()
}
