package table

import (
	"fmt"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/batch"
)

// limited refuses nothing, and remembers the most rows of an Update.
type limited struct{ most, all int }

func (l *limited) Program(_ string, u control.Update) error {
	n := len(u.Add) + len(u.Del)
	l.most, l.all = max(l.most, n), l.all+n
	return nil
}

// A flood of routes is passed in parts, so that nobody waits for all of it, and what came first goes first.
func TestFlushInParts(t *testing.T) {
	l := newLab(t, nil)
	const hosts = 3*batch.Most + 7
	for i := range hosts {
		l.Learned(0, peer, macIP(frame.MAC{2, 9, 0, 0, byte(i >> 8), byte(i)}, fmt.Sprintf("10.1.%d.%d", 128+i>>8, i&255)))
	}
	var rows limited
	flushes := 0
	for more := true; more; more = l.More() {
		if err := l.Flush(0, "evpn", &rows, l); err != nil {
			t.Fatal(err)
		}
		flushes++
	}
	if l.Pending() {
		t.Error("pending after the last Flush")
	}
	if rows.most > 2*batch.Most || rows.all < hosts || flushes < 4 {
		t.Errorf("%d rows in %d flushes, at most %d at once", rows.all, flushes, rows.most)
	}
}
