package discovery

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/discovery/internal/state"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// heeded are the events that tell which segments and hosts are here.
var heeded = []frame.EventKind{
	frame.EventMACLearned, frame.EventMACMoved, frame.EventMACAged, frame.EventMACEvicted, frame.EventMACDeleted, frame.EventFlushed,
	frame.EventSegmentUp, frame.EventSegmentDown, frame.EventAttached, frame.EventDetached, frame.EventGatewayUp, frame.EventGatewayDown,
}

// A host may move here so often within a time.
const (
	maxMoves = 5
	window   = 180 * time.Second
)

// here is what this VTEP has.
type here struct {
	segments map[frame.VNI]bool            // with the tunnel
	hosts    map[state.Key]bool            // learned on ports
	fixed    map[state.Key]int             // rows of other owners that have one on a port
	gateways map[state.Key]bool            // MACs of our own
	moves    map[state.Key][]time.Duration // when a host has moved here
	again    bool                          // events do not suffice: all is to be read
	crowded  bool                          // there was no room for all
}

func (h *here) init() {
	*h = here{segments: map[frame.VNI]bool{}, hosts: map[state.Key]bool{}, fixed: map[state.Key]int{}, gateways: map[state.Key]bool{},
		moves: map[state.Key][]time.Duration{}}
}

// forgetMoves forgets moves of long ago.
func (h *here) forgetMoves(now time.Duration) {
	for k, at := range h.moves {
		if at = slices.DeleteFunc(at, func(t time.Duration) bool { return now-t >= window }); len(at) == 0 {
			delete(h.moves, k)
		} else {
			h.moves[k] = at
		}
	}
}

// retryCrowded has all read again, and so advertised, once there is room for what there was none for.
func (s *Speaker) retryCrowded() {
	if s.here.crowded && s.state.OwnHosts() < state.MaxHosts {
		s.here.crowded, s.here.again = false, true
	}
}

// moved notes that a host moves here, and reports whether it may.
func (h *here) moved(now time.Duration, k state.Key) bool {
	if len(h.moves[k]) >= maxMoves {
		return false
	}
	h.moves[k] = append(h.moves[k], now)
	return true
}

// watch carries out events.
func (s *Speaker) watch(ctx context.Context, events *vswitch.Events) {
	for {
		e, err := events.Next(ctx)
		if err != nil {
			return
		}
		s.do(func(now time.Duration) { s.carry(now, &e) })
	}
}

func (s *Speaker) carry(now time.Duration, e *frame.Event) {
	k := state.Key{VNI: e.VNI, MAC: e.MAC}
	switch e.Kind {
	case frame.EventMACLearned, frame.EventMACMoved:
		if delete(s.here.hosts, k); e.Dest.Local() {
			s.here.hosts[k] = true
		}
	case frame.EventMACAged, frame.EventMACEvicted, frame.EventMACDeleted:
		if !e.Dest.Local() {
			return
		}
		delete(s.here.hosts, k)
	default:
		s.here.again = true
		return
	}
	if !s.here.again {
		s.decide(now, k)
	}
}

// read reads all from the switch, if events have not sufficed.
func (s *Speaker) read(now time.Duration) {
	if !s.here.again {
		return
	}
	s.here.again = false
	was := s.here
	s.here.segments, s.here.hosts, s.here.gateways = map[frame.VNI]bool{}, map[state.Key]bool{}, map[state.Key]bool{}
	for e := range s.node.Switch().State() {
		switch {
		case e.Kind == frame.EventAttached && e.Name == s.cfg.Tunnel:
			s.here.segments[e.VNI] = true
		case e.Kind == frame.EventMACLearned && e.Dest.Local():
			s.here.hosts[state.Key{VNI: e.VNI, MAC: e.MAC}] = true
		}
	}
	for _, i := range s.node.Interfaces() {
		c := i.Config()
		if len(c.Addresses) == 0 {
			continue
		}
		for _, mac := range []frame.MAC{c.MAC, c.VTEPMAC} {
			if mac.IsHost() && !(c.Anycast && mac == c.MAC) {
				s.here.gateways[state.Key{VNI: i.VNI(), MAC: mac}] = true
			}
		}
	}
	keys := map[state.Key]bool{}
	for _, m := range []map[state.Key]bool{was.hosts, was.gateways, s.here.hosts, s.here.gateways} {
		maps.Copy(keys, m)
	}
	for k := range s.here.fixed {
		keys[k] = true
	}
	for _, segments := range []map[frame.VNI]bool{was.segments, s.here.segments} {
		for vni := range segments {
			if keys[state.Key{VNI: vni}] = true; was.segments[vni] != s.here.segments[vni] {
				s.apply(s.state.Segment(vni))
			}
		}
	}
	for k := range keys {
		s.decide(now, k)
	}
}

// decide has a host or segment advertised, or not.
func (s *Speaker) decide(now time.Duration, k state.Key) {
	h := state.Host{VNI: k.VNI, MAC: k.MAC}
	switch {
	case !s.here.segments[k.VNI]:
		s.state.Remove(k.VNI, k.MAC)
		return
	case k.MAC.IsZero():
	case s.here.fixed[k] > 0 || s.here.gateways[k]:
		h.Kind = state.Static
	case !s.here.hosts[k]:
		s.state.Remove(k.VNI, k.MAC)
		return
	default:
		if own, ok := s.state.Own(k.VNI, k.MAC); ok && own.Kind == state.Learned {
			return
		}
		best, ok := s.state.Best(k.VNI, k.MAC)
		if h.Moves = best.Moves; ok && best.Owner != s.cfg.Local {
			if best.Kind == state.Static || !s.here.moved(now, k) {
				s.lose(k)
				return
			}
			h.Moves = min(best.Moves, math.MaxUint16-1) + 1
		}
	}
	if !s.state.Add(h) {
		s.counts.refused[NoRoom]++
		s.here.crowded = true
	}
}

// lose lets another VTEP have a host: what the switch has learned makes room.
func (s *Speaker) lose(k state.Key) {
	delete(s.here.hosts, k)
	s.state.Remove(k.VNI, k.MAC)
	if r := s.node.Neighbours(k.VNI); r != nil {
		for e := range r.Table().All() {
			if e.MAC == k.MAC {
				r.Table().DeleteIf(e.IP, func(e arp.Entry) bool { return e.MAC == k.MAC && e.Origin == arp.Snooped && e.From.Local() })
			}
		}
	}
	for _, v := range s.node.Switch().VSIs() {
		if v.VNI() == k.VNI {
			v.FDB().DeleteIf(k.MAC, func(e fdb.Entry) bool { return e.Origin == fdb.OriginLearned && e.Dest.Local() })
		}
	}
	s.ledger.Again(state.Change{Key: k})
	s.loop.Wake()
}
