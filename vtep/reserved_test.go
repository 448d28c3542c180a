package vtep

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Each bit of the header by itself, under every setting.
func TestReservedBits(t *testing.T) {
	const mask = 0x0480_00ff_0000_0001 // P, octet 1's first, octet 3, the last bit
	for _, c := range []struct {
		name   string
		cfg    Config
		header uint64
		want   uint64 // bits that packets are dropped for as reserved-bits
	}{
		{"rfc", Config{}, 1<<59 | vni<<8, 0},
		{"strict", Config{Reserved: ReservedStrict}, 1<<59 | vni<<8, 0xf7ff_ffff_0000_00ff},
		{"strict with GBP", Config{Reserved: ReservedStrict, GBP: true}, 1<<59 | vni<<8, 0x77b7_0000_0000_00ff},
		{"mask", Config{Reserved: mask}, 1<<59 | vni<<8, mask},
		{"rfc GPE", Config{Type: encap.TypeGPE}, 3<<58 | 3<<32 | vni<<8, 0},
		{"strict GPE", Config{Type: encap.TypeGPE, Reserved: ReservedStrict}, 3<<58 | 3<<32 | vni<<8, 0xc0ff_ff00_0000_00ff},
		{"mask GPE", Config{Type: encap.TypeGPE, Reserved: 0x8000_0100_0000_0080}, 3<<58 | 3<<32 | vni<<8, 0x8000_0100_0000_0080},
	} {
		u := fake4()
		v := newVTEP(t, &c.cfg, u)
		check.OK(t, v.Control().Open(vni))
		used := c.cfg.Type.Used(c.cfg.GBP)
		for i := range 64 {
			bit := uint64(1) << i
			if used&bit != 0 {
				continue // that is other rules'
			}
			data := append(binary.BigEndian.AppendUint64(nil, c.header^bit), inner(1)...)
			learned := v.Stats().Learned
			f := u.hear(t, v.Readers()[0], at(1000+i), data)
			want := frame.NotDropped
			if c.want&bit != 0 {
				want = frame.ReservedBits
			}
			if f[0].Drop != want || f[0].VNI != vni {
				t.Errorf("%s: bit %d: %v in VNI %v, want %v", c.name, i, f[0].Drop, f[0].VNI, want)
			}
			if got := v.Stats().Learned - learned; got != 0 == (want != 0) {
				t.Errorf("%s: bit %d: %d peers learned", c.name, i, got)
			}
		}
		check.True(t, c.want&used == 0, "%s: the test wants %#x", c.name, c.want)
	}
	if bits.OnesCount64(^encap.TypeVXLAN.Used(false)) != 39 {
		t.Error("VXLAN has 39 reserved bits (RFC 7348, section 5)")
	}
}

// length, I flag, VNI, reserved bits, inner length: the first defect names the drop.
func TestReservedOrder(t *testing.T) {
	u := fake4()
	v := newVTEP(t, &Config{Reserved: ReservedStrict}, u)
	check.OK(t, v.Control().Open(vni))
	for _, c := range []struct {
		data []byte
		want frame.Reason
	}{
		{[]byte{0xf7, 1, 1, 1, 0, 0, vni}, frame.Short},
		{append([]byte{0xf7, 1, 1, 1, 0, 0, vni, 1}, inner(1)...), frame.NoVNIFlag},
		{append([]byte{0xff, 1, 1, 1, 0, 1, vni, 1}, inner(1)...), frame.UnknownVNI},
		{append([]byte{0x08, 0, 0, 0, 0, 0, vni, 1}, inner(1)[:13]...), frame.ReservedBits},
		{append([]byte{0x08, 0, 0, 0, 0, 0, vni, 0}, inner(1)[:13]...), frame.Short},
	} {
		if f := u.hear(t, v.Readers()[0], at(1), c.data); f[0].Drop != c.want {
			t.Errorf("% x: %v, want %v", c.data, f[0].Drop, c.want)
		}
	}
	check.True(t, v.Stats().Learned == 0, "a refused packet made a peer of its sender")
}

func TestReservedErrors(t *testing.T) {
	ip := &fake{local: local4, mtu: 1500}
	for _, c := range []struct {
		cfg  Config
		want string // "" = none
	}{
		{Config{Reserved: 1 << 59}, "Config.Reserved: 0x0800000000000000 has bits 0x0800000000000000, which vxlan needs"},
		{Config{Reserved: 0xf7ff_ffff_0000_01ff}, "Config.Reserved: 0xf7ffffff000001ff has bits 0x0000000000000100, which vxlan needs"},
		{Config{Reserved: 0xf7ff_ffff_0000_00ff}, ""},
		{Config{Reserved: 0xf7ff_ffff_0000_00ff, GBP: true}, "Config.Reserved: 0xf7ffffff000000ff has bits 0x8048ffff00000000, which vxlan with GBP needs"},
		{Config{Reserved: 1 << 51, GBP: true}, "which vxlan with GBP needs"},
		{Config{Reserved: 1 << 50, GBP: true}, ""},
		{Config{Reserved: 1 << 58}, ""},
		{Config{Reserved: 1 << 58, Type: encap.TypeGPE}, "Config.Reserved: 0x0400000000000000 has bits 0x0400000000000000, which gpe needs"},
		{Config{Reserved: 1 << 32, Type: encap.TypeGPE}, "which gpe needs"},
		{Config{Reserved: 1 << 40, Type: encap.TypeGPE}, ""},
		{Config{Reserved: ReservedStrict, Type: encap.TypeIPIP}, "Config.Reserved: strict: ipip has no header"},
		{Config{GBP: true, Type: encap.TypeGPE}, "Config.GBP: gpe has no group policy"},
		{Config{GBP: true, Type: encap.TypeIPIP}, "Config.GBP: ipip has no group policy"},
	} {
		_, err := New(&c.cfg, ip)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "vtep: Config.") || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
	}
}

