package vswitch

import (
	"bytes"
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// priorities returns those that a port has been given frames with, as VLANTag writes them, and fails the test if a frame has
// another VLAN or is not plain.
func (l *lab) priorities(p *stub, vid uint32, plain []byte) (list []uint8) {
	l.t.Helper()
	for _, o := range p.sent() {
		tag := o.VLANTag()
		if o.Tag != vid || tag>>16 != 0x8100 || tag&0x1fff != vid || !bytes.Equal(o.F.Bytes(), plain) {
			l.t.Errorf("tag %#x of %v, want VLAN %d", tag, o, vid)
		}
		list = append(list, uint8(tag>>13&7))
	}
	return list
}

// A frame keeps its priority from trunk to trunk, and from a priority tag on; DEI is cleared. What comes without a tag has priority 0,
// also after a frame that had one.
func TestPriority(t *testing.T) {
	inLab(t, func(l *lab) {
		a, _ := l.port("a", 10)
		b, _ := l.port("b", 20)
		c, _ := l.port("c", 0)
		plain := eth(frame.Broadcast, mac(1), 0x800, 1, 2, 3, 4)
		tag := func(tci uint16) []byte { return tagged(0x8100, tci, plain) }
		a.send(tag(10), tag(7<<13|10), tag(1<<13|1<<12|10), tag(5<<13|10))
		check.Equal(t, "from a trunk", string(l.priorities(b, 20, plain)), "\x00\x07\x01\x05")
		for _, o := range c.sent() {
			check.True(t, o.VLANTag() == 0 && bytes.Equal(o.F.Bytes(), plain), "an untagged port gets %v", o)
		}
		c.send(tag(3<<13), plain, tag(6<<13))
		check.Equal(t, "from a port without VLANs", string(l.priorities(a, 10, plain)), "\x03\x00\x06")
		c.send(plain, plain, plain)
		check.Equal(t, "in the same memory", string(l.priorities(a, 10, plain)), "\x00\x00\x00")
	})
}

// A tunnel has the priority of a frame, and gives it one, which comes before that of a tag that is stripped.
func TestPriorityOfATunnel(t *testing.T) {
	inLab(t, func(l *lab) {
		a, _ := l.port("a", 10)
		tun := &stubTunnel{stub: newStub("t")}
		check.Must(l.v.Attach(tun, 77))(t)
		check.OK(t, l.v.Configure(VSIConfig{InnerVLAN: VLANStrip}))
		plain := eth(frame.Broadcast, mac(1), 0x800, 1, 2, 3, 4)
		a.send(tagged(0x8100, 4<<13|10, plain))
		if got := tun.sent(); len(got) != 1 || got[0].F.Priority != 4 {
			t.Errorf("to the tunnel: %v", got)
		}
		far := eth(frame.Broadcast, mac(9), 0x800, 1, 2, 3, 4)
		tun.send(fromPeer(3, 77, far), fromPeer(3, 77, tagged(0x8100, 2<<13|5, tagged(0x8100, 6<<13|7, far))))
		check.Equal(t, "from the tunnel", string(l.priorities(a, 10, far)), "\x00\x02")

		x := frame.Make(tagged(0x8100, 2<<13|5, far))
		x.Priority = 6
		check.True(t, stripTags(&x) == frame.NotDropped && x.Priority == 6, "priority %d", x.Priority)
	})
}

// Frames that wait for the switch's own worker keep their priority, and a port that writes no tags gets it in the frame.
func TestPriorityKept(t *testing.T) {
	inLab(t, func(l *lab) {
		a, at := l.port("a", 10)
		b := &plainPort{stub: newStub("b")}
		check.Must(l.v.Attach(b, 20))(t)
		f := frame.Make(eth(frame.Broadcast, mac(1), 0x800, 1, 2, 3, 4))
		f.Priority = 5
		check.True(t, l.s.Inject(l.v, &f), "not injected")
		synctest.Wait()
		check.Equal(t, "injected", string(l.priorities(a, 10, f.Bytes())), "\x05")
		if got := b.sent(); len(got) != 1 || got[0].Tag != 0 || binary.BigEndian.Uint32(got[0].F.Bytes()[12:]) != 0x8100<<16|5<<13|20 {
			t.Errorf("%v", got)
		}
		check.True(t, l.v.Send(at.Dest(0), &f), "not sent")
		synctest.Wait()
		check.Equal(t, "sent", string(l.priorities(a, 10, f.Bytes())), "\x05")
	})
}

// A plainPort takes no offloads.
type plainPort struct{ *stub }

func (plainPort) Offloads() frame.Offloads { return 0 }
