package vswitch

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A port with a VLAN and service tags, in segments of their own. A service tag is taken off and put on with its priority; what is
// behind it is the segment's, by its mode. Others than those of attachments are as on any port.
func TestServiceTag(t *testing.T) {
	inLab(t, func(l *lab) {
		trunk, _ := l.port("trunk", frame.ServiceTag|10)
		a, _ := l.port("a", 0)
		b := &plainPort{stub: newStub("b")}
		check.Must(l.v.Attach(b, frame.ServiceTag|4094))(t)
		v2 := check.Must(l.s.VSI(2, nil))(t)
		check.Must(v2.Attach(trunk, 10))(t)
		other := newStub("other")
		check.Must(v2.Attach(other, 0))(t)

		plain := eth(frame.Broadcast, mac(1), 0x800, 1, 2, 3, 4)
		frames := func(out []frame.Out) (list [][]byte) {
			for _, o := range out {
				list = append(list, o.F.Bytes())
			}
			return list
		}
		want := func(what string, got [][]byte, want ...[]byte) {
			t.Helper()
			if len(got) != len(want) {
				t.Errorf("%s: % x\nwant % x", what, got, want)
				return
			}
			for i := range got {
				check.True(t, bytes.Equal(got[i], want[i]), "%s: % x\nwant % x", what, got[i], want[i])
			}
		}
		customer := tagged(0x8100, 3<<13|10, plain)
		in := [][]byte{
			tagged(0x88a8, 5<<13|10, plain), tagged(0x8100, 10, plain), tagged(0x88a8, 10, customer), tagged(0x88a8, 11, plain),
			tagged(0x88a8, 0, plain), plain, tagged(0x88a8, 10, plain), tagged(0x88a8, 10, plain)[:17],
		}
		trunk.send(in...)
		want("an untagged port", frames(a.sent()), plain, plain)
		want("a port that writes no tags", frames(b.sent()), tagged(0x88a8, 5<<13|4094, plain), tagged(0x88a8, 4094, plain))
		want("the VLAN of the same number", frames(other.sent()), plain)
		if d := l.drops(1); d[frame.InnerVLAN] != 1 || d[frame.UnknownVLAN] != 4 || d.Total() != 5 {
			t.Errorf("%v", d)
		}
		check.OK(t, l.v.Configure(VSIConfig{InnerVLAN: VLANPass}))
		trunk.send(in...)
		want("an untagged port, tags pass", frames(a.sent()), plain, customer, plain)
		want("a port that writes no tags, tags pass", frames(b.sent()), tagged(0x88a8, 5<<13|4094, plain), tagged(0x88a8, 4094, customer), tagged(0x88a8, 4094, plain))

		a.send(customer, plain)
		out := trunk.sent()
		want("in the frame", frames(out), customer, plain)
		if out[0].VLANTag() != 0x88a8<<16|3<<13|10 || out[1].VLANTag() != 0x88a8<<16|10 || out[1].Tag != frame.ServiceTag|10 {
			t.Errorf("%#x, %#x, %#x", out[0].VLANTag(), out[1].VLANTag(), out[1].Tag)
		}
		for _, tag := range []uint32{frame.ServiceTag, frame.ServiceTag | 4095, 2*frame.ServiceTag | 5, 4095} {
			_, err := v2.Attach(newStub("x"), tag)
			check.ErrorHas(t, err, "vswitch: ", "tag: a VLAN is 1 to 4094")
		}
		l.wantAccounts()
	})
}

// An Offload knows no service tags.
func TestServiceTagHasNoFlow(t *testing.T) {
	inLab(t, func(l *lab) {
		_, trunk := l.port("trunk", frame.ServiceTag|10)
		_, a := l.port("a", 0)
		check.OK(t, l.v.FDB().Set(mac(1), trunk.Dest(0), fdb.Static))
		check.OK(t, l.v.FDB().Set(mac(2), a.Dest(0), fdb.Static))
		for _, p := range []Pair{{From: trunk.Dest(0), Tag: frame.ServiceTag | 10, Src: mac(1), Dst: mac(2)}, {From: a.Dest(0), Src: mac(2), Dst: mac(1)}} {
			_, err := l.s.Flow(p)
			check.True(t, err == ErrTag, "%+v: %v", p, err)
		}
	})
}
