package fuzz

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

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

// agree compares everything that can be seen from outside with the model.
func (r *rig) agree() {
	var d diff
	r.mu.Lock()
	out := r.out
	r.out = map[int][]string{}
	r.mu.Unlock()
	for id := range farPort + 1 {
		got, want := out[id], r.g.out[id]
		if id == farPort { // to each of a list, in any order
			slices.Sort(got)
			slices.Sort(want)
		}
		d.frames(portName(id), got, want)
	}
	clear(r.g.out)
	st := r.sw.Stats()
	d.ports(&st, r.g)
	d.vsis(&st, r.g)
	for _, v := range r.sw.VSIs() {
		if want := r.g.vsis[v.VNI()]; want != nil {
			d.table(r, v, want)
		}
	}
	slices.Sort(r.g.events)
	d.same("events", strings.Join(r.told(), ", "), strings.Join(r.g.events, ", "))
	r.g.events = nil
	if err := d.err(); err != nil {
		r.errorf("after %d operations: %v", r.played, err)
	}
}

func (d *diff) frames(who string, got, want []string) {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			d.addf("%s: missing %s", who, want[i])
		case i >= len(want):
			d.addf("%s: unexpected %s", who, got[i])
		case got[i] != want[i]:
			d.addf("%s: got %s, want %s", who, got[i], want[i])
		}
	}
}

func (d *diff) ports(st *vswitch.Stats, g *golden) {
	ports := map[string]tally{"switch": g.own}
	for id, p := range g.ports {
		ports[portName(id)] = p.tally
	}
	for _, p := range st.Ports {
		want, ok := ports[p.Name]
		if !ok {
			d.addf("%s: port is still there", p.Name)
			continue
		}
		delete(ports, p.Name)
		d.tally(p.Name, p, want)
	}
	for name := range ports {
		d.addf("%s: port is not there", name)
	}
}

func (d *diff) vsis(st *vswitch.Stats, g *golden) {
	for _, v := range st.VSIs {
		want := g.vsis[v.VNI]
		who := fmt.Sprintf("VSI %d", v.VNI)
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
	if len(st.VSIs) != len(g.vsis) {
		d.addf("%d VSIs, want %d", len(st.VSIs), len(g.vsis))
	}
}

func (d *diff) tally(who string, got vswitch.PortStats, want tally) {
	d.same(who+" rx, tx, forwarded, replied, consumed",
		[5]uint64{got.Rx.Frames, got.Tx.Frames, got.Forwarded, got.Replied, got.Consumed},
		[5]uint64{want.rx, want.tx, want.forwarded, 0, 0})
	d.same(who+" flooded", got.Flood, want.flood)
	d.drops(who+" rx", got.RxDrops, want.rxDrops)
	d.drops(who+" tx", got.TxDrops, want.txDrops)
}

func (d *diff) drops(who string, got, want frame.Drops) {
	for r := range got {
		if got[r] != want[r] {
			d.addf("%s: %d drops %v, want %d", who, got[r], frame.Reason(r), want[r])
		}
	}
}

func (d *diff) table(r *rig, v *vswitch.VSI, want *gvsi) {
	who := fmt.Sprintf("VSI %d", v.VNI())
	got, exp := map[frame.MAC]string{}, map[frame.MAC]string{}
	for e := range v.FDB().All() {
		at := r.called(e.Dest)
		got[e.MAC] = fmt.Sprint(at, " ", e.Origin)
		if to, ok := v.FDB().Lookup(e.MAC); !ok || r.called(to) != at {
			d.addf("%s: %v is listed at %s, look-up says %v %v", who, e.MAC, at, to, ok)
		}
	}
	for mac, e := range want.fdb {
		at := e.at.String()
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

// An event is one of the switch's, and what its peers were called when it came.
type event struct {
	frame.Event
	at, from string
}

// watch collects the events, until there are no more.
func (r *rig) watch() {
	for {
		e, err := r.events.Next(context.Background())
		if err != nil {
			return
		}
		r.mu.Lock()
		r.seen = append(r.seen, event{e, r.peerName(e.Dest), r.peerName(e.Old)})
		r.mu.Unlock()
	}
}

// peerName returns what a peer is called, "" for a Dest without one.
func (r *rig) peerName(d frame.Dest) string {
	if d.Peer() == 0 || d == frame.Filter {
		return ""
	}
	return r.vtep.PeerName(d.Peer())
}

// called returns the name of a Dest, of ports that are gone too.
func (r *rig) called(d frame.Dest) string {
	switch peer := r.peerName(d); {
	case d == frame.Filter:
		return "filter"
	case peer != "":
		return peer
	}
	return r.names[d.Port()]
}

// told returns the events since the last call in words, sorted.
func (r *rig) told() (words []string) {
	r.mu.Lock()
	events := r.seen
	r.seen = nil
	r.mu.Unlock()
	for _, e := range events {
		at, from := cmp.Or(e.at, r.called(e.Dest)), cmp.Or(e.from, r.called(e.Old))
		switch e.Kind {
		case frame.EventPortUp:
			words = append(words, fmt.Sprintf("%v %s", e.Kind, at))
		case frame.EventSegmentUp, frame.EventSegmentDown:
			words = append(words, fmt.Sprintf("%v %d", e.Kind, e.VNI))
		case frame.EventAttached, frame.EventDetached, frame.EventFlushed:
			words = append(words, fmt.Sprintf("%v %d %s", e.Kind, e.VNI, at))
		case frame.EventPeerUp, frame.EventPeerDown, frame.EventMACRefused: // the model has no peers that were learned, and no seconds
		case frame.EventGatewayUp, frame.EventGatewayDown: // control.TestEvents
		case frame.EventPortDown:
			cause := ""
			if errors.Is(e.Err, net.ErrClosed) {
				cause = "closed"
			} else if e.Err != nil {
				cause = e.Err.Error()
			}
			words = append(words, fmt.Sprintf("%v %s %s", e.Kind, at, cause))
		case frame.EventMACMoved:
			words = append(words, fmt.Sprintf("%v %d %v %s from %s pinned=%v", e.Kind, e.VNI, e.MAC, at, from, e.Pinned))
		default:
			words = append(words, fmt.Sprintf("%v %d %v %s", e.Kind, e.VNI, e.MAC, at))
		}
	}
	slices.Sort(words)
	return words
}
