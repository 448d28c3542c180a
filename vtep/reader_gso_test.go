package vtep

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// What an underlay was told about the inner frame, which it cannot check, is checked when that
// is unwrapped: the frame is a superframe, or has a checksum to be completed; or it is refused.
func TestReaderInnerOffloads(t *testing.T) {
	whole := super(t, 3000, 1000)
	data := vx(vni, whole.Bytes())
	right := whole.GSO.Moved(8 - whole.Headroom())
	right.DataStart = 0
	for _, x := range []struct {
		name   string
		change func(g *frame.GSO)
		drop   frame.Reason
	}{
		{"superframe", func(*frame.GSO) {}, 0},
		{"checksum only", func(g *frame.GSO) { g.Type, g.Size = 0, 0 }, 0},
		{"in the VXLAN header", func(g *frame.GSO) { g.CsumStart = 4 }, frame.BadHeader},
		{"another kind", func(g *frame.GSO) { g.Type = frame.GSOTCP6 }, frame.BadHeader},
		{"behind the end", func(g *frame.GSO) { g.CsumStart = uint16(len(data)) - 1 }, frame.BadHeader},
		{"checksum only, in front", func(g *frame.GSO) { *g = frame.GSO{Flags: frame.NeedsCsum, CsumStart: 2} }, frame.BadHeader},
	} {
		u := fake4()
		v := newVTEP(t, nil, u)
		check.OK(t, v.Control().Open(vni))
		g := right
		x.change(&g)
		e := check.Must(frame.EndpointFrom(at(1)))(t)
		u.in = []packetIn{{src: e, data: data, gso: g}}
		b := frame.NewBatch(nil)
		check.OK(t, v.Readers()[0].Read(b))
		f := &b.Frames[0]
		check.Equal(t, x.name, f.Drop, x.drop)
		if x.drop != 0 {
			continue
		}
		if !bytes.Equal(f.Bytes(), whole.Bytes()) || f.GSO.CsumStart != g.CsumStart || f.GSO.Type != g.Type {
			t.Errorf("%s: %+v", x.name, f.GSO)
		}
		if g.Type != 0 && f.SegLen() != whole.SegLen() {
			t.Errorf("%s: segments of %d bytes, want %d", x.name, f.SegLen(), whole.SegLen())
		}
	}
}
