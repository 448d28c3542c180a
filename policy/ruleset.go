package policy

import (
	"slices"
	"sync/atomic"

	"github.com/gaissmai/bart"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
	"github.com/vxswitch/vxswitch/setting"
)

// A ruleset is a compiled Config. It is immutable. Rule number rules is the default, the one after
// it is for ARP and ND that no rule matches.
type ruleset struct {
	generation uint32 // changes with every update of the policy
	rules      int
	actions    []Action
	after      []uint16        // rules that go on behind Log and Pass, 0 for others; nil if there are none
	counters   []uint16        // number of the counter of each rule
	names      []string        // of the counters
	logged     []atomic.Uint64 // the tick after each rule was told of last; nil if none has Log

	stateless, routed, pickUp bool
	limits                    limits

	array []uint64 // of the pool, up to the sets of this ruleset
	shift int      // of the pool
	base  [2][numClasses]uint32

	ether      []etherSet // by EtherType; nil if no rule has one
	etherOther uint32

	protocols   *[256]uint32 // nil if no rule has one
	noProtocol  uint32
	members     *bart.Table[member]
	src, dst    addrs
	groups      *ports
	sport       *ports
	dport       *ports // and ICMP type<<8 | code
	smac, dmac  map[uint64]uint32
	otherSource uint32
	otherDest   uint32
}

type etherSet struct {
	etherType uint16
	set       uint32
}

// slots of a switch, as indices.
const (
	ingress = iota
	egress
)

// with returns a ruleset of the same rules for changed members, without the sets of their new classes.
func (s *ruleset) with(m *members) *ruleset {
	t := *s
	t.members = m.table
	return &t
}

// compile makes a ruleset without addresses of the lines of a valid Config.
func compile(c *Config, rules []line, p *pool) *ruleset {
	n := len(rules)
	s := &ruleset{rules: n, shift: p.shift, stateless: c.Stateless, routed: c.Routed, pickUp: c.PickUp}
	s.limits = c.Timeouts.ticks(setting.Of(""))
	s.compileActions(c, rules)
	s.compileBase(rules, p)
	s.compileTypes(rules, p)
	s.compileProtocols(rules, p)
	s.groups = newPorts(p, n, func(i int) (l portList) {
		for _, g := range rules[i].Groups {
			l.is = append(l.is, Port(g))
		}
		return l
	})
	s.sport = newPorts(p, n, func(i int) portList { return portList{rules[i].SrcPorts, rules[i].NotSrcPorts} })
	s.dport = newPorts(p, n, func(i int) portList {
		r := &rules[i]
		return portList{append(spans(r.ICMP), r.DstPorts...), append(spans(r.NotICMP), r.NotDstPorts...)}
	})
	s.smac, s.otherSource = macs(p, n, func(i int) []frame.MAC { return rules[i].SrcMACs })
	s.dmac, s.otherDest = macs(p, n, func(i int) []frame.MAC { return rules[i].DstMACs })
	return s
}

func (s *ruleset) compileActions(c *Config, rules []line) {
	for i := range rules {
		s.actions = append(s.actions, rules[i].Action)
		if rules[i].after != 0 && s.after == nil {
			s.after = make([]uint16, len(rules))
		}
		if rules[i].Action == Log && s.logged == nil {
			s.logged = make([]atomic.Uint64, len(rules))
		}
		if s.after != nil {
			s.after[i] = rules[i].after
		}
	}
	s.actions = append(s.actions, c.Default, Allow)
}

// compileBase finds the rules of each slot and class.
func (s *ruleset) compileBase(rules []line, p *pool) {
	var base [2][numClasses]ruleBits
	for slot := range base {
		for k := range base[slot] {
			base[slot][k] = p.empty()
		}
	}
	for i := range rules {
		r := &rules[i]
		for slot, other := range [2]Direction{Egress, Ingress} {
			if r.Direction == other {
				continue
			}
			base[slot][plain].add(i)
			if r.linkOnly() {
				base[slot][classARP].add(i)
				base[slot][classND].add(i)
			} else if len(r.ICMP) != 0 {
				base[slot][classND].add(i)
			}
		}
	}
	for slot := range base {
		for k, b := range base[slot] {
			s.base[slot][k] = p.name(b)
		}
	}
}

// linkOnly reports whether a rule applies to ARP and ND: it has EtherTypes or MACs.
func (r *Rule) linkOnly() bool { return len(r.EtherTypes)+len(r.SrcMACs)+len(r.DstMACs) != 0 }

// asksPorts reports whether a rule matches only packets with ports, or if it has ICMP types with these.
func (r *Rule) asksPorts() bool {
	return len(r.SrcPorts)+len(r.DstPorts)+len(r.NotSrcPorts)+len(r.NotDstPorts)+
		len(r.SrcPortSets)+len(r.DstPortSets)+len(r.NotSrcPortSets)+len(r.NotDstPortSets) != 0
}

func (s *ruleset) compileTypes(rules []line, p *pool) {
	byType, free := group(p, len(rules), func(i int) []uint16 { return rules[i].EtherTypes })
	if len(byType) == 0 {
		return
	}
	s.etherOther = p.name(free)
	for _, t := range []uint16{wire.TypeIPv4, wire.TypeIPv6, wire.TypeARP} {
		if byType[t] == nil {
			byType[t] = p.empty()
		}
	}
	for t, b := range byType {
		b.or(free)
		s.ether = append(s.ether, etherSet{t, p.name(b)})
	}
	slices.SortFunc(s.ether, func(a, b etherSet) int { return int(a.etherType) - int(b.etherType) })
}

