package l3

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// FuzzFragments: whatever IPv4 packet a wire or a gateway has to cut, the pieces fit, their
// headers are right, and what a host puts together out of them is the packet.
func FuzzFragments(f *testing.F) {
	for _, n := range []int{9, 64, 1500, 9000} {
		s := between(false, 1, 4)
		s.df, s.payload = false, n
		f.Add(s.bytes(f)[14:], uint16(600), false)
		f.Add(s.bytes(f)[14:], uint16(68), true)
	}
	s := between(false, 1, 4)
	s.df, s.payload = false, 200
	last := s.bytes(f)[14:]
	last[6], last[7] = 0x1f, 0xff // the last fragment there may be, and too long for it
	f.Add(last, uint16(100), true)
	l := newWireLab(f)
	g := newLab(f, nil)
	f.Fuzz(func(t *testing.T, b []byte, mtu uint16, routed bool) {
		p, ok := wire.ParseIPv4(b)
		if !ok || p.DF() || int(mtu) >= len(b) {
			return
		}
		p.SetChecksum(0)
		p.SetChecksum(wire.Checksum(wire.Sum(p[:p.HeaderLen()], 0)))
		l.sent, g.injected = nil, nil
		x := frame.Make(b)
		at, most := frame.At{MTU: int(mtu), To: far}, int(mtu)
		ip, v := 0, frame.Continue
		if routed {
			ip = 14
			x = frame.Make(append([]byte{2, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0, 1, 8, 0}, b...))
			x.VNI, at.MTU, at.To = 20, int(mtu)+14, frame.NewDest(3, 0)
			v = g.i20.PathMTU().Process(&x, at)
		} else {
			x.Kind, x.From, x.VNI = frame.IPv4, near, 100
			v = l.PathMTU().Process(&x, at)
		}
		sent := slices.Concat(l.sent, g.injected)
		if v != frame.Consume {
			check.Need(t, v.Action() == frame.ActDrop && len(sent) == 0, "%v, %d pieces", v, len(sent))
			return
		}
		// A host puts them together by offset and MF (RFC 791, section 3.2).
		field := binary.BigEndian.Uint16(p[6:])
		next, whole := int(field&0x1fff)*8, []byte(nil)
		for i, y := range sent {
			q, ok := wire.ParseIPv4(y.f.Bytes()[ip:])
			if !ok || len(q) > most || len(y.f.Bytes()) != ip+len(q) || !q.ChecksumOK() || y.to != at.To || y.f.GSO != (frame.GSO{}) {
				t.Fatalf("piece %d of %d: % x", i, len(sent), y.f.Bytes())
			}
			mf := binary.BigEndian.Uint16(q[6:])
			more := i < len(sent)-1 || field&moreFragments != 0
			if q.FragmentOffset() != next || (mf&moreFragments != 0) != more || mf&0xc000 != field&0xc000 {
				t.Fatalf("piece %d of %d: offset %d, want %d; flags %#x of %#x", i, len(sent), q.FragmentOffset(), next, mf, field)
			}
			if i < len(sent)-1 && len(q.Payload())%8 != 0 {
				t.Fatalf("piece %d of %d: %d bytes", i, len(sent), len(q.Payload()))
			}
			if q.Src() != p.Src() || q.Dst() != p.Dst() || q.ID() != p.ID() || q.Protocol() != p.Protocol() || q[8] != p[8] || q[1] != p[1] {
				t.Fatalf("piece %d of %d: % x", i, len(sent), q)
			}
			whole, next = append(whole, q.Payload()...), next+len(q.Payload())
		}
		if !bytes.Equal(whole, p.Payload()) {
			t.Fatalf("%d bytes came out as %d", len(p.Payload()), len(whole))
		}
	})
}
