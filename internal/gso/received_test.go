package gso

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// received are packets of all families, extension headers and options among them.
func received(payload int) map[string]packet {
	all := packets(payload)
	for name, k := range map[string]packet{
		"tcp4 IP options": {ipOptions: routerAl4, tags: 1}, "udp4 IP options": {ipOptions: routerAl4, udp: true},
		"tcp6 hop by hop": {ipOptions: routerAl6, v6: true}, "udp6 hop by hop": {ipOptions: routerAl6, v6: true, udp: true, bare: true},
	} {
		k.payload = pattern(payload)
		all[name] = k
	}
	return all
}

// guessed is what Received makes of a packet whose segments are as g says.
func (k packet) guessed(g frame.GSO) frame.GSO {
	if !k.udp {
		g.Flags |= frame.AnySize
	}
	return g
}

// A packet that fits is one whose checksum is to be finished, and then it is what gopacket writes;
// one that is finished is left alone.
func TestReceived(t *testing.T) {
	for name, k := range received(500) {
		f := k.unfinished()
		if !Pending(f.Bytes(), f.Kind) {
			t.Errorf("%s: not pending", name)
		}
		Received(f, f.Len())
		want := k.super(1).GSO
		want.Type, want.Size, want.DataStart = 0, 0, 0
		if f.GSO != k.guessed(want) {
			t.Fatalf("%s: %+v, want %+v", name, f.GSO, want)
		}
		if r := Check(f); r != frame.NotDropped || f.GSO != want {
			t.Errorf("%s: %v", name, r)
		}
		var c Cutter
		whole := cut(t, &c, nil, f)
		equal(t, whole, [][]byte{k.bytes()})
		summed(t, k, whole[0], gopacketReads(t, k, whole[0], k.payload))

		f = k.plain()
		if Pending(f.Bytes(), f.Kind) && len(k.ipOptions) == 0 {
			t.Errorf("%s: pending, and finished", name)
		}
		if Received(f, 100); f.GSO != (frame.GSO{}) || !bytes.Equal(f.Bytes(), k.bytes()) {
			t.Errorf("%s, finished: %+v", name, f.GSO)
		}
	}
}

// A longer one is a superframe, of TCP and of UDP, whose segments are as long as the MTU; or,
// those of UDP, as somebody has said.
func TestReceivedSuperframe(t *testing.T) {
	const mtu = 1400
	for name, k := range received(5000) {
		for _, told := range []uint16{0, 1000, 4999, 5000, 9000} {
			f := k.unfinished()
			if told != 0 {
				f.GSO = frame.GSO{Type: frame.GSOUDP, Size: told}
			}
			Received(f, mtu)
			size := mtu - k.data()
			if k.udp && told != 0 {
				size = int(told)
			}
			want := k.super(size).GSO
			if size >= 5000 {
				want.Type, want.Size, want.DataStart = 0, 0, 0
			}
			if f.GSO != k.guessed(want) || !bytes.Equal(f.Bytes(), k.super(1).Bytes()) {
				t.Fatalf("%s, %d told: %+v, want %+v", name, told, f.GSO, want)
			}
			if want.Type != 0 && !Superframe(k.unfinished().Bytes(), k.frameKind()) {
				t.Errorf("%s: no superframe", name)
			}
			if r := Check(f); r != frame.NotDropped || f.GSO != want {
				t.Fatalf("%s, %d told: %v %+v", name, told, r, f.GSO)
			}
			var c Cutter
			rest := k.payload
			for _, s := range cut(t, &c, nil, f) {
				part := rest[:min(size, len(rest))]
				summed(t, k, s, gopacketReads(t, k, s, part))
				rest = rest[len(part):]
			}
			if len(rest) != 0 {
				t.Errorf("%s: %d bytes are lost", name, len(rest))
			}
		}
	}
}

// An MTU that leaves no room for a byte makes no superframe.
func TestReceivedNoRoom(t *testing.T) {
	k := packet{payload: pattern(5000)}
	for mtu, want := range map[int]uint16{0: 0, k.data(): 0, k.data() + 1: 1} {
		f := k.unfinished()
		if Received(f, mtu); f.GSO.Size != want || f.GSO.Flags&^frame.AnySize != frame.NeedsCsum {
			t.Errorf("MTU %d: %+v", mtu, f.GSO)
		}
	}
}

