package afpacket

import (
	"encoding/binary"
	"net"
	"slices"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/wire"
)

var (
	testMAC  = frame.MAC{2, 0, 0, 0, 0, 1}
	peerMAC  = frame.MAC{2, 0, 0, 0, 0, 2}
	testIP4  = [4]byte{10, 9, 0, 1}
	peerIP4  = [4]byte{10, 9, 0, 2}
	testIP6  = [16]byte{0: 0xfd, 1: 9, 15: 1}
	peerIP6  = [16]byte{0: 0xfd, 1: 9, 15: 2}
	group4   = [4]byte{239, 0x81, 1, 1}
	group6   = [16]byte{0: 0xff, 1: 5, 15: 1}
	testRule = [2]rules{
		{is4: true, mac: testMAC, ip: wire.Mapped(testIP4), port: 4789, groups: map[[16]byte]bool{wire.Mapped(group4): true}},
		{mac: testMAC, ip: testIP6, port: 4789, groups: map[[16]byte]bool{group6: true}},
	}
)

// frameOf makes a frame to the underlay of the tests, all of it right. Over IPv4 it has as
// many bytes of options as are given.
func frameOf(ip6 bool, payload []byte, options ...byte) []byte {
	e := slices.Concat(testMAC[:], peerMAC[:])
	u := make([]byte, 8, 8+len(payload))
	binary.BigEndian.PutUint16(u, 50000)
	binary.BigEndian.PutUint16(u[2:], 4789)
	binary.BigEndian.PutUint16(u[4:], uint16(8+len(payload)))
	u = append(u, payload...)
	if ip6 {
		h := wire.IPv6Header{NextHeader: 17, HopLimit: 63, PayloadLen: uint16(len(u)), Src: peerIP6, Dst: testIP6}
		ip := make([]byte, 40)
		h.Put(ip)
		ip[0], ip[1] = 0x6b, 0x80 // traffic class b8
		return sumUDP(slices.Concat(e, []byte{0x86, 0xdd}, ip, u))
	}
	ip := append(make([]byte, 20), options...)
	h := wire.IPv4Header{TOS: 0xb8, TTL: 63, Protocol: 17, DF: true, TotalLen: uint16(len(ip) + len(u)), Src: peerIP4, Dst: testIP4}
	h.Put(ip)
	ip[0] = 4<<4 | byte(len(ip)/4)
	return sumUDP(sumIP(slices.Concat(e, []byte{8, 0}, ip, u)))
}

// plainSum is RFC 1071 as one would write it down.
func plainSum(b []byte, sum uint32) uint16 {
	for i, x := range b {
		sum += uint32(x) << (8 * (1 - i%2))
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum>>16 + sum&0xffff)
}

// sumIP makes the header checksum of an IPv4 frame right again.
func sumIP(b []byte) []byte {
	h := 14 + int(b[14]&15)*4
	b[24], b[25] = 0, 0
	binary.BigEndian.PutUint16(b[24:], ^plainSum(b[14:h], 0))
	return b
}

// sumUDP makes the UDP checksum right again, of as many bytes as the UDP header says.
func sumUDP(b []byte) []byte {
	at, pseudo := udpAt(b)
	n := int(binary.BigEndian.Uint16(b[at+4:]))
	b[at+6], b[at+7] = 0, 0
	c := ^plainSum(b[at:at+n], uint32(plainSum(pseudo, uint32(17+n))))
	if c == 0 {
		c = 0xffff
	}
	binary.BigEndian.PutUint16(b[at+6:], c)
	return b
}

// udpAt returns where the UDP header is, and the addresses.
func udpAt(b []byte) (int, []byte) {
	if b[12] == 0x86 {
		return 54, b[22:54]
	}
	return 14 + int(b[14]&15)*4, b[26:34]
}

// with returns b with bytes from off on replaced.
func with(b []byte, off int, x ...byte) []byte {
	b = slices.Clone(b)
	copy(b[off:], x)
	return b
}

// A parseCase is one frame and what becomes of it.
type parseCase struct {
	name  string
	b     []byte
	vnet  gso.Virtio
	drop  frame.Reason
	alien bool // not ours
	seg   int
	csum  int
}

