package vswitch

import (
	"bytes"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// tagged returns a frame with a tag behind its MACs.
func tagged(tpid, tci uint16, b []byte) []byte {
	return slices.Concat(b[:12], []byte{byte(tpid >> 8), byte(tpid), byte(tci >> 8), byte(tci)}, b[12:])
}

// An access attachment that passes tags takes those that no other attachment of its port
// has, as they are; in any order, and with what follows them.
func TestPassOnAnAccessPort(t *testing.T) {
	inLab(t, func(l *lab) {
		check.OK(t, l.v.Configure(VSIConfig{InnerVLAN: VLANPass}))
		a, _ := l.port("a", 0)
		tun := &stubTunnel{stub: newStub("t")}
		check.Must(l.v.Attach(tun, 77))(t)
		v2 := check.Must(l.s.VSI(2, nil))(t)
		at10 := check.Must(v2.Attach(a, 10))(t)
		other := newStub("other")
		check.Must(v2.Attach(other, 0))(t)

		plain := eth(frame.Broadcast, mac(1), 0x800, 1, 2, 3, 4)
		vlan := func(vid uint16) []byte { return tagged(0x8100, vid, plain) }
		priority, deep := tagged(0x8100, 0xe000, plain), tagged(0x8100, 0x6000|30, vlan(20))
		a.send(vlan(20), vlan(10), vlan(20), vlan(20), plain, vlan(10), priority, vlan(0xa000|30), deep, tagged(0x88a8, 10, plain), vlan(10))
		var got [][]byte
		for _, o := range tun.sent() {
			got = append(got, o.F.Bytes())
		}
		want := [][]byte{vlan(20), vlan(20), vlan(20), plain, plain, vlan(0xa000 | 30), deep, tagged(0x88a8, 10, plain)}
		check.True(t, slices.EqualFunc(got, want, bytes.Equal), "into the tunnel\n% x, want\n% x", got, want)
		if n := other.sent(); len(n) != 3 || !bytes.Equal(n[0].F.Bytes(), plain) {
			t.Errorf("VLAN 10: %v", n)
		}
		check.OK(t, at10.Detach())
		a.send(vlan(10))
		if n := tun.sent(); len(n) != 1 || !bytes.Equal(n[0].F.Bytes(), vlan(10)) {
			t.Errorf("VLAN 10, now that nobody else has it: %v", n)
		}
		for _, m := range []VLANMode{VLANStrip, VLANDiscard} {
			check.OK(t, l.v.Configure(VSIConfig{InnerVLAN: m}))
			a.send(vlan(20))
			if n := tun.sent(); len(n) != 0 {
				t.Errorf("mode %d: %v", m, n)
			}
		}
		if d := l.drops(1); d[frame.UnknownVLAN] != 2 || d.Total() != 2 {
			t.Errorf("%v", d)
		}
		l.wantAccounts()
	})
}

// Out of a trunk a tag that passes has that of the attachment in front.
func TestPassOnATrunk(t *testing.T) {
	inLab(t, func(l *lab) {
		check.OK(t, l.v.Configure(VSIConfig{InnerVLAN: VLANPass}))
		trunk, _ := l.port("trunk", 10)
		a, _ := l.port("a", 0)
		plain := eth(frame.Broadcast, mac(1), 0x800, 1, 2, 3, 4)
		trunk.send(tagged(0x8100, 10, tagged(0x8100, 7, plain)), plain, tagged(0x8100, 7, plain))
		if got := a.sent(); len(got) != 1 || !bytes.Equal(got[0].F.Bytes(), tagged(0x8100, 7, plain)) {
			t.Errorf("%v", got)
		}
		a.send(tagged(0x8100, 7, plain))
		if got := trunk.sent(); len(got) != 1 || got[0].Tag != 10 || !bytes.Equal(got[0].F.Bytes(), tagged(0x8100, 7, plain)) {
			t.Errorf("%v", got)
		}
		if d := l.drops(1); d[frame.UnknownVLAN] != 2 || d.Total() != 2 {
			t.Errorf("%v", d)
		}
	})
}

// The offsets of a superframe count from the start of its buffer: after its tags have gone
// they still say where its headers are.
func TestStripSuperframe(t *testing.T) {
	plain := eth(mac(1), mac(2), 0x800, make([]byte, 40+3000)...)
	plain[ethLen+20], plain[ethLen+40] = 0xaa, 0xbb // the TCP header and the payload begin
	for name, b := range map[string][]byte{
		"one tag": tagged(0x8100, 5, plain), "priority": tagged(0x8100, 0xe000, plain), "service tag": tagged(0x88a8, 5, plain),
		"two tags": tagged(0x88a8, 5, tagged(0x8100, 0, plain)),
	} {
		f := frame.Make(b)
		at := f.Headroom() + len(b) - len(plain) + ethLen
		f.GSO = frame.GSO{Flags: frame.NeedsCsum, Type: frame.GSOTCP4, Size: 1000, CsumStart: uint16(at + 20), CsumOffset: 16, DataStart: uint16(at + 40)}
		check.Equal(t, name, stripTags(&f), frame.NotDropped)
		g, h := f.GSO, f.Headroom()
		if got := f.Bytes(); !bytes.Equal(got, plain) || got[int(g.CsumStart)-h] != 0xaa || got[int(g.DataStart)-h] != 0xbb || f.SegLen() != ethLen+40+1000 {
			t.Errorf("%s: %+v, headroom %d, % x", name, g, h, got[:60])
		}
	}
}

// show notes what it is shown.
type show struct{ frames [][]byte }

func (s *show) Process(f *frame.Frame, _ frame.At) frame.Verdict {
	s.frames = append(s.frames, bytes.Clone(f.Bytes()))
	return frame.Continue
}

// The gateway is shown what is flooded, but for what has a tag.
func TestPassNotToTheGateway(t *testing.T) {
	inLab(t, func(l *lab) {
		gw := &show{}
		check.OK(t, l.v.Configure(VSIConfig{InnerVLAN: VLANPass, Slots: Slots{Gateway: gw}}))
		a, _ := l.port("a", 0)
		b, _ := l.port("b", 0)
		plain := eth(frame.Broadcast, mac(1), 0x800, 1, 2, 3, 4)
		a.send(tagged(0x8100, 7, plain), plain)
		if len(gw.frames) != 1 || !bytes.Equal(gw.frames[0], plain) || len(b.sent()) != 2 {
			t.Errorf("% x", gw.frames)
		}
	})
}

// What passes is in no VLAN that another attachment of the port has: neither on the way in, with
// a priority tag in front (IEEE 802.1Q, 6.9.1), nor on the way out.
func TestPassHopsNowhere(t *testing.T) {
	for _, tc := range []struct {
		name string
		tags func(b []byte) []byte
		in   bool // may come in on the port's access attachment
		out  bool // may go out there
	}{
		{"another attachment's", func(b []byte) []byte { return tagged(0x8100, 10, b) }, false, false},
		{"with a priority", func(b []byte) []byte { return tagged(0x8100, 0xe000|10, b) }, false, false},
		{"behind a priority tag", func(b []byte) []byte { return tagged(0x8100, 0, tagged(0x8100, 10, b)) }, false, false},
		{"behind a priority tag of 802.1ad", func(b []byte) []byte { return tagged(0x88a8, 0, tagged(0x8100, 10, b)) }, false, false},
		{"behind two", func(b []byte) []byte { return tagged(0x8100, 0, tagged(0x8100, 0, tagged(0x8100, 10, b))) }, false, false},
		{"behind three", func(b []byte) []byte {
			return tagged(0x8100, 0, tagged(0x88a8, 0, tagged(0x8100, 0, tagged(0x8100, 10, b))))
		}, false, false},
		{"nobody's", func(b []byte) []byte { return tagged(0x8100, 20, b) }, true, true},
		{"nobody's, behind a priority tag", func(b []byte) []byte { return tagged(0x8100, 0, tagged(0x8100, 20, b)) }, true, true},
		{"nobody's, behind three", func(b []byte) []byte {
			return tagged(0x8100, 0, tagged(0x8100, 0, tagged(0x8100, 0, tagged(0x8100, 20, b))))
		}, false, false},
		{"a service tag of the same number", func(b []byte) []byte { return tagged(0x88a8, 10, b) }, true, true},
		{"inside another", func(b []byte) []byte { return tagged(0x8100, 20, tagged(0x8100, 10, b)) }, true, true},
		{"a service tag of another attachment's", func(b []byte) []byte { return tagged(0x88a8, 30, b) }, false, false},
		{"that behind a priority tag", func(b []byte) []byte { return tagged(0x8100, 0, tagged(0x88a8, 30, b)) }, false, false},
		{"that behind a priority tag of 802.1ad", func(b []byte) []byte { return tagged(0x88a8, 0, tagged(0x88a8, 30, b)) }, false, false},
		{"a VLAN of the same number", func(b []byte) []byte { return tagged(0x8100, 30, b) }, true, true},
		{"that inside another", func(b []byte) []byte { return tagged(0x8100, 20, tagged(0x88a8, 30, b)) }, true, true},
		{"none", func(b []byte) []byte { return b }, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				check.OK(t, l.v.Configure(VSIConfig{InnerVLAN: VLANPass}))
				trunk, _ := l.port("trunk", 0)
				other, _ := l.port("other", 0)
				tun := &stubTunnel{stub: newStub("t")}
				check.Must(l.v.Attach(tun, 77))(t)
				v2 := check.Must(l.s.VSI(2, nil))(t)
				check.Must(v2.Attach(trunk, 10))(t)
				v3 := check.Must(l.s.VSI(3, nil))(t)
				check.Must(v3.Attach(trunk, frame.ServiceTag|30))(t)
				want := func(p *stub, n bool, what string) {
					t.Helper()
					if got := p.sent(); (len(got) == 1) != n || len(got) > 1 {
						t.Errorf("%s: %d frames, want %v", what, len(got), n)
					}
				}
				for _, dst := range []frame.MAC{frame.Broadcast, mac(9), mac(3)} {
					trunk.send(eth(frame.Broadcast, mac(3), 0x800, 1)) // mac(3) is behind the trunk
					other.sent()
					tun.sent()
					b := tc.tags(eth(dst, mac(1), 0x800, 1, 2, 3, 4))
					other.send(b)
					want(trunk, tc.out, "out")
					tun.sent()
					tun.send(fromPeer(1, 77, b))
					want(trunk, tc.out, "out, from the tunnel")
					other.sent()
				}
				trunk.send(tc.tags(eth(frame.Broadcast, mac(4), 0x800, 1, 2, 3, 4)))
				want(other, tc.in, "in")
				if _, ok := l.v.FDB().Lookup(mac(4)); ok != tc.in {
					t.Errorf("learned: %v", ok)
				}
				l.wantAccounts()
			})
		})
	}
}
