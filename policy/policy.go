package policy

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/follow"
	"github.com/vxswitch/vxswitch/internal/perworker"
)

// A Policy has a list of rules, the sets they name, and the flows they admitted. It may serve any
// number of ports and segments. Make one with New.
type Policy struct {
	rules     atomic.Pointer[ruleset]
	flows     flows
	fragments flows
	waits     limits // for later fragments
	counts    perworker.Set[counts]
	watchers  follow.List[struct{}]
	logs      follow.List[Logged]
	housekept atomic.Uint64 // the tick after the last Housekeep
	sweeping  sync.Mutex
	in, out   Stage

	mu       sync.Mutex
	pool     *pool
	src, dst *side
	lists    *lists
	members  *members
	names    []string // of the rules
	counters map[string]counter
	unused   []uint16 // counters that have no name any more
	next     uint16   // the first counter that never had one
}

// A counter is the number of a rule's counter, and its count when the rule got it.
type counter struct {
	number         uint16
	packets, bytes uint64
}

// Limits of the table of fragments; hosts reassemble for as long.
const (
	maxFragments  = 4096
	fragmentTicks = 30
)

// Names of the counters of frames that no rule matches. Rules cannot have them.
const (
	nameDefault    = "\x00default"
	nameNeighbours = "\x00neighbours"
)

// New returns a policy. A nil cfg allows everything. The error names everything that is wrong.
func New(cfg *Config) (*Policy, error) {
	p := &Policy{counters: map[string]counter{}, lists: new(lists), members: newMembers()}
	if err := p.Update(cfg); err != nil {
		return nil, err
	}
	p.in, p.out = Stage{p, ingress}, Stage{p, egress}
	limit := DefaultMaxFlows
	if cfg != nil {
		limit = cmp.Or(cfg.MaxFlows, limit)
	}
	p.flows.init(limit)
	p.fragments.init(maxFragments)
	for k := range p.waits {
		p.waits[k] = fragmentTicks
	}
	return p, nil
}

// Update replaces the Config with the next packet, or returns an error as New does. Flows stay:
// the new rules decide on the next packet of each. Rules with the same name keep their counter.
// MaxFlows does not change.
func (p *Policy) Update(cfg *Config) error {
	if cfg == nil {
		cfg = &Config{}
	}
	if err := cfg.Check(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.install(cfg)
	return nil
}

// install makes a checked Config the one in force. p.mu is held.
func (p *Policy) install(cfg *Config) {
	rules := cfg.lines()
	p.pool = newPool(len(rules))
	s := compile(cfg, rules, p.pool)
	p.setMembers(cfg, rules)
	s.members = p.members.table
	p.src, p.dst = newSide(p.pool, p.lists, rules, sourceOf), newSide(p.pool, p.lists, rules, destinationOf)
	s.src, s.dst = p.src.begin(p.pool), p.dst.begin(p.pool)
	p.pool.fix()
	p.compileAll(s)
	p.names = p.names[:0:0]
	for i := range rules {
		p.names = append(p.names, rules[i].Name)
	}
	s.names = append(slices.Clone(p.names), nameDefault, nameNeighbours)
	s.counters = p.assign(s.names)
	p.publish(s)
}

// compileAll gives s the sets of all classes of addresses. p.mu is held.
func (p *Policy) compileAll(s *ruleset) {
	all := make([]uint32, 0, len(p.members.classes))
	p.pool.reserve(2 * len(p.members.classes))
	for c := range p.members.classes {
		all = append(all, uint32(c))
	}
	p.src.compile(p.pool, &s.src, p.members.classes, all)
	p.dst.compile(p.pool, &s.dst, p.members.classes, all)
	p.members.fresh = nil
}

// publish makes s the rules of the next packet. p.mu is held, or New runs.
func (p *Policy) publish(s *ruleset) {
	s.array = p.pool.array
	if old := p.rules.Load(); old != nil {
		s.generation = old.generation + 1
	}
	p.rules.Store(s)
	p.watchers.Tell(struct{}{})
}

// assign returns the number of each name's counter, and frees those of other names. p.mu is held.
func (p *Policy) assign(names []string) (numbers []uint16) {
	was := p.counters
	p.counters = map[string]counter{}
	for _, name := range names {
		a, ok := p.counters[name]
		if !ok {
			if a, ok = was[name]; !ok {
				a.number = p.number()
				a.packets, a.bytes = p.sum(a.number)
			}
			p.counters[name] = a
		}
		numbers = append(numbers, a.number)
	}
	for name, a := range was {
		if _, ok := p.counters[name]; !ok {
			p.unused = append(p.unused, a.number)
		}
	}
	return numbers
}

// number returns a free counter.
func (p *Policy) number() (n uint16) {
	if len(p.unused) != 0 {
		n, p.unused = p.unused[0], p.unused[1:]
		return n
	}
	p.next++
	return p.next - 1
}

// A Stage is a Policy in one of the two slots.
type Stage struct {
	p    *Policy
	slot int
}

// Ingress returns the stage for the slot Ingress, always the same one.
func (p *Policy) Ingress() *Stage { return &p.in }

// Egress returns the stage for the slot Egress.
func (p *Policy) Egress() *Stage { return &p.out }

// Process returns frame.Continue, or frame.Drop(frame.Policy).
func (s *Stage) Process(f *frame.Frame, at frame.At) frame.Verdict { return s.p.judge(f, at, s.slot) }

// Housekeep calls Policy.Housekeep.
func (s *Stage) Housekeep(now frame.Tick) { s.p.Housekeep(now) }

// Housekeep removes expired flows once a tick, of a large table a sixteenth at a time. Look-ups
// ignore expired flows.
func (p *Policy) Housekeep(now frame.Tick) {
	last := p.housekept.Load()
	if last == uint64(now)+1 || !p.housekept.CompareAndSwap(last, uint64(now)+1) {
		return
	}
	if !p.sweeping.TryLock() {
		return
	}
	defer p.sweeping.Unlock()
	p.flows.sweep(now, &p.rules.Load().limits)
	p.fragments.sweep(now, &p.waits)
}
