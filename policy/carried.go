package policy

import (
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// Judge implements vswitch.Judge: which packets of a stateless policy an Offload may carry past it. What they count for is known by
// their rule.
func (s *Stage) Judge(src, dst frame.MAC, t frame.Tuple) (carried func(frame.Count), pass bool) {
	rules := s.p.rules.Load()
	var k packet
	if !rules.stateless || !k.tuple(src, dst, t) {
		return nil, false
	}
	var q query
	rules.query(&q, &k, s.slot)
	by := []int{rules.next(&q, &k, 0)}
	for from, ok := rules.goesOn(by[0]); ok; from, ok = rules.goesOn(by[len(by)-1]) {
		by = append(by, rules.next(&q, &k, from))
	}
	if slices.ContainsFunc(by, func(r int) bool { return rules.actions[r] == Log }) || rules.actions[by[len(by)-1]] != Allow {
		return nil, false
	}
	return func(n frame.Count) {
		for _, r := range by {
			s.p.carried(rules.names[r], rules.counters[r], n)
		}
	}, true
}

// Watch implements vswitch.Judge.
func (s *Stage) Watch(f func()) (stop func()) { return s.p.watchers.Add(func(struct{}) { f() }) }

// carried counts packets that passed by. Another rule may have got the counter since.
func (p *Policy) carried(name string, number uint16, n frame.Count) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, ok := p.counters[name]; ok && a.number == number {
		p.counts.Of(0).add(number, n.Frames, n.Bytes, 0)
	}
}

// Judge implements vswitch.Judge: a guard looks at the source MAC and the tuple of a packet, unless it is ARP or ND, and counts only
// what it drops.
func (g *Guard) Judge(src, dst frame.MAC, t frame.Tuple) (carried func(frame.Count), pass bool) {
	var k packet
	o := g.identity.Load()
	return nil, k.tuple(src, dst, t) && o.hasMAC(k.srcMAC) && o.sender(&k) == noCause
}

// Watch implements vswitch.Judge.
func (g *Guard) Watch(f func()) (stop func()) { return g.watchers.Add(func(struct{}) { f() }) }

// tuple makes k the packet of a tuple, as far as rules without flows and guards look at it. It returns false if parse would.
func (k *packet) tuple(src, dst frame.MAC, t frame.Tuple) bool {
	*k = packet{
		srcMAC: src.Uint64(), dstMAC: dst.Uint64(), macs: true, ip: true, protocol: t.Protocol,
		ports: true, sport: t.SrcPort, dport: t.DstPort,
	}
	switch {
	case t.Src.Is4() && t.Dst.Is4():
		a, b := t.Src.As4(), t.Dst.As4()
		k.etherType, k.src, k.dst = wire.TypeIPv4, addr4(a[:]), addr4(b[:])
		return true
	case t.Src.Is6() && t.Dst.Is6():
		a, b := t.Src.As16(), t.Dst.As16()
		k.etherType, k.src, k.dst = wire.TypeIPv6, addr6(a[:]), addr6(b[:])
		return !k.src.is4() && !k.dst.is4()
	}
	return false
}
