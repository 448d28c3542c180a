package vswitch

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// housekept is a stage that notes when it was housekept.
type housekept struct {
	mu    sync.Mutex
	ticks []frame.Tick
}

func (*housekept) Process(*frame.Frame, frame.At) frame.Verdict { return frame.Continue }

func (t *housekept) Housekeep(now frame.Tick) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ticks = append(t.ticks, now)
}

// took returns the ticks since the last call.
func (t *housekept) took() []frame.Tick {
	t.mu.Lock()
	defer t.mu.Unlock()
	got := t.ticks
	t.ticks = nil
	return got
}

// want lets five seconds pass, and wants the stage housekept in each, once; or never.
func (t *housekept) want(l *lab, name string, is bool) {
	l.t.Helper()
	t.took()
	first := l.s.Tick() + 1
	time.Sleep(5 * time.Second)
	got := t.took()
	ok := len(got) == 0
	if is {
		ok = len(got) == 5
		for i, tick := range got {
			ok = ok && tick == first+frame.Tick(i)
		}
	}
	check.True(l.t, ok, "%s: housekept at %v; in a slot: %v, first tick %d", name, got, is, first)
}

// A stage is housekept once a second, however many slots it is in, and no more once it is in
// none.
func TestTended(t *testing.T) {
	inLab(t, func(l *lab) {
		time.Sleep(50 * time.Millisecond) // between two turns of the housekeeping
		_, a := l.port("a", 0)
		other := check.Must(l.s.VSI(2, nil))(t)
		x, y, z := &housekept{}, &housekept{}, &housekept{}
		x.want(l, "in no slot", false)

		for name, s := range map[string]Slots{
			"Ingress": {Ingress: x}, "Neighbour": {Neighbour: x}, "Gateway": {Gateway: x}, "TooBig": {TooBig: x}, "Egress": {Egress: x},
			"twice": {Ingress: x, Egress: x}, "in a chain": {Ingress: Chain(say(frame.Continue), x)}, "twice in a chain": {Ingress: Chain(x, y, x)},
			"in a chain of chains": {Ingress: Chain(y, Chain(z, Chain(x)))},
		} {
			check.OK(t, l.v.Configure(VSIConfig{Slots: s}))
			x.want(l, name+" of the VSI", true)
			check.OK(t, errors.Join(l.v.Configure(VSIConfig{}), a.Configure(AttachConfig{Slots: s})))
			x.want(l, name+" of an attachment", true)
			check.OK(t, a.Configure(AttachConfig{}))
		}
		x.want(l, "taken out", false)

		slots := Slots{Ingress: Chain(x, y), Neighbour: x, Gateway: x, TooBig: x, Egress: Chain(y, x)}
		check.OK(t, errors.Join(l.v.Configure(VSIConfig{Slots: slots}), other.Configure(VSIConfig{Slots: slots})))
		check.OK(t, a.Configure(AttachConfig{Slots: slots}))
		x.want(l, "in every slot", true)
		y.want(l, "in two chains", true)
		check.OK(t, errors.Join(l.v.Configure(VSIConfig{}), other.Configure(VSIConfig{})))
		x.want(l, "in an attachment alone", true)
		check.OK(t, a.Detach())
		x.want(l, "detached", false)
		check.OK(t, other.Configure(VSIConfig{Slots: slots}))
		x.want(l, "in a VSI without members", true)
		check.OK(t, other.Delete())
		x.want(l, "in a VSI that is gone", false)
		y.want(l, "too", false)
	})
}