func parseCases(ip6 bool) (cs []parseCase) {
	add := func(name string, b []byte, drop frame.Reason) {
		cs = append(cs, parseCase{name: name, b: b, drop: drop})
	}
	alien := func(name string, b []byte) { cs = append(cs, parseCase{name: name, b: b, alien: true}) }
	good := frameOf(ip6, []byte("sixteen bytes ok"))
	at, _ := udpAt(good)
	none := func(b []byte) []byte { return with(b, at+6, 0, 0) }
	udpLen := func(b []byte, n int) []byte { return with(b, at+4, byte(n>>8), byte(n)) }

	add("right", good, 0)
	add("empty", frameOf(ip6, nil), 0)
	add("odd", frameOf(ip6, []byte("odd")), 0)
	add("padding", append(frameOf(ip6, []byte("x")), "padding of a short frame"...), 0)
	add("UDP shorter than IP", sumUDP(udpLen(good, 20)), 0)
	add("UDP longer than IP", udpLen(good, 8+17), frame.Short)
	add("UDP length 7", udpLen(good, 7), frame.Short)
	add("UDP length 0", udpLen(good, 0), frame.Short)
	add("wrong checksum", with(good, len(good)-1, good[len(good)-1]^1), frame.BadChecksum)
	add("no checksum", none(good), map[bool]frame.Reason{true: frame.BadChecksum}[ip6])
	alien("another port", sumUDP(with(good, at+2, 0x12, 0xb6)))
	alien("another MAC", with(good, 0, 2, 0, 0, 0, 0, 9))
	alien("broadcast", with(good, 0, 255, 255, 255, 255, 255, 255))
	alien("VLAN", slices.Concat(good[:12], []byte{0x81, 0, 0, 5}, good[12:]))
	alien("no Ethernet header", good[:13])
	alien("ARP", with(good, 12, 8, 6))
	add("cut in the UDP header", good[:at+7], frame.Short)
	add("cut in the payload", good[:len(good)-1], frame.Short)
	add("cut in the IP header", good[:30], frame.Short)
	if ip6 {
		alien("another address", sumUDP(with(good, 53, 9)))
		alien("TCP", with(good, 20, 6))
		add("version", with(good, 14, 0x45), frame.BadHeader)
		add("fragment", with(good, 20, 44), frame.Fragment)
		add("hop-by-hop", with(good, 20, 0), frame.BadHeader)
		add("destination options", with(good, 20, 60), frame.BadHeader)
		behind := slices.Insert(with(good, 20, 60), 54, 17, 0, 1, 4, 0, 0, 0, 0)
		binary.BigEndian.PutUint16(behind[18:], uint16(len(behind)-54))
		add("UDP behind destination options", behind, frame.BadHeader)
		add("routing", with(good, 20, 43), frame.BadHeader)
		add("from a group", sumUDP(with(good, 22, 0xff)), frame.Martian)
		add("from loopback", sumUDP(with(good, 22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)), frame.Martian)
		add("from an IPv4 address", sumUDP(with(good, 22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 1, 2, 3, 4)), frame.Martian)
		add("no room for a UDP header", with(good, 18, 0, 7), frame.Short)
	} else {
		ip := func(off int, x ...byte) []byte { return sumIP(with(good, 14+off, x...)) }
		add("options", frameOf(false, []byte("x"), 1, 1, 1, 0), 0)
		add("all options", frameOf(false, []byte("xy"), make([]byte, 40)...), 0)
		alien("another address", sumUDP(ip(16, 10, 9, 0, 9)))
		alien("TCP", ip(9, 6))
		add("version", ip(0, 0x65), frame.BadHeader)
		add("IHL 4", with(good, 14, 0x44), frame.BadHeader)
		add("IHL beyond the frame", with(frameOf(false, nil), 14, 0x4f), frame.Short)
		add("IHL beyond the packet", with(append(slices.Clone(good), make([]byte, 40)...), 14, 0x4f, 0, 0, 44), frame.BadHeader)
		add("total length in the header", ip(2, 0, 19), frame.BadHeader)
		add("total length beyond the frame", ip(2, 0, byte(len(good)-13)), frame.Short)
		add("no room for a UDP header", ip(2, 0, 27), frame.Short)
		add("first fragment", ip(6, 0x20, 0), frame.Fragment)
		add("later fragment", ip(6, 0, 1), frame.Fragment)
		add("fragment with DF", ip(6, 0x60, 0), frame.Fragment)
		add("fragment whose header checksum is wrong", with(good, 20, 0x20, 0), frame.Fragment)
		add("the reserved flag", ip(6, 0x80, 0), 0)
		add("header checksum", with(good, 22, 9), frame.BadChecksum)
		add("from a group", sumUDP(ip(12, 224)), frame.Martian)
		add("from 0", sumUDP(ip(12, 0, 0, 0, 0)), frame.Martian)
		add("from loopback", sumUDP(ip(12, 127)), frame.Martian)
		add("from broadcast", sumUDP(ip(12, 255, 255, 255, 255)), frame.Martian)
	}

	// With the kernel's word.
	long := frameOf(ip6, make([]byte, 2500))
	bad := with(good, len(good)-1, good[len(good)-1]^1)
	say := func(name string, b []byte, flags byte, typ byte, size, start, offset int, drop frame.Reason) *parseCase {
		c := parseCase{name: name, b: b, drop: drop, vnet: gso.Virtio{flags, typ}}
		binary.NativeEndian.PutUint16(c.vnet[4:], uint16(size))
		binary.NativeEndian.PutUint16(c.vnet[6:], uint16(start))
		binary.NativeEndian.PutUint16(c.vnet[8:], uint16(offset))
		cs = append(cs, c)
		return &cs[len(cs)-1]
	}
	say("verified by somebody", bad, gso.DataValid, 0, 0, 0, 0, 0)
	say("unfinished", bad, frame.NeedsCsum, 0, 0, at, 6, 0)
	say("a run", long, frame.NeedsCsum, 5, 1000, at, 6, 0).seg = 1000
	say("a run of one", long, frame.NeedsCsum, 5, 2500, at, 6, 0)
	say("a run without checksums", none(long), frame.NeedsCsum, 5, 1000, at, 6, map[bool]frame.Reason{true: frame.BadChecksum}[ip6]).seg = 1000
	say("a run of nothing", long, frame.NeedsCsum, 5, 0, at, 6, frame.BadHeader)
	say("a run with finished checksum", long, 0, 5, 1000, at, 6, frame.BadHeader)
	say("a run of TCP", long, frame.NeedsCsum, 1, 1000, at, 6, frame.BadHeader)
	say("a run of UDP fragments", long, frame.NeedsCsum, 3, 1000, at, 6, frame.BadHeader)
	say("a superframe inside", none(long), frame.NeedsCsum, 1, 1000, at+50, 16, map[bool]frame.Reason{true: frame.BadChecksum}[ip6]).csum = at + 50
	say("a superframe of a kind there is not", long, frame.NeedsCsum, 7, 1000, at+50, 16, frame.BadHeader)
	say("unfinished inside", none(long), frame.NeedsCsum, 0, 0, at+50, 16, map[bool]frame.Reason{true: frame.BadChecksum}[ip6]).csum = at + 50
	say("unfinished in the UDP header", good, frame.NeedsCsum, 0, 0, at, 4, frame.BadHeader)
	say("unfinished in front", good, frame.NeedsCsum, 0, 0, 14, 10, frame.BadHeader)
	say("unfinished behind", good, frame.NeedsCsum, 0, 0, len(good)-3, 2, frame.BadHeader)
	return cs
}

