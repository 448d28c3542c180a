//go:build linux && !race

package underlay

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// One by one nothing is allocated; several received with a call cost a net.Addr each, but for the first.
func TestPortableAllocs(t *testing.T) {
	for _, batch := range []bool{false, true} {
		a, b := portable(batch)(t, "127.0.0.1:0", nil), portable(batch)(t, "127.0.0.1:0", nil)
		d, _ := runOf(8*100, 100, 8, 1, endpoint(t, b.LocalAddr()))
		ds, most := []frame.Datagram{d, to("lone", 1, d.To[0])}, 0.0
		const datagrams = 8 + 1
		if batch {
			most = 2*datagrams + 4
		}
		s, r, got := a.Sender(0), b.Readers()[0], frame.NewBatch(new(frame.Arenas))
		if n := testing.AllocsPerRun(100, func() {
			must(t, s.Send(ds))
			for n := 0; n < datagrams; n += len(got.Frames) {
				must(t, r.Read(got))
			}
		}); n > most {
			t.Errorf("batch %v: %v allocations for %d datagrams", batch, n, datagrams)
		} else {
			t.Logf("batch %v: %v allocations for %d datagrams", batch, n, datagrams)
		}
	}
}
