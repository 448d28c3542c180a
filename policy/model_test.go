package policy

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
)

// A model is a Policy in the plainest words: gopacket reads, a list of rules is walked, flows
// are in a map that nobody sweeps.
type model struct {
	cfg       *Config
	change    int
	flows     map[modelKey]*modelFlow
	fragments map[modelKey]*modelFlow
	stats     Stats
}

// modelKey is a flow from its opener's side.
type modelKey struct {
	vni      frame.VNI
	src, dst netip.Addr
	protocol uint8
	a, b     int
}

func (k modelKey) turned() modelKey { return modelKey{k.vni, k.dst, k.src, k.protocol, k.b, k.a} }

type modelFlow struct {
	change                      int
	rule                        int
	group                       uint16 // of the opener's packet that was judged last
	slots                       [2]bool
	answered, closing           bool
	assured                     bool
	seen                        frame.Tick
	unanswered, half, open, end frame.Tick
}

// A modelRule is a rule where it stands.
type modelRule struct {
	Rule
	name string
	of   Direction // of its tier
	tier int
}

// rules returns all in one list; the default of a tier is a rule for all but ARP and ND.
func (m *model) rules() (list []modelRule) {
	for n, t := range m.cfg.Tiers {
		for i, r := range t.Rules {
			if r.Direction != Both && t.Direction != Both && r.Direction != t.Direction {
				continue
			}
			name := r.Name
			if name == "" {
				name = fmt.Sprintf("%s#%d", t.Name, i)
			}
			list = append(list, modelRule{r, name, t.Direction, n})
		}
		if t.Default != nil && *t.Default != Pass {
			list = append(list, modelRule{Rule{Action: *t.Default}, t.Name, t.Direction, n})
		}
	}
	for i, r := range m.cfg.Rules {
		list = append(list, modelRule{r, nameOfRule(&r, i), Both, len(m.cfg.Tiers)})
	}
	return list
}

func (m *model) matches(r *Rule, s *seenBy, slot int) bool {
	if r.Direction != Both && int(r.Direction) != slot+1 {
		return false
	}
	names := len(r.EtherTypes)+len(r.SrcMACs)+len(r.DstMACs) != 0
	if s.arp && !names || s.nd && !names && len(r.ICMP) == 0 {
		return false
	}
	mac := func(list []frame.MAC, of func() []byte) bool {
		return list == nil || s.eth != nil && slices.ContainsFunc(list, func(m frame.MAC) bool { return string(m[:]) == string(of()) })
	}
	icmp := func(list []ICMPType) bool {
		return slices.ContainsFunc(list, func(t ICMPType) bool { return t.Type == s.typ && (!t.OneCode || t.Code == s.code) })
	}
	return m.addr(s.src, sourceOf(r)) && m.addr(s.dst, destinationOf(r)) &&
		(r.Protocol == 0 || s.src.IsValid() && s.protocol == r.Protocol) &&
		(r.NotProtocol == 0 || s.src.IsValid() && s.protocol != r.NotProtocol) &&
		m.port(s, Endpoint{s.src, s.protocol, s.sport}, r.SrcPorts, r.NotSrcPorts, r.SrcPortSets, r.NotSrcPortSets) &&
		m.port(s, Endpoint{s.dst, s.protocol, s.dport}, r.DstPorts, r.NotDstPorts, r.DstPortSets, r.NotDstPortSets) &&
		(r.ICMP == nil || s.icmp && icmp(r.ICMP)) && (r.NotICMP == nil || s.icmp && !icmp(r.NotICMP)) &&
		mac(r.SrcMACs, func() []byte { return s.eth.SrcMAC }) && mac(r.DstMACs, func() []byte { return s.eth.DstMAC }) &&
		(r.EtherTypes == nil || slices.Contains(r.EtherTypes, s.etherType)) &&
		(r.Groups == nil || slices.Contains(r.Groups, s.group))
}

// addr reports whether an address is as a rule asks.
func (m *model) addr(a netip.Addr, r asked) bool {
	in := func(list []netip.Prefix) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	if !a.IsValid() {
		return r.list == nil && r.set == "" && r.not == nil && r.all == nil && r.notSets == nil
	}
	if (r.list != nil || r.set != "") && !in(r.list) && !in(m.cfg.Sets[r.set]) || in(r.not) {
		return false
	}
	for _, set := range r.all {
		if !in(m.cfg.Sets[set]) {
			return false
		}
	}
	for _, set := range r.notSets {
		if in(m.cfg.Sets[set]) {
			return false
		}
	}
	return true
}

// port reports whether one end of a packet is as a rule asks.
func (m *model) port(s *seenBy, e Endpoint, is, not []PortRange, sets, notSets []string) bool {
	if is == nil && not == nil && sets == nil && notSets == nil {
		return true
	}
	in := func(list []PortRange) bool {
		return slices.ContainsFunc(list, func(p PortRange) bool { return p.First <= e.Port && e.Port <= p.Last })
	}
	inSet := func(name string) bool { return slices.Contains(m.cfg.PortSets[name], e) }
	return s.ports && (is == nil && sets == nil || in(is) || slices.ContainsFunc(sets, inSet)) && !in(not) && !slices.ContainsFunc(notSets, inSet)
}

// search returns the rule that decides, and those with Pass and Log before it.
func (m *model) search(s *seenBy, slot int) (rule int, pass bool, past []int) {
	rules := m.rules()
	for i := 0; i < len(rules); i++ {
		r := &rules[i]
		if r.of != Both && int(r.of) != slot+1 || !m.matches(&r.Rule, s, slot) {
			continue
		}
		if r.Action < Pass {
			return i, r.Action == Allow, past
		}
		if past = append(past, i); r.Action == Pass {
			for i+1 < len(rules) && rules[i+1].tier == r.tier {
				i++
			}
		}
	}
	if s.arp || s.nd {
		return -2, true, past
	}
	return -1, m.cfg.Default == Allow, past
}