// groupCases is frames to groups; the payload is the name.
func groupCases(ip6 bool) (cs []parseCase) {
	to := func(name string, mac frame.MAC, last byte, drop frame.Reason, alien bool) *parseCase {
		b := with(frameOf(ip6, []byte(name)), 0, mac[:]...)
		if ip6 {
			b = sumUDP(with(b, 38, slices.Concat(group6[:15], []byte{last})...))
		} else {
			b = sumUDP(sumIP(with(b, 30, group4[0], group4[1], group4[2], last)))
		}
		cs = append(cs, parseCase{name: name, b: b, drop: drop, alien: alien})
		return &cs[len(cs)-1]
	}
	mac := frame.MAC{1, 0, 0x5e, 1, 1, 1}
	other := frame.MAC{1, 0, 0x5e, 1, 1, 2}
	if ip6 {
		mac, other = frame.MAC{0x33, 0x33, 0, 0, 0, 1}, frame.MAC{0x33, 0x33, 0, 0, 0, 2}
	}
	to("to the group", mac, 1, 0, false)
	to("to the group at our MAC", testMAC, 1, 0, false)
	to("to the group at another's MAC", other, 1, 0, false)
	to("to the group at the broadcast MAC", frame.Broadcast, 1, 0, false)
	to("to another group", other, 2, 0, true)
	to("to another group at the group's MAC", mac, 2, 0, true)
	to("to the group at somebody's MAC", frame.MAC{2, 0, 0, 0, 0, 9}, 1, 0, true)
	c := to("cut", mac, 1, frame.Short, false)
	c.b = c.b[:len(c.b)-1]
	c = to("cut before the address", mac, 1, 0, true)
	c.b = c.b[:32]
	c = to("a wrong checksum", mac, 1, frame.BadChecksum, false)
	c.b = with(c.b, len(c.b)-1, c.b[len(c.b)-1]^1)
	return cs
}

