package policy

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// A port with MAC 1 and addresses 10.0.0.1 and fd00::1 speaks for itself and for nobody else.
func TestGuard(t *testing.T) {
	own := GuardConfig{MACs: []frame.MAC{macOf(1)}, Addrs: prefixes("10.0.0.1/32", "fd00::1/128", "10.0.7.0/24")}
	with := func(change func(*GuardConfig)) GuardConfig { c := own; change(&c); return c }
	zero := GuardConfig{}
	any4, none6 := netip.IPv4Unspecified(), netip.IPv6Unspecified()
	mine, theirs := netip.MustParseAddr("fe80::ff:fe00:1"), netip.MustParseAddr("fe80::2")
	group := netip.MustParseAddr("ff02::16")
	first := func(p pkt) pkt { p.frag = "first"; return p }
	at := func(i int, v ...byte) func([]byte) { return func(b []byte) { copy(b[i:], v) } }
	type change = func([]byte)
	nd := func(typ uint8) pkt { return pkt{kind: "nd", v6: true, typ: typ, src: 1, dst: 2} }
	ns, na := nd(135), nd(136)
	na.dst = 1 // the target
	dad := ns
	dad.srcIP, dad.dst = none6, 1
	rs := nd(133)
	for _, c := range []struct {
		name string
		cfg  GuardConfig
		x    pkt
		ch   change
		want cause
	}{
		{"own", own, pkt{kind: "tcp", src: 1, dst: 2}, nil, noCause},
		{"own prefix", own, pkt{kind: "tcp", src: 1, srcIP: netip.MustParseAddr("10.0.7.9"), dst: 2, vlans: 2}, nil, noCause},
		{"own 6", own, pkt{kind: "udp", v6: true, src: 1, dst: 2}, nil, noCause},
		{"later fragment", own, pkt{kind: "udp", v6: true, src: 1, dst: 2, frag: "later"}, nil, noCause},
		{"no IP", own, pkt{kind: "lldp", src: 1, dst: 2}, nil, noCause},
		{"bare", own, pkt{kind: "tcp", src: 1, dst: 2, bare: true}, nil, noCause},
		{"bare, other", own, pkt{kind: "tcp", src: 2, dst: 1, bare: true}, nil, badAddress},
		{"short", own, pkt{kind: "tcp", src: 1, dst: 2}, at(14, 0x4f), badHeader},
		{"MAC", own, pkt{kind: "tcp", src: 2, dst: 1}, nil, badMAC},
		{"MAC of no IP", own, pkt{kind: "lldp", src: 2, dst: 1}, nil, badMAC},
		{"address", own, pkt{kind: "tcp", src: 1, srcIP: ipOf(false, 2), dst: 2}, nil, badAddress},
		{"address, tagged", own, pkt{kind: "tcp", src: 1, srcIP: ipOf(false, 2), dst: 2, vlans: 1}, nil, badAddress},
		{"address 6", own, pkt{kind: "tcp", v6: true, src: 1, srcIP: ipOf(true, 2), dst: 2}, nil, badAddress},
		{"address of a fragment", own, pkt{kind: "udp", src: 1, srcIP: ipOf(false, 2), dst: 2, frag: "later"}, nil, badAddress},
		{"anything", zero, pkt{kind: "tcp", src: 9, dst: 2}, nil, noCause},
		{"anything's ARP", zero, pkt{kind: "arp", src: 9, dst: 2}, nil, noCause},
		{"anything's ND", zero, pkt{kind: "nd", v6: true, typ: 136, src: 9, dst: 2}, nil, noCause},

		{"link-local", own, pkt{kind: "udp", v6: true, src: 1, srcIP: mine, dst: 2}, nil, noCause},
		{"link-local of another", own, pkt{kind: "udp", v6: true, src: 1, srcIP: theirs, dst: 2}, nil, badAddress},
		{"any link-local", with(func(c *GuardConfig) { c.LinkLocal = true }), pkt{kind: "udp", v6: true, src: 1, srcIP: theirs, dst: 2}, nil, noCause},
		{"unspecified", own, pkt{kind: "udp", v6: true, src: 1, srcIP: none6, dst: 2}, nil, badAddress},
		{"MLD", own, pkt{kind: "icmp", v6: true, typ: 143, src: 1, srcIP: none6, dstIP: group}, nil, noCause},
		{"MLD to a host", own, pkt{kind: "icmp", v6: true, typ: 143, src: 1, srcIP: none6, dst: 2}, nil, badAddress},
		{"unspecified 4", own, pkt{kind: "udp", src: 1, srcIP: any4, dst: 2}, nil, badAddress},
		{"DHCP client", own, pkt{kind: "udp", src: 1, srcIP: any4, dst: 2, sport: 68, dport: 67}, nil, noCause},

		{"ARP", own, pkt{kind: "arp", src: 1, dst: 2}, nil, noCause},
		{"ARP probe", own, pkt{kind: "arp", src: 1, srcIP: any4, dst: 1}, nil, noCause},
		{"ARP answer of nobody", own, pkt{kind: "arp", src: 1, srcIP: any4, dst: 1}, at(21, 2), badARP},
		{"ARP answer", own, pkt{kind: "arp", src: 1, dst: 2}, at(21, 2), noCause},
		{"ARP address", own, pkt{kind: "arp", src: 1, srcIP: ipOf(false, 2), dst: 2}, nil, badARP},
		{"ARP MAC", own, pkt{kind: "arp", src: 1, dst: 2}, at(22, 2, 0, 0, 0, 0, 2), badARP},
		{"ARP of other hardware", own, pkt{kind: "arp", src: 1, dst: 2}, at(15, 6), badARP},

		{"NS", own, ns, nil, noCause},
		{"NS, other MAC in it", own, ns, at(85, 2), badND},
		{"NS, other address", own, pkt{kind: "nd", v6: true, typ: 135, src: 1, srcIP: ipOf(true, 2), dst: 2}, nil, badAddress},
		{"NS, hop limit", own, ns, at(21, 64), badND},
		{"NS in fragments", own, first(ns), nil, badND},
		{"DAD", own, dad, nil, noCause},
		{"DAD for another's", own, pkt{kind: "nd", v6: true, typ: 135, src: 1, srcIP: none6, dst: 2}, nil, badND},
		{"NA", own, na, at(78, 2), noCause},
		{"NA, other MAC in it", own, na, func(b []byte) { b[78], b[85] = 2, 9 }, badND},
		{"NA of another's", own, pkt{kind: "nd", v6: true, typ: 136, src: 1, dst: 2}, nil, badND},
		{"NA, option of length 0", own, na, at(79, 0), badND},
		{"RS", own, pkt{kind: "nd", v6: true, typ: 133, src: 1, srcIP: none6, dst: 2}, at(62, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), badND}, // options of length 0
		{"RS, before there is an address", own, pkt{kind: "nd", v6: true, typ: 133, src: 1, srcIP: none6, dst: 2}, at(62, 14, 3), noCause},
		{"RS", own, rs, at(62, 1, 3), noCause}, // a nonce; an option of another length is none
		{"RS of another", own, rs, func(b []byte) { copy(b[22:], ipOf(true, 3).AsSlice()); copy(b[62:], []byte{1, 3}) }, badAddress},
		{"RA", own, nd(134), nil, isRouter},
		{"RA in fragments", own, first(nd(134)), nil, isRouter},
		{"RA behind an extension header", own, nd(134), func(b []byte) { // 8 bytes of destination options, ICMPv6 behind
			copy(b[62:], b[54:62])
			copy(b[54:], []byte{58, 0, 1, 4, 0, 0, 0, 0})
			b[20] = 60
		}, isRouter},
		{"redirect", own, nd(137), nil, isRouter},
		{"redirect of a router", with(func(c *GuardConfig) { c.RouterAdvertisements = true }), nd(137), nil, noCause},
		{"redirect of another", with(func(c *GuardConfig) { c.RouterAdvertisements = true }), pkt{kind: "nd", v6: true, typ: 137, src: 1, srcIP: theirs, dst: 2}, nil, badAddress},

		{"DHCP", own, pkt{kind: "udp", src: 1, dst: 2, sport: 67, dport: 68}, nil, isDHCPServer},
		{"DHCP to a client", own, pkt{kind: "udp", src: 1, dst: 2, sport: 9, dport: 68}, nil, isDHCPServer},
		{"DHCP in fragments", zero, first(pkt{kind: "udp", src: 1, dst: 2, sport: 67, dport: 68}), nil, isDHCPServer},
		{"DHCPv6", zero, pkt{kind: "udp", v6: true, src: 1, dst: 2, sport: 547, dport: 546}, nil, isDHCPServer},
		{"DHCPv6 client", zero, pkt{kind: "udp", v6: true, src: 1, dst: 2, sport: 546, dport: 547}, nil, noCause},
		{"DHCP server", with(func(c *GuardConfig) { c.DHCPServer = true }), pkt{kind: "udp", src: 1, dst: 2, sport: 67, dport: 68}, nil, noCause},
		{"no DHCP", own, pkt{kind: "tcp", src: 1, dst: 2, sport: 67, dport: 4789}, nil, noCause},

		{"VXLAN", zero, pkt{kind: "udp", src: 1, dst: 2, dport: 4789}, nil, isTunnel},
		{"VXLAN, old port", zero, pkt{kind: "udp", v6: true, src: 1, dst: 2, dport: 8472}, nil, isTunnel},
		{"GPE", zero, pkt{kind: "udp", src: 1, dst: 2, dport: 4790}, nil, isTunnel},
		{"Geneve", zero, pkt{kind: "udp", src: 1, dst: 2, dport: 6081, bare: true}, nil, isTunnel},
		{"GRE", zero, pkt{kind: "gre", v6: true, src: 1, dst: 2}, nil, isTunnel},
		{"IP in IP", zero, pkt{kind: "gre", src: 1, dst: 2}, at(23, 4), isTunnel},
		{"IPv6 in IP", zero, pkt{kind: "gre", src: 1, dst: 2}, at(23, 41), isTunnel},
		{"VXLAN of a tunnel's end", with(func(c *GuardConfig) { c.Tunnels = true }), pkt{kind: "udp", src: 1, dst: 2, dport: 4789}, nil, noCause},
		{"IP in IP alone", GuardConfig{IPIP: true}, pkt{kind: "gre", src: 1, dst: 2}, at(23, 4), noCause},
		{"IP in IP alone, GRE", GuardConfig{IPIP: true}, pkt{kind: "gre", src: 1, dst: 2}, nil, isTunnel},
		{"IP in IP alone, VXLAN", GuardConfig{IPIP: true}, pkt{kind: "udp", src: 1, dst: 2, dport: 4789}, nil, isTunnel},
		{"VXLAN alone", GuardConfig{VXLAN: true, VXLANPorts: []uint16{4444}}, pkt{kind: "udp", src: 1, dst: 2, dport: 4444}, nil, noCause},
		{"VXLAN alone, Geneve", GuardConfig{VXLAN: true}, pkt{kind: "udp", src: 1, dst: 2, dport: 6081}, nil, isTunnel},
		{"VXLAN alone, IP in IP", GuardConfig{VXLAN: true}, pkt{kind: "gre", src: 1, dst: 2}, at(23, 4), isTunnel},
		{"VXLAN, another port", GuardConfig{VXLANPorts: []uint16{4444}}, pkt{kind: "udp", src: 1, dst: 2, dport: 4444}, nil, isTunnel},
		{"VXLAN, another port, the usual one", GuardConfig{VXLANPorts: []uint16{4444}}, pkt{kind: "udp", src: 1, dst: 2, dport: 4789}, nil, isTunnel},
		{"GRE of one", with(func(c *GuardConfig) { c.Tunnels = true }), pkt{kind: "gre", src: 1, dst: 2}, nil, noCause},
	} {
		g, err := NewGuard(&c.cfg)
		must(t, err)
		f := c.x.frame(t)
		if c.ch != nil {
			c.ch(f.Bytes())
		}
		want := frame.Continue
		if c.want != noCause {
			want = frame.Drop(frame.Policy)
		}
		v := g.Process(&f, frame.At{})
		var got cause
		for i := range g.drops {
			if g.drops[i].Load() != 0 {
				got = cause(i)
			}
		}
		if v != want || got != c.want {
			t.Errorf("%s: %v, cause %d, want %d", c.name, v, got, c.want)
		}
	}
}

