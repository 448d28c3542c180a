package l3

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// Fragments keep what a frame is marked with.
func TestFragmentsKeepMarks(t *testing.T) {
	f := frame.Make(make([]byte, 14+20+100))
	f.Kind, f.GBP.ID, f.Priority, f.Horizon = frame.IPv4, 7, 5, 2
	n := 0
	v := fragment(&f, 14, 20+48, f.Bytes()[14:34], f.Bytes()[34:], 0, 0, func(_ frame.Dest, g *frame.Frame) bool {
		n++
		return g.Kind == f.Kind && g.GBP == f.GBP && g.Priority == f.Priority && g.Horizon == f.Horizon
	}, func(wire.IPv4, int, bool) {})
	check.True(t, v == frame.Consume && n == 3, "%v, %d fragments", v, n)
}
