package vswitch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// tags says with which tags copies left.
func tags(out []frame.Out) string {
	var list []string
	for _, o := range out {
		list = append(list, fmt.Sprintf("%#x", o.Tag))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// Two VLANs of a trunk, its untagged frames and a service tag are bridged: what comes in on one leaves by the others, as by ports of
// their own.
func TestAttachmentsOfOnePort(t *testing.T) {
	inLab(t, func(l *lab) {
		trunk, ten := l.port("trunk", 10)
		a, _ := l.port("a", 0)
		attach := func(tag uint32, cfg AttachConfig) *Attachment { return check.Must(l.v.AttachWith(trunk, tag, &cfg))(t) }
		twenty, plain, service := attach(20, AttachConfig{}), attach(0, AttachConfig{}), attach(frame.ServiceTag|20, AttachConfig{NoFlood: UnknownUnicast})
		for a, want := range map[*Attachment]string{ten: "trunk", twenty: "trunk.20", plain: "trunk.0", service: "trunk.s20"} {
			check.Equal(t, "name", l.s.Name(a.Dest(0)), want)
		}
		bare := eth(frame.Broadcast, mac(1), 0x800, 1, 2, 3, 4)
		trunk.send(tagged(0x8100, 10, bare))
		check.Equal(t, "a broadcast of VLAN 10", tags(trunk.sent()), "0x0 0x10014 0x14")
		check.Equal(t, "copies of it at a", len(a.sent()), 1)
		a.send(eth(mac(1), mac(9), 0x800))
		check.Equal(t, "to VLAN 10", tags(trunk.sent()), "0xa")

		trunk.send(tagged(0x8100, 20, eth(mac(1), mac(2), 0x800))) // from one VLAN to the other
		check.Equal(t, "from VLAN 20 to 10", tags(trunk.sent()), "0xa")
		trunk.send(tagged(0x8100, 10, eth(mac(1), mac(3), 0x800)))
		check.Equal(t, "dropped as to where it came from", l.drops(1)[frame.Reflect], 1)
		trunk.send(tagged(0x88a8, 20, eth(mac(7), mac(4), 0x800)))
		check.Equal(t, "unknown, from the service tag", tags(trunk.sent()), "0x0 0x14 0xa")
		a.sent()

		trunk.send(tagged(0x8100, 20, bare)) // the host of MAC 1 moves
		check.Equal(t, "a broadcast of VLAN 20", tags(trunk.sent()), "0x0 0x10014 0xa")
		e, _ := l.v.FDB().Get(mac(1))
		check.Equal(t, "MAC 1 is at", e.Dest, twenty.Dest(0))

		check.OK(t, twenty.Configure(AttachConfig{Group: 7}))
		check.OK(t, ten.Configure(AttachConfig{Group: 7}))
		trunk.send(tagged(0x8100, 10, eth(mac(1), mac(3), 0x800)))
		check.Equal(t, "dropped by split horizon", l.drops(1)[frame.SplitHorizon], 1)
		check.OK(t, l.v.FDB().Set(mac(8), twenty.Dest(0), fdb.Static))
		l.wantAccounts()

		a.sent()
		check.OK(t, twenty.Detach())
		for _, m := range []frame.MAC{mac(1), mac(2), mac(8)} {
			_, ok := l.v.FDB().Get(m)
			check.True(t, !ok, "%v is still there", m)
		}
		trunk.send(tagged(0x8100, 20, bare), tagged(0x8100, 10, bare))
		check.Equal(t, "of an unknown VLAN", l.drops(1)[frame.UnknownVLAN], 1)
		check.Equal(t, "a broadcast of VLAN 10, without 20", tags(trunk.sent()), "0x0 0x10014")
		again := attach(20, AttachConfig{})
		check.Equal(t, "the number is free again", again.Dest(0), twenty.Dest(0))
		check.OK(t, ten.Detach())
		trunk.send(tagged(0x8100, 20, bare))
		check.Equal(t, "without VLAN 10", tags(trunk.sent()), "0x0 0x10014")
		l.wantAccounts()
		for _, x := range []*Attachment{again, plain} {
			check.OK(t, x.Detach())
		}
		check.True(t, !trunk.closed.Load(), "closed")
		check.OK(t, service.Detach())
		check.True(t, trunk.closed.Load(), "not closed with the last attachment")
		_, known := l.v.FDB().Get(mac(4))
		check.True(t, !known, "MAC 4 is still there")
	})
}

// A port that goes takes all its attachments with it.
func TestAttachmentsGoWithThePort(t *testing.T) {
	inLab(t, func(l *lab) {
		trunk, _ := l.port("trunk", 10)
		twenty := check.Must(l.v.Attach(trunk, 20))(t)
		check.OK(t, l.v.FDB().Set(mac(1), twenty.Dest(0), fdb.Static))
		other, _ := l.port("other", 0)
		trunk.Close()
		synctest.Wait()
		check.Equal(t, "attachments", len(l.v.Attachments()), 1)
		_, known := l.v.FDB().Get(mac(1))
		check.True(t, !known, "the entry is still there")
		other.send(eth(mac(1), mac(2), 0x800))
		check.Equal(t, "copies", len(trunk.sent()), 0)
		check.Must(l.v.Attach(newStub("new"), 0))(t)
	})
}

type matchFunc func(f *frame.Frame) bool

func (m matchFunc) Match(f *frame.Frame) bool { return m(f) }

// What matches goes to a segment of its own, the rest to the one of the tag, and what leaves has the same tag.
func TestMatch(t *testing.T) {
	inLab(t, func(l *lab) {
		p, rest := l.port("p", 10)
		a, _ := l.port("a", 0)
		other := newStub("other")
		v2, v3 := check.Must(l.s.VSI(2, nil))(t), check.Must(l.s.VSI(3, nil))(t)
		check.Must(v2.Attach(other, 0))(t)
		bySource := func(n byte) Matcher {
			return matchFunc(func(f *frame.Frame) bool { return frame.MAC(f.Bytes()[6:]) == mac(n) })
		}
		byType := matchFunc(func(f *frame.Frame) bool { return f.Bytes()[12] == 0x88 })
		one := check.Must(v2.AttachWith(p, 10, &AttachConfig{Match: bySource(1)}))(t)
		two := check.Must(v3.AttachWith(p, 10, &AttachConfig{Match: byType}))(t)
		send := func(src byte, etherType uint16) {
			p.send(tagged(0x8100, 10, eth(frame.Broadcast, mac(src), etherType)))
		}
		send(1, 0x800)
		send(2, 0x800)
		send(1, 0x88cc) // the first that matches takes it
		send(3, 0x88cc)
		send(2, 0x801)
		check.Equal(t, "to VSI 1", len(a.sent()), 2)
		check.Equal(t, "to VSI 2", len(other.sent()), 2)
		check.Equal(t, "without a receiver in VSI 3", l.drops(1)[frame.NoEgress], 1)
		for _, x := range []struct {
			v    *VSI
			n    byte
			dest frame.Dest
		}{{l.v, 2, rest.Dest(0)}, {v2, 1, one.Dest(0)}, {v3, 3, two.Dest(0)}} {
			if e, ok := x.v.FDB().Get(mac(x.n)); !ok || e.Dest != x.dest || x.v.FDB().Len() > 2 {
				t.Errorf("MAC %d in VSI %d: %+v, want %v", x.n, x.v.VNI(), e, x.dest)
			}
		}
		other.send(eth(mac(1), mac(9), 0x800))
		a.send(eth(mac(2), mac(9), 0x800))
		check.Equal(t, "back", tags(p.sent()), "0xa 0xa")
		check.Equal(t, "frames in by Match", one.Stats().Rx.Frames, 2)
		check.Equal(t, "frames out by Match", one.Stats().Tx.Frames, 1)
		check.Equal(t, "other frames out", rest.Stats().Tx.Frames, 1)
		l.wantAccounts()

		for n := range 14 { // Matchers may look at the header
			p.send(tagged(0x8100, 10, eth(frame.Broadcast, mac(1), 0x88cc))[:4+n], make([]byte, n))
		}
		_, err := v2.AttachWith(p, 10, &AttachConfig{Match: byType})
		check.ErrorIs(t, "a second Match of the tag", err, ErrTagTaken)

		check.OK(t, one.Configure(AttachConfig{Match: bySource(2)}))
		send(1, 0x800)
		send(2, 0x800)
		check.Equal(t, "now to VSI 1", len(a.sent()), 1)
		check.Equal(t, "now to VSI 2", len(other.sent()), 1)
		check.ErrorHas(t, one.Configure(AttachConfig{}), "vswitch: AttachConfig.Match: ")
		check.ErrorHas(t, rest.Configure(AttachConfig{Match: byType}), "vswitch: AttachConfig.Match: ")
		_, err = l.v.AttachWith(&stubTunnel{stub: newStub("tunnel")}, 5, &AttachConfig{Match: byType})
		check.ErrorHas(t, err, "vswitch: ", "AttachConfig.Match")

		// With Matchers, which frames a pair's are is not known beforehand.
		check.OK(t, l.v.FDB().Set(mac(5), rest.Dest(0), fdb.Static))
		check.OK(t, v2.FDB().Set(mac(5), one.Dest(0), fdb.Static))
		check.OK(t, v2.FDB().Set(mac(6), check.Must(v2.Attach(newStub("q"), 0))(t).Dest(0), fdb.Static))
		for _, pair := range []Pair{{From: rest.Dest(0), Tag: 10, Src: mac(5), Dst: mac(6)}, {From: one.Dest(0), Tag: 10, Src: mac(5), Dst: mac(6)}} {
			_, err := l.s.Flow(pair)
			check.ErrorIs(t, "flow", err, ErrStage)
		}
		f := check.Must(l.s.Flow(Pair{From: l.dest(v2, mac(6)), Src: mac(6), Dst: mac(5)}))(t)
		check.Equal(t, "the tag of a flow to it", f.OutTag, 10)

		check.OK(t, rest.Detach())
		before := l.drops(1)[frame.UnknownVLAN]
		send(7, 0x800)
		check.Equal(t, "nobody takes the rest", l.drops(1)[frame.UnknownVLAN]-before, 1)
		check.OK(t, one.Detach())
		check.OK(t, two.Detach())
		check.True(t, p.closed.Load(), "not closed with the last attachment")
	})
}

// Matchers see no frames that the port has refused.
func TestMatchOfRefused(t *testing.T) {
	all := matchFunc(func(*frame.Frame) bool { return true })
	list := []*circuit{{tag: 10, match: all}}
	f := frame.Make(eth(frame.Broadcast, mac(1), 0x800))
	check.True(t, match(list, 10, &f) == list[0], "a frame is not matched")
	f.Drop = frame.BadHeader
	check.True(t, match(list, 10, &f) == nil, "one that the port has refused is matched")
}

// dest returns where a MAC is.
func (l *lab) dest(v *VSI, m frame.MAC) frame.Dest {
	e, _ := v.FDB().Get(m)
	return e.Dest
}

// In one segment a tag of a port has one attachment, in whichever order they come: a flooded frame would leave twice.
func TestMatchOfTheSameSegment(t *testing.T) {
	inLab(t, func(l *lab) {
		p, _ := l.port("p", 10)
		all := matchFunc(func(*frame.Frame) bool { return true })
		v2 := check.Must(l.s.VSI(2, nil))(t)
		check.Must(v2.AttachWith(p, 20, &AttachConfig{Match: all}))(t)
		_, err := v2.Attach(p, 20)
		check.ErrorIs(t, "without a Match, after one with", err, ErrTagTaken)
		_, err = v2.AttachWith(p, 20, &AttachConfig{Match: all})
		check.ErrorIs(t, "a second Match", err, ErrTagTaken)
		a := newStub("a")
		check.Must(v2.Attach(a, 0))(t)
		a.send(eth(frame.Broadcast, mac(1), 0x800))
		check.Equal(t, "copies", tags(p.sent()), "0x14")
	})
}

// Where there is no number for a sub-port, nothing is left of a port that was new.
func TestNoNumberForSubport(t *testing.T) {
	inLab(t, func(l *lab) {
		l.port("p", 10)
		l.s.nums.next = 1<<16 - 2
		q := newStub("q")
		_, err := l.v.AttachWith(q, 10, &AttachConfig{Match: matchFunc(func(*frame.Frame) bool { return true })})
		check.ErrorIs(t, "attach", err, ErrTooMany)
		check.True(t, !q.closed.Load(), "closed")
		a := check.Must(l.v.Attach(q, 10))(t)
		check.Equal(t, "number", a.Dest(0).Port(), 1<<16-1)
		_, err = l.v.Attach(q, 11)
		check.ErrorIs(t, "attach", err, ErrTooMany)
		check.OK(t, a.Detach())
	})
}

// An attachment that takes untagged frames by Match, in a segment that passes tags, takes frames with the tags that nobody has, too, as
// one without a Match does: what they are answered with leaves there.
func TestMatchPassesTags(t *testing.T) {
	for _, rest := range []bool{false, true} {
		inLab(t, func(l *lab) {
			v2 := check.Must(l.s.VSI(2, &VSIConfig{InnerVLAN: VLANPass}))(t)
			p, a := newStub("p"), newStub("a")
			one := matchFunc(func(f *frame.Frame) bool { return frame.MAC(f.Bytes()[6:]) == mac(1) })
			check.Must(v2.AttachWith(p, 0, &AttachConfig{Match: one}))(t)
			check.Must(v2.Attach(a, 0))(t)
			if rest {
				check.Must(l.v.Attach(p, 0))(t)
			}
			check.Must(check.Must(l.s.VSI(3, nil))(t).Attach(p, 10))(t)
			for _, tpid := range []uint16{0x8100, 0x88a8} {
				b := tagged(tpid, 30, eth(frame.Broadcast, mac(1), 0x800))
				p.send(b, tagged(tpid, 30, eth(frame.Broadcast, mac(2), 0x800)), tagged(0x8100, 10, eth(frame.Broadcast, mac(1), 0x800)))
				out := a.sent()
				check.Need(t, len(out) == 1, "%#x: %d frames", tpid, len(out))
				check.True(t, slices.Equal(out[0].F.Bytes(), b), "% x", out[0].F.Bytes())
				a.send(tagged(tpid, 30, eth(mac(1), mac(3), 0x800)))
				check.Equal(t, "answers", len(p.sent()), 1)
			}
		})
	}
}

// A name stands for all attachments of a port, or for the one that has the tag, but for none of a tunnel by its tag.
func TestNamed(t *testing.T) {
	inLab(t, func(l *lab) {
		trunk, _ := l.port("trunk", 10)
		for _, tag := range []uint32{20, 0, frame.ServiceTag | 20} {
			check.Must(l.v.Attach(trunk, tag))(t)
		}
		l.port("trunk.20", 30)
		l.port("trunk1", 20)
		check.Must(l.v.Attach(&stubTunnel{stub: newStub("tunnel")}, 5))(t)
		for name, want := range map[string]string{
			"trunk": "0x0 0x10014 0x14 0xa", "trunk.10": "0xa", "trunk.0": "0x0", "trunk.s20": "0x10014",
			"trunk.20": "0x1e", "trunk.20.30": "0x1e", "trunk1": "0x14", "trunk1.20": "0x14",
			"trunk.": "", "trunk.s10": "", "trun": "", "tunnel": "", "tunnel.5": "", "": "",
		} {
			var of []frame.Out
			for _, a := range l.v.Named(name) {
				of = append(of, frame.Out{Tag: a.Tag()})
			}
			check.Equal(t, name, tags(of), want)
		}
	})
}
