package vswitch

import (
	"context"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Nothing reaches an attachment that is shut, known or flooded or from a stage, and after Settle
// nothing that was decided before it was. Open, it is as any.
func TestShut(t *testing.T) {
	s := check.Must(New(nil))(t)
	v := check.Must(s.VSI(100, nil))(t)
	a, b := busyPort(1, 3), busyPort(2, 3)
	check.Must(v.Attach(a, 0))(t)
	at := check.Must(v.AttachWith(b, 0, &AttachConfig{Shut: true}))(t)
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(100 * time.Microsecond) {
			check.Need(t, !time.Now().After(end), "waited for %s", what)
		}
	}
	drops := func() (n uint64) {
		for _, p := range s.Stats().Ports {
			n += p.TxDrops[frame.PortDown]
		}
		return n
	}
	for range 20 {
		was := b.got.Load() + a.got.Load()
		before := drops()
		until("frames to a shut attachment", func() bool { return drops() > before+10 })
		if got := b.got.Load() + a.got.Load(); got != was {
			t.Fatalf("%d frames came out of an attachment that is shut, or in by it", got-was)
		}
		check.OK(t, at.Configure(AttachConfig{}))
		until("frames to an open one", func() bool { return b.got.Load()+a.got.Load() > was+10 })
		check.OK(t, at.Configure(AttachConfig{Shut: true}))
		s.Settle()
	}
	s.Close()
	<-done
}