// Padding, of a short Ethernet frame or any other, is no part of the packet.
func TestReceivedPadding(t *testing.T) {
	for name, k := range received(3) {
		want := k.unfinished()
		f := over(append(bytes.Clone(want.Bytes()), 1, 2, 3), k.frameKind(), frame.GSO{})
		if Superframe(f.Bytes(), f.Kind) {
			t.Errorf("%s: a superframe with something behind it", name)
		}
		Received(f, 1500)
		if f.GSO.Flags&^frame.AnySize != frame.NeedsCsum || !bytes.Equal(f.Bytes(), want.Bytes()) {
			t.Errorf("%s: %+v % x", name, f.GSO, f.Bytes())
		}
		f = over(append(k.bytes(), 1, 2, 3), k.frameKind(), frame.GSO{})
		if Received(f, 1500); f.GSO != (frame.GSO{}) || f.Len() != len(k.bytes())+3 {
			t.Errorf("%s, finished: %+v", name, f.GSO)
		}
	}
}

// A checksum that is right, and the sum of the pseudo header by chance, is the same once finished.
func TestReceivedByChance(t *testing.T) {
	for name, k := range received(64) {
		at := len(k.bytes()) - 2 // of the last word of the payload
		for w := range 1 << 16 {
			binary.BigEndian.PutUint16(k.payload[62:], uint16(w))
			b := k.bytes()
			if f := over(b, k.frameKind(), frame.GSO{}); w != int(binary.BigEndian.Uint16(b[at:])) {
				t.Fatal("another word")
			} else if !Pending(f.Bytes(), f.Kind) {
				continue
			} else if Received(f, 1500); f.GSO.Flags == 0 {
				continue // options: it was looked at, and is not
			} else {
				var c Cutter
				equal(t, cut(t, &c, nil, f), [][]byte{b})
				at = 0
				break
			}
		}
		if at != 0 {
			t.Errorf("%s: no such packet", name)
		}
	}
}

