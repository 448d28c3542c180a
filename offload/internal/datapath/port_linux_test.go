package datapath

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// A shape is a frame for tests, which set what they are about.
type shape struct {
	dst, src frame.MAC
	v6       bool
	tos      uint8
	ttl      uint8 // 0 = 60
	df       bool
	offset   uint16 // of a fragment, in 8 bytes
	more     bool
	proto    layers.IPProtocol // 0 = UDP
	next     layers.IPProtocol // of IPv6, in front of proto
	icmp     uint8
	sport    uint16 // 0 = 1000
	size     int    // of the payload
}

func (s shape) bytes() []byte {
	if s.ttl == 0 {
		s.ttl = 60
	}
	if s.proto == 0 {
		s.proto = layers.IPProtocolUDP
	}
	if s.sport == 0 {
		s.sport = 1000
	}
	eth := &layers.Ethernet{DstMAC: s.dst[:], SrcMAC: s.src[:], EthernetType: layers.EthernetTypeIPv4}
	all := []gopacket.SerializableLayer{eth}
	var over gopacket.NetworkLayer
	if s.v6 {
		eth.EthernetType = layers.EthernetTypeIPv6
		h := &layers.IPv6{Version: 6, TrafficClass: s.tos, HopLimit: s.ttl, NextHeader: s.proto, SrcIP: peerOf(1, 9).AsSlice(), DstIP: peerOf(1, 10).AsSlice()}
		over, all = h, append(all, h)
		if s.next != 0 {
			h.NextHeader = s.next
			x := []byte{byte(s.proto), 0, 0, 0, 0, 0, 0, 1}
			binary.BigEndian.PutUint16(x[2:], s.offset<<3)
			all = append(all, gopacket.Payload(x))
		}
	} else {
		h := &layers.IPv4{Version: 4, TOS: s.tos, TTL: s.ttl, Protocol: s.proto, FragOffset: s.offset, SrcIP: peerOf(0, 9).AsSlice(), DstIP: peerOf(0, 10).AsSlice()}
		if s.df {
			h.Flags |= layers.IPv4DontFragment
		}
		if s.more {
			h.Flags |= layers.IPv4MoreFragments
		}
		over, all = h, append(all, h)
	}
	switch s.proto {
	case layers.IPProtocolUDP:
		l := &layers.UDP{SrcPort: layers.UDPPort(s.sport), DstPort: 2000}
		l.SetNetworkLayerForChecksum(over)
		all = append(all, l)
	case layers.IPProtocolTCP:
		l := &layers.TCP{SrcPort: layers.TCPPort(s.sport), DstPort: 2000, ACK: true}
		l.SetNetworkLayerForChecksum(over)
		all = append(all, l)
	case layers.IPProtocolICMPv6:
		l := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(s.icmp, 0)}
		l.SetNetworkLayerForChecksum(over)
		all = append(all, l)
	case layers.IPProtocolICMPv4:
		all = append(all, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(8, 0)})
	}
	return packets.Of(append(all, gopacket.Payload(make([]byte, s.size)))...)
}

// set returns b with a byte changed.
func set(b []byte, at int, to byte) []byte {
	b = bytes.Clone(b)
	b[at] = to
	return b
}

// In every mode of the outer headers, with every ECN field, TTL and DF bit inside: what user space sends.
func TestSendModes(t *testing.T) {
	g := newRig(t)
	for fam := range 2 {
		for m := range g.modes {
			k := g.key(fam, m)
			for tos := range uint8(8) {
				for _, v6 := range []bool{false, true} {
					for _, ttl := range []uint8{1, 255} {
						s := shape{dst: k.Dst, src: k.Src, v6: v6, tos: tos, ttl: ttl, df: ttl == 1}
						if !g.sends(fam, m, s.bytes()) {
							t.Fatalf("%+v, %+v is a miss", g.modes[m], s)
						}
					}
				}
			}
		}
	}
}

