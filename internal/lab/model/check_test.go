package model

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A world is the fabric and its model, side by side.
type world struct {
	g *golden
	l *lab
	t *topology

	place map[int]*where // of hosts
	queue int            // of hosts' ports
}

// where a host's port is.
type where struct {
	node   int // -1: nowhere
	paused bool
	wait   [][]byte // sent while it was paused
	mtu    int
}

// diff collects what does not agree.
type diff []string

func (d *diff) addf(format string, args ...any) { *d = append(*d, fmt.Sprintf(format, args...)) }

// same compares what can be compared, or else what it looks like.
func (d *diff) same(what string, got, want any) {
	if got == want {
		return
	}
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		d.addf("%s: got %s, want %s", what, g, w)
	}
}

func (d diff) err() error {
	if len(d) == 0 {
		return nil
	}
	return errors.New(strings.Join(d, "\n\t"))
}

// check compares everything that can be seen from outside.
func (w *world) check() error {
	var d diff
	for id := firstHost; id < firstHost+w.t.hosts; id++ {
		var got [][]byte
		if h := w.l.hosts[id]; h != nil {
			got = h.take()
		}
		d.frames(hostName(id), got, w.g.got[id])
	}
	for k, o := range w.l.outside {
		got, want := o.take(), w.g.wire[k]
		slices.Sort(got)
		slices.Sort(want)
		d.same(fmt.Sprintf("outsider %d", k), strings.Join(got, ", "), strings.Join(want, ", "))
	}
	clear(w.g.got)
	clear(w.g.wire)
	for i, n := range w.l.nodes {
		d.node(n, w.g.nodes[i], w.g)
	}
	d.same("network", w.l.net.Stats(), w.g.net)
	return d.err()
}

func (d *diff) frames(who string, got, want [][]byte) {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			d.addf("%s: missing %x", who, want[i])
		case i >= len(want):
			d.addf("%s: unexpected %x", who, got[i])
		default:
			if !bytes.Equal(got[i], want[i]) {
				d.addf("%s: got %x, want %x", who, got[i], want[i])
			}
		}
	}
}

func (d *diff) node(n *node, m *gnode, g *golden) {
	st := n.Stats()
	ports := map[string]tally{"switch": m.own}
	for id, p := range m.ports {
		ports[g.name(dest{port: id})] = p.tally
	}
	for _, p := range st.Ports {
		want, ok := ports[p.Name]
		who := m.name + " " + p.Name
		if !ok {
			d.addf("%s: port is still there", who)
			continue
		}
		delete(ports, p.Name)
		d.tally(who, p, want)
	}
	for name := range ports {
		d.addf("%s %s: port is not there", m.name, name)
	}
	for _, v := range st.VSIs {
		want := m.vsis[v.VNI]
		who := fmt.Sprintf("%s VSI %d", m.name, v.VNI)
		if want == nil {
			d.addf("%s: is still there", who)
			continue
		}
		d.same(who+" flooded", v.Flood, want.flood)
		d.drops(who, v.Drops, want.drops)
		d.same(who+" learned, moved, aged, full, entries",
			[5]uint64{v.FDB.Learned, v.FDB.Moved, v.FDB.Aged, v.FDB.Full, uint64(v.FDB.Entries)},
			[5]uint64{want.learned, want.moved, want.aged, want.full, uint64(len(want.fdb))})
	}
	if len(st.VSIs) != len(m.vsis) {
		d.addf("%s: %d VSIs, want %d", m.name, len(st.VSIs), len(m.vsis))
	}
	for _, v := range n.VSIs() {
		if want := m.vsis[v.VNI()]; want != nil {
			d.table(n, v, want, fmt.Sprintf("%s VSI %d", m.name, v.VNI()), g)
		}
	}
	slices.Sort(m.events)
	d.same(m.name+" events", strings.Join(n.takeEvents(), ", "), strings.Join(m.events, ", "))
	m.events = nil
}

func (d *diff) tally(who string, got vswitch.PortStats, want tally) {
	d.same(who+" rx, tx, forwarded, replied, consumed",
		[5]uint64{got.Rx.Frames, got.Tx.Frames, got.Forwarded, got.Replied, got.Consumed},
		[5]uint64{want.rx, want.tx, want.forwarded, 0, 0})
	d.same(who+" flooded", got.Flood, want.flood)
	d.drops(who+" rx", got.RxDrops, want.rxDrops)
	d.drops(who+" tx", got.TxDrops, want.txDrops)
	d.accounted(who, got)
}

// accounted: every frame in is in exactly one counter.
func (d *diff) accounted(who string, p vswitch.PortStats) {
	out := p.Forwarded + p.Replied + p.Consumed + p.Flood.Broadcast + p.Flood.Multicast + p.Flood.Unknown + p.RxDrops.Total()
	if p.Rx.Frames != out {
		d.addf("%s: %d frames in, %d accounted for", who, p.Rx.Frames, out)
	}
	for _, x := range []frame.Drops{p.RxDrops, p.TxDrops} {
		if x[frame.NotDropped] != 0 {
			d.addf("%s: %d drops without a name", who, x[frame.NotDropped])
		}
	}
}

func (d *diff) drops(who string, got, want frame.Drops) {
	for r := range got {
		if got[r] != want[r] {
			d.addf("%s: %d drops %v, want %d", who, got[r], frame.Reason(r), want[r])
		}
	}
}

func (d *diff) table(n *node, v *vswitch.VSI, want *gvsi, who string, g *golden) {
	got, exp := map[frame.MAC]string{}, map[frame.MAC]string{}
	for e := range v.FDB().All() {
		at := n.called(e.Dest)
		got[e.MAC] = fmt.Sprint(at, " ", e.Origin)
		if to, ok := v.FDB().Lookup(e.MAC); !ok || n.called(to) != at {
			d.addf("%s: %v is listed at %s, look-up says %v %v", who, e.MAC, at, to, ok)
		}
	}
	for mac, e := range want.fdb {
		at := g.name(e.at)
		if e.filter {
			at = "filter"
		}
		exp[mac] = at + " " + string(e.origin)
	}
	if maps.Equal(got, exp) {
		return
	}
	for mac, at := range got {
		if exp[mac] != at {
			d.addf("%s: %v is at %s, want %q", who, mac, at, exp[mac])
		}
	}
	for mac, at := range exp {
		if got[mac] == "" {
			d.addf("%s: %v is not known, want %q", who, mac, at)
		}
	}
}
