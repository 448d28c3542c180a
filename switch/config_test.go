package vswitch

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// What was set last can be asked for, and changed in one field.
func TestConfigOfVSI(t *testing.T) {
	inLab(t, func(l *lab) {
		if c := l.v.Config(); c != (VSIConfig{}) {
			t.Errorf("nothing set: %+v", c)
		}
		set := VSIConfig{MaxMACs: 7, Ageing: time.Minute, NoFlood: Multicast, Slots: Slots{Ingress: say(0)}}
		check.OK(t, l.v.Configure(set))
		if c := l.v.Config(); c != set {
			t.Errorf("%+v, want %+v", c, set)
		}
		if err := l.v.Configure(VSIConfig{MaxMACs: -1}); err == nil || l.v.Config() != set {
			t.Errorf("after %v: %+v", err, l.v.Config())
		}
		check.Must(l.s.VSI(1, nil))(t) // no change
		if c := l.v.Config(); c != set {
			t.Errorf("%+v, want %+v", c, set)
		}
		set.NoLearn = true
		check.Must(l.s.VSI(1, &set))(t)
		if c := l.v.Config(); c != set {
			t.Errorf("%+v, want %+v", c, set)
		}
		other := check.Must(l.s.VSI(2, &VSIConfig{Refuse: true, Freeze: 3}))(t)
		check.OK(t, other.Delete())
		if c := other.Config(); c != (VSIConfig{Refuse: true, Freeze: 3}) {
			t.Errorf("deleted: %+v", c)
		}
	})
}

func TestConfigOfAttachment(t *testing.T) {
	inLab(t, func(l *lab) {
		_, a := l.port("a", 0)
		if c := a.Config(); c != (AttachConfig{}) {
			t.Errorf("nothing set: %+v", c)
		}
		set := AttachConfig{Group: GroupIsolated, MaxMACs: 3, Slots: Slots{Egress: say(0)}}
		b := check.Must(l.v.AttachWith(newStub("b"), 0, &set))(t)
		if c := b.Config(); c != set {
			t.Errorf("%+v, want %+v", c, set)
		}
		c := b.Config()
		c.Shut = true
		check.OK(t, b.Configure(c))
		if set.Shut = true; b.Config() != set {
			t.Errorf("%+v, want %+v", b.Config(), set)
		}
		if err := b.Configure(AttachConfig{Hub: true}); err == nil || b.Config() != set {
			t.Errorf("after %v: %+v", err, b.Config())
		}
		check.OK(t, b.Detach())
		if err := b.Configure(AttachConfig{}); !errors.Is(err, net.ErrClosed) || b.Config() != set {
			t.Errorf("after %v: %+v", err, b.Config())
		}
	})
}

// Who asks and who sets need not know of each other.
func TestConfigWhileItChanges(t *testing.T) {
	s := check.Must(New(nil))(t)
	defer s.Close()
	v := check.Must(s.VSI(1, nil))(t)
	a := check.Must(v.Attach(newStub("a"), 0))(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 100 {
			check.OK(t, v.Configure(VSIConfig{MaxMACs: i, Freeze: uint8(i)}))
			check.OK(t, a.Configure(AttachConfig{MaxMACs: i, GBP: uint16(i)}))
		}
	})
	wg.Go(func() {
		for range 100 {
			if c := v.Config(); c.MaxMACs != int(c.Freeze) {
				t.Errorf("torn: %+v", c)
			}
			if c := a.Config(); c.MaxMACs != int(c.GBP) {
				t.Errorf("torn: %+v", c)
			}
		}
	})
	wg.Wait()
}
