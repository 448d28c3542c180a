package arp

import (
	"net/netip"
	"sync"

	"github.com/vxswitch/vxswitch/frame"
)

// questions are those of hosts that wait for a control plane's answer, one for each target. [pending.Set] lets a port or
// peer have a share of them.
type questions struct {
	mu       sync.Mutex
	byTarget map[netip.Addr]missedQuestion
}

type missedQuestion struct {
	r    *Responder // that of the asker's attachment
	b    []byte
	from frame.Dest
	tick frame.Tick
}

// maxQuestion is the length of the longest question that is kept; those of hosts have 42 to 86 bytes.
const maxQuestion = 128

// Missed tells control planes that a host at a Dest needs a neighbour that is unknown, if Miss is set and they were not
// told recently. A gateway calls it for packets that wait.
func (r *Responder) Missed(ip netip.Addr, from frame.Dest, now frame.Tick) (told bool) {
	return r.missed(ip, from, now, nil)
}

// missed is Missed with the question that the control plane's answer is for, nil for none. It keeps the question before it
// tells: the answer may come at once.
func (r *Responder) missed(ip netip.Addr, from frame.Dest, now frame.Tick, question *frame.Frame) (told bool) {
	if r.missing == nil || !r.missing.Take(ip, from.Port(), from.Peer(), uint32(now)) {
		return false
	}
	if question != nil {
		r.remember(question, ip, now)
	}
	r.cfg.Notify(frame.Event{Kind: frame.EventNeighbourMiss, VNI: r.table.cfg.VNI, IP: ip, Dest: from})
	if _, known := r.table.Lookup(ip); known && question != nil { // set between the look-up and remember, for somebody else
		r.answerLate(ip)
	}
	return true
}

// remember keeps a question until its target is set.
func (r *Responder) remember(f *frame.Frame, target netip.Addr, now frame.Tick) {
	if r.cfg.Inject == nil || f.Len() > maxQuestion {
		return
	}
	q := missedQuestion{r, append([]byte(nil), f.Bytes()...), f.From, now}
	r.questions.mu.Lock()
	defer r.questions.mu.Unlock()
	r.questions.byTarget[target] = q
}

// forgetQuestions removes those that are older than MissTimeout.
func (r *Responder) forgetQuestions(now frame.Tick) {
	r.questions.mu.Lock()
	defer r.questions.mu.Unlock()
	for ip, q := range r.questions.byTarget {
		if int32(now-q.tick) > int32(r.missTimeout) {
			delete(r.questions.byTarget, ip)
		}
	}
}

// answerLate answers the question for a target that was set: it goes through Process once more.
func (s *shared) answerLate(target netip.Addr) {
	s.questions.mu.Lock()
	q, ok := s.questions.byTarget[target]
	delete(s.questions.byTarget, target)
	s.questions.mu.Unlock()
	if !ok {
		return
	}
	f := frame.Make(q.b)
	f.From, f.VNI = q.from, s.table.cfg.VNI
	if q.r.Process(&f, frame.At{Tick: q.tick}) == frame.Reply {
		s.cfg.Inject(&f)
	}
}
