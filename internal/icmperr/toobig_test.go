package icmperr

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// change4 is udp4(1500) with something changed and the header checksum made right.
func change4(t *testing.T, change func(ip []byte)) []byte {
	b := udp4(t, 1500)
	ip := b[14:]
	change(ip)
	ip[10], ip[11] = 0, 0
	var sum uint32
	for i := 0; i < int(ip[0]&15)*4; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
	return b
}

func src4(t *testing.T, a, b, c, d byte) []byte {
	return change4(t, func(ip []byte) { copy(ip[12:], []byte{a, b, c, d}) })
}

func dst4(t *testing.T, a, b, c, d byte) []byte {
	return change4(t, func(ip []byte) { copy(ip[16:], []byte{a, b, c, d}) })
}

// icmp4 has an ICMP message of a type instead of UDP.
func icmp4(t *testing.T, typ byte) []byte {
	return change4(t, func(ip []byte) { ip[9], ip[20] = 1, typ })
}

func change6(t *testing.T, change func(ip []byte)) []byte {
	b := udp6(t, 1500)
	change(b[14:])
	return b
}

func addr6(t *testing.T, at int, a string) []byte {
	return change6(t, func(ip []byte) { copy(ip[at:], net.ParseIP(a)) })
}

// chain6 has these bytes behind the IPv6 header, the first header being next.
func chain6(t *testing.T, next byte, ext ...byte) []byte {
	return change6(t, func(ip []byte) { ip[6] = next; copy(ip[40:], ext) })
}

func ethernet(b []byte, at int, mac frame.MAC) []byte {
	b = bytes.Clone(b)
	copy(b[at:], mac[:])
	return b
}