// decide is search for a packet that is judged by rules now.
func (m *model) decide(s *seenBy, slot, n int) (rule int, pass bool) {
	rule, pass, past := m.search(s, slot)
	for _, r := range past {
		m.count(r, n)
	}
	return rule, pass
}

func (m *model) count(rule, n int) {
	add := func(c Count) Count { return Count{c.Packets + 1, c.Bytes + uint64(n)} }
	switch rule {
	case -2:
		m.stats.Neighbours = add(m.stats.Neighbours)
	case -1:
		m.stats.Default = add(m.stats.Default)
	default:
		name := m.rules()[rule].name
		m.stats.Rules[name] = add(m.stats.Rules[name])
	}
}

func (f *modelFlow) dead(now frame.Tick) bool {
	limit := f.unanswered
	if f.answered {
		limit = f.half
	}
	if f.assured {
		limit = f.open
	}
	if f.closing {
		limit = f.end
	}
	return now-f.seen >= limit
}

// judge is shown a frame without the framing that makes it n bytes long.
func (m *model) judge(f *frame.Frame, n int, vni frame.VNI, slot int, now frame.Tick) bool {
	s := look(f.Bytes(), f.Kind)
	s.group = f.GBP.ID
	byRules := func() bool { r, ok := m.decide(&s, slot, n); m.count(r, n); return ok }
	if m.cfg.Stateless {
		return byRules()
	}
	if m.cfg.Routed {
		vni = 0
	}
	datagram := modelKey{vni, s.src, s.dst, s.protocol, s.fragment, 0}
	if s.later {
		if f := m.fragments[datagram]; f != nil && f.change == m.change && f.slots[slot] && now-f.seen < fragmentTicks {
			m.stats.Fragments++
			return true
		}
		return byRules()
	}
	pass := m.whole(&s, vni, slot, now, n, byRules)
	if pass && s.first {
		f := m.fragments[datagram]
		if f == nil || f.change != m.change || now-f.seen >= fragmentTicks {
			f = &modelFlow{change: m.change}
			m.fragments[datagram] = f
		}
		f.slots[slot], f.seen = true, now
	}
	return pass
}

func (m *model) whole(s *seenBy, vni frame.VNI, slot int, now frame.Tick, n int, byRules func() bool) bool {
	if q := s.about; q != nil && q.src == s.dst && q.flowing() {
		for _, k := range []modelKey{q.key(vni), q.key(vni).turned()} {
			if f := m.flows[k]; f != nil && !f.dead(now) && f.change == m.change {
				m.stats.Related++
				return true
			}
		}
	}
	if !s.flowing() {
		return byRules()
	}
	k := s.key(vni)
	for _, k := range []modelKey{k, k.turned()} {
		if f := m.flows[k]; f != nil && f.dead(now) {
			delete(m.flows, k)
		}
	}
	open := func() bool {
		r, ok := m.decide(s, slot, n)
		m.count(r, n)
		if !ok || s.r || s.protocol == 6 && !s.syn {
			return ok
		}
		f := &modelFlow{change: m.change, rule: r, group: s.group, seen: now, unanswered: 30, half: 30, open: 600, end: 60}
		switch s.protocol {
		case 6:
			f.half, f.open = 60, 7440
		case 17:
			f.open = 120
		case 1, 58:
			f.open = 30
		}
		f.slots[slot] = true
		m.flows[k] = f
		return true
	}
	if f := m.flows[k]; f != nil {
		if f.change != m.change || !f.slots[slot] {
			r, ok := m.decide(s, slot, n)
			if !ok {
				if f.change != m.change {
					delete(m.flows, k)
				}
				m.count(r, n)
				return false
			}
			if f.change != m.change {
				f.slots = [2]bool{}
			}
			f.change, f.rule, f.group, f.slots[slot] = m.change, r, s.group, true
		}
		if s.syn && f.closing {
			f.closing, f.answered, f.assured = false, false, false
		}
		f.closing = f.closing || s.other
		f.assured = f.assured || f.answered && !s.syn && !s.other && !s.synack
		f.seen = now
		m.count(f.rule, n)
		return true
	}
	f := m.flows[k.turned()]
	if f == nil {
		return open()
	}
	if s.syn {
		if !f.closing {
			return byRules()
		}
		if r, ok, _ := m.search(s, slot); !ok {
			m.decide(s, slot, n)
			m.count(r, n)
			return false
		}
		delete(m.flows, k.turned())
		return open()
	}
	if f.change != m.change {
		t := *s
		t.src, t.dst, t.sport, t.dport, t.group = s.dst, s.src, s.dport, s.sport, f.group
		if s.eth != nil {
			t.eth = &layers.Ethernet{SrcMAC: s.eth.DstMAC, DstMAC: s.eth.SrcMAC}
		}
		if s.r {
			t.typ, t.code = map[uint8]uint8{0: 8, 129: 128}[s.typ], 0
		}
		for slot, was := range f.slots {
			if !was {
				continue
			}
			r, ok, _ := m.search(&t, slot)
			if !ok {
				delete(m.flows, k.turned())
				return open()
			}
			f.rule = r
		}
		f.change = m.change
	}
	f.answered = true
	f.closing = f.closing || s.other
	f.seen = now
	m.stats.Replies++
	return true
}
