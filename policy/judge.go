package policy

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// judge takes the steps in doc.go.
func (p *Policy) judge(f *frame.Frame, at frame.At, slot int) frame.Verdict {
	j := judgement{p: p, rules: p.rules.Load(), counts: p.counts.Of(at.Worker), at: at, slot: slot, bytes: f.Len(), segment: f.VNI}
	if !j.k.parse(f) {
		j.event(evMalformed)
		return frame.Drop(frame.Policy)
	}
	if j.rules.stateless {
		if j.rules.logged != nil {
			j.from = openedAt(f, at)
		}
		return j.byRules()
	}
	j.from = openedAt(f, at)
	if !j.rules.routed {
		j.vni = f.VNI
	}
	if j.k.later {
		if j.fragment() {
			j.event(evFragments)
			return frame.Continue
		}
		return j.byRules()
	}
	v := j.whole()
	if v == frame.Continue && j.k.first {
		j.remember()
	}
	return v
}

// openedAt returns the Dest that a flow of f counts for. For the gateway's packets that is where
// they entered; it is unknown after they have waited for a next hop.
func openedAt(f *frame.Frame, at frame.At) frame.Dest {
	switch {
	case f.From.Port() != 0:
		return f.Origin()
	case at.From != 0:
		return at.From
	}
	return frame.NewDest(0, uint16(at.Worker))
}

// A judgement is the state of judge for one packet.
type judgement struct {
	p       *Policy
	rules   *ruleset
	counts  *counts
	at      frame.At
	slot    int
	bytes   int
	from    frame.Dest
	segment frame.VNI
	vni     frame.VNI // of keys
	k       packet
}

func (j *judgement) event(e event) { j.counts.events[e].Count(1, j.at.Worker) }

// count counts the packet for a rule and returns the rule's verdict.
func (j *judgement) count(rule int) frame.Verdict {
	j.counts.add(j.rules.counters[rule], 1, uint64(j.bytes), j.at.Worker)
	if j.rules.actions[rule] == Allow {
		return frame.Continue
	}
	return frame.Drop(frame.Policy)
}

func (j *judgement) byRules() frame.Verdict { return j.count(j.decide()) }

// decide returns the rule that decides on the packet, and notes those with Pass and Log that it comes by.
func (j *judgement) decide() int {
	var q query
	j.rules.query(&q, &j.k, j.slot)
	r := j.rules.next(&q, &j.k, 0)
	for from, ok := j.rules.goesOn(r); ok; from, ok = j.rules.goesOn(r) {
		j.counts.add(j.rules.counters[r], 1, uint64(j.bytes), j.at.Worker)
		if j.rules.actions[r] == Log {
			j.log(r, from)
		}
		r = j.rules.next(&q, &j.k, from)
	}
	return r
}

// whole judges a packet that is not a later fragment.
func (j *judgement) whole() frame.Verdict {
	if j.k.quoted != nil && j.related() {
		j.event(evRelated)
		return frame.Continue
	}
	if !j.k.flowing() {
		return j.byRules()
	}
	w, down := j.k.flowKey(j.vni)
	x, ok := j.p.flows.find(&w, j.at.Tick, &j.rules.limits)
	if !ok {
		return j.open(&w, down)
	}
	if down == (x.state&stDown != 0) {
		return j.forward(&x)
	}
	return j.reply(&w, &x, down)
}

// open judges a packet without a flow, and tracks the flow it opens.
func (j *judgement) open(w *key, down bool) frame.Verdict {
	rule := j.decide()
	v := j.count(rule)
	if v == frame.Continue && j.k.opens(j.rules.pickUp) {
		j.track(w, rule, down)
	}
	return v
}

// track begins a flow.
func (j *judgement) track(w *key, rule int, down bool) {
	st := slotBit(j.slot)
	if down {
		st |= stDown
	}
	n := newFlow{newState(j.rules.generation, rule, st), j.at.Tick, j.k.group, j.from}
	e := j.p.flows.insert(w, &n, &j.rules.limits)
	j.event(e)
	if e == evEvicted {
		j.event(evOpened)
	}
}

