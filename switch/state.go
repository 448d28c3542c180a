package vswitch

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
)

// State iterates over what there is, as the events that would tell of it: ports, peers, segments, their members and
// gateways, learned MACs and snooped neighbours. A reader of [Switch.Events] carries them out to begin with and after an
// EventOverflow, and with VNIs, for these segments without ports and peers, after an EventFlushed. Entries that control
// planes have set are not among them; see control.Plane.Watch.
func (s *Switch) State(vnis ...frame.VNI) iter.Seq[frame.Event] {
	return func(yield func(frame.Event) bool) {
		now := time.Now()
		tell := func(e frame.Event) bool {
			e.Time = now
			if e.Dest != 0 && e.Name == "" {
				e.Name = s.Name(e.Dest)
			}
			return yield(e)
		}
		if len(vnis) == 0 && !s.statePorts(tell) {
			return
		}
		for _, v := range s.VSIs() {
			if (len(vnis) == 0 || slices.Contains(vnis, v.vni)) && !v.state(tell) {
				return
			}
		}
	}
}

// statePorts tells of ports and peers.
func (s *Switch) statePorts(tell func(frame.Event) bool) bool {
	for _, p := range *s.ports.Load() {
		if p == nil || p == s.own || p.of != p {
			continue
		}
		if !tell(frame.Event{Kind: frame.EventPortUp, Dest: frame.NewDest(p.num, 0)}) {
			return false
		}
		if p.tunnel == nil {
			continue
		}
		for _, peer := range p.tunnel.Control().Peers() {
			if !tell(frame.Event{Kind: frame.EventPeerUp, Dest: frame.NewDest(p.num, peer)}) {
				return false
			}
			if d, ok := p.tunnel.(interface{ Down(peer uint16) bool }); ok && d.Down(peer) && !tell(frame.Event{Kind: frame.EventPeerDead, Dest: frame.NewDest(p.num, peer)}) {
				return false
			}
		}
	}
	return true
}

// state tells of a segment.
func (v *VSI) state(tell func(frame.Event) bool) bool {
	events := []frame.Event{{Kind: frame.EventSegmentUp, VNI: v.vni}}
	stages := map[Stateful]struct{}{}
	v.sw.mu.Lock()
	if v.gone.Load() {
		v.sw.mu.Unlock()
		return true
	}
	for _, a := range v.members {
		events = append(events, frame.Event{Kind: frame.EventAttached, VNI: v.vni, Dest: a.Dest(0)})
		if !a.held.IsZero() {
			events = append(events, frame.Event{Kind: frame.EventPortHeld, VNI: v.vni, Dest: a.Dest(0)})
		}
	}
	for r := range routers(v.cfg.Slots) {
		events = append(events, frame.Event{Kind: frame.EventGatewayUp, VNI: v.vni, Name: r.VRFName()})
	}
	collectVSI(stages, v)
	v.sw.mu.Unlock()
	for _, e := range events {
		if !tell(e) {
			return false
		}
	}
	for e := range v.fdb.All() {
		if e.Origin == fdb.OriginLearned && !tell(frame.Event{Kind: frame.EventMACLearned, VNI: v.vni, MAC: e.MAC, Dest: e.Dest}) {
			return false
		}
	}
	for t := range distinct(stages) {
		for e := range t.State {
			if e.VNI = v.vni; !tell(e) {
				return false
			}
		}
	}
	return true
}

// distinct iterates over stages, of those with the same state over one.
func distinct(stages map[Stateful]struct{}) iter.Seq[Stateful] {
	states := map[any]Stateful{}
	for t := range stages {
		key := any(t)
		if x, ok := t.(Variant); ok && x.Shares() != nil {
			key = x.Shares()
		}
		states[key] = t
	}
	return maps.Values(states)
}
