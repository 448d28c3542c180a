package vswitch

import (
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A MAC that flaps between two places means a loop, or two hosts with one MAC. The FDB reports each such
// MAC once a second. The switch passes on one report a second, as an event and in the log, and blocks
// ports where FlapHold is set.

// notify gets the events of the VSI's FDB, which is locked.
func (v *VSI) notify(e frame.Event) {
	if e.Kind == frame.EventMACFlapping {
		v.flaps(e)
	} else {
		v.sw.events.emit(e)
	}
}

// flaps is notify for a flapping MAC. The event escapes here, so this is a function of its own: notify
// must not allocate for other events.
func (v *VSI) flaps(e frame.Event) {
	s := v.sw
	if v.holds.Load() && v.flapped.CompareAndSwap(nil, &e) {
		s.wake()
	}
	// Only the first of a second.
	if now := s.tick.Load() + 1; s.flapAt.Swap(now) != now {
		s.flap.Store(&e)
		s.events.emit(e)
	}
}

// warn logs the flapping MAC of the last second.
func (s *Switch) warn() {
	if e := s.flap.Swap(nil); e != nil {
		s.log.Warn("a MAC is flapping, there may be a loop", "vni", e.VNI, "mac", e.MAC, "at", s.Name(e.Dest), "and", s.Name(e.Old))
	}
}

// holdPorts blocks the ports that MACs flap to, and unblocks those whose FlapHold is over.
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
				s.log.Warn("port blocked: a MAC is flapping", "vni", v.vni, "port", a.port.title(), "mac", e.MAC, "other", s.Name(e.Old), "for", v.cfg.FlapHold)
			default:
				continue
			}
			change = true
		}
		if !change {
			continue
		}
		v.publish()
		if out != nil { // its MACs are flooded until they are seen elsewhere
			s.grace()
			v.fdb.FlushPort(out.port.num)
		}
	}
}
