package vswitch

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

// One port that has frames injected without end, as one whose packets are all cut, leaves others
// and the switch itself their room; so do several.
func TestWorstInjected(t *testing.T) {
	for _, hogs := range []int{1, 2} {
		run := func(attack bool) (took int) {
			s := check.Must(New(&Config{Injected: 100}))(t)
			defer s.Close()
			v := check.Must(s.VSI(1, nil))(t)
			b := frame.NewBatch(nil)
			in := s.own.readers[0]
			inject := func(from frame.Dest, n int) (took int) {
				f := frame.Make(eth(mac(1), mac(2), 0x800))
				f.From = from
				for range n {
					if s.Inject(v, &f) {
						took++
					}
				}
				return took
			}
			for range tenMinutes {
				for hog := range hogs {
					if attack {
						inject(frame.NewDest(uint16(1+hog), 0), 1000/hogs)
					}
				}
				for _, other := range []frame.Dest{frame.NewDest(9, 0), frame.NewDest(9, 5), 0} {
					took += inject(other, 10)
				}
				for s.share.n > 0 {
					check.OK(t, in.Read(b))
				}
			}
			check.True(t, len(s.share.held) == 0, "%d hogs: %v held at the end", hogs, s.share.held)
			check.Equal(t, "one alone has", inject(frame.NewDest(1, 0), 1000), 100)
			return took
		}
		worst.Kept(t, "frames from the switch itself", run(false), run(true))
	}
}

// What is cut on its way out of the gateway is the port's that it came in on.
func TestInjectShareOfRouted(t *testing.T) {
	inLab(t, func(l *lab) {
		var from []frame.Dest
		cut := hears(func(at frame.At) { from = append(from, at.From) })
		a, at := l.port("a", 0)
		small := newStub("small")
		small.mtu = 100
		b := check.Must(l.v.Attach(small, 0))(t)
		check.OK(t, l.v.FDB().Set(mac(7), b.Dest(0), 0))
		check.OK(t, l.v.FDB().Set(mac(8), 0, 0))
		check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{Gateway: gatewayStub{mac(7)}, TooBig: cut}}))
		long := make([]byte, 200)
		a.send(eth(mac(8), mac(1), 0x800, long...), eth(mac(7), mac(1), 0x800, long...))
		if len(from) != 2 || from[0] != at.Dest(0) || from[1] != at.Dest(0) {
			t.Errorf("%v, want %v twice", from, at.Dest(0))
		}
	})
}

// So is what the gateway sends out of one member, by which no frame goes back into a segment: as
// packets into a tunnel for IP, of which the gateway has taken the Ethernet header and the sender.
func TestInjectShareOfForwarded(t *testing.T) {
	inLab(t, func(l *lab) {
		var from []frame.Dest
		cut := hears(func(at frame.At) { from = append(from, at.From) })
		a, at := l.port("a", 0)
		small := newStub("small")
		small.mtu = 100
		b := check.Must(l.v.Attach(small, 0))(t)
		check.OK(t, l.v.FDB().Set(mac(8), 0, 0))
		check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{Gateway: routes(b.Dest(0)), TooBig: cut}}))
		a.send(eth(mac(8), mac(1), 0x800, make([]byte, 200)...))
		if len(from) != 1 || from[0] != at.Dest(0) {
			t.Errorf("%v, want %v", from, at.Dest(0))
		}
	})
}

// routes sends a frame out of a member, as nobody's.
type routes frame.Dest

func (r routes) Process(f *frame.Frame, _ frame.At) frame.Verdict {
	f.From, f.Tunnel = 0, false
	return frame.Forward(frame.Dest(r))
}

// A stage in the way out of what the gateway has sent back into a segment is told where it came in.
func TestEgressOfRouted(t *testing.T) {
	inLab(t, func(l *lab) {
		var from []frame.Dest
		a, at := l.port("a", 0)
		c, ct := l.port("c", 0)
		b := check.Must(l.v.Attach(newStub("b"), 0))(t)
		check.OK(t, l.v.FDB().Set(mac(7), b.Dest(0), 0))
		check.OK(t, l.v.FDB().Set(mac(8), 0, 0))
		slots := Slots{Gateway: gatewayStub{mac(7)}, Egress: hears(func(at frame.At) { from = append(from, at.From) })}
		check.OK(t, l.v.Configure(VSIConfig{Slots: slots}))
		a.send(eth(mac(8), mac(1), 0x800))
		c.send(eth(mac(8), mac(2), 0x800))
		if len(from) != 2 || from[0] != at.Dest(0) || from[1] != ct.Dest(0) {
			t.Errorf("%v, want %v and %v", from, at.Dest(0), ct.Dest(0))
		}
	})
}
