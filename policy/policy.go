package policy

import (
	"cmp"
	"fmt"
	"net/netip"
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
	housekept atomic.Uint64 // the tick after the last Housekeep
	sweeping  sync.Mutex
	in, out   Stage

	mu       sync.Mutex
	pool     *pool
	src, dst *addrRules
	sets     map[string]map[netip.Prefix]struct{}
	member   map[netip.Prefix][]string // the sets a prefix is in
	names    []string                  // of the rules
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
	p := &Policy{counters: map[string]counter{}, sets: map[string]map[netip.Prefix]struct{}{}}
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
	sets, member := map[string]map[netip.Prefix]struct{}{}, map[netip.Prefix][]string{}
	for name, list := range cfg.Sets {
		set := map[netip.Prefix]struct{}{}
		if list == nil && p.sets[name] != nil {
			set = p.sets[name]
		}
		for _, x := range list {
			set[x] = struct{}{}
		}
		for x := range set {
			member[x] = append(member[x], name)
		}
		sets[name] = set
	}
	p.sets, p.member = sets, member
	p.pool = newPool(len(cfg.Rules))
	s := compile(cfg, p.pool)
	p.src, p.dst = newAddrRules(p.pool, cfg.Rules, sourceOf), newAddrRules(p.pool, cfg.Rules, destinationOf)
	s.src, s.dst = p.src.build(p.pool, member), p.dst.build(p.pool, member)
	p.names = p.names[:0:0]
	for i := range cfg.Rules {
		p.names = append(p.names, nameOfRule(&cfg.Rules[i], i))
	}
	s.names = append(slices.Clone(p.names), nameDefault, nameNeighbours)
	s.counters = p.assign(s.names)
	p.publish(s)
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

// AddToSet adds prefixes to a set under traffic, all at once. Its cost grows with the number of
// prefixes, and of those of other sets and rules inside them, not with the size of the set.
func (p *Policy) AddToSet(name string, prefixes ...netip.Prefix) error {
	return p.changeSet(name, prefixes, true)
}

// DeleteFromSet removes prefixes in the same way. It ignores those that are not in the set.
func (p *Policy) DeleteFromSet(name string, prefixes ...netip.Prefix) error {
	return p.changeSet(name, prefixes, false)
}

func (p *Policy) changeSet(name string, prefixes []netip.Prefix, add bool) error {
	for _, x := range prefixes {
		if !isPrefix(x) {
			return fmt.Errorf("policy: set %q: %v: must be a prefix without host bits", name, x)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	set, ok := p.sets[name]
	if !ok {
		return fmt.Errorf("policy: set %q: Config.Sets has no such set", name)
	}
	s := *p.rules.Load()
	changed := false
	for _, x := range prefixes {
		if _, in := set[x]; in == add {
			continue
		}
		if add {
			set[x] = struct{}{}
			p.member[x] = append(p.member[x], name)
		} else {
			delete(set, x)
			p.member[x] = slices.DeleteFunc(p.member[x], func(n string) bool { return n == name })
			if len(p.member[x]) == 0 {
				delete(p.member, x)
			}
		}
		p.src.change(p.pool, &s.src, x, p.member)
		p.dst.change(p.pool, &s.dst, x, p.member)
		changed = true
	}
	if changed {
		p.publish(&s)
	}
	return nil
}

// Set returns the prefixes of a set in order, nil if there is no such set.
func (p *Policy) Set(name string) []netip.Prefix {
	p.mu.Lock()
	defer p.mu.Unlock()
	set, ok := p.sets[name]
	if !ok {
		return nil
	}
	list := make([]netip.Prefix, 0, len(set))
	for x := range set {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits())
	})
	return list
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
