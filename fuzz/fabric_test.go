package fuzz

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/vxswitch/vxswitch/frame"
)

// mostDelivered is how many runs of datagrams of one operation the network of a fabric delivers: two hubs send a
// frame to and fro for ever.
const mostDelivered = 100

// A fabric is some rigs, each with a model, and the network between them: what one sends to the address of another
// arrives there, unless the link between the two is cut.
type fabric struct {
	rigs []*rig
	cut  [3][3]bool
}

// A datagram is on its way from one VTEP of a fabric to another.
type datagram struct {
	from netip.AddrPort
	to   netip.Addr
	data []byte
}

// onward keeps for the fabric what leaves.
func (r *rig) onward(d datagram) {
	if r.set.fabric {
		r.mu.Lock()
		defer r.mu.Unlock()
		d.data = slices.Clone(d.data)
		r.wired = append(r.wired, d)
	}
}

// FuzzFabric is three switches, of which one input says how they are set up and the other what happens at each of
// them. A model follows each.
func FuzzFabric(f *testing.F) {
	for seed := range uint64(6) {
		f.Add(random(seed, 600), random(seed+100, 800))
	}
	f.Fuzz(oneFabric)
}

// TestFabric is the same with inputs of its own each time.
func TestFabric(t *testing.T) {
	play(t, *games/10, func(t *testing.T, s uint64) { oneFabric(t, random(s, 600), random(s+1, 4000)) })
}

func oneFabric(t *testing.T, config, happens []byte) {
	synctest.Test(t, func(t *testing.T) { newFabric(t, &draw{config}).play(&draw{happens}) })
}

func newFabric(t *testing.T, d *draw) *fabric {
	f := &fabric{}
	var first settings
	for i := range f.cut {
		var s settings
		s.draw(&draw{})
		s.simplify(d)
		if i == 0 {
			first = s
		}
		s.fabric, s.node, s.vnis, s.families = true, i, first.vnis, first.families
		f.rigs = append(f.rigs, newRig(t, s))
	}
	return f
}

func (f *fabric) play(d *draw) {
	for _, r := range f.rigs {
		defer r.end()
		r.agree()
	}
	for n := 0; n < 3*maxOps && len(d.in) > 0 && !f.rigs[0].t.Failed(); n++ {
		i, j := d.under(3), d.under(40)
		if j < 3 {
			f.cut[i][j] = !f.cut[i][j]
			continue
		}
		r := f.rigs[i]
		if r.closed {
			continue
		}
		r.played = n
		plainOps[d.under(len(plainOps))](r, d)
		for _, r := range f.rigs {
			r.compare()
		}
		f.deliver()
	}
	for _, r := range f.rigs {
		if !r.closed {
			r.check()
		}
	}
}

// deliver carries what was sent, and what is sent because of it, one run after another.
func (f *fabric) deliver() {
	for n := 0; ; n++ {
		from := slices.IndexFunc(f.rigs, func(r *rig) bool { return len(r.wired) > 0 })
		if from < 0 {
			return
		}
		sender := f.rigs[from]
		first := sender.wired[0]
		run := slices.IndexFunc(sender.wired, func(d datagram) bool { return d.from != first.from || d.to != first.to })
		if run < 0 {
			run = len(sender.wired)
		}
		ds := sender.wired[:run]
		sender.wired = sender.wired[run:]
		to := slices.IndexFunc(f.rigs, func(r *rig) bool { return r.at(first.to) })
		if to < 0 || to == from || f.cut[from][to] || f.rigs[to].closed || n >= mostDelivered {
			continue
		}
		src, _ := frame.EndpointFrom(first.from)
		var ps []packet
		for _, d := range ds {
			ps = append(ps, packet{data: d.data, outer: frame.Outer{Src: src, TTL: 64}})
		}
		f.rigs[to].wire(ps...)
		f.rigs[to].compare()
	}
}

// at reports whether the VTEP has an address.
func (r *rig) at(a netip.Addr) bool {
	return r.under.own.Addr() == a || r.under6 != nil && r.under6.own.Addr() == a
}
