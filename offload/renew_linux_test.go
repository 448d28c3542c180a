package offload

import (
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// TestRenewMany: when many flows go another way at once, they do not wait for a grace period each.
func TestRenewMany(t *testing.T) {
	const hosts = 500
	h := rigHost(t)
	r := newRig(t, h)
	table := r.vsi.FDB()
	check.OK(t, table.Set(macB, r.dests[3], fdb.Static))
	h.Do(func() {
		for i := range hosts {
			p := vswitch.Pair{From: r.dests[0], Src: frame.MACFrom(0x020000010000 + uint64(i)), Dst: macB}
			check.OK(t, table.Set(p.Src, p.From, fdb.Static))
			r.o.offer(p)
		}
		was := check.Must(r.o.Stats())(t)
		if was.Flows != 2*hosts {
			t.Fatalf("%+v", was)
		}
		check.OK(t, r.v.SetPeers([]vtep.PeerConfig{{Address: addr(2), Port: 4790}}))
		began := time.Now()
		r.o.renew()
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("%d flows took %v", hosts, d)
		}
		st := check.Must(r.o.Stats())(t)
		if st.Flows != 2*hosts || st.Added-was.Added != hosts || st.Renewed-was.Renewed != hosts {
			t.Errorf("%+v", st)
		}
		check.OK(t, r.o.Close())
	})
}
