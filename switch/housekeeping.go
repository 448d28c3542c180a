package vswitch

import (
	"context"
	"reflect"
	"runtime"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

const (
	interval    = 100 * time.Millisecond // between two turns of the housekeeping
	sweepSlice  = 4096                   // slots of a table per step
	sweepTable  = 16                     // cost of a change of table, in slots
	sweepBudget = 64 * sweepSlice        // slots per turn
	peerEvery   = 10 * time.Second       // between two rounds of peer ageing
)

// housekeep advances the clock, ages entries and peers, lets tables grow, and detaches ports that have
// failed. It returns when ctx is done or the switch closes.
func (s *Switch) housekeep(ctx context.Context) {
	turn := time.NewTicker(interval)
	defer turn.Stop()
	next, peers := 0, time.Now().Add(peerEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.closing:
			return
		case <-s.kick:
			s.removeFailed()
			s.holdPorts(time.Now())
		case now := <-turn.C:
			s.clock.Store(now.Unix())
			if tick := uint32(now.Sub(s.started) / time.Second); s.tick.Swap(tick) != tick {
				s.housekeepStages(frame.Tick(tick))
				s.warn()
				s.holdPorts(now)
			}
			next = s.sweep(next)
			if now.After(peers) {
				peers = now.Add(peerEvery)
				s.agePeers()
			}
		}
	}
}

// housekeepStages calls Housekeep of each stage once, even if it is in several slots.
func (s *Switch) housekeepStages(now frame.Tick) {
	stages, judges, fibs := map[Housekeeper]struct{}{}, map[Judge]struct{}{}, map[FIB]struct{}{}
	s.mu.Lock()
	for _, v := range s.vsis {
		collectVSI(stages, v)
		if len(s.judges) > 0 {
			collectVSI(judges, v)
		}
		if len(s.fibs) > 0 {
			collectVSI(fibs, v)
		}
	}
	s.watchOnly(judges, fibs)
	s.mu.Unlock()
	for t := range stages {
		t.Housekeep(now)
	}
}

// left tells the stages of a segment, and those of an attachment that has gone, that nothing is at a Dest any more.
// s.mu is held.
func (v *VSI) left(d frame.Dest, gone *Attachment) {
	stages := map[Leaver]struct{}{}
	collectVSI(stages, v)
	if gone != nil {
		collect(stages, gone.cfg.Slots)
	}
	for t := range stages {
		t.Left(d)
	}
}

// flushed tells the stages of a segment that MACs at a Dest are flushed, except who listens to groups: hosts still do. s.mu is held.
func (v *VSI) flushed(d frame.Dest) {
	stages := map[Leaver]struct{}{}
	collectVSI(stages, v)
	for t := range stages {
		if _, is := t.(Selector); !is {
			t.Left(d)
		}
	}
}

// collectVSI finds the stages of one kind of a segment and its attachments. s.mu is held.
func collectVSI[T comparable](stages map[T]struct{}, v *VSI) {
	collect(stages, v.cfg.Slots)
	for _, a := range v.members {
		collect(stages, a.cfg.Slots)
	}
}

// collect finds the stages of one kind.
func collect[T comparable](stages map[T]struct{}, s Slots) {
	for _, x := range []Stage{s.Ingress, s.Neighbour, s.Multicast, s.Gateway, s.TooBig, s.Egress} {
		collectStage(stages, x)
	}
}

func collectStage[T comparable](stages map[T]struct{}, x Stage) {
	if c, ok := x.(chain); ok {
		for _, x := range c {
			collectStage(stages, x)
		}
		return
	}
	if t, ok := x.(T); ok && reflect.TypeOf(x).Comparable() {
		stages[t] = struct{}{}
	}
}

// sweep ages the tables in turn, starting with the next-th, each for at most one round and all within
// the budget. It returns where to continue. Tables that cannot wait come first.
func (s *Switch) sweep(next int) int {
	list := *s.list.Load()
	for _, v := range list {
		for n := 0; v.fdb.MustSweep() && n < sweepBudget; n += sweepSlice {
			s.sweepSlice(v)
		}
	}
	for tables, n := 0, 0; tables < len(list) && n < sweepBudget; {
		v := list[next%len(list)]
		rounds := v.fdb.Rounds()
		n += s.sweepSlice(v) + sweepTable
		if v.fdb.Rounds() != rounds {
			next = (next + 1) % len(list)
			tables++
		}
	}
	return next
}

func (s *Switch) sweepSlice(v *VSI) int {
	s.sweeper.enter()
	n := v.fdb.Sweep(frame.Tick(s.tick.Load()), sweepSlice)
	s.sweeper.leave()
	runtime.Gosched()
	return n
}

// bumpsUnseen is the number of flushes between two checks of the tables. A table must be swept after
// four times as many, and generations wrap after eight times as many.
const bumpsUnseen = 4096

// beforeBump makes sure that no table holds an entry so old that it would look alive again after the
// generations wrap. s.mu is held.
func (s *Switch) beforeBump() {
	if s.bumps++; s.bumps%bumpsUnseen != 0 {
		return
	}
	for _, v := range *s.list.Load() {
		for v.fdb.MustSweep() {
			v.fdb.Sweep(frame.Tick(s.tick.Load()), sweepSlice)
		}
	}
}

// agePeers removes learned peers that no entry refers to: it unlinks, flushes and frees them, with a
// grace period in between, as for a port.
func (s *Switch) agePeers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.byPort {
		if p.tunnel == nil {
			continue
		}
		named := map[uint16]bool{}
		for _, a := range p.members {
			for e := range a.vsi.fdb.All() {
				if e.Dest.Port() == p.num {
					named[e.Dest.Peer()] = true
				}
			}
		}
		gone := p.tunnel.Control().Retire(func(peer uint16) bool { return named[peer] })
		if len(gone) == 0 {
			continue
		}
		s.grace()
		for _, peer := range gone {
			s.beforeBump()
			d := frame.NewDest(p.num, peer)
			s.gens.KillPeer(d)
			for _, a := range p.members {
				a.vsi.left(d, nil)
			}
			s.events.emit(frame.Event{Kind: frame.EventPeerDown, Dest: d})
		}
		s.grace()
		p.tunnel.Control().Free(gone)
	}
}
