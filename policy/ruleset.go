package policy

import (
	"slices"
	"strconv"

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
	counters   []uint16 // number of the counter of each rule
	names      []string // of the counters

	stateless, routed, pickUp bool
	limits                    limits

	array []uint64 // of the pool, up to the sets of this ruleset
	base  [2][numClasses]uint32

	ether      []etherSet // by EtherType; nil if no rule has one
	etherOther uint32

	protocols   *[256]uint32 // nil if no rule has one
	noProtocol  uint32
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

// compile makes a ruleset without addresses of a valid Config.
func compile(c *Config, p *pool) *ruleset {
	n := len(c.Rules)
	s := &ruleset{rules: n, stateless: c.Stateless, routed: c.Routed, pickUp: c.PickUp}
	s.limits = c.Timeouts.ticks(setting.Of(""))
	var base [2][numClasses]ruleBits
	for slot := range base {
		for k := range base[slot] {
			base[slot][k] = p.empty()
		}
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		s.actions = append(s.actions, r.Action)
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
	s.actions = append(s.actions, c.Default, Allow)
	for slot := range base {
		for k, b := range base[slot] {
			s.base[slot][k] = p.name(b)
		}
	}
	s.compileTypes(c.Rules, p)
	s.groups = newPorts(p, n, func(i int) (list []PortRange) {
		for _, g := range c.Rules[i].Groups {
			list = append(list, Port(g))
		}
		return list
	})
	s.sport = newPorts(p, n, func(i int) []PortRange { return c.Rules[i].SrcPorts })
	s.dport = newPorts(p, n, func(i int) []PortRange {
		list := c.Rules[i].DstPorts
		for _, t := range c.Rules[i].ICMP {
			list = append(slices.Clip(list), t.span())
		}
		return list
	})
	s.smac, s.otherSource = macs(p, n, func(i int) []frame.MAC { return c.Rules[i].SrcMACs })
	s.dmac, s.otherDest = macs(p, n, func(i int) []frame.MAC { return c.Rules[i].DstMACs })
	return s
}

// linkOnly reports whether a rule applies to ARP and ND: it has EtherTypes or MACs.
func (r *Rule) linkOnly() bool { return len(r.EtherTypes)+len(r.SrcMACs)+len(r.DstMACs) != 0 }

// onlyIP reports whether a rule matches only IP.
func (r *Rule) onlyIP() bool {
	return r.Protocol != 0 || len(r.SrcPorts)+len(r.DstPorts) != 0
}

func (s *ruleset) compileTypes(rules []Rule, p *pool) {
	byType, free := group(p, len(rules), func(i int) []uint16 { return rules[i].EtherTypes })
	if len(byType) != 0 {
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
	if !slices.ContainsFunc(rules, func(r Rule) bool { return r.onlyIP() }) {
		return
	}
	name := func(match func(*Rule) bool) uint32 {
		b := p.empty()
		for i := range rules {
			if match(&rules[i]) {
				b.add(i)
			}
		}
		return p.name(b)
	}
	s.noProtocol, s.protocols = name(func(r *Rule) bool { return !r.onlyIP() }), new([256]uint32)
	for n := range s.protocols {
		s.protocols[n] = name(func(r *Rule) bool {
			return r.Protocol == uint8(n) || r.Protocol == 0 && (!r.onlyIP() || hasPorts(uint8(n)))
		})
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

// nameOfRule returns the name of a rule's counter.
func nameOfRule(r *Rule, i int) string {
	if r.Name != "" {
		return r.Name
	}
	return "#" + strconv.Itoa(i)
}

// find returns the number of the rule for a packet in a slot: the first that matches, or one of the
// two after the last.
func (s *ruleset) find(k *packet, slot int) int {
	var sets [10]uint32
	sets[0] = s.base[slot][k.class]
	n := 1
	if s.ether != nil {
		sets[n] = s.etherSet(k.etherType)
		n++
	}
	if s.protocols != nil {
		sets[n] = s.noProtocol
		if k.ip {
			sets[n] = s.protocols[k.protocol]
		}
		n++
	}
	if s.groups != nil {
		sets[n] = s.groups.find(k.group)
		n++
	}
	if s.dport != nil {
		sets[n] = s.dport.of(k.dport, k.ports)
		n++
	}
	if s.sport != nil {
		sets[n] = s.sport.of(k.sport, k.ports)
		n++
	}
	if s.src.table != nil {
		sets[n] = s.src.of(k.src, k.ip)
		n++
	}
	if s.dst.table != nil {
		sets[n] = s.dst.of(k.dst, k.ip)
		n++
	}
	if s.smac != nil {
		sets[n] = ofMAC(s.smac, s.otherSource, k.srcMAC, k.macs)
		n++
	}
	if s.dmac != nil {
		sets[n] = ofMAC(s.dmac, s.otherDest, k.dstMAC, k.macs)
		n++
	}
	switch r := match(s.array, sets[:n]); {
	case r != none:
		return r
	case k.class != plain:
		return s.rules + 1
	}
	return s.rules
}

func (s *ruleset) etherSet(t uint16) uint32 {
	for _, e := range s.ether {
		if e.etherType == t {
			return e.set
		}
	}
	return s.etherOther
}

func (t *ports) of(n uint16, known bool) uint32 {
	if !known {
		return t.without
	}
	return t.find(n)
}

func (a *addrs) of(x addr, known bool) uint32 {
	if known {
		if set, ok := a.table.Lookup(x.netip()); ok {
			return set
		}
	}
	return a.without
}

func ofMAC(sets map[uint64]uint32, other uint32, mac uint64, known bool) uint32 {
	if known {
		if set, ok := sets[mac]; ok {
			return set
		}
	}
	return other
}