// What is carried, and why the rest is not.
func TestSendMisses(t *testing.T) {
	g := newRig(t)
	k := g.key(0, 0)
	base := shape{dst: k.Dst, src: k.Src}
	v6 := shape{dst: k.Dst, src: k.Src, v6: true}
	const carried = NumCauses
	with := func(s shape, change func(s *shape)) []byte { change(&s); return s.bytes() }
	plain := base.bytes()
	for _, c := range []struct {
		name string
		b    []byte
		want Cause
	}{
		{"UDP", plain, carried},
		{"UDP, IPv6", v6.bytes(), carried},
		{"TCP", with(base, func(s *shape) { s.proto = layers.IPProtocolTCP }), carried},
		{"TCP, IPv6", with(v6, func(s *shape) { s.proto = layers.IPProtocolTCP }), carried},
		{"ICMP", with(base, func(s *shape) { s.proto = layers.IPProtocolICMPv4 }), carried},
		{"echo request, IPv6", with(v6, func(s *shape) { s.proto, s.icmp = layers.IPProtocolICMPv6, 128 }), carried},
		{"too big, IPv6", with(v6, func(s *shape) { s.proto, s.icmp = layers.IPProtocolICMPv6, 2 }), carried},
		{"type 132", with(v6, func(s *shape) { s.proto, s.icmp = layers.IPProtocolICMPv6, 132 }), carried},
		{"router solicitation", with(v6, func(s *shape) { s.proto, s.icmp = layers.IPProtocolICMPv6, 133 }), Neighbour},
		{"neighbour solicitation", with(v6, func(s *shape) { s.proto, s.icmp = layers.IPProtocolICMPv6, 135 }), Neighbour},
		{"redirect", with(v6, func(s *shape) { s.proto, s.icmp = layers.IPProtocolICMPv6, 137 }), Neighbour},
		{"type 138", with(v6, func(s *shape) { s.proto, s.icmp = layers.IPProtocolICMPv6, 138 }), carried},
		{"neighbour solicitation in a fragment", with(v6, func(s *shape) { s.proto, s.icmp, s.next = layers.IPProtocolICMPv6, 135, layers.IPProtocolIPv6Fragment }), Protocol},
		{"and a later one", with(v6, func(s *shape) {
			s.proto, s.icmp, s.next, s.offset = layers.IPProtocolICMPv6, 135, layers.IPProtocolIPv6Fragment, 1
		}), Protocol},
		{"and behind destination options", with(v6, func(s *shape) {
			s.proto, s.icmp, s.next = layers.IPProtocolICMPv6, 135, layers.IPProtocolIPv6Destination
		}), Protocol},
		{"UDP in a fragment, IPv6", with(v6, func(s *shape) { s.next = layers.IPProtocolIPv6Fragment }), carried},
		{"a later one", with(v6, func(s *shape) { s.next, s.offset = layers.IPProtocolIPv6Fragment, 100 }), carried},
		{"DHCP in a fragment, IPv6", with(v6, func(s *shape) { s.next, s.sport = layers.IPProtocolIPv6Fragment, 547 }), DHCP},
		{"first fragment", with(base, func(s *shape) { s.more = true }), carried},
		{"later fragment", with(base, func(s *shape) { s.offset = 50 }), carried},
		{"later fragment, IGMP", with(base, func(s *shape) { s.offset, s.proto = 50, layers.IPProtocolIGMP }), Protocol},
		{"IGMP", with(base, func(s *shape) { s.proto = layers.IPProtocolIGMP }), Protocol},
		{"ICMPv6 over IPv4", with(base, func(s *shape) { s.proto = layers.IPProtocolICMPv6 }), Protocol},
		{"ICMP over IPv6", with(v6, func(s *shape) { s.proto = layers.IPProtocolICMPv4 }), Protocol},
		{"DHCP server", with(base, func(s *shape) { s.sport = 67 }), DHCP},
		{"DHCP client", with(base, func(s *shape) { s.sport = 68 }), DHCP},
		{"DHCPv6", with(v6, func(s *shape) { s.sport = 546 }), DHCP},
		{"options", set(plain, 14, 0x46), Options},
		{"wrong version", set(plain, 14, 0x65), Options},
		{"wrong version, IPv6", set(v6.bytes(), 14, 0x45), Options},
		{"the longest", with(base, func(s *shape) { s.size = maxLen - 42 }), carried},
		{"longer", with(base, func(s *shape) { s.size = maxLen - 41 }), TooBig},
		{"the longest, IPv6", with(v6, func(s *shape) { s.size = maxLen - 62 }), carried},
		{"longer, IPv6", with(v6, func(s *shape) { s.size = maxLen - 61 }), TooBig},
		{"padded", append(bytes.Clone(plain), 0, 0, 0), carried},
		{"no ports", plain[:35], Short},
		{"ARP", set(plain, 13, 6), Kind},
		{"VLAN tag", append(append(bytes.Clone(plain[:12]), 0x81, 0, 0, 5), plain[12:]...), Kind},
		{"broadcast", with(base, func(s *shape) { s.dst = frame.Broadcast }), Group},
		{"multicast", with(base, func(s *shape) { s.dst[0] = 1 }), Group},
		{"another destination", with(base, func(s *shape) { s.dst[5]++ }), NoFlow},
		{"another source", with(base, func(s *shape) { s.src[3]++ }), NoFlow},
	} {
		if got := g.d.why(t, PortIn, c.b, Meta{}); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if got := g.d.why(t, PortOut, c.b, Meta{}); got != c.want {
			t.Errorf("%s, egress: %v, want %v", c.name, got, c.want)
		}
		if len(c.b) >= 54 && c.want == carried {
			g.sends(0, 0, c.b)
		}
	}
}

