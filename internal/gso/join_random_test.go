package gso

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// Streams with accidents, against the reference, until every frame is out.
func TestJoinRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 11))
	joined := 0
	for range 3000 {
		k := randomPacket(r, 1+r.IntN(1000))
		k.flags &^= cwr
		size := 1 + r.IntN(400)
		out := stream(k, size)
		if r.IntN(2) == 0 {
			k.seq += uint32(len(k.payload))
			k.id += uint16(len(out))
			k.payload = pattern(1 + r.IntN(1000))
			out = append(out, stream(k, size)...)
		}
		for range r.IntN(4) {
			o := &out[r.IntN(len(out))]
			b := o.F.Bytes()
			switch r.IntN(5) {
			case 0:
				o.Peer = uint16(r.IntN(2))
			case 1:
				i := r.IntN(len(out))
				out[i], *o = *o, out[i]
			default:
				b[r.IntN(min(len(b), k.data()+5))] ^= 1 << r.IntN(8)
				if r.IntN(2) == 0 {
					fix(b, k)
				}
			}
		}
		j := Joiner{UDP: r.IntN(4) > 0}
		for rest := out; len(rest) > 0; {
			n, g, parts := j.Join(rest)
			if want := refJoin(rest, j.UDP); n != want {
				t.Fatalf("%d are joined, want %d of %d: %+v", n, want, len(rest), k)
			}
			joinedIsWhole(t, rest[:n], g, parts)
			if n > 1 {
				joined++
			}
			rest = rest[n:]
		}
	}
	if joined < 1000 {
		t.Errorf("only %d joins were tried", joined)
	}
}

// joinedIsWhole compares what the reference cuts out of a superframe with what went into
// it; identifications under DF aside.
func joinedIsWhole(t testing.TB, out []frame.Out, g frame.GSO, parts [][]byte) {
	t.Helper()
	p := bytes.Clone(flat(parts))
	if len(out) == 1 {
		if !bytes.Equal(p, out[0].F.Bytes()) {
			t.Fatal("a frame that is alone was changed")
		}
		return
	}
	kind := out[0].F.Kind
	f := over(bytes.Clone(p), kind, g)
	if r := Check(f); r != frame.NotDropped || f.GSO.Type != g.Type {
		t.Fatalf("a joined frame is refused: %v, %+v", r, g)
	}
	l3, is4 := refLayout(p, kind)
	if is4 && refSum(p[l3:g.CsumStart]) != 0 {
		t.Fatal("IP header checksum")
	}
	sum := ^refPseudo(p, l3, int(g.CsumStart), is4, nil)
	if got := binary.BigEndian.Uint16(p[g.CsumStart+g.CsumOffset:]); got != sum {
		t.Fatalf("the checksum is %#x, want the sum of the pseudo header %#x", got, sum)
	}
	segments := refCut(p, kind, g)
	if len(segments) != len(out) {
		t.Fatalf("%d segments of %d frames", len(segments), len(out))
	}
	for i, s := range segments {
		b := bytes.Clone(out[i].F.Bytes())
		if is4 && b[l3+6]&0x40 != 0 {
			copy(b[l3+4:], s[l3+4:l3+6])
			copy(b[l3+10:], s[l3+10:l3+12])
		}
		if !bytes.Equal(s, b) {
			t.Fatalf("segment %d:\n% x, was\n% x", i, s, b)
		}
	}
}