func (s *ruleset) compileProtocols(rules []line, p *pool) {
	free, others, ported := p.empty(), p.empty(), p.empty() // rules for all frames, for IP, for protocols with ports
	var only, not [256][]int
	some := false
	for i := range rules {
		switch r := &rules[i]; {
		case r.Protocol != 0:
			only[r.Protocol] = append(only[r.Protocol], i)
		case r.asksPorts():
			ported.add(i)
		case r.NotProtocol != 0:
			others.add(i)
		default:
			free.add(i)
			continue
		}
		some = true
		not[rules[i].NotProtocol] = append(not[rules[i].NotProtocol], i)
	}
	if !some {
		return
	}
	s.noProtocol, s.protocols = p.name(free), new([256]uint32)
	others.or(free)
	for n := range s.protocols {
		b := slices.Clone(others)
		if hasPorts(uint8(n)) {
			b.or(ported)
		}
		for _, i := range only[n] {
			b.add(i)
		}
		if n != 0 { // which stands for no condition
			for _, i := range not[n] {
				b.remove(i)
			}
		}
		s.protocols[n] = p.name(b)
	}
}

// group returns the rules by the values in one of their lists, and the rules whose list is empty.
func group[K comparable](p *pool, rules int, list func(int) []K) (by map[K]ruleBits, free ruleBits) {
	by, free = map[K]ruleBits{}, p.empty()
	for i := range rules {
		l := list(i)
		if len(l) == 0 {
			free.add(i)
		}
		for _, k := range l {
			if by[k] == nil {
				by[k] = p.empty()
			}
			by[k].add(i)
		}
	}
	return by, free
}

// macs makes the look-up of the lists of all rules. It returns nil if all are empty.
func macs(p *pool, rules int, list func(int) []frame.MAC) (map[uint64]uint32, uint32) {
	by, free := group(p, rules, list)
	if len(by) == 0 {
		return nil, 0
	}
	sets := map[uint64]uint32{}
	for m, b := range by {
		b.or(free)
		sets[m.Uint64()] = p.name(b)
	}
	return sets, p.name(free)
}

// A query is what the rules for a packet are in: sets of all fields, of which a rule must be in each.
type query struct {
	sets [12]uint32
	n    int
}

func (q *query) add(set uint32) {
	q.sets[q.n] = set
	q.n++
}

// query looks a packet in a slot up.
func (s *ruleset) query(q *query, k *packet, slot int) {
	q.add(s.base[slot][k.class])
	if s.ether != nil {
		q.add(s.etherSet(k.etherType))
	}
	if s.protocols != nil {
		if k.ip {
			q.add(s.protocols[k.protocol])
		} else {
			q.add(s.noProtocol)
		}
	}
	if s.groups != nil {
		q.add(s.groups.find(k.group))
	}
	if s.dport != nil {
		q.add(s.dport.of(k.dport, k.ports))
	}
	if s.sport != nil {
		q.add(s.sport.of(k.sport, k.ports))
	}
	s.end(q, &s.src, k, k.src, k.sport)
	s.end(q, &s.dst, k, k.dst, k.dport)
	if s.smac != nil {
		q.add(ofMAC(s.smac, s.otherSource, k.srcMAC, k.macs))
	}
	if s.dmac != nil {
		q.add(ofMAC(s.dmac, s.otherDest, k.dstMAC, k.macs))
	}
}

// end looks up one end of a packet.
func (s *ruleset) end(q *query, a *addrs, k *packet, x addr, port uint16) {
	if a.sets == nil && a.services == nil {
		return
	}
	class := uint32(0)
	if k.ip {
		m, _ := s.members.Lookup(x.netip())
		class = m.all
	}
	if a.sets != nil {
		if k.ip {
			q.add(a.sets[class])
		} else {
			q.add(a.nonIP)
		}
	}
	if a.services != nil {
		q.add(a.ofService(class, k.protocol, port, k.ports))
	}
}

// next returns the first rule from a number on that a packet matches, or one of the two after the last.
func (s *ruleset) next(q *query, k *packet, from int) int {
	switch r := next(s.array, s.shift, q.sets[:q.n], from); {
	case r != none:
		return r
	case k.class != plain:
		return s.rules + 1
	}
	return s.rules
}

// goesOn reports whether another rule than r decides, from which on.
func (s *ruleset) goesOn(r int) (from int, ok bool) {
	if r >= len(s.after) {
		return 0, false
	}
	return int(s.after[r]), s.after[r] != 0
}

// find returns the number of the rule that decides on a packet in a slot, or one of the two after the last.
func (s *ruleset) find(k *packet, slot int) int {
	var q query
	s.query(&q, k, slot)
	r := s.next(&q, k, 0)
	for from, ok := s.goesOn(r); ok; from, ok = s.goesOn(r) {
		r = s.next(&q, k, from)
	}
	return r
}

func (s *ruleset) etherSet(t uint16) uint32 {
	for _, e := range s.ether {
		if e.etherType == t {
			return e.set
		}
	}
	return s.etherOther
}

func ofMAC(sets map[uint64]uint32, other uint32, mac uint64, known bool) uint32 {
	if known {
		if set, ok := sets[mac]; ok {
			return set
		}
	}
	return other
}