// TestOutcomes is one frame for each cause, and the field of the statistics it counts
// in.
func TestOutcomes(t *testing.T) {
	sent4 := func(s frame.TooBigStats) uint64 { return s.Sent4 }
	sent6 := func(s frame.TooBigStats) uint64 { return s.Sent6 }
	fragmenting := func(s frame.TooBigStats) uint64 { return s.Fragmenting }
	notIP := func(s frame.TooBigStats) uint64 { return s.NotIP }
	notHost := func(s frame.TooBigStats) uint64 { return s.NotHost }
	icmpError := func(s frame.TooBigStats) uint64 { return s.ICMPError }
	fragment := func(s frame.TooBigStats) uint64 { return s.Fragment }
	malformed := func(s frame.TooBigStats) uint64 { return s.Malformed }
	fits := func(s frame.TooBigStats) uint64 { return s.Fits }
	tinyMTU := func(s frame.TooBigStats) uint64 { return s.TinyMTU }
	none8 := func(next byte) []byte { return []byte{next, 0, 0, 0, 0, 0, 0, 0} }
	manyTags := udp4(t, 1500, 7, 9)
	manyTags = append(manyTags[:20:20], append([]byte{0x81, 0, 0, 1}, manyTags[20:]...)...)

	for _, c := range []struct {
		name string
		in   []byte
		mtu  int
		want func(frame.TooBigStats) uint64
	}{
		{"IPv4", udp4(t, 1500), 1464, sent4},
		{"IPv6", udp6(t, 1500), 1464, sent6},
		{"IPv4 without DF", change4(t, func(ip []byte) { ip[6] = 0 }), 1464, fragmenting},
		{"first fragment, DF", change4(t, func(ip []byte) { ip[6] = 0x60 }), 1464, sent4},
		{"first fragment", change4(t, func(ip []byte) { ip[6] = 0x20 }), 1464, fragmenting},
		{"later fragment, DF", change4(t, func(ip []byte) { ip[7] = 1 }), 1464, fragment},
		{"last fragment", change4(t, func(ip []byte) { ip[6], ip[7] = 0x1f, 0xff }), 1464, fragment},

		{"ARP", packets.Of(ether(layers.EthernetTypeARP), gopacket.Payload(counting(1500))), 1464, notIP},
		{"a length, not a type", packets.Of(ether(1500), gopacket.Payload(counting(1500))), 1464, notIP},
		{"three tags", manyTags, 1464, notIP},
		{"13 bytes", udp4(t, 100)[:13], 5, malformed},
		{"tag cut short", udp4(t, 100, 7)[:16], 5, notIP},

		{"to a group", ethernet(udp4(t, 1500), 0, frame.MAC{1, 0, 0x5e, 0, 0, 1}), 1464, notHost},
		{"to all", ethernet(udp4(t, 1500), 0, frame.Broadcast), 1464, notHost},
		{"to nobody", ethernet(udp4(t, 1500), 0, frame.MAC{}), 1464, notHost},
		{"from a group", ethernet(udp4(t, 1500), 6, frame.MAC{3}), 1464, notHost},
		{"from nobody", ethernet(udp4(t, 1500), 6, frame.MAC{}), 1464, notHost},
		{"from 0.0.0.0", src4(t, 0, 0, 0, 0), 1464, notHost},
		{"from 0.0.0.9", src4(t, 0, 0, 0, 9), 1464, notHost},
		{"from 127.0.0.1", src4(t, 127, 0, 0, 1), 1464, notHost},
		{"from 224.0.0.1", src4(t, 224, 0, 0, 1), 1464, notHost},
		{"from 240.0.0.1", src4(t, 240, 0, 0, 1), 1464, notHost},
		{"from 255.255.255.255", src4(t, 255, 255, 255, 255), 1464, notHost},
		{"from 223.255.255.254", src4(t, 223, 255, 255, 254), 1464, sent4},
		{"to 239.1.1.1", dst4(t, 239, 1, 1, 1), 1464, notHost},
		{"to 255.255.255.255", dst4(t, 255, 255, 255, 255), 1464, notHost},
		{"to 127.0.0.1", dst4(t, 127, 0, 0, 1), 1464, notHost},
		{"from ::", addr6(t, 8, "::"), 1464, notHost},
		{"from ::1", addr6(t, 8, "::1"), 1464, notHost},
		{"from ::2", addr6(t, 8, "::2"), 1464, sent6},
		{"from ff02::1", addr6(t, 8, "ff02::1"), 1464, notHost},
		{"to ff02::1", addr6(t, 24, "ff02::1"), 1464, notHost},
		{"to fe80::1", addr6(t, 24, "fe80::1"), 1464, sent6},

		{"ICMP echo", icmp4(t, 8), 1464, sent4},
		{"ICMP echo reply", icmp4(t, 0), 1464, sent4},
		{"ICMP unreachable", icmp4(t, 3), 1464, icmpError},
		{"ICMP source quench", icmp4(t, 4), 1464, icmpError},
		{"ICMP redirect", icmp4(t, 5), 1464, icmpError},
		{"ICMP time exceeded", icmp4(t, 11), 1464, icmpError},
		{"ICMP parameter problem", icmp4(t, 12), 1464, icmpError},
		{"ICMPv6 echo", chain6(t, 58, 128), 1464, sent6},
		{"ICMPv6 neighbour solicitation", chain6(t, 58, 135), 1464, sent6},
		{"ICMPv6 unreachable", chain6(t, 58, 1), 1464, icmpError},
		{"ICMPv6 too big", chain6(t, 58, 2), 1464, icmpError},
		{"ICMPv6 error of no known type", chain6(t, 58, 127), 1464, icmpError},
		{"ICMPv6 redirect", chain6(t, 58, 137), 1464, icmpError},
		{"ICMPv6 error behind options", chain6(t, 0, append(append(none8(60), none8(58)...), 1)...), 1464, icmpError},
		{"ICMPv6 error behind a longer option", chain6(t, 0, append(append([]byte{58, 1}, make([]byte, 14)...), 3)...), 1464, icmpError},
		{"ICMPv6 error behind AH", chain6(t, 51, append(append([]byte{58, 4}, make([]byte, 22)...), 3)...), 1464, icmpError},
		{"ICMPv6 error in the first fragment", chain6(t, 44, append([]byte{58, 0, 0, 1, 0, 0, 0, 9}, 1)...), 1464, icmpError},
		{"first fragment, IPv6", chain6(t, 44, 17, 0, 0, 1, 0, 0, 0, 9), 1464, sent6},
		{"later fragment, IPv6", chain6(t, 44, 17, 0, 0, 8, 0, 0, 0, 9), 1464, fragment},
		{"later fragment behind a routing header", chain6(t, 43, append(none8(44), 58, 0, 0, 8, 0, 0, 0, 9)...), 1464, fragment},
		{"eight extension headers", chain6(t, 0, append(bytes.Repeat(none8(60), 7), none8(17)...)...), 1464, sent6},
		{"nine extension headers", chain6(t, 0, append(bytes.Repeat(none8(60), 8), none8(17)...)...), 1464, malformed},
		{"an option beyond the end", chain6(t, 0, 58, 255), 1464, malformed},
		{"ESP", chain6(t, 50), 1464, sent6},

		{"version 5", change4(t, func(ip []byte) { ip[0] = 0x55 }), 1464, malformed},
		{"IHL 4", change4(t, func(ip []byte) { ip[0] = 0x44 }), 1464, malformed},
		{"total length of less than the header", change4(t, func(ip []byte) { ip[2], ip[3] = 0, 19 }), 1464, malformed},
		{"total length beyond the frame", change4(t, func(ip []byte) { ip[2], ip[3] = 1501>>8, 1501&255 }), 1464, malformed},
		{"header checksum", func() []byte { b := udp4(t, 1500); b[24] ^= 1; return b }(), 1464, malformed},
		{"header cut short", udp4(t, 1500)[:14+19], 20, malformed},
		{"version 4 under the type of IPv6", change6(t, func(ip []byte) { ip[0] = 0x45 }), 1464, malformed},
		{"payload length beyond the frame", change6(t, func(ip []byte) { ip[4], ip[5] = 1461>>8, 1461&255 }), 1464, malformed},
		{"header cut short, IPv6", udp6(t, 1500)[:14+39], 20, malformed},

		{"padding is too long, not the packet", append(udp4(t, 1450), 0, 0), 1464, fits},
		{"padding, IPv6", append(udp6(t, 1430), 0), 1444, fits},
		{"MTU 67", udp4(t, 1500), 81, tinyMTU},
		{"MTU 0", udp4(t, 1500), 0, tinyMTU},
		{"MTU of less than nothing", udp4(t, 1500), -1 << 31, tinyMTU},
		{"no room for the options", change4(t, func(ip []byte) { ip[0] = 0x4f }), 82, tinyMTU},
		{"room for the options", change4(t, func(ip []byte) { ip[0] = 0x4f }), 14 + 28 + 68, sent4},
		{"MTU 1279, IPv6", udp6(t, 1500), 1293, tinyMTU},
		{"MTU 1280 less a tag, IPv6", udp6(t, 1500, 7), 1294, tinyMTU},
	} {
		s := newTooBig(0, 0)
		f := entered(c.in)
		v := s.Process(&f, frame.At{MTU: c.mtu})
		st := s.Stats()
		if n := c.want(st); n != 1 {
			t.Errorf("%s: %v, %+v", c.name, v, st)
			continue
		}
		if st.Sent4+st.Sent6 == 1 {
			if v != frame.Reply || f.Len() > c.mtu {
				t.Errorf("%s: %v, %d bytes", c.name, v, f.Len())
			}
			decode(t, f.Bytes())
		} else if v != frame.Drop(frame.TooBig) || !bytes.Equal(f.Bytes(), c.in) {
			t.Errorf("%s: %v, or the frame was changed", c.name, v)
		}
	}
}

