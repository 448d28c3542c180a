//go:build linux && !race

package underlay

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Packets of both versions, a run among them, to several endpoints, with and without DF, and
// some that cannot be sent.
func TestIPAllocs(t *testing.T) {
	h := netns.New(t).Host("a")
	for _, local := range []string{"127.0.0.1", "::1"} {
		var u *IP
		h.Do(func() { u = listenIP(t, local, nil) })
		e := endpoint(t, u.LocalAddr())
		p4, p6 := inside(t, 4, 1, 2, 100), inside(t, 6, 1, 2, 100)
		ds := []frame.Datagram{to(p4, 0, e, e), to(p6, 0, e), to(p4+p4+p4, 0, e, e), to("x", 0, e), to(p4, 0, e)}
		ds[2].Seg, ds[4].DF = 100, false
		ds[1].TOS, ds[1].TTL = 1, 2
		s, batch := u.Sender(0), frame.NewBatch(new(frame.Arenas))
		four, six := u.Readers()[0], u.Readers()[1]
		if n := testing.AllocsPerRun(100, func() {
			must(t, s.Send(ds))
			for n := 0; n < 9; n += len(batch.Frames) {
				must(t, four.Read(batch))
			}
			must(t, six.Read(batch))
		}); n != 0 {
			t.Errorf("over %s: %v allocations for a Send and its Reads", local, n)
		}
		if st := u.Stats(); st.TxDatagrams != 101*10 || st.RxDatagrams != 101*10 || st.TxLost[frame.BadHeader] != 101 {
			t.Errorf("%+v", st)
		}
		u.Close()
	}
}
