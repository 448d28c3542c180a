package offload

import (
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// TestHintsOfKnown: routed packets between two addresses have one entry. While there is one, hints of them are no questions to the switch,
// whatever their ports: they go on for all that the program leaves to user space. But a void entry is renewed.
func TestHintsOfKnown(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	r.route(0)
	check.OK(t, r.routes.gate[0].neighbours.Set(nextHops[0], macB, arp.Static, 0))
	check.OK(t, r.vsi.FDB().Set(macA, r.dests[0], fdb.Static))
	check.OK(t, r.vsi.FDB().Set(macB, r.dests[1], fdb.Static))
	p := r.pair(r.dests[0], macA, gatewayMAC(1))
	hint := func(port uint16) {
		p.Tuple = tupleTo(ports[0])
		p.Tuple.SrcPort = port
		r.o.offer(p)
	}
	h.Do(func() {
		for i := range uint16(100) {
			hint(1000 + i)
		}
		check.Equal(t, "flows", check.Must(r.o.Stats())(t).Flows, 1)
		check.Equal(t, "questions", r.o.asked[p.From].offered, 1)
		r.o.renew()
		r.drain()
		r.o.dp.Bump(r.o.epoch(macB)) // as if Changed had told nobody
		check.True(t, !r.carried(p), "carried by a void entry")
		hint(2000)
		check.Equal(t, "wakes", len(r.o.wake), 1)
		r.o.renew()
		check.True(t, r.carried(p), "not carried any more")
		check.OK(t, r.o.Close())
	})
}

// drain takes what has been stirred.
func (r *rig) drain() {
	select {
	case <-r.o.wake:
	default:
	}
}