// Whatever is not TCP or UDP with that sum stays as it is.
func TestNotReceived(t *testing.T) {
	edited := func(k packet, edit func(b []byte)) *frame.Frame {
		f := k.unfinished()
		edit(f.Bytes())
		return f
	}
	all := received(5000)
	tcp4, tcp6, udp4, udp6 := all["tcp4 bare"], all["tcp6 bare"], all["udp4 bare"], all["udp6 bare"]
	long := tcp6
	long.ipOptions = append([]byte{6, 26, 1, 212}, make([]byte, 27*8-4)...)
	tags := all["tcp4 df"]
	tags.tags = 3
	for name, f := range map[string]*frame.Frame{
		"wrong":                 edited(tcp4, func(b []byte) { b[36] ^= 1 }),
		"of UDP wrong":          edited(udp6, func(b []byte) { b[46] ^= 1 }),
		"UDP without":           edited(udp4, func(b []byte) { b[26], b[27] = 0, 0 }),
		"TCP of 0":              edited(tcp6, func(b []byte) { b[56], b[57] = 0, 0 }),
		"first fragment":        edited(tcp4, func(b []byte) { b[6] = 0x20 }),
		"later fragment":        edited(udp4, func(b []byte) { b[7] = 9 }),
		"IPv6 fragment":         edited(all["udp6 hop by hop"], func(b []byte) { b[6] = 44 }),
		"routing header":        edited(all["udp6 hop by hop"], func(b []byte) { b[6] = 43 }),
		"another protocol":      edited(udp4, func(b []byte) { b[9] = 132 }),
		"total length too long": edited(tcp4, func(b []byte) { b[2]++ }),
		"total length of less":  edited(tcp4, func(b []byte) { b[2], b[3] = 0, 39 }),
		"total length of 0":     edited(tcp4, func(b []byte) { b[2], b[3] = 0, 0 }),
		"payload too long":      edited(tcp6, func(b []byte) { b[4]++ }),
		"payload of 0":          edited(tcp6, func(b []byte) { b[4], b[5] = 0, 0 }),
		"UDP length too long":   edited(udp4, func(b []byte) { b[25]++ }),
		"UDP length too short":  edited(udp6, func(b []byte) { b[45]-- }),
		"TCP header too long":   edited(packet{bare: true}, func(b []byte) { b[32] = 0xf0 }),
		"TCP header too short":  edited(tcp4, func(b []byte) { b[32] = 0x40 }),
		"IP header too long":    edited(packet{bare: true, payload: pattern(4)}, func(b []byte) { b[0] = 0x4f }),
		"IP header too short":   edited(tcp4, func(b []byte) { b[0] = 0x44 }),
		"version":               edited(tcp4, func(b []byte) { b[0] = 0x65 }),
		"headers too long":      long.unfinished(),
		"three tags":            tags.unfinished(),
		"LLC":                   edited(all["tcp4"], func(b []byte) { b[12], b[13] = 1, 2 }),
		"nothing":               over(nil, frame.Ethernet, frame.GSO{}),
		"another kind":          func() *frame.Frame { f := tcp4.unfinished(); f.Kind = frame.IPv6; return f }(),
	} {
		was := bytes.Clone(f.Bytes())
		if Received(f, 1400); f.GSO != (frame.GSO{}) || !bytes.Equal(f.Bytes(), was) {
			t.Errorf("%s: %+v", name, f.GSO)
		}
		if Superframe(was, f.Kind) {
			t.Errorf("%s: a superframe", name)
		}
		for n := range was[:min(len(was), 90)] { // cut short anywhere
			g := over(was[:n], f.Kind, frame.GSO{})
			Pending(g.Bytes(), g.Kind)
			if Received(g, 1400); g.GSO != (frame.GSO{}) || g.Len() != n {
				t.Fatalf("%s, %d bytes: %+v", name, n, g.GSO)
			}
		}
	}
	// Segments would get a right one.
	for _, f := range []*frame.Frame{edited(tcp4, func(b []byte) { b[10] ^= 1 }), edited(udp4, func(b []byte) { b[11] ^= 1 })} {
		if Superframe(f.Bytes(), f.Kind) {
			t.Error("a superframe with a wrong header checksum")
		}
		if Received(f, 1400); f.GSO.Type != 0 || f.GSO.Flags&^frame.AnySize != frame.NeedsCsum {
			t.Errorf("wrong header checksum: %+v", f.GSO)
		}
	}
	b := append(make([]byte, 0xffff), tcp4.unfinished().Bytes()...)
	f := frame.Over(b, 0xffff, len(b))
	f.Kind = frame.IPv4
	if Received(&f, 1400); f.GSO != (frame.GSO{}) {
		t.Errorf("beyond what offsets say: %+v", f.GSO)
	}
}

// Pending misses nothing that Received takes, and of finished packets sees few.
func TestPending(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 1))
	seen, n := 0, 20000
	for range n {
		k := randomPacket(r, 1+r.IntN(40))
		b := k.bytes()
		for i := range 8 { // addresses, so that sums differ
			b[k.l3()+12+i] = byte(r.Uint32())
		}
		refChecksums(b, k.l3(), k.l4(), !k.v6, map[bool]byte{true: 17, false: 6}[k.udp])
		f := over(b, k.frameKind(), frame.GSO{})
		if Pending(f.Bytes(), f.Kind) {
			seen++
		}
		pseudo := ^refPseudo(b, k.l3(), k.l4(), !k.v6, nil)
		binary.BigEndian.PutUint16(b[k.l4()+int(k.gso(1).CsumOffset):], pseudo)
		f = over(b, k.frameKind(), frame.GSO{})
		if !Pending(f.Bytes(), f.Kind) {
			t.Fatalf("not pending: % x", b)
		}
		if Received(f, 1500); f.GSO.Flags&^frame.AnySize != frame.NeedsCsum {
			t.Fatalf("%+v of % x", f.GSO, b)
		}
	}
	if seen > 20 {
		t.Errorf("%d of %d finished packets look pending", seen, n)
	}
}

