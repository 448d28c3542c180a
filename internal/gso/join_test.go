package gso

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// stream is the segments of a packet, on their way out.
func stream(k packet, size int) []frame.Out {
	f := k.super(size)
	return outs(k.frameKind(), refCut(f.Bytes(), f.Kind, k.gso(size))...)
}

func flat(parts [][]byte) []byte { return bytes.Join(parts, nil) }

// fix makes the checksums of a changed packet right again.
func fix(p []byte, k packet) {
	proto := byte(6)
	if k.udp {
		proto = 17
	}
	refChecksums(p, k.l3(), k.l4(), !k.v6, proto)
}

func TestJoin(t *testing.T) {
	for name, k := range packets(3000) {
		for _, size := range []int{100, 1000, 1448, 2999} {
			out := stream(k, size)
			want := k.super(size).Bytes()
			before := make([][]byte, len(out))
			for i, o := range out {
				before[i] = bytes.Clone(o.F.Bytes())
			}
			j := Joiner{UDP: true}
			n, g, parts := j.Join(out)
			if n != len(out) || g != k.gso(size) || !bytes.Equal(flat(parts), want) {
				t.Fatalf("%s in %d: %d of %d, %+v, want %+v\n% x, want\n% x", name, size, n, len(out), g, k.gso(size), flat(parts)[:100], want[:100])
			}
			if len(parts) != n+1 {
				t.Fatalf("%s: %d pieces of %d frames", name, len(parts), n)
			}
			for i, o := range out {
				if &parts[i+1][0] != &o.F.Bytes()[k.data()] {
					t.Fatalf("%s: payload %d is a copy", name, i)
				}
				if !bytes.Equal(o.F.Bytes(), before[i]) {
					t.Fatalf("%s: frame %d was written to", name, i)
				}
			}
			var c Cutter
			equal(t, cut(t, &c, nil, over(flat(parts), k.frameKind(), g)), before)
		}
	}
}