// ICMPv6 whose options end where the packet does: its type is not known.
func TestICMPTypeUnseen(t *testing.T) {
	s := newTooBig(0, 0)
	b := chain6(t, 60, 58, 1456/8-1)
	b[14+4], b[14+5] = 1456>>8, 1456&255
	f := entered(b)
	if s.Process(&f, frame.At{MTU: 1464}); s.Stats().ICMPError != 1 {
		t.Errorf("%+v", s.Stats())
	}
}

func TestNotAsked(t *testing.T) {
	s := newTooBig(0, 0)
	fit, bare := entered(udp4(t, 1450)), entered(udp4(t, 1464)[14:])
	bare.Kind = frame.IPv4
	for _, f := range []*frame.Frame{&fit, &bare} {
		if v := s.Process(f, frame.At{MTU: 1464}); v != frame.Continue {
			t.Errorf("%v", v)
		}
	}
	if s.Stats() != (frame.TooBigStats{}) {
		t.Errorf("%+v", s.Stats())
	}
}

// Packets of an IP port are answered as those in frames are.
func TestTooBigWithoutEthernet(t *testing.T) {
	for kind, in := range map[frame.Kind][]byte{frame.IPv4: udp4(t, 1500), frame.IPv6: udp6(t, 1500)} {
		s, same := newTooBig(0, 0), newTooBig(0, 0)
		framed, bare := entered(in), entered(in[14:])
		bare.Kind = kind
		if v := s.Process(&bare, frame.At{MTU: 1464}); v != frame.Reply {
			t.Errorf("%v", v)
		}
		if v := same.Process(&framed, frame.At{MTU: 1478}); v != frame.Reply || !bytes.Equal(framed.Bytes()[14:], bare.Bytes()) {
			t.Errorf("%v: % x, framed % x", v, bare.Bytes(), framed.Bytes())
		}
	}
}

// Who cannot be reached is not answered, and uses up nobody's allowance.
func TestUnreachable(t *testing.T) {
	s := newTooBig(1, 0)
	own, unnumbered, numbered := entered(udp4(t, 1500)), entered(udp4(t, 1500)), entered(udp4(t, 1500))
	own.From = 0
	unnumbered.Tunnel = true
	numbered.Tunnel, numbered.From = true, frame.NewDest(1, 3)
	for _, f := range []*frame.Frame{&own, &unnumbered} {
		if v := s.Process(f, frame.At{MTU: 1464}); v != frame.Drop(frame.TooBig) {
			t.Errorf("%v", v)
		}
	}
	if v := s.Process(&numbered, frame.At{MTU: 1464}); v != frame.Reply || numbered.From != frame.NewDest(1, 3) {
		t.Errorf("%v", v)
	}
	if st := s.Stats(); st != (frame.TooBigStats{Sent4: 1, Unreachable: 2}) {
		t.Errorf("%+v", st)
	}
}