// Anything at all, out of a stranger's datagram: Pending misses nothing that Received takes; what
// that takes Check would let through, and its segments have right checksums and all of the payload;
// what it does not take is as it was.
func FuzzReceived(f *testing.F) {
	for _, k := range received(300) {
		f.Add(k.plain().Bytes(), uint8(k.frameKind()), uint16(200), uint16(0), uint8(0))
		f.Add(k.unfinished().Bytes(), uint8(k.frameKind()), uint16(200), uint16(70), uint8(64))
		f.Add(append(k.unfinished().Bytes(), 0), uint8(k.frameKind()), uint16(1000), uint16(0), uint8(0))
	}
	f.Fuzz(func(t *testing.T, b []byte, kind uint8, mtu, told uint16, headroom uint8) {
		buf := append(make([]byte, headroom), b...)
		g := frame.Over(buf, int(headroom), len(buf))
		g.Kind = frame.Kind(kind)
		if told != 0 {
			g.GSO = frame.GSO{Type: frame.GSOUDP, Size: told}
		}
		pending, whole := Pending(b, g.Kind), Superframe(b, g.Kind)
		Received(&g, int(mtu))
		if !bytes.Equal(buf[headroom:], b) {
			t.Fatal("written to")
		}
		if g.GSO == (frame.GSO{}) {
			if g.Len() != len(b) || whole {
				t.Fatalf("cut to %d bytes, a superframe %v", g.Len(), whole)
			}
			return
		}
		if !pending || whole && g.Len() != len(b) {
			t.Fatalf("pending %v, %d of %d bytes: %+v", pending, g.Len(), len(b), g.GSO)
		}
		g.GSO.Flags &^= frame.AnySize // which no device has
		was := g.GSO
		if r := Check(&g); r != frame.NotDropped || g.GSO != was {
			t.Fatalf("%v, %+v, was %+v", r, g.GSO, was)
		}
		if told == 0 && was.Type != 0 && g.SegLen() > int(mtu) {
			t.Fatalf("segments of %d bytes, MTU %d", g.SegLen(), mtu)
		}
		var c Cutter
		var payload []byte
		at := int(was.CsumStart) - int(headroom)
		l3, is4 := refLayout(b, g.Kind)
		data := at + int(was.CsumOffset) + 2
		if was.Type != 0 {
			data = int(was.DataStart) - int(headroom)
		}
		proto := map[uint16]byte{16: 6, 6: 17}[was.CsumOffset]
		for _, s := range cut(t, &c, nil, &g) {
			payload = append(payload, s[data:]...)
			pseudo := append(bytes.Clone(s[l3+12:l3+20]), 0, proto, byte((len(s)-at)>>8), byte(len(s)-at))
			if !is4 {
				pseudo = append(bytes.Clone(s[l3+8:l3+40]), 0, proto, byte((len(s)-at)>>8), byte(len(s)-at))
			}
			if refSum(append(pseudo, s[at:]...)) != 0 {
				t.Fatalf("checksum of % x", s)
			}
		}
		if !bytes.Equal(payload, g.Bytes()[data:]) {
			t.Fatal("the payload is another")
		}
	})
}

// Segments of TCP of which nobody has said how long they are become shorter, be the packet one or
// many, and stay what gopacket writes; others do not.
func TestShorten(t *testing.T) {
	for name, k := range received(2000) {
		for _, mtu := range []int{9000, 1500} { // one frame, and a superframe
			f := k.unfinished()
			Received(f, mtu)
			was := f.GSO
			if got := Shorten(f, 1000); got == k.udp {
				t.Fatalf("%s: %v", name, got)
			}
			if k.udp {
				if f.GSO != was {
					t.Errorf("%s: %+v", name, f.GSO)
				}
				continue
			}
			if want := k.guessed(k.super(1000 - k.data()).GSO); f.GSO != want || f.SegLen() != 1000 {
				t.Fatalf("%s: %+v, want %+v", name, f.GSO, want)
			}
			if Shorten(f, k.data()+minSegment-1) || !Shorten(f, k.data()+minSegment) {
				t.Errorf("%s: segments without an end, %+v", name, f.GSO)
			}
			g := k.super(1400)
			if Shorten(g, 1000) || g.SegLen() != k.data()+1400 {
				t.Errorf("%s: a length that somebody has said", name)
			}
		}
	}
}