// How many of a stream are joined when one of its frames is not like the others. The
// change is made to frame 2 of 5, with right checksums unless it is about those.
func TestJoinStops(t *testing.T) {
	tcp4 := packet{payload: pattern(500), seq: 0xffffff00, tcpOptions: timestamps}
	tcp6, udp4 := tcp4, packet{udp: true, payload: pattern(500), df: true}
	tcp6.v6 = true
	udp6 := udp4
	udp6.v6 = true
	df := tcp4
	df.df = true
	set := func(at int, v byte) func(o *frame.Out, k packet) {
		return func(o *frame.Out, k packet) {
			o.F.Bytes()[at] = v
			fix(o.F.Bytes(), k)
		}
	}
	flip := func(at int, v byte) func(o *frame.Out, k packet) {
		return func(o *frame.Out, k packet) {
			o.F.Bytes()[at] ^= v
			fix(o.F.Bytes(), k)
		}
	}
	shorter := func(o *frame.Out, k packet) {
		k.payload = k.payload[200:299]
		k.seq += 200
		k.id += 2
		*o = outs(k.frameKind(), k.bytes())[0]
	}
	raw := func(at int) func(o *frame.Out, k packet) {
		return func(o *frame.Out, k packet) { o.F.Bytes()[at] ^= 1 }
	}
	dataless := func(o *frame.Out, k packet) {
		k.payload = nil
		k.seq += 200
		k.id += 2
		*o = outs(k.frameKind(), k.bytes())[0]
	}
	cut := func(o *frame.Out, k packet) { o.F.Trim(20) }
	pad := func(o *frame.Out, k packet) {
		*o = outs(k.frameKind(), append(o.F.Bytes(), 0, 0))[0]
	}
	for _, c := range []struct {
		name   string
		k      packet
		change func(o *frame.Out, k packet)
		want   int
	}{
		{"nothing", tcp4, func(*frame.Out, packet) {}, 5},
		{"nothing", tcp6, func(*frame.Out, packet) {}, 5},
		{"nothing", udp4, func(*frame.Out, packet) {}, 5},
		{"nothing", udp6, func(*frame.Out, packet) {}, 5},
		{"destination MAC", tcp4, set(5, 9), 2},
		{"source MAC", tcp4, set(11, 9), 2},
		{"EtherType", tcp4, set(13, 6), 2},
		{"TOS", tcp4, flip(15, 4), 2},
		{"CE mark", tcp4, flip(15, 1), 2},
		{"identification", tcp4, flip(19, 1), 2},
		{"identification, DF", df, flip(19, 1), 5},
		{"DF", tcp4, flip(20, 0x40), 2},
		{"more fragments", tcp4, flip(20, 0x20), 2},
		{"fragment offset", tcp4, flip(21, 1), 2},
		{"TTL", tcp4, flip(22, 1), 2},
		{"protocol", tcp4, flip(23, 1), 2},
		{"source", tcp4, flip(29, 1), 2},
		{"destination", tcp4, flip(33, 1), 2},
		{"source port", tcp4, flip(35, 1), 2},
		{"destination port", tcp4, flip(37, 1), 2},
		{"sequence", tcp4, flip(41, 1), 2},
		{"acknowledgement", tcp4, flip(45, 1), 2},
		{"reserved bit", tcp4, flip(46, 1), 2},
		{"header length", tcp4, set(46, 0x70), 2},
		{"FIN", tcp4, flip(47, fin), 3},
		{"SYN", tcp4, flip(47, syn), 2},
		{"RST", tcp4, flip(47, rst), 2},
		{"PSH", tcp4, flip(47, psh), 3},
		{"no ACK", tcp4, flip(47, ack), 2},
		{"URG", tcp4, flip(47, urg), 2},
		{"ECE", tcp4, flip(47, ece), 2},
		{"CWR", tcp4, flip(47, cwr), 2},
		{"window", tcp4, flip(49, 1), 2},
		{"urgent pointer", tcp4, flip(53, 1), 2},
		{"option", tcp4, flip(60, 1), 2},
		{"payload", tcp4, flip(80, 1), 5},
		{"shorter", tcp4, shorter, 3},
		{"no payload", tcp4, dataless, 2},
		{"short", tcp4, cut, 2},
		{"padding", tcp4, pad, 2},
		{"IP checksum", tcp4, raw(24), 2},
		{"checksum", tcp4, raw(50), 2},
		{"payload checksum", tcp4, raw(80), 2},
		{"peer", tcp4, func(o *frame.Out, _ packet) { o.Peer = 1 }, 2},
		{"skip", tcp4, func(o *frame.Out, _ packet) { o.Skip = 1 }, 2},
		{"tag", tcp4, func(o *frame.Out, _ packet) { o.Tag = 1 }, 2},
		{"priority", tcp4, func(o *frame.Out, _ packet) { o.F.Priority = 1 }, 2},
		{"drop", tcp4, func(o *frame.Out, _ packet) { o.Drop = frame.TooBig }, 2},
		{"GSO", tcp4, func(o *frame.Out, _ packet) { o.F.GSO.Flags = frame.NeedsCsum }, 2},
		{"kind", tcp4, func(o *frame.Out, _ packet) { o.F.Kind = frame.IPv4 }, 2},
		{"traffic class", tcp6, flip(15, 0x10), 2},
		{"flow label", tcp6, flip(17, 1), 2},
		{"next header", tcp6, flip(20, 1), 2},
		{"hop limit", tcp6, flip(21, 1), 2},
		{"source", tcp6, flip(37, 1), 2},
		{"destination", tcp6, flip(53, 1), 2},
		{"shorter", tcp6, shorter, 3},
		{"padding", tcp6, pad, 2},
		{"checksum", tcp6, raw(90), 2},
		{"source port", udp4, flip(35, 1), 2},
		{"destination port", udp4, flip(37, 1), 2},
		{"length", udp4, flip(39, 1), 2},
		{"shorter", udp4, shorter, 3},
		{"no payload", udp4, dataless, 2},
		{"short", udp4, cut, 2},
		{"identification, DF", udp4, flip(19, 1), 5},
		{"DF", udp4, flip(20, 0x40), 2},
		{"no checksum", udp4, func(o *frame.Out, _ packet) { copy(o.F.Bytes()[40:], []byte{0, 0}) }, 2},
		{"checksum", udp4, raw(50), 2},
		{"checksum", udp6, raw(70), 2},
	} {
		out := stream(c.k, 100)
		c.change(&out[2], c.k)
		j := Joiner{UDP: true}
		n, _, _ := j.Join(out)
		if n != c.want || refJoin(out, true) != n {
			t.Errorf("%s: %d are joined, want %d", c.name, n, c.want)
		}
		// Whatever ended it is not lost, nor changed.
		for rest := out[n:]; len(rest) > 0; rest = rest[n:] {
			var parts [][]byte
			n, _, parts = j.Join(rest)
			if n < 1 || n == 1 && !bytes.Equal(flat(parts), rest[0].F.Bytes()) {
				t.Errorf("%s: %d", c.name, n)
			}
		}
	}
}

