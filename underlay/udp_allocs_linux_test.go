//go:build linux && !race

package underlay

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// Runs, to several endpoints, cut by the kernel, refused by it, and sent one by one.
func TestUDPRunAllocs(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", nil)
	off := listen(t, "127.0.0.1:0", &UDPConfig{NoOffload: true})
	refused := listen(t, "127.0.0.1:0", nil)
	refused.sets.Get(0).run = 0 // sockets without checksums: EINVAL
	eb := endpoint(t, b.LocalAddr())
	var ds []frame.Datagram
	for i := range 4 {
		d, _ := runOf(20*500, 500, 8, uint16(i<<14), eb, eb)
		ds = append(ds, d, to("lone", uint16(i<<14), eb))
	}
	const datagrams = 4 * (2*20 + 1)
	for _, u := range []*UDP{a, off, refused} {
		s, r, batch := u.Sender(0), b.Readers()[0], frame.NewBatch(new(frame.Arenas))
		if n := testing.AllocsPerRun(100, func() {
			must(t, s.Send(ds))
			for n := 0; n < datagrams; n += len(batch.Frames) {
				must(t, r.Read(batch))
			}
		}); n != 0 {
			t.Errorf("%v allocations for a Send and its Reads", n)
		}
	}
	if st := b.Stats(); st.RxRuns != 101*8 {
		t.Errorf("%d runs received", st.RxRuns)
	}
	if st := a.Stats(); st.TxRuns != 101*8 || st.Lost() != 0 {
		t.Errorf("%+v", st)
	}
}
