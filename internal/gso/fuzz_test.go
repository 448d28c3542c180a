package gso

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// seeds adds the packets of the table tests.
func seeds(add func(k packet)) {
	for _, k := range packets(300) {
		add(k)
	}
	add(packet{ipOptions: routerAl4, payload: pattern(300)})
	add(packet{ipOptions: routerAl6, v6: true, payload: pattern(300)})
}

// A device that lies about any packet: what Check lets through can be cut, and no byte of
// the payload is lost; what it refuses is not cut.
func FuzzCheck(f *testing.F) {
	seeds(func(k packet) {
		g := k.gso(100)
		f.Add(k.super(100).Bytes(), byte(k.frameKind()), g.Flags, byte(g.Type), g.Size, g.CsumStart+10, g.CsumOffset, byte(10))
	})
	f.Fuzz(func(t *testing.T, p []byte, kind, flags, typ byte, size, start, offset uint16, headroom byte) {
		buf := append(make([]byte, headroom), p...)
		fr := frame.Over(buf, int(headroom), len(buf))
		fr.Kind = frame.Kind(kind)
		fr.GSO = frame.GSO{Flags: flags, Type: frame.GSOType(typ), Size: size, CsumStart: start, CsumOffset: offset}
		told := fr
		if Check(&fr) != frame.NotDropped {
			var c Cutter
			told.GSO.Flags &= frame.NeedsCsum
			if parts, _ := c.Cut(nil, nil, &told); len(parts) != 0 {
				t.Fatal("refused, and cut")
			}
			return
		}
		again := fr
		if Check(&again) != frame.NotDropped || again.GSO.Type != fr.GSO.Type || again.GSO.Flags != fr.GSO.Flags {
			t.Fatalf("%+v, and a second time %+v", fr.GSO, again.GSO)
		}
		var c Cutter
		segments := cut(t, &c, []byte("prefix"), &fr)
		if fr.GSO.Type == frame.GSONone {
			if len(segments) != 1 || len(segments[0]) != len(p) {
				t.Fatalf("%d segments of one", len(segments))
			}
			return
		}
		g := fr.GSO
		g.CsumStart -= uint16(headroom)
		g.DataStart -= uint16(headroom)
		if len(segments) < 2 || len(segments[0]) != fr.SegLen() {
			t.Fatalf("%d segments, the first is %d bytes, SegLen %d", len(segments), len(segments[0]), fr.SegLen())
		}
		var payload []byte
		for _, s := range segments {
			payload = append(payload, s[g.DataStart:]...)
		}
		if !bytes.Equal(payload, p[g.DataStart:]) {
			t.Fatal("the payload is another")
		}
	})
}

// Superframes of all families, cut as the reference cuts them, and joined again.
func FuzzCut(f *testing.F) {
	seeds(func(k packet) { f.Add(k.payload, k.bare, k.tags, k.v6, k.udp, k.id, k.seq, k.flags, uint16(100)) })
	f.Fuzz(func(t *testing.T, payload []byte, bare bool, tags int, v6, udp bool, id uint16, seq uint32, flags byte, size uint16) {
		k := packet{bare: bare, tags: tags & 1, v6: v6, udp: udp, id: id, seq: seq, flags: flags &^ (syn | rst | urg), payload: payload}
		if bare {
			k.tags = 0
		}
		if len(payload) > 60000 || size == 0 || len(payload) <= int(size) {
			return
		}
		fr := k.super(int(size))
		if r := Check(fr); r != frame.NotDropped {
			t.Fatal(r)
		}
		var c Cutter
		segments := cut(t, &c, nil, fr)
		equal(t, segments, refCut(fr.Bytes(), fr.Kind, k.gso(int(size))))

		if flags&cwr != 0 && !udp || len(segments) > joinMax {
			return
		}
		j := Joiner{UDP: true}
		n, g, parts := j.Join(outs(fr.Kind, segments...))
		if n != len(segments) || g != k.gso(int(size)) || !bytes.Equal(flat(parts), fr.Bytes()) {
			t.Fatalf("%d of %d joined, %+v", n, len(segments), g)
		}
	})
}

// Two streams of segments with any byte of any frame changed: the reference joins as many,
// and what is joined is what went in.
func FuzzJoin(f *testing.F) {
	seeds(func(k packet) {
		f.Add(k.super(300).Bytes(), byte(k.frameKind()), uint16(100), uint16(400), byte(0), true, false)
	})
	f.Fuzz(func(t *testing.T, p []byte, kind byte, size, at uint16, flip byte, udp, right bool) {
		fr := over(bytes.Clone(p), frame.Kind(kind%3), frame.GSO{})
		h, ok := locate(p, fr.Kind)
		if !ok || size == 0 || len(p)-h.data > 40*int(size) {
			j := Joiner{UDP: udp}
			if n, _, parts := j.Join([]frame.Out{{F: fr}, {F: fr}}); n != 1 && !ok || len(parts) == 0 {
				t.Fatal(n)
			}
			return
		}
		fr.GSO = frame.GSO{Flags: frame.NeedsCsum, Type: h.gsoType(), Size: size, CsumStart: uint16(h.l4), CsumOffset: uint16(h.csumOffset()), DataStart: uint16(h.data)}
		segments := refCut(p, fr.Kind, fr.GSO)
		if len(segments) == 0 {
			return
		}
		s := segments[int(at)%len(segments)]
		s[int(at)%len(s)] ^= flip
		if l3, is4 := refLayout(p, fr.Kind); right && l3 == h.l3 && is4 == h.is4 {
			refChecksums(s, h.l3, h.l4, h.is4, h.proto)
		}
		j := Joiner{UDP: udp}
		for rest := outs(fr.Kind, segments...); len(rest) > 0; {
			n, g, parts := j.Join(rest)
			if want := refJoin(rest, udp); n != want {
				t.Fatalf("%d are joined, want %d of %d", n, want, len(rest))
			}
			joinedIsWhole(t, rest[:n], g, parts)
			rest = rest[n:]
		}
	})
}