// An RA of somebody who may, with options that are a router's own.
func TestGuardRouter(t *testing.T) {
	g, err := NewGuard(&GuardConfig{MACs: []frame.MAC{macOf(1)}, Addrs: prefixes("fe80::1/128"), RouterAdvertisements: true})
	must(t, err)
	x := pkt{kind: "nd", v6: true, typ: 134, src: 1, srcIP: netip.MustParseAddr("fe80::1"), dst: 2}
	f := x.frame(t)
	copy(f.Bytes()[70:], []byte{1, 1, 2, 0, 0, 0, 0, 1, 5, 1}) // options begin behind 16 bytes
	if v := g.Process(&f, frame.At{}); v != frame.Continue {
		t.Errorf("%v, %+v", v, g.Stats())
	}
	f.Bytes()[77] = 2
	if v := g.Process(&f, frame.At{}); v != frame.Drop(frame.Policy) || g.Stats() != (GuardStats{ND: 1}) {
		t.Errorf("%v, %+v", v, g.Stats())
	}
}

func TestGuardUpdate(t *testing.T) {
	g, err := NewGuard(nil)
	must(t, err)
	x := pkt{kind: "tcp", src: 1, dst: 2}
	f := x.frame(t)
	if v := g.Process(&f, frame.At{}); v != frame.Continue {
		t.Error(v)
	}
	err = g.Update(&GuardConfig{MACs: []frame.MAC{{}, frame.Broadcast}, Addrs: prefixes("10.0.0.1/8"), VXLANPorts: []uint16{0}})
	if err == nil || !strings.Contains(err.Error(), "GuardConfig.VXLANPorts[0]: ") || !strings.Contains(err.Error(), "GuardConfig.MACs[1]: ") || !strings.Contains(err.Error(), "GuardConfig.Addrs[0]: ") {
		t.Error(err)
	}
	if v := g.Process(&f, frame.At{}); v != frame.Continue {
		t.Error("half of an update")
	}
	must(t, g.Update(&GuardConfig{MACs: []frame.MAC{macOf(3)}}))
	if v := g.Process(&f, frame.At{}); v != frame.Drop(frame.Policy) || g.Stats() != (GuardStats{MAC: 1}) {
		t.Errorf("%v, %+v", v, g.Stats())
	}
}
