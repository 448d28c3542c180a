package fuzz

import (
	"reflect"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// totals is what the counters of ports add up to.
type totals struct{ decided, flooded, staged uint64 }

func (t *totals) add(p *vswitch.PortStats) {
	t.decided += p.Forwarded + p.Replied
	t.flooded += p.Flood.Broadcast + p.Flood.Multicast + p.Flood.Unknown
	t.staged += p.Tx.Frames + p.TxDrops.Total()
}

// remember keeps the counters of all ports before some of them leave; forget takes back those
// of ports that are still there.
func (r *rig) remember() {
	for _, p := range r.ports {
		r.count(p)
	}
	st := r.sw.Stats()
	for i := range st.Ports {
		r.gone.add(&st.Ports[i])
	}
}

func (r *rig) forget() {
	st := r.sw.Stats()
	var left totals
	for i := range st.Ports {
		left.add(&st.Ports[i])
	}
	r.gone.decided -= left.decided
	r.gone.flooded -= left.flooded
	r.gone.staged -= left.staged
	for _, p := range r.ports {
		if !r.attached(p) { // when it comes back it is another one to the switch
			p.entered = 0
			p.got.Store(0)
		}
	}
}

// count compares what a local port has seen with what the switch says of it.
func (r *rig) count(p *localPort) {
	for _, s := range r.sw.Stats().Ports {
		if x := r.numbered(s.Port); x != p || x == nil {
			continue
		}
		if got := p.got.Load(); got != s.Tx.Frames {
			r.errorf("port %d: %d frames out, %d counted", p.id, got, s.Tx.Frames)
		}
		if p.entered > s.Rx.Frames || p.entered != s.Rx.Frames && !r.set.routes() {
			r.errorf("port %d: %d frames entered, %d counted", p.id, p.entered, s.Rx.Frames)
		}
	}
}

func (r *rig) attached(p *localPort) bool {
	for _, x := range r.segs {
		if x != nil && x.at[p.id] != nil {
			return true
		}
	}
	return false
}

// numbered returns the local port that has a number in the switch.
func (r *rig) numbered(n uint16) *localPort {
	for _, x := range r.segs {
		if x == nil {
			continue
		}
		for _, a := range x.at {
			if a != nil && a.Dest(0).Port() == n {
				p, _ := a.Port().(*localPort)
				return p
			}
		}
	}
	return nil
}

// check is what holds at every moment when nothing moves.
func (r *rig) check() {
	st := r.sw.Stats()
	sum := r.gone
	for i := range st.Ports {
		p := &st.Ports[i]
		sum.add(p)
		n := p.Forwarded + p.Replied + p.Consumed + p.Flood.Broadcast + p.Flood.Multicast + p.Flood.Unknown + p.RxDrops.Total()
		if n != p.Rx.Frames {
			r.errorf("port %s: %d frames in, %d accounted for", p.Name, p.Rx.Frames, n)
		}
		if p.RxDrops[frame.NotDropped]+p.TxDrops[frame.NotDropped] != 0 {
			r.errorf("port %s: drops without a name", p.Name)
		}
		if p.Accepted.Frames != p.Rx.Frames-p.RxDrops.Total() {
			r.errorf("port %s: %d accepted of %d, %d dropped", p.Name, p.Accepted.Frames, p.Rx.Frames, p.RxDrops.Total())
		}
	}
	least := sum.decided
	if !r.set.routes() { // a gateway may be all that a flooded frame meets
		least += sum.flooded
	}
	if sum.staged < least {
		r.errorf("%d frames were for some port, %d copies were staged", least, sum.staged)
	}
	for _, p := range r.ports {
		r.count(p)
	}
	r.bounds(&st)
}

// bounds are those of tables.
func (r *rig) bounds(st *vswitch.Stats) {
	all := 0
	for i, x := range r.segs {
		if x == nil {
			continue
		}
		c := &r.set.segments[i].vsi
		n := x.vsi.FDB().Stats().LearnedEntries
		if all += n; n > limit(c) {
			r.errorf("VSI %d: %d MACs, limit %d", r.vnis[i], n, limit(c))
		}
		for e := range x.vsi.FDB().All() {
			if e.MAC.IsGroup() && e.Origin == fdb.OriginLearned || e.MAC.IsZero() {
				r.errorf("VSI %d: %v", r.vnis[i], e.MAC)
			}
		}
		if x.table != nil {
			if s := x.table.Stats(); s.Snooped > 8 {
				r.errorf("VSI %d: %d neighbours", r.vnis[i], s.Snooped)
			}
		}
		if x.iface != nil {
			if s := x.iface.Stats(); s.Waiting > 4096 {
				r.errorf("VSI %d: %d are waited for", r.vnis[i], s.Waiting)
			}
		}
	}
	// A VSI that has less than its share learns beyond the limit, until the next sweep.
	if max := r.set.maxMACs; max != 0 && all > 2*max {
		r.errorf("%d MACs in all, limit %d", all, max)
	}
	want := r.set.tunnel.MaxPeers
	if want == 0 {
		want = 1024
	}
	if s := r.vtep.Stats(); s.Learned > want && !r.delisted {
		r.errorf("%d learned peers, limit %d", s.Learned, want)
	}
	if r.policy != nil {
		if s := r.policy.Stats(); s.Flows.Tracked > 16 {
			r.errorf("%d flows", s.Flows.Tracked)
		}
	}
}

// end closes the switch, once more if need be: its last counters are those before.
func (r *rig) end() {
	before := r.sw.Stats()
	r.must(r.sw.Close())
	r.must(r.sw.Close())
	<-r.done
	after := r.sw.Stats()
	for i := range before.VSIs { // Close forgets entries of ports
		before.VSIs[i].FDB, after.VSIs[i].FDB = fdb.Stats{}, fdb.Stats{}
	}
	if !reflect.DeepEqual(before, after) {
		r.errorf("counters before Close %+v, after it %+v", before, after)
	}
	r.must(r.vtep.Close())
	for _, p := range r.ports {
		p.Close()
	}
}