func TestReservedText(t *testing.T) {
	for text, want := range map[string]Reserved{
		"rfc": 0, "strict": 1<<64 - 1, "0xf700000000000000": 0xf7 << 56, "0x0000000000000001": 1,
	} {
		var r Reserved
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want || fmt.Sprint(r) != text {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "lax", "0x", "-1", "0x10000000000000000"} {
		var r Reserved
		check.True(t, r.UnmarshalText([]byte(text)) != nil, "%q is %v", text, r)
	}
}

// Marks go out and come in; without the setting they do neither.
func TestGBP(t *testing.T) {
	marks := []frame.GBP{{}, {ID: 0x1234}, {ID: 7, DontLearn: true}, {Applied: true}, {ID: 0xffff, DontLearn: true, Applied: true}}
	heads := []string{"0800000000006400", "8800123400006400", "8840000700006400", "8808000000006400", "8848ffff00006400"}
	for _, gbp := range []bool{false, true} {
		u := fake4()
		v := newVTEP(t, &Config{GBP: gbp}, u)
		check.OK(t, v.Control().Open(vni))
		n := addPeer(t, v, at(1))
		flood(t, v, vni, at(1), at(2))
		w, r := v.Writer(0), v.Readers()[0]
		for i, g := range marks {
			for _, peer := range []uint16{n, 0} {
				o := out(peer, 1)
				o[0].F.GBP = g
				u.sent = nil
				check.OK(t, w.Write(o))
				want := heads[0]
				if gbp {
					want = heads[i]
				}
				if got := fmt.Sprintf("%x", u.sent[0].payload[:8]); got != want || len(u.sent) != 1 {
					t.Errorf("GBP %v, %+v: %s, want %s", gbp, g, got, want)
				}
			}
			b := make([]byte, 8)
			encap.PutVXLANGBP(b, vni, g)
			if f := u.hear(t, r, at(1), append(b, inner(1)...)); f[0].Drop != 0 || f[0].GBP != g && gbp || f[0].GBP != (frame.GBP{}) && !gbp {
				t.Errorf("GBP %v, %x: %v, %+v", gbp, b, f[0].Drop, f[0].GBP)
			}
		}
		// One frame after another in the same memory.
		b := make([]byte, 8)
		encap.PutVXLANGBP(b, vni, marks[4])
		fs := u.hear(t, r, at(1), append(b, inner(1)...), vx(vni, inner(2)))
		check.True(t, fs[1].GBP == (frame.GBP{}), "%+v", fs[1].GBP)
	}
}

// Each segment of a superframe has its frame's mark.
func TestGBPSuperframe(t *testing.T) {
	u := fake4()
	v := newVTEP(t, &Config{GBP: true}, u)
	f := super(t, 3000, 1400)
	f.GBP = frame.GBP{ID: 0x55}
	check.OK(t, v.Writer(0).Write([]frame.Out{{F: &f, Peer: addPeer(t, v, at(1)), Tag: vni}}))
	s := u.sent[0]
	check.Need(t, s.seg != 0 && len(s.payload) > s.seg, "one segment: %d of %d", s.seg, len(s.payload))
	for at := 0; at < len(s.payload); at += s.seg {
		if !bytes.Equal(s.payload[at:at+8], []byte{0x88, 0, 0, 0x55, 0, 0, vni, 0}) {
			t.Errorf("% x", s.payload[at:at+8])
		}
	}
}

// What an error quotes of a packet with a mark is ours, if marks are.
func TestPathMTUQuotedGBP(t *testing.T) {
	for _, gbp := range []bool{false, true} {
		u := fake4()
		v := newVTEP(t, &Config{GBP: gbp}, u)
		check.OK(t, v.Control().Open(vni))
		n := addPeer(t, v, at(1))
		u.path(endpoint(t, at(1)), 1400, []byte{0x88, 0, 0, 5, 0, 0, vni, 0})
		if got := v.MTU(n) < v.MTU(0); got != gbp {
			t.Errorf("GBP %v: MTU %d", gbp, v.MTU(n))
		}
	}
}