// A superframe is judged by its segments. BPF_PROG_TEST_RUN makes superframes of no type, which the kernel does not
// encapsulate: Room, the last question of all, stands for those that a real one passes.
func TestSuperframes(t *testing.T) {
	g := newRig(t)
	k := g.key(0, 0)
	for _, v6 := range []bool{false, true} {
		head := 34
		if v6 {
			head = 54
		}
		tcp := shape{dst: k.Dst, src: k.Src, v6: v6, proto: layers.IPProtocolTCP, size: 3000}.bytes()
		tcp[head+12] = 8 << 4 // 12 bytes of options
		udp := shape{dst: k.Dst, src: k.Src, v6: v6, size: 3000}.bytes()
		icmp := shape{dst: k.Dst, src: k.Src, v6: v6, proto: layers.IPProtocolICMPv4, size: 3000}.bytes()
		for _, c := range []struct {
			what string
			b    []byte
			size int
			want Cause
		}{
			{"TCP", tcp, maxLen - head - 32, Room},
			{"TCP, longer", tcp, maxLen - head - 31, TooBig},
			{"UDP", udp, maxLen - head - 8, Room},
			{"UDP, longer", udp, maxLen - head - 7, TooBig},
		} {
			if got := g.d.why(t, PortIn, c.b, Meta{GSOSize: uint32(c.size), GSOSegs: 3}); got != c.want {
				t.Errorf("IPv6 %v, %s: %v, want %v", v6, c.what, got, c.want)
			}
		}
		if v6 {
			continue
		}
		if got := g.d.why(t, PortIn, icmp, Meta{GSOSize: 1000, GSOSegs: 3}); got != Protocol {
			t.Errorf("ICMP: %v", got)
		}
		later := shape{dst: k.Dst, src: k.Src, offset: 100, size: 3000}.bytes()
		if got := g.d.why(t, PortIn, later, Meta{GSOSize: 1000, GSOSegs: 3}); got != Protocol {
			t.Errorf("a fragment: %v", got)
		}
	}
}

// Between ports only the mark changes, which is that of the entry; each flow out of a tunnel keeps one source port, and
// flows are spread over all sixteen.
func TestPortToPort(t *testing.T) {
	d := load(t)
	k := OutKey{Ifindex: 1, Dst: macFar, Src: macNear}
	b := shape{dst: macFar, src: macNear, proto: layers.IPProtocolTCP, size: 500}.bytes()
	for how := Egress; how <= Peer; how++ {
		d.Slot(3).Validate(Validity{1, 1, 1})
		check.OK(t, d.Put(k, &Flow{Slot: 3, Oif: 1, How: how, Max: 600}))
		for _, p := range []Program{PortIn, PortOut} {
			act, got, m, err := d.Run(p, b, Meta{Mark: 7})
			if err != nil || act != Redirect || !bytes.Equal(got, b) || m.Mark != 0 {
				t.Errorf("%v, program %d: action %d, mark %d, %v\n%x", how, p, act, m.Mark, err, got)
			}
		}
		check.OK(t, d.Delete(k))
	}
	packets, size, last := d.Slot(3).Counters()
	if packets != 6 || size != 6*uint64(len(b)) || last == 0 {
		t.Errorf("%d packets, %d bytes, last at %v", packets, size, last)
	}
}

func TestSourcePorts(t *testing.T) {
	g := newRig(t)
	k := g.key(0, 0)
	seen := map[uint16]int{}
	for i := range 1000 {
		b := shape{dst: k.Dst, src: k.Src, sport: uint16(1000 + i), size: 10}.bytes()
		ports := map[uint16]bool{}
		for range 3 {
			_, got, _, err := g.d.Run(PortIn, b, Meta{})
			check.OK(t, err)
			ports[binary.BigEndian.Uint16(got[34:])] = true
		}
		for p := range ports {
			seen[p]++
		}
		if len(ports) != 1 {
			t.Fatalf("one flow has ports %v", ports)
		}
	}
	if len(seen) != 16 {
		t.Errorf("1000 flows have ports %v", seen)
	}
	for _, p := range srcPorts {
		if seen[p] < 20 {
			t.Errorf("port %d has %d of 1000 flows", p, seen[p])
		}
	}
}

// The mark of the underlay's sockets is on what is sent.
func TestMark(t *testing.T) {
	d := load(t)
	b := shape{dst: macFar, src: macNear}.bytes()
	o := Outer{Local: locals[0], Remote: peerOf(0, 0), Port: 4789, SrcPorts: srcPorts, VNI: vni, TTL: 64, Mark: 0x1234}
	d.Slot(0).Validate(Validity{1, 1, 1})
	check.OK(t, d.Put(OutKey{Ifindex: 1, Dst: macFar, Src: macNear}, &Flow{Oif: 1, How: Neigh, Max: 1500, Outer: o}))
	if _, _, m, err := d.Run(PortIn, b, Meta{Mark: 7}); err != nil || m.Mark != 0x1234 {
		t.Errorf("mark %#x, %v", m.Mark, err)
	}
}
