package snoop

import (
	"bytes"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// Times in seconds. The querier's own are in its queries, where they have a place.
const (
	routerTime  = 255  // of a router that is not heard (RFC 3376, section 8.5)
	lastQueries = 2    // questions about a group that a host has left (RFC 3376, section 8.9)
	lastTime    = 4    // until it is over: two questions a second apart, a second for the answer, and one for the clock
	maxInterval = 3600 // longest interval of others that is believed
	maxAnswer   = 60   // longest time for answers, likewise
)

// An election has what is known about the queriers of a family.
type election struct {
	other  [22]byte   // address and MAC of the other querier that wins
	place  frame.Dest // where it is
	until  frame.Tick // when it is lost; 0 = there is none
	listen frame.Tick // how long a listener is believed (RFC 3376, section 8.4)

	ready  frame.Tick // when hosts have answered the first query, if a querier is known
	next   frame.Tick // of our queries
	last   frame.Tick
	starts int  // queries sent since we are the querier
	again  bool // ask soon: a place has gone
}

// listenerTime is how long a listener is believed, at least as long as with our own times.
func (s *state) listenerTime(robustness uint8, interval, maxResp frame.Tick) frame.Tick {
	if robustness < 2 {
		robustness = 2
	}
	return max(frame.Tick(robustness)*min(interval, maxInterval)+maxResp, 2*s.interval+s.maxResp)
}

// asks reports whether we are the querier. s.mu is held.
func (s *state) asks(family int, now frame.Tick) bool {
	return s.cfg.Querier && now >= s.of[family].until
}

// query handles the query of another querier. Only those about all groups count in the election, and only if all hosts get them,
// heed them, and must answer before they are forgotten: who asks otherwise cannot silence us. s.mu is held.
func (s *state) query(m *message, family int, place frame.Dest, src frame.MAC, now frame.Tick) {
	x := &s.of[family]
	who, own := rank(m.src, src), s.rank(family)
	elected := now < x.until && who == x.other
	maxResp := frame.Tick(min(m.maxResp, 1000*maxInterval)+999) / 1000
	switch {
	case src == s.cfg.MAC || maxResp > maxAnswer:
		return // the former is ours, which has come back
	case !m.general():
		if elected && place == x.place && !m.suppress && !m.sources {
			s.lower(m.group, now+lastQueries*max(1, maxResp)+2)
		}
		return
	case !m.toAll || m.sources: // hosts ignore the latter
		return
	case now < x.until && !elected && bytes.Compare(who[:], x.other[:]) > 0:
		return
	case now >= x.until && s.cfg.Querier && bytes.Compare(who[:], own[:]) > 0:
		return
	}
	s.router(family, place, now)
	interval := s.interval
	if m.interval != 0 {
		interval = min(frame.Tick(m.interval), maxInterval)
	}
	x.listen = s.listenerTime(m.robustness, interval, maxResp)
	x.other, x.place = who, place
	interval = max(interval, s.interval)
	silent := 2*interval + maxResp - s.maxResp - 1       // and answers to us come in time (the 255 s of RFC 3376, section 8.5, may be too long)
	if netip.AddrFrom16(m.src).Unmap().IsUnspecified() { // it may yield to us while we yield to it: then we go on soon
		silent = min(silent, interval+maxResp+1)
	}
	x.until = now + silent
	s.heard(family, now, maxResp)
}

// heard notes that hosts have been asked. s.mu is held.
func (s *state) heard(family int, now, maxResp frame.Tick) {
	if !s.known[family].Load() {
		s.of[family].ready = now + maxResp + 1
		s.known[family].Store(true)
	}
}

// lower ends a group early, unless a host answers. s.mu is held.
func (s *state) lower(g group, until frame.Tick) {
	list, _ := s.joined.Load(g)
	for _, d := range list {
		r := s.rows[key{g, d}]
		r.until = min(r.until, until)
	}
}

// rank returns a number by which queriers are compared: the lowest wins.
func rank(src [16]byte, mac frame.MAC) (r [22]byte) {
	copy(r[:], src[:])
	copy(r[16:], mac[:])
	return r
}

// rank returns our own.
func (s *state) rank(family int) [22]byte {
	if family == v6 {
		return rank(linkLocal(s.cfg.MAC), s.cfg.MAC)
	}
	return rank(mapped(s.address()), s.cfg.MAC)
}

// address returns the IPv4 source of our queries.
func (s *state) address() []byte {
	if !s.cfg.Address.IsValid() {
		return make([]byte, 4)
	}
	return s.cfg.Address.AsSlice()
}

// Housekeep forgets what is over, and asks hosts. The switch calls it once a second.
func (s *Snooper) Housekeep(now frame.Tick) {
	type out struct {
		to frame.Dest
		f  frame.Frame
	}
	var list []out
	s.mu.Lock()
	if s.begun && now == s.now {
		s.mu.Unlock()
		return
	}
	s.now, s.begun = now, true
	s.expire(now)
	for family := range s.of {
		if s.turn(family, now) {
			list = append(list, out{0, s.question(family, group{}, s.maxResp)})
		}
	}
	for r := range s.asking {
		if s.asks(r.group.family(), now) {
			list = append(list, out{r.place, s.question(r.group.family(), r.group, 1)})
		}
		if r.asks--; r.asks == 0 {
			s.asked(r)
		}
	}
	s.mu.Unlock()
	for i := range list {
		if s.cfg.Send(list[i].to, &list[i].f) {
			s.counts[countSent].Add(1)
		}
	}
}

// turn reports whether it is time for a query of ours about all groups, and whether frames of the family are to be selected.
// s.mu is held.
func (s *state) turn(family int, now frame.Tick) (ask bool) {
	x := &s.of[family]
	switch {
	case s.asks(family, now):
		soon := x.again && now-x.last >= s.maxResp
		if ask = x.starts == 0 || now >= x.next || soon; ask {
			x.last, x.next, x.again = now, now+s.interval, false
			if x.starts++; x.starts < 2 { // RFC 3376, sections 8.6 and 8.7
				x.next = now + max(1, s.interval/4)
			}
			s.heard(family, now, s.maxResp)
		}
		x.listen = s.listenerTime(2, s.interval, s.maxResp)
	default:
		x.starts = 0
		if now >= x.until {
			s.known[family].Store(false)
		}
	}
	s.on[family].Store(s.known[family].Load() && now >= x.ready)
	return ask
}