func TestParse(t *testing.T) {
	for _, ip6 := range []bool{false, true} {
		r := &testRule[map[bool]int{true: 1}[ip6]]
		for _, c := range slices.Concat(parseCases(ip6), groupCases(ip6)) {
			p := info{from: 99, csum: 9} // dirty
			drop, ours := r.parse(c.b, &c.vnet, &p)
			if drop != c.drop || ours == c.alien {
				t.Errorf("IPv6 %v, %s: %v, ours %v, want %v, %v", ip6, c.name, drop, ours, c.drop, !c.alien)
				continue
			}
			if drop != 0 || !ours {
				continue
			}
			at, _ := udpAt(c.b)
			n := int(binary.BigEndian.Uint16(c.b[at+4:]))
			if p.from != at+8 || p.to != at+n || p.seg != c.seg || p.csum != c.csum || p.tos != 0xb8 || p.ttl != 63 || p.src.Port != 50000 ||
				p.dst != r.ip && !r.groups[p.dst] {
				t.Errorf("IPv6 %v, %s: %+v", ip6, c.name, p)
			}
		}
	}
	allowed := testRule[1]
	allowed.zero6 = true
	b := frameOf(true, []byte("x"))
	if drop, ours := allowed.parse(with(b, 60, 0, 0), new(gso.Virtio), new(info)); drop != 0 || !ours {
		t.Error("no checksum, allowed:", drop, ours)
	}
}

func BenchmarkParse(b *testing.B) {
	for _, ip6 := range []bool{false, true} {
		r, f, p := &testRule[map[bool]int{true: 1}[ip6]], frameOf(ip6, make([]byte, 1400)), new(info)
		for name, h := range map[string]gso.Virtio{"sum": {}, "verified": {gso.DataValid}} {
			b.Run(map[bool]string{false: "IPv4/", true: "IPv6/"}[ip6]+name, func(b *testing.B) {
				for b.Loop() {
					r.parse(f, &h, p)
				}
			})
		}
	}
}

// FuzzPacket has gopacket and a checksum written down anew say which frames carry a
// datagram to us, and which bytes.
func FuzzPacket(f *testing.F) {
	for _, ip6 := range []bool{false, true} {
		for _, c := range slices.Concat(parseCases(ip6), groupCases(ip6)) {
			f.Add(c.b, c.vnet[:], ip6, false)
			f.Add(c.b, c.vnet[:], ip6, true)
		}
	}
	f.Fuzz(func(t *testing.T, b, head []byte, ip6, zero6 bool) {
		r := testRule[map[bool]int{true: 1}[ip6]]
		r.zero6 = zero6
		var h gso.Virtio
		copy(h[:], head)
		var p info
		raw := r
		raw.port = 0 // IP-in-IP: without an oracle
		if drop, ours := raw.parse(slices.Clip(b), &h, &p); ours && drop == 0 &&
			(p.from < 34 || p.to < p.from || p.to > len(b) || p.kind == frame.Ethernet || p.csum != 0 && (p.csum < p.from || p.csum+p.offset+2 > p.to)) {
			t.Fatalf("%+v of %d bytes", p, len(b))
		}
		drop, ours := r.parse(slices.Clip(b), &h, &p)
		if !ours || drop != 0 {
			p = info{}
		} else if p.from < 42 || p.to < p.from || p.to > len(b) || p.seg < 0 || p.csum != 0 && (p.csum < p.from || p.csum+p.offset+2 > p.to) {
			t.Fatalf("%+v of %d bytes", p, len(b))
		}
		if h[0]&(frame.NeedsCsum|gso.DataValid) != 0 || h[1] != 0 {
			return // not for gopacket
		}
		payload, good := oracleDatagram(&r, b)
		if good != (ours && drop == 0) || good && string(payload) != string(b[p.from:p.to]) {
			t.Fatalf("gopacket: %v %q; parse: %v, %v, %q", good, payload, ours, drop, b[p.from:p.to])
		}
	})
}

