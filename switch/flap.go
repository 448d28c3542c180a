package vswitch

import (
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A MAC that moves to and fro many times a second is what a loop looks like, or two hosts with
// one MAC. The FDB tells of each once a second; the switch passes on one of them a second, as
// an event and in the log, and takes ports out where FlapHold says so.

// notify hears what the VSI's FDB tells, with the table locked.
func (v *VSI) notify(e frame.Event) {
	if e.Kind == frame.EventMACFlapping {
		v.flaps(e)
	} else {
		v.sw.events.emit(e)
	}
}

// flaps is notify of a MAC that moves to and fro. It is a function of its own, since the event
// escapes here: no other is to allocate.
func (v *VSI) flaps(e frame.Event) {
	s := v.sw
	if v.holds.Load() && v.flapped.CompareAndSwap(nil, &e) {
		s.wake()
	}
	// Those of a second are one: the first.
	if now := s.tick.Load() + 1; s.flapAt.Swap(now) != now {
		s.flap.Store(&e)
		s.events.emit(e)
	}
}

// warn logs the flapping MAC of the last second.
func (s *Switch) warn() {
	if e := s.flap.Swap(nil); e != nil {
		s.log.Warn("a MAC moves to and fro: a loop?", "vni", e.VNI, "mac", e.MAC, "at", s.Name(e.Dest), "and", s.Name(e.Old))
	}
}

// holdPorts takes the ports that MACs flap to out of their VSIs, and lets those in again whose
// time is over.
func (s *Switch) holdPorts(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range *s.list.Load() {
		e := v.flapped.Swap(nil)
		change := false
		var out *Attachment
		for _, a := range v.members {
			switch {
			case !a.held.IsZero() && !now.Before(a.held):
				a.held = time.Time{}
				s.events.emit(frame.Event{Kind: frame.EventPortReleased, VNI: v.vni, Dest: a.Dest(0)})
			case e != nil && a.held.IsZero() && v.cfg.FlapHold > 0 && a.port.num == e.Dest.Port() && a.port.tunnel == nil:
				a.held, out = now.Add(v.cfg.FlapHold), a
				v.held.Add(1)
				s.events.emit(frame.Event{Kind: frame.EventPortHeld, VNI: v.vni, MAC: e.MAC, Dest: a.Dest(0), Old: e.Old})
				s.log.Warn("port taken out: a MAC moves to and fro", "vni", v.vni, "port", a.port.name, "mac", e.MAC, "other", s.Name(e.Old), "for", v.cfg.FlapHold)
			default:
				continue
			}
			change = true
		}
		if !change {
			continue
		}
		v.publish()
		if out != nil { // whose MACs were last heard there is reached by flooding, until heard elsewhere
			s.grace()
			v.fdb.FlushPort(out.port.num)
		}
	}
}
