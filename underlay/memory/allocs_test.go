//go:build !race

package memory

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

func TestAllocs(t *testing.T) {
	n := NewNetwork(nil)
	a, b := member(t, n, "192.0.2.1:1", nil), member(t, n, "192.0.2.2:1", &Config{Inbox: 64})
	ds := make([]frame.Datagram, 32)
	for i := range ds {
		ds[i] = to("payload", uint16(i<<11), endpoint(t, b.LocalAddr()))
	}
	s, r, batch := a.Sender(0), b.Readers()[0], frame.NewBatch(nil)
	round := func() {
		must(t, s.Send(ds))
		if err := r.Read(batch); err != nil || len(batch.Frames) != len(ds) {
			t.Fatal(err, len(batch.Frames))
		}
	}
	for range 5 {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations for a Send and its Read", n)
	}
}