// oracleDatagram returns the payload of the datagram to us that gopacket finds in a frame.
func oracleDatagram(r *rules, b []byte) ([]byte, bool) {
	var e layers.Ethernet
	if e.DecodeFromBytes(b, gopacket.NilDecodeFeedback) != nil || len(b) < 34 {
		return nil, false
	}
	body := b[14:] // gopacket takes a length out of a type below 1536
	var next gopacket.LayerType
	var data, pseudo []byte
	var cut truncated
	src := frame.Endpoint{}
	if r.is4 {
		var ip layers.IPv4
		right := false
		if h := int(body[0]&15) * 4; h >= 20 && h <= len(body) {
			right = plainSum(body[:h], 0) == 0xffff
			body = slices.Clone(body)
			for i := 20; i < h; i++ {
				body[i] = 1 // it would look into options, which we pass over
			}
		}
		if e.EthernetType != layers.EthernetTypeIPv4 || body[0]>>4 != 4 || binary.BigEndian.Uint16(body[2:]) == 0 || // all there is, to gopacket
			ip.DecodeFromBytes(body, &cut) != nil || cut {
			return nil, false
		}
		if ip.Flags&layers.IPv4MoreFragments != 0 || ip.FragOffset != 0 || !right || !oracleTo(r, e.DstMAC, ip.DstIP) {
			return nil, false
		}
		copy(src.IP[:], ip.SrcIP.To16())
		next, data, pseudo = ip.Protocol.LayerType(), ip.Payload, body[12:20]
	} else {
		var ip layers.IPv6
		if e.EthernetType != layers.EthernetTypeIPv6 || len(body) < 40 || body[0]>>4 != 6 || body[6] != 17 || // it does not come back from some extension headers
			ip.DecodeFromBytes(body, &cut) != nil || bool(cut) || !oracleTo(r, e.DstMAC, ip.DstIP) {
			return nil, false
		}
		copy(src.IP[:], ip.SrcIP.To16())
		if src.Is4() || ip.SrcIP.IsUnspecified() || ip.SrcIP.IsLoopback() || ip.SrcIP.IsMulticast() {
			return nil, false
		}
		next, data, pseudo = ip.NextHeader.LayerType(), ip.Payload, body[8:40]
	}
	if s := src.IP[12:]; r.is4 && (string(s) == "\x00\x00\x00\x00" || s[0] == 127 || s[0]>>4 == 14 || string(s) == "\xff\xff\xff\xff") {
		return nil, false
	}
	var u layers.UDP
	if next != layers.LayerTypeUDP || u.DecodeFromBytes(data, &cut) != nil || cut || u.Length == 0 || u.DstPort != layers.UDPPort(r.port) {
		return nil, false
	}
	switch {
	case u.Checksum == 0 && !r.is4 && !r.zero6:
		return nil, false
	case u.Checksum != 0 && plainSum(data[:u.Length], uint32(plainSum(pseudo, 17+uint32(u.Length)))) != 0xffff:
		return nil, false
	}
	return u.Payload, true
}

// oracleTo says whether we are in the place a frame is for.
func oracleTo(r *rules, mac net.HardwareAddr, ip net.IP) bool {
	a := [16]byte(ip.To16())
	return frame.MAC(mac) == r.mac && (a == r.ip || r.groups[a]) || mac[0]&1 == 1 && r.groups[a]
}

// truncated takes note that a decoder wants more bytes than there are.
type truncated bool

func (t *truncated) SetTruncated() { *t = true }
