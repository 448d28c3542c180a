package offload

import (
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// TestHintsOfKnown: routed packets between two addresses have one entry. While there is one, hints of them are no questions to the switch,
// whatever their ports: they go on for all that the program leaves to user space. But a void entry is renewed.
func TestHintsOfKnown(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	r.route(0)
	check.OK(t, r.routes.gate[0].neighbours.Set(nextHops[0], macB, arp.Static, 0))
	r.hosts(r.dests[0], r.dests[1])
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

// A turning is a Judge that does something while it is asked for the first time.
type turning struct{ turn func() }

func (*turning) Process(*frame.Frame, frame.At) frame.Verdict { return frame.Continue }

func (x *turning) Judge(_, _ frame.MAC, _ frame.Tuple) (func(frame.Count), bool) {
	if x.turn != nil {
		x.turn()
		x.turn = nil
	}
	return nil, true
}

func (*turning) Watch(func()) func() { return func() {} }

// TestVoidWhenPut: an entry that is void when it is put, since the MAC of the source has changed meanwhile, is renewed without a hint.
func TestVoidWhenPut(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	table := r.vsi.FDB()
	p := r.hosts(r.dests[0], r.dests[1])
	x := &turning{func() { check.OK(t, table.Set(macA, r.dests[0], fdb.Control|fdb.Override)) }}
	check.OK(t, r.at[0].Configure(vswitch.AttachConfig{Slots: vswitch.Slots{Ingress: x}}))
	p.Tuple = tupleTo(ports[0])
	h.Do(func() {
		r.drain()
		r.o.offer(p)
		check.True(t, r.o.entries[p] != nil && !r.carried(p), "no entry that is void")
		check.Equal(t, "wakes", len(r.o.wake), 1)
		r.o.renew()
		check.True(t, r.carried(p), "not carried")
		check.OK(t, r.o.Close())
	})
}
