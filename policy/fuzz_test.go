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
	for _, s := range []string{"80", "8000-8100", "3/4", "0/0", "allow", "deny", "ingress", "both", "70-60", "+1", "1/", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		type text interface {
			encoding.TextUnmarshaler
			encoding.TextMarshaler
		}
		for _, x := range [][2]text{{new(PortRange), new(PortRange)}, {new(ICMPType), new(ICMPType)}, {new(Action), new(Action)}, {new(Direction), new(Direction)}} {
			if x[0].UnmarshalText([]byte(s)) != nil {
				continue
			}
			b, err := x[0].MarshalText()
			if err != nil {
				t.Fatal(err)
			}
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
	if err != nil {
		f.Fatal(err)
	}
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
