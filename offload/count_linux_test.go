package offload

import (
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// TestCountedBetween: a program adds a frame first and its bytes then. If the counters are read in between, the bytes are passed on
// the next time, also when no other frame comes.
func TestCountedBetween(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	p := r.hosts(r.dests[0], r.dests[3])
	h.Do(func() {
		r.o.offer(p)
		check.True(t, r.carried(p), "not carried")
		was, peer := check.Must(r.o.Stats())(t).Carried, r.v.Stats().Peers[0].Tx
		const late = 10
		r.o.entries[p].counted.Bytes -= late
		now := check.Must(r.o.Stats())(t).Carried
		check.Equal(t, "frames", now.Frames, was.Frames)
		check.Equal(t, "bytes", now.Bytes, was.Bytes+late)
		check.Equal(t, "bytes to the peer", r.v.Stats().Peers[0].Tx.Bytes, peer.Bytes+late)
		check.OK(t, r.o.Close())
	})
}