// A first frame that nothing may be joined to.
func TestJoinAlone(t *testing.T) {
	k := packet{payload: pattern(300)}
	u := packet{udp: true, payload: pattern(300)}
	for _, c := range []struct {
		name string
		k    packet
		out  []frame.Out
	}{
		{"one", k, stream(k, 300)},
		{"UDP off", u, stream(u, 100)},
		{"IP options", k, stream(packet{ipOptions: routerAl4, payload: pattern(300)}, 100)},
		{"extension header", k, stream(packet{ipOptions: routerAl6, v6: true, payload: pattern(300)}, 100)},
		{"pure acknowledgements", k, outs(frame.Ethernet, packet{}.bytes(), packet{}.bytes())},
		{"short", k, outs(frame.Ethernet, []byte{1}, []byte{1})},
		{"empty", k, outs(frame.Ethernet, nil, nil)},
		{"no such kind", k, outs(77, k.bytes(), k.bytes())},
		{"longer after shorter", k, func() []frame.Out {
			o := stream(k, 100)
			return append(stream(packet{payload: pattern(50), seq: ^uint32(49), id: 0xffff}, 50), o...)
		}()},
		{"wrong checksum", k, func() []frame.Out { o := stream(k, 100); o[0].F.Bytes()[60] ^= 1; return o }()},
		{"wrong IP checksum", k, func() []frame.Out { o := stream(k, 100); o[0].F.Bytes()[24] ^= 1; return o }()},
		{"PSH", k, func() []frame.Out {
			o := stream(k, 100)
			o[0].F.Bytes()[47] |= psh
			fix(o[0].F.Bytes(), k)
			return o
		}()},
		{"drop", k, func() []frame.Out { o := stream(k, 100); o[0].Drop = frame.TooBig; return o }()},
	} {
		var j Joiner
		n, g, parts := j.Join(c.out)
		if n != 1 || g != (frame.GSO{}) || len(parts) != 1 || !bytes.Equal(parts[0], c.out[0].F.Bytes()) {
			t.Errorf("%s: %d, %+v", c.name, n, g)
		}
		if b := c.out[0].F.Bytes(); len(b) > 0 && &parts[0][0] != &b[0] {
			t.Errorf("%s: a copy", c.name)
		}
	}
	var j Joiner
	if n, g, parts := j.Join(nil); n != 0 || g != (frame.GSO{}) || parts != nil {
		t.Error("nothing")
	}
}

