package vswitch

import (
	"context"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A host that uses the MAC of an entry that never moves is reported, once a second.
func TestMACRefused(t *testing.T) {
	inLab(t, func(l *lab) {
		t := l.t
		a, at := l.port("a", 0)
		_, home := l.port("b", 0)
		check.OK(t, l.v.FDB().Set(mac(1), home.Dest(0), fdb.Control|fdb.Sticky))
		events := l.s.Events(frame.EventMACRefused)
		defer events.Close()
		want := frame.Event{Kind: frame.EventMACRefused, VNI: l.v.VNI(), MAC: mac(1), Dest: at.Dest(0), Old: home.Dest(0)}
		time.Sleep(500 * time.Millisecond) // the clock counts seconds
		for range 3 {
			for range 50 {
				a.send(eth(mac(9), mac(1), 0x800))
				a.send(eth(mac(9), mac(2), 0x800)) // its own
			}
			time.Sleep(2 * time.Second)
			soon, stop := context.WithTimeout(t.Context(), time.Second)
			all, err := events.NextAll(soon)
			if stop(); err != nil || len(all) != 1 || bare(all[0]) != want {
				t.Fatalf("%+v, %v; want %+v once", all, err, want)
			}
		}
	})
}
