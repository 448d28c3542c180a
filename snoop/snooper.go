package snoop

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/index"
	"github.com/vxswitch/vxswitch/internal/shares"
)

// A Snooper is the stage for a switch's slot Multicast. Make one with New.
type Snooper struct {
	*state
	hosts bool
}

// state is what all stages of a segment share.
type state struct {
	cfg      Config
	interval frame.Tick
	maxResp  frame.Tick // of our queries

	joined  index.Map[group, []frame.Dest]         // the places of rows, sorted
	routers [families]atomic.Pointer[[]frame.Dest] // sorted
	all     [families]atomic.Pointer[[]frame.Dest] // the same with those of crowded
	known   [families]atomic.Bool                  // there is a querier
	on      [families]atomic.Bool                  // and hosts have answered its first query

	mu      sync.Mutex
	rows    map[key]*row
	order   shares.List[*row]                   // by place, those heard last at the end
	asking  map[*row]struct{}                   // rows with asks
	always  []frame.Dest                        // places of routers, as SetRouters says
	from    [families]map[frame.Dest]frame.Tick // places of other routers, until when
	crowded map[frame.Dest]frame.Tick           // places without room for a listener, until when
	of      [families]election
	now     frame.Tick
	begun   bool

	counts [numCounts]atomic.Uint64
}

// New returns a Snooper. A nil cfg means defaults.
func New(cfg *Config) (*Snooper, error) {
	s := &state{rows: map[key]*row{}, asking: map[*row]struct{}{}, crowded: map[frame.Dest]frame.Tick{}}
	if cfg != nil {
		s.cfg = *cfg
	}
	c := &s.cfg
	if err := c.Check(); err != nil {
		return nil, err
	}
	c.Limit = cmp.Or(c.Limit, DefaultLimit)
	c.PerDest = cmp.Or(c.PerDest, c.Limit/2+c.Limit%2)
	c.Interval = cmp.Or(c.Interval, DefaultInterval)
	if c.MAC.IsZero() { // locally administered
		x := rand.Uint64()
		c.MAC = frame.MAC{0x02 | byte(x)&0xfc, byte(x >> 8), byte(x >> 16), byte(x >> 24), byte(x >> 32), byte(x >> 40)}
	}
	s.interval = frame.Tick(c.Interval / time.Second)
	s.maxResp = min(10, s.interval/2)
	for f := range s.from {
		s.from[f] = map[frame.Dest]frame.Tick{}
		s.of[f].listen = s.listenerTime(2, s.interval, s.maxResp)
		s.routers[f].Store(new([]frame.Dest))
		s.all[f].Store(new([]frame.Dest))
	}
	return &Snooper{state: s}, nil
}

// Hosts returns the stage for an attachment behind which there are only hosts: it drops queries, and what routers say of
// themselves, as frame.Policy.
func (s *Snooper) Hosts() *Snooper { return &Snooper{s.state, true} }

// Config returns the settings, with defaults.
func (s *Snooper) Config() Config { return s.cfg }

// Process reads messages. It returns Continue, or drops malformed ones.
func (s *Snooper) Process(f *frame.Frame, at frame.At) frame.Verdict {
	p, ok := look(f.Bytes())
	switch {
	case !ok || p.kind == data:
		return frame.Continue
	case p.kind == other:
		s.counts[countOther].Add(1)
		return frame.Continue
	}
	m, why := p.parse()
	switch {
	case why != frame.NotDropped:
		s.counts[countMalformed].Add(1)
		return frame.Drop(why)
	case s.hosts && p.kind != report:
		s.counts[countRefused].Add(1)
		return frame.Drop(frame.Policy)
	}
	src := frame.MAC(f.Bytes()[6:])
	m.toAll = p.toAllHosts(f.Bytes())
	s.mu.Lock()
	defer s.mu.Unlock()
	switch place := f.From; p.kind { // of a peer without a number it is the tunnel
	case report:
		s.report(&m, place, s.cfg.FastLeave && !f.Tunnel, at.Tick)
	case query:
		s.counts[countQueries].Add(1)
		s.query(&m, p.family, place, src, at.Tick)
	case router:
		s.counts[countRouters].Add(1)
		s.router(p.family, place, at.Tick)
	}
	return frame.Continue
}

// Select returns where frames to a group go.
func (s *Snooper) Select(f *frame.Frame) (to frame.Selection, some bool) {
	p, ok := look(f.Bytes())
	switch {
	case !ok || !s.known[p.family].Load():
		return to, false
	case p.kind == report: // from the first query on: a host that hears the answer of another keeps its own
		return frame.Selection{Places: [2][]frame.Dest{*s.routers[p.family].Load()}, Tunnels: true, Taken: true}, true
	case p.kind != data || p.dst.flooded() || !s.on[p.family].Load():
		return to, false
	}
	list, ok := s.joined.Load(p.dst)
	if !ok && s.cfg.Flood {
		return to, false
	}
	return frame.Selection{Places: [2][]frame.Dest{list, *s.all[p.family].Load()}}, true
}

// SetRouters says where there are multicast routers that need not say so themselves: until the next call, or until a place has left.
// A tunnel without a peer stands for its flood list.
func (s *Snooper) SetRouters(places ...frame.Dest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = slices.Clone(places)
	s.publish()
}

// Left forgets what has been learned from a place, for a port also from the peers behind it, and has hosts asked.
func (s *Snooper) Left(d frame.Dest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := func(x frame.Dest) bool { return x == d || d.Peer() == 0 && x.Port() == d.Port() }
	for _, r := range s.rows {
		if left(r.place) {
			s.remove(r)
		}
	}
	for f := range s.from {
		maps.DeleteFunc(s.from[f], func(d frame.Dest, _ frame.Tick) bool { return left(d) })
		s.of[f].again = true
	}
	maps.DeleteFunc(s.crowded, func(d frame.Dest, _ frame.Tick) bool { return left(d) })
	s.always = slices.DeleteFunc(s.always, left)
	s.publish()
}
