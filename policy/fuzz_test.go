package policy

import (
	"encoding"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/framing"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// FuzzText: what is read out of text is written as text that reads the same.
func FuzzText(f *testing.F) {
	for _, s := range []string{"80", "8000-8100", "3/4", "0/0", "allow", "deny", "ingress", "both", "70-60", "+1", "1/", "", "10.0.0.1,tcp:80", "fd00::1,132:80", "pass", "log"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		type text interface {
			encoding.TextUnmarshaler
			encoding.TextMarshaler
		}
		for _, x := range [][2]text{{new(PortRange), new(PortRange)}, {new(ICMPType), new(ICMPType)}, {new(Action), new(Action)}, {new(Direction), new(Direction)}, {new(Endpoint), new(Endpoint)}} {
			if x[0].UnmarshalText([]byte(s)) != nil {
				continue
			}
			b, err := x[0].MarshalText()
			must(t, err)
			if err := x[1].UnmarshalText(b); err != nil {
				t.Fatalf("%T %q: %s: %v", x[0], s, b, err)
			}
			if c, _ := x[1].MarshalText(); string(c) != string(b) {
				t.Fatalf("%T %q: %s, then %s", x[0], s, b, c)
			}
		}
	})
}

// refusedInAll fails unless a frame that a stage refuses is refused in every framing.
func refusedInAll(t *testing.T, b []byte, s vswitch.Stage) {
	t.Helper()
	if len(b) < 14 {
		return
	}
	for name, b := range framing.All(b) {
		x := frame.Make(b)
		if v := s.Process(&x, frame.At{Tick: 10, Worker: 1}); v != frame.Drop(frame.Policy) {
			t.Fatalf("behind %s: %v", name, v)
		}
	}
}

// FuzzGuard: what a port with one MAC and two addresses gets past its guard is not from
// another MAC or address, in the Ethernet header, IP, ARP or ND, nor from a DHCP server, a
// router or a tunnel, as gopacket reads it; and what does not is refused in every framing.
func FuzzGuard(f *testing.F) {
	for _, x := range []pkt{
		{kind: "tcp", src: 1, dst: 2}, {kind: "udp", v6: true, src: 1, dst: 2}, {kind: "arp", src: 1, dst: 2}, {kind: "nd", v6: true, typ: 135, src: 1, dst: 2},
		{kind: "nd", v6: true, typ: 136, src: 1, dst: 1}, {kind: "nd", v6: true, typ: 134, src: 1, dst: 2}, {kind: "udp", src: 1, dst: 2, dport: 4789},
		{kind: "udp", src: 1, srcIP: netip.IPv4Unspecified(), dst: 2, sport: 68, dport: 67}, {kind: "udp", v6: true, src: 1, dst: 2, frag: "first"},
		{kind: "udp", src: 1, dst: 2, frag: "later", vlans: 2}, {kind: "arp", src: 1, srcIP: netip.IPv4Unspecified(), dst: 1, vlans: 1},
	} {
		f.Add(x.bytes(f))
		f.Add(framing.Put(x.bytes(f), framing.Plain[0], framing.Plain[3]))
	}
	g, err := NewGuard(&GuardConfig{MACs: []frame.MAC{macOf(1)}, Addrs: prefixes("10.0.0.1/32", "fd00::1/128")})
	must(f, err)
	mine4, mine6 := ipOf(false, 1), ipOf(true, 1)
	local := netip.MustParseAddr("fe80::ff:fe00:1")
	f.Fuzz(func(t *testing.T, b []byte) {
		x := frame.Make(b)
		if g.Process(&x, frame.At{}) != frame.Continue {
			refusedInAll(t, b, g)
			return
		}
		p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.DecodeOptions{NoCopy: true})
		if frame.MAC(b[6:]) != macOf(1) {
			t.Fatalf("from %v", frame.MAC(b[6:]))
		}
		if a, ok := p.Layer(layers.LayerTypeARP).(*layers.ARP); ok {
			ip, _ := netip.AddrFromSlice(a.SourceProtAddress)
			if a.Protocol == layers.EthernetTypeIPv4 && a.HwAddressSize == 6 && a.ProtAddressSize == 4 && (frame.MAC(a.SourceHwAddress) != macOf(1) || ip != mine4 && !ip.IsUnspecified()) {
				t.Fatalf("%+v", a)
			}
		}
		udp, _ := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
		for _, l := range p.Layers() { // the first IP header is the one that counts
			var src netip.Addr
			if ip, ok := l.(*layers.IPv4); ok && ip.Version == 4 {
				src, _ = netip.AddrFromSlice(ip.SrcIP)
				if udp != nil && ip.FragOffset != 0 {
					udp = nil
				}
			} else if ip, ok := l.(*layers.IPv6); ok && ip.Version == 6 {
				src, _ = netip.AddrFromSlice(ip.SrcIP)
			} else {
				continue
			}
			if src != mine4 && src != mine6 && src != local && !src.IsUnspecified() {
				t.Fatalf("from %v", src)
			}
			if udp != nil && (udp.DstPort == 4789 || udp.DstPort == 4790 || udp.DstPort == 8472 || udp.DstPort == 6081 || udp.DstPort == 546 || src.Is4() && udp.DstPort == 68) {
				t.Fatalf("%v to port %d", src, udp.DstPort)
			}
			if next, ok := p.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6); ok && src.Is6() && (next.TypeCode.Type() == 134 || next.TypeCode.Type() == 137) {
				t.Fatalf("ICMPv6 type %d", next.TypeCode.Type())
			}
			break
		}
	})
}

