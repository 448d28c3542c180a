package snoop

import (
	"maps"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/shares"
)

// A key is a group at a place.
type key struct {
	group group
	place frame.Dest
}

// A row is a place with listeners to a group.
type row struct {
	key
	until frame.Tick // when it is over
	asks  int        // queries about the group that are still to be sent there
	at    *shares.Item[*row]
}

// report applies what a host says, which with alone is the only one at the place. s.mu is held.
func (s *state) report(m *message, place frame.Dest, alone bool, now frame.Tick) {
	left := false
	m.changes(func(g group, leaves bool) {
		switch {
		case g.flooded():
		case leaves:
			left = true
			s.leave(key{g, place}, alone, now)
		default:
			s.join(key{g, place}, now)
		}
	})
	if left {
		s.counts[countLeaves].Add(1)
	} else {
		s.counts[countReports].Add(1)
	}
}

// join notes a listener. s.mu is held.
func (s *state) join(k key, now frame.Tick) {
	until := now + s.of[k.group.family()].listen
	if r := s.rows[k]; r != nil {
		r.until = until
		s.asked(r)
		s.order.Renew(r.at)
		return
	}
	if _, n := s.order.Of(k.place); n >= s.cfg.PerDest || !s.order.Room(k.place, 1, s.cfg.Limit, s.displace) {
		s.crowd(k.place, until)
		return
	}
	r := &row{key: k, until: until}
	r.at = s.order.Add(k.place, r, 1)
	s.rows[k] = r
	list, _ := s.joined.Load(k.group)
	i, _ := slices.BinarySearch(list, k.place)
	s.joined.Store(k.group, slices.Concat(list[:i], []frame.Dest{k.place}, list[i:]))
}

// displace removes a row to make room for that of another place. s.mu is held.
func (s *state) displace(r *row) {
	s.remove(r)
	s.crowd(r.place, r.until)
}

// crowd has a place get the frames of all groups until a time. s.mu is held.
func (s *state) crowd(place frame.Dest, until frame.Tick) {
	s.counts[countFull].Add(1)
	was, ok := s.crowded[place]
	if s.crowded[place] = max(was, until); !ok {
		s.publish()
	}
}

// leave notes that a host has stopped to listen. Others behind the same place, unless it is alone, may go on: the querier asks
// them. s.mu is held.
func (s *state) leave(k key, alone bool, now frame.Tick) {
	r := s.rows[k]
	switch {
	case r == nil:
	case alone:
		s.remove(r)
	case s.asks(k.group.family(), now):
		if r.asks == 0 {
			r.asks = lastQueries
			s.asking[r] = struct{}{}
		}
		r.until = min(r.until, now+lastTime)
	}
}

// asked ends the questions about a row. s.mu is held.
func (s *state) asked(r *row) {
	r.asks = 0
	delete(s.asking, r)
}

// remove removes a row. s.mu is held.
func (s *state) remove(r *row) {
	s.asked(r)
	delete(s.rows, r.key)
	s.order.Remove(r.at)
	list, _ := s.joined.Load(r.group)
	i, ok := slices.BinarySearch(list, r.place)
	switch {
	case !ok:
	case len(list) == 1:
		s.joined.Delete(r.group)
	default:
		s.joined.Store(r.group, slices.Concat(list[:i], list[i+1:]))
	}
}

// router notes the place of a multicast router. s.mu is held.
func (s *state) router(family int, place frame.Dest, now frame.Tick) {
	_, ok := s.from[family][place]
	if s.from[family][place] = now + routerTime; !ok {
		s.publish()
	}
}

// publish shows Select the places that get the frames of all groups. s.mu is held.
func (s *state) publish() {
	for f := range s.from {
		routers := slices.AppendSeq(slices.Clone(s.always), maps.Keys(s.from[f]))
		all := slices.AppendSeq(slices.Clone(routers), maps.Keys(s.crowded))
		for _, list := range []*[]frame.Dest{&routers, &all} {
			slices.Sort(*list)
			*list = slices.Compact(*list)
		}
		s.routers[f].Store(&routers)
		s.all[f].Store(&all)
	}
}

// expire removes what is over. s.mu is held.
func (s *state) expire(now frame.Tick) {
	for _, r := range s.rows {
		if now >= r.until {
			s.remove(r)
		}
	}
	over := false
	for _, m := range []map[frame.Dest]frame.Tick{s.from[v4], s.from[v6], s.crowded} {
		maps.DeleteFunc(m, func(_ frame.Dest, until frame.Tick) bool {
			over = over || now >= until
			return now >= until
		})
	}
	if over {
		s.publish()
	}
}