// Flags that are the same in all segments and that Cut would not give back, or that want
// to be seen one by one.
func TestJoinFlags(t *testing.T) {
	for flags, want := range map[byte]int{ack: 3, ack | ece: 3, 0: 1, ack | syn: 1, ack | rst: 1, ack | urg: 1, ack | cwr: 1} {
		k := packet{payload: pattern(300)}
		out := stream(k, 100)
		for _, o := range out {
			o.F.Bytes()[47] = flags
			fix(o.F.Bytes(), k)
		}
		var j Joiner
		if n, _, _ := j.Join(out); n != want || n != refJoin(out, false) {
			t.Errorf("flags %#x: %d are joined, want %d", flags, n, want)
		}
	}
}

// A datagram that has no checksum, and whose sum happens to be what 0 verifies, would get
// one by joining.
func TestJoinNoChecksum(t *testing.T) {
	for none := range 2 {
		k := packet{udp: true, df: true, payload: make([]byte, 4)}
		b := k.bytes()
		copy(k.payload[2:], b[k.l4()+6:k.l4()+8])
		out := outs(frame.Ethernet, k.bytes(), k.bytes())
		j := Joiner{UDP: true}
		if n, _, _ := j.Join(out); n != 2 {
			t.Fatalf("%d are joined", n)
		}
		copy(out[none].F.Bytes()[k.l4()+6:], []byte{0, 0})
		if n, _, _ := j.Join(out); n != 1 || n != refJoin(out, true) {
			t.Errorf("datagram %d has no checksum: %d are joined", none, n)
		}
	}
}

// A superframe passes, and so does a frame that NeedsCsum; their offsets then count from
// the start of the packet.
func TestJoinOwnGSO(t *testing.T) {
	k := packet{payload: pattern(300)}
	out := []frame.Out{{F: k.super(100)}, {F: k.super(100)}}
	var j Joiner
	n, g, parts := j.Join(out)
	if n != 1 || g != k.gso(100) || !bytes.Equal(flat(parts), k.super(100).Bytes()) {
		t.Errorf("%d, %+v", n, g)
	}
	f := k.super(300)
	f.GSO = frame.GSO{Flags: frame.NeedsCsum, CsumStart: f.GSO.CsumStart, CsumOffset: 16}
	n, g, _ = j.Join([]frame.Out{{F: f}, {F: f}})
	if n != 1 || g != (frame.GSO{Flags: frame.NeedsCsum, CsumStart: 34, CsumOffset: 16}) {
		t.Errorf("%d, %+v", n, g)
	}
}

func TestJoinLimits(t *testing.T) {
	k := packet{payload: pattern(60000)}
	var out []frame.Out
	for i := range 200 {
		s := k
		s.seq, s.id, s.payload = uint32(10*i), uint16(i), k.payload[:10]
		out = append(out, outs(frame.Ethernet, s.bytes())...)
	}
	var j Joiner
	if n, _, parts := j.Join(out); n != joinMax || len(parts) != joinMax+1 {
		t.Errorf("%d segments", n)
	}
	for _, v6 := range []bool{false, true} {
		out = out[:0]
		s := packet{v6: v6}
		for i := range 50 {
			s.seq, s.id, s.payload = uint32(1448*i), uint16(i), k.payload[:1448]
			out = append(out, outs(frame.Ethernet, s.bytes())...)
		}
		n, g, parts := j.Join(out)
		if ip := len(flat(parts)) - 14; n != 45 || ip > 65535 || ip+1448 <= 65535 || n != refJoin(out, false) {
			t.Errorf("%d segments, %d bytes of IP", n, ip)
		}
		f := over(flat(parts), frame.Ethernet, g)
		if r := Check(f); r != frame.NotDropped {
			t.Error(r)
		}
	}
	// To the byte: 40 of headers and 65495 of payload are 65535.
	for last, want := range map[int]int{32747: 2, 32748: 1} {
		a := packet{bare: true, payload: k.payload[:32748]}
		b := packet{bare: true, payload: k.payload[:last], seq: 32748, id: 1}
		out := outs(frame.IPv4, a.bytes(), b.bytes())
		if n, _, _ := j.Join(out); n != want || n != refJoin(out, false) {
			t.Errorf("32748 and %d bytes: %d are joined", last, n)
		}
	}
}