// FuzzProcess: whatever the bytes, nothing panics, nothing is changed, each packet is counted
// once, and what rules deny they deny in every framing.
func FuzzProcess(f *testing.F) {
	re := pkt{kind: "udp", src: 2, dst: 1}
	for _, x := range []pkt{
		{kind: "tcp", src: 1, dst: 2, flags: "S"}, {kind: "tcp", v6: true, src: 1, dst: 2, flags: "S"}, {kind: "arp", src: 1, dst: 2},
		{kind: "nd", v6: true, typ: 135, src: 1, dst: 2}, {kind: "icmp", src: 1, dst: 2, typ: 3, about: &re},
		{kind: "icmp", v6: true, src: 1, dst: 2, typ: 1, about: &pkt{kind: "udp", v6: true, src: 2, dst: 1}},
		{kind: "udp", v6: true, src: 1, dst: 2, frag: "first"}, {kind: "udp", v6: true, src: 1, dst: 2, frag: "later", vlans: 2},
	} {
		f.Add(x.bytes(f), uint8(0))
		x.bare, x.vlans = x.kind != "arp", 0
		b := x.bytes(f)
		f.Add(b, b[0]>>5)
	}
	l := newLab(f, &Config{Default: Deny, Rules: []Rule{{Direction: Ingress}}})
	g, err := NewGuard(&GuardConfig{MACs: []frame.MAC{macOf(1)}, Addrs: prefixes("10.0.0.1/32", "fd00::1/128")})
	must(f, err)
	strict := newLab(f, &Config{Stateless: true, Rules: []Rule{
		{Action: Deny, DstPorts: []PortRange{Port(80)}}, {Action: Deny, Src: prefixes("10.0.0.3/32", "fd00::3/128")}, {Action: Deny, EtherTypes: []uint16{0x806, 0x88cc}},
		{Action: Deny, Protocol: 58, ICMP: []ICMPType{{Type: 134}}},
		{Action: Deny, Protocol: 17, NotDstPorts: []PortRange{{0, 9999}}, NotSrcSets: []string{"all"}},
		{Action: Deny, DstPortSets: []string{"http"}},
	}, Tiers: []Tier{{Name: "first", Rules: []Rule{{Action: Log, NotProtocol: 6}, {Action: Pass, AllDstSets: []string{"all"}}, {Action: Deny, Protocol: 6, NotSrcPorts: []PortRange{{1000, 65535}}}}}},
		Sets: map[string][]netip.Prefix{"all": prefixes("10.0.0.0/8", "fd00::/8")}, PortSets: map[string][]Endpoint{"http": {{ipOf(false, 2), 6, 8080}}},
	}).p.Ingress()
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		if x := frame.Make(b); strict.Process(&x, frame.At{Worker: 1}) != frame.Continue {
			refusedInAll(t, b, strict)
		}
		for _, s := range []interface {
			Process(*frame.Frame, frame.At) frame.Verdict
		}{l.p.Ingress(), l.p.Egress(), g} {
			x := frame.Make(b)
			x.Kind = frame.Kind(kind % 3)
			st := l.p.Stats()
			v := s.Process(&x, l.at)
			if string(x.Bytes()) != string(b) || v != frame.Continue && v != frame.Drop(frame.Policy) {
				t.Fatal(v, x.Bytes())
			}
			if s == g {
				continue
			}
			if n := total(l.p.Stats()) - total(st); n != 1 {
				t.Fatalf("counted %d times", n)
			}
		}
	})
}

func total(s Stats) uint64 {
	n := s.Default.Packets + s.Neighbours.Packets + s.Replies + s.Related + s.Fragments + s.Malformed
	for _, c := range s.Rules {
		n += c.Packets
	}
	return n
}