// forward judges a packet of a flow's opener. It passes if one before it did, in this slot under
// the current rules.
func (j *judgement) forward(x *found) frame.Verdict {
	st := x.state
	fresh := st.generation() == j.rules.generation
	rule := st.rule()
	if !fresh || st&slotBit(j.slot) == 0 {
		rule = j.decide()
		if j.rules.actions[rule] != Allow {
			if !fresh && j.p.flows.remove(x) {
				j.event(evRevoked)
			}
			return j.count(rule)
		}
		slots := slotBit(j.slot)
		if fresh {
			slots |= st & stSlots
		}
		st = st.admitted(j.rules.generation, rule, slots)
		x.regroup(j.k.group)
	}
	if j.k.protocol == wire.ProtoTCP {
		switch {
		case j.k.opens(false) && st&stClosing != 0: // the ports are reused
			st &^= stClosing | stAnswered | stAssured
		case j.k.flags&(wire.FIN|wire.RST) != 0:
			st |= stClosing
		}
	}
	if st&stAnswered != 0 && j.k.flags&(wire.SYN|wire.FIN|wire.RST) == 0 {
		st |= stAssured
	}
	x.change(st)
	x.touch(j.at.Tick)
	return j.count(rule)
}

// reply judges a packet to a flow's opener.
func (j *judgement) reply(w *key, x *found, down bool) frame.Verdict {
	st := x.state
	if j.k.protocol == wire.ProtoTCP && j.k.opens(false) {
		return j.crossing(w, x, down)
	}
	if st.generation() != j.rules.generation {
		t := j.k.reversed()
		t.group = x.group
		for slot := range 2 {
			if st&slotBit(slot) == 0 {
				continue
			}
			rule := j.rules.find(&t, slot)
			if j.rules.actions[rule] != Allow {
				if j.p.flows.remove(x) {
					j.event(evRevoked)
				}
				return j.open(w, down)
			}
			st = st.admitted(j.rules.generation, rule, st&stSlots)
		}
	}
	st |= stAnswered
	if j.k.protocol == wire.ProtoTCP && j.k.flags&(wire.FIN|wire.RST) != 0 {
		st |= stClosing
	}
	x.change(st)
	x.touch(j.at.Tick)
	j.event(evReplies)
	return frame.Continue
}

// crossing judges a SYN to a flow's opener: a new connection, which replaces a closing one.
func (j *judgement) crossing(w *key, x *found, down bool) frame.Verdict {
	if x.state&stClosing == 0 {
		return j.byRules()
	}
	rule := j.decide()
	v := j.count(rule)
	if v == frame.Continue && j.p.flows.remove(x) {
		j.track(w, rule, down)
	}
	return v
}

// related reports whether an ICMP error is about a packet of a flow that the current rules admitted.
func (j *judgement) related() bool {
	var q packet
	if !j.k.quote(&q) {
		return false
	}
	w, _ := q.flowKey(j.vni)
	x, ok := j.p.flows.find(&w, j.at.Tick, &j.rules.limits)
	return ok && x.state.generation() == j.rules.generation
}

// remember notes that a first fragment passed.
func (j *judgement) remember() {
	w := j.k.fragmentKey(j.vni)
	st := newState(j.rules.generation, 0, slotBit(j.slot))
	x, ok := j.p.fragments.find(&w, j.at.Tick, &j.p.waits)
	if !ok {
		if j.p.fragments.insert(&w, &newFlow{st, j.at.Tick, 0, j.from}, &j.p.waits) == evFull {
			j.event(evFull)
		}
		return
	}
	if x.state.generation() == j.rules.generation {
		st |= x.state & stSlots
	}
	x.change(st)
	x.touch(j.at.Tick)
}

// fragment reports whether the first fragment of the datagram passed in this slot.
func (j *judgement) fragment() bool {
	w := j.k.fragmentKey(j.vni)
	x, ok := j.p.fragments.find(&w, j.at.Tick, &j.p.waits)
	return ok && x.state.generation() == j.rules.generation && x.state&slotBit(j.slot) != 0
}
