package policy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/framing"
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

// seenBy is a frame as gopacket sees it.
type seenBy struct {
	eth                 *layers.Ethernet
	etherType           uint16
	src, dst            netip.Addr
	protocol            uint8
	ports, icmp         bool
	sport, dport        uint16
	typ, code           uint8
	id                  int
	syn, synack, other  bool // SYN alone; with ACK; FIN or RST
	first, later        bool
	fragment            int
	group               uint16
	arp, nd, request, r bool
	about               *seenBy
}

func look(b []byte, kind frame.Kind) (s seenBy) {
	start := gopacket.Decoder(layers.LayerTypeEthernet)
	switch kind {
	case frame.IPv4:
		start = layers.LayerTypeIPv4
	case frame.IPv6:
		start = layers.LayerTypeIPv6
	}
	p := gopacket.NewPacket(b, start, gopacket.Default)
	for _, l := range p.Layers() {
		if s.src.IsValid() { // what is inside is no matter
			break
		}
		switch l := l.(type) {
		case *layers.Ethernet:
			s.eth, s.etherType = l, uint16(l.EthernetType)
		case *layers.Dot1Q:
			s.etherType = uint16(l.Type)
		case *layers.ARP:
			s.arp = true
		case *layers.IPv4:
			s.etherType, s.protocol = 0x800, uint8(l.Protocol)
			s.src, s.dst = addrOf(l.SrcIP), addrOf(l.DstIP)
			s.later, s.fragment = l.FragOffset != 0, int(l.Id)
			s.first = !s.later && l.Flags&layers.IPv4MoreFragments != 0
			if s.first { // of which gopacket shows no more
				s.upper(gopacket.NewPacket(l.Payload, l.Protocol.LayerType(), gopacket.Default))
			}
		case *layers.IPv6:
			s.etherType, s.protocol = 0x86dd, uint8(l.NextHeader)
			s.src, s.dst = addrOf(l.SrcIP), addrOf(l.DstIP)
			if s.protocol == 44 {
				h := l.Payload
				s.protocol, s.later, s.fragment = h[0], h[2] != 0 || h[3] > 1, int(h[6])<<8|int(h[7])
				if s.first = !s.later; s.first {
					s.upper(gopacket.NewPacket(h[8:], layers.IPProtocol(h[0]).LayerType(), gopacket.Default))
				}
			}
		}
	}
	if !s.first && !s.later {
		s.upper(p)
	}
	s.nd = !s.first && s.etherType == 0x86dd && s.protocol == 58 && s.typ >= 133 && s.typ <= 136
	return s
}

func addrOf(ip []byte) netip.Addr { a, _ := netip.AddrFromSlice(ip); return a }

func (s *seenBy) upper(p gopacket.Packet) {
	for _, l := range p.Layers() {
		if s.ports || s.icmp || l.LayerType() == layers.LayerTypeGRE {
			break
		}
		switch l := l.(type) {
		case *layers.TCP:
			s.ports, s.sport, s.dport = true, uint16(l.SrcPort), uint16(l.DstPort)
			s.other = l.FIN || l.RST
			s.syn, s.synack = l.SYN && !l.ACK && !s.other, l.SYN && l.ACK
		case *layers.UDP:
			s.ports, s.sport, s.dport = true, uint16(l.SrcPort), uint16(l.DstPort)
		case *layers.SCTP:
			s.ports, s.sport, s.dport = true, uint16(l.SrcPort), uint16(l.DstPort)
		case *layers.ICMPv4:
			s.icmp, s.typ, s.code, s.id = true, l.TypeCode.Type(), l.TypeCode.Code(), int(l.Id)
			s.request, s.r = s.typ == 8, s.typ == 0
			if s.typ == 3 {
				q := look(l.Payload, frame.IPv4)
				s.about = &q
			}
		case *layers.ICMPv6:
			s.icmp, s.typ, s.code = true, l.TypeCode.Type(), l.TypeCode.Code()
			s.request, s.r = s.typ == 128, s.typ == 129
			if s.request || s.r {
				s.id = int(l.Payload[0])<<8 | int(l.Payload[1])
			}
			if s.typ == 1 {
				q := look(l.Payload[4:], frame.IPv6)
				s.about = &q
			}
		}
	}
}

// key returns the flow as its opener would send it, and whether this is the opener.
func (s *seenBy) key(vni frame.VNI) modelKey {
	k := modelKey{vni, s.src, s.dst, s.protocol, int(s.sport), int(s.dport)}
	switch {
	case s.request:
		k.a, k.b = s.id, -1
	case s.r:
		k.a, k.b = -1, s.id
	}
	return k
}

func (s *seenBy) flowing() bool {
	if !s.src.IsValid() || s.later || s.nd || s.dst.IsMulticast() {
		return false
	}
	return !s.icmp || s.request || s.r
}

func (m *model) matches(r *Rule, s *seenBy, slot int) bool {
	if r.Direction != Both && int(r.Direction) != slot+1 {
		return false
	}
	names := len(r.EtherTypes)+len(r.SrcMACs)+len(r.DstMACs) != 0
	if s.arp && !names || s.nd && !names && len(r.ICMP) == 0 {
		return false
	}
	in := func(a netip.Addr, list []netip.Prefix, set string) bool {
		if list == nil && set == "" {
			return true
		}
		return a.IsValid() && slices.ContainsFunc(append(slices.Clip(list), m.cfg.Sets[set]...), func(p netip.Prefix) bool { return p.Contains(a) })
	}
	port := func(n uint16, list []PortRange) bool {
		return list == nil || s.ports && slices.ContainsFunc(list, func(p PortRange) bool { return p.First <= n && n <= p.Last })
	}
	mac := func(list []frame.MAC, of func() []byte) bool {
		return list == nil || s.eth != nil && slices.ContainsFunc(list, func(m frame.MAC) bool { return string(m[:]) == string(of()) })
	}
	return in(s.src, r.Src, r.SrcSet) && in(s.dst, r.Dst, r.DstSet) &&
		(r.Protocol == 0 || s.src.IsValid() && s.protocol == r.Protocol) &&
		port(s.sport, r.SrcPorts) && port(s.dport, r.DstPorts) &&
		(r.ICMP == nil || s.icmp && slices.ContainsFunc(r.ICMP, func(t ICMPType) bool { return t.Type == s.typ && (!t.OneCode || t.Code == s.code) })) &&
		mac(r.SrcMACs, func() []byte { return s.eth.SrcMAC }) && mac(r.DstMACs, func() []byte { return s.eth.DstMAC }) &&
		(r.EtherTypes == nil || slices.Contains(r.EtherTypes, s.etherType)) &&
		(r.Groups == nil || slices.Contains(r.Groups, s.group))
}

func (m *model) find(s *seenBy, slot int) (int, bool) {
	for i := range m.cfg.Rules {
		if m.matches(&m.cfg.Rules[i], s, slot) {
			return i, m.cfg.Rules[i].Action == Allow
		}
	}
	if s.arp || s.nd {
		return -2, true
	}
	return -1, m.cfg.Default == Allow
}

func (m *model) count(rule, n int) {
	add := func(c Count) Count { return Count{c.Packets + 1, c.Bytes + uint64(n)} }
	switch rule {
	case -2:
		m.stats.Neighbours = add(m.stats.Neighbours)
	case -1:
		m.stats.Default = add(m.stats.Default)
	default:
		name := nameOfRule(&m.cfg.Rules[rule], rule)
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
	byRules := func() bool { r, ok := m.find(&s, slot); m.count(r, n); return ok }
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
		r, ok := m.find(s, slot)
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
			r, ok := m.find(s, slot)
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
		if r, ok := m.find(s, slot); !ok {
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
			r, ok := m.find(&t, slot)
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

// A chooser makes decisions out of bytes.
type chooser struct{ in []byte }

func (c *chooser) n(limit int) int {
	if len(c.in) == 0 {
		return 0
	}
	b := c.in[0]
	c.in = c.in[1:]
	return int(b) % limit
}

func (c *chooser) prefix() netip.Prefix {
	if c.n(3) == 0 {
		return netip.PrefixFrom(ipOf(true, c.n(5)), []int{0, 48, 112, 127, 128}[c.n(5)]).Masked()
	}
	return netip.PrefixFrom(ipOf(false, c.n(5)), []int{0, 8, 29, 30, 31, 32}[c.n(6)]).Masked()
}

func (c *chooser) prefixes() (list []netip.Prefix) {
	for range 1 + c.n(3) {
		list = append(list, c.prefix())
	}
	return list
}

func (c *chooser) ports() (list []PortRange) {
	for range 1 + c.n(2) {
		a := uint16(c.n(4)) * 300
		list = append(list, PortRange{a, a + []uint16{0, 1, 300, 60000}[c.n(4)]})
	}
	return list
}

func (c *chooser) rule() (r Rule) {
	if c.n(2) == 0 {
		r.Name = fmt.Sprint("n", c.n(3))
	}
	r.Action, r.Direction = Action(c.n(2)), Direction([]int{0, 0, 1, 2}[c.n(4)])
	what := c.n(256)
	if what&1 != 0 {
		r.Src = c.prefixes()
	}
	if what&2 != 0 {
		r.Dst = c.prefixes()
	}
	if what&12 == 12 {
		r.SrcSet = "a"
	}
	if what&48 == 48 {
		r.DstSet = []string{"a", "b"}[c.n(2)]
	}
	switch c.n(8) {
	case 0, 1:
		r.Protocol = []uint8{6, 17, 132}[c.n(3)]
		r.DstPorts = c.ports()
	case 2:
		r.DstPorts = c.ports()
	case 3:
		r.SrcPorts = c.ports()
	case 4:
		r.Protocol = []uint8{1, 58}[c.n(2)]
		r.ICMP = []ICMPType{{Type: []uint8{0, 3, 8, 1, 128, 129, 135, 136}[c.n(8)], OneCode: c.n(2) == 0}}
	case 5:
		r.Protocol = []uint8{1, 6, 17, 47, 58, 132}[c.n(6)]
	}
	switch c.n(16) {
	case 3, 4:
		for range 1 + c.n(2) {
			r.Groups = append(r.Groups, uint16(c.n(3))*0x7fff)
		}
	case 0:
		r.SrcMACs = []frame.MAC{macOf(c.n(5)), macOf(c.n(5))}
	case 1:
		r.DstMACs = []frame.MAC{macOf(c.n(5))}
	case 2:
		r.EtherTypes = []uint16{[]uint16{0x800, 0x86dd, 0x806, 0x88cc}[c.n(4)]}
	}
	return r
}

func (c *chooser) config(old *Config) *Config {
	cfg := &Config{Default: Action(c.n(2)), Stateless: c.n(16) == 15, Routed: c.n(8) == 7, Sets: map[string][]netip.Prefix{"a": c.prefixes(), "b": c.prefixes()}}
	many := 1
	if c.n(4) == 3 {
		many = 20
	}
	for range c.n(20) * many {
		cfg.Rules = append(cfg.Rules, c.rule())
	}
	if old != nil && c.n(2) == 0 { // most of it as it was
		*cfg = *old
		cfg.Rules = append([]Rule{c.rule()}, old.Rules...)
	}
	return cfg
}

func (c *chooser) pkt() pkt {
	x := pkt{
		kind: []string{"tcp", "udp", "tcp", "udp", "icmp", "sctp", "gre", "icmp", "arp", "nd", "lldp", "error"}[c.n(12)],
		v6:   c.n(3) == 0, src: c.n(5), dst: c.n(5), sport: uint16(c.n(4)) * 300, dport: uint16(c.n(4)) * 300,
		flags: []string{"S", "S", "SA", "A", "A", "FA", "R"}[c.n(7)], id: uint16(c.n(2)), group: uint16(c.n(5)/2) * 0x7fff,
	}
	switch x.kind {
	case "icmp":
		x.typ = []uint8{0, 0, echoAnswer, 13}[c.n(4)]
	case "arp":
		x.v6 = false
		return x
	case "nd":
		x.v6, x.typ = true, 135
	case "error":
		q := c.pkt()
		for q.kind == "arp" || q.kind == "nd" || q.kind == "lldp" || q.frag == "later" || q.about != nil {
			q = pkt{kind: "udp", src: x.src, dst: x.dst}
		}
		x.kind, x.v6, x.typ, x.about = "icmp", q.v6, 3, &q
		if x.v6 {
			x.typ = 1
		}
		if c.n(2) == 0 {
			x.dst = q.src
		}
		return x
	}
	if n := c.n(6); n < 2 && x.kind != "lldp" && x.kind != "nd" {
		x.frag, x.fragID = []string{"first", "later"}[n], uint16(c.n(3))
	}
	switch c.n(9) {
	case 8:
		x.head = 1 + c.n(len(framing.Plain))
	case 0:
		x.vlans = 1
	case 1:
		x.bare = x.kind != "lldp"
	case 2:
		x.dstIP = netip.MustParseAddr("224.0.0.5")
		if x.v6 {
			x.dstIP = netip.MustParseAddr("ff02::5")
		}
	}
	return x
}

// play runs one long game of changes and packets.
func play(t testing.TB, in []byte, steps int) {
	c := &chooser{in}
	cfg := c.config(nil)
	l := newLab(t, cfg)
	m := &model{cfg: cfg, flows: map[modelKey]*modelFlow{}, fragments: map[modelKey]*modelFlow{}, stats: Stats{Rules: map[string]Count{}}}
	names := func() {
		rules := map[string]Count{}
		for i := range cfg.Rules {
			name := nameOfRule(&cfg.Rules[i], i)
			rules[name] = m.stats.Rules[name]
		}
		m.stats.Rules = rules
	}
	names()
	var past []pkt
	for step := 0; step < steps && len(c.in) > 0; step++ {
		switch c.n(40) {
		case 0:
			cfg = c.config(cfg)
			l.update(cfg)
			m.cfg = cfg
			m.change++
			names()
			continue
		case 1, 2:
			name, x, add := []string{"a", "b"}[c.n(2)], c.prefix(), c.n(2) == 0
			i := slices.Index(cfg.Sets[name], x)
			var err error
			if add {
				err = l.p.AddToSet(name, x)
			} else {
				err = l.p.DeleteFromSet(name, x)
			}
			if err != nil {
				t.Fatal(err)
			}
			if add == (i < 0) {
				sets := map[string][]netip.Prefix{"a": slices.Clone(cfg.Sets["a"]), "b": slices.Clone(cfg.Sets["b"])}
				if add {
					sets[name] = append(sets[name], x)
				} else {
					sets[name] = slices.DeleteFunc(sets[name], func(y netip.Prefix) bool { return y == x })
				}
				next := *cfg
				next.Sets = sets
				cfg = &next
				m.cfg = cfg
				m.change++
			}
			continue
		case 3:
			l.at.Tick += frame.Tick(c.n(100))
			l.p.Housekeep(l.at.Tick)
			continue
		}
		x := pkt{}
		switch n := c.n(4); {
		case n < 2 && len(past) != 0:
			x = past[len(past)-1-c.n(min(len(past), 20))]
			if n == 0 && x.kind != "nd" && x.kind != "arp" && x.kind != "lldp" && x.about == nil {
				x = x.answer()
			}
		default:
			x = c.pkt()
		}
		past = append(past, x)
		l.vni, l.at.Worker = frame.VNI(100+c.n(8)/7), c.n(3)
		slot, s := ingress, l.p.Ingress()
		if c.n(3) == 0 {
			slot, s = egress, l.p.Egress()
		}
		plain := x
		plain.head = 0
		f := plain.frame(t)
		want := m.judge(&f, len(x.bytes(t)), l.vni, slot, l.at.Tick)
		if got := l.send(s, x); got != want {
			t.Fatalf("step %d: slot %d, %+v: passed %v, the model says %v\n%+v", step, slot, x, got, want, cfg)
		}
	}
	got := l.p.Stats()
	got.Flows = FlowStats{}
	if !reflect.DeepEqual(got, m.stats) {
		t.Fatalf("%+v, the model says\n%+v\n%+v", got, m.stats, cfg)
	}
	l.at.Tick++
	live := 0
	for range 1 + firstSlots*16/sweepSlice {
		l.p.Housekeep(l.at.Tick)
	}
	for _, f := range m.flows {
		live += b2i(!f.dead(l.at.Tick))
	}
	if n := l.p.Stats().Flows.Tracked; n != live {
		t.Fatalf("%d flows, the model says %d", n, live)
	}
}

func TestModel(t *testing.T) {
	games := 3000
	if testing.Short() {
		games = 300
	}
	begin := time.Now()
	for range games {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		in := make([]byte, 4000)
		for i := range in {
			in[i] = byte(r.Uint32())
		}
		play(t, in, 300)
		if t.Failed() {
			t.Fatal("seed", seed)
		}
		if time.Since(begin) > 5*time.Second { // a slow machine, or the race detector
			break
		}
	}
}

// FuzzPolicy: whatever the rules, the changes and the packets, the policy says what the model
// says, and counts the same.
func FuzzPolicy(f *testing.F) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 2))
		in := make([]byte, 150)
		for i := range in {
			in[i] = byte(r.Uint32())
		}
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in []byte) { play(t, in, 200) })
}

// FuzzProcess: whatever the bytes, nothing panics, nothing is changed, each packet is counted
// once, and what rules deny they deny in every framing.
func FuzzProcess(f *testing.F) {
	re := pkt{kind: "udp", src: 2, dst: 1}
	for _, x := range []pkt{
		{kind: "tcp", src: 1, dst: 2, flags: "S"}, {kind: "tcp", v6: true, src: 1, dst: 2, flags: "S"}, {kind: "arp", src: 1, dst: 2},
		{kind: "nd", v6: true, typ: 135, src: 1, dst: 2}, {kind: "icmp", src: 1, dst: 2, typ: 3, about: &re},
		{kind: "icmp", v6: true, src: 1, dst: 2, typ: 1, about: &pkt{kind: "udp", v6: true, src: 2, dst: 1}},
		{kind: "udp", v6: true, src: 1, dst: 2, frag: "first"}, {kind: "udp", v6: true, src: 1, dst: 2, frag: "later", vlans: 2},
	} {
		f.Add(x.bytes(f), uint8(0))
		x.bare, x.vlans = x.kind != "arp", 0
		b := x.bytes(f)
		f.Add(b, b[0]>>5)
	}
	l := newLab(f, &Config{Default: Deny, Rules: []Rule{{Direction: Ingress}}})
	g, err := NewGuard(&GuardConfig{MACs: []frame.MAC{macOf(1)}, Addrs: prefixes("10.0.0.1/32", "fd00::1/128")})
	if err != nil {
		f.Fatal(err)
	}
	strict := newLab(f, &Config{Stateless: true, Rules: []Rule{
		{Action: Deny, DstPorts: []PortRange{Port(80)}}, {Action: Deny, Src: prefixes("10.0.0.3/32", "fd00::3/128")}, {Action: Deny, EtherTypes: []uint16{0x806, 0x88cc}},
		{Action: Deny, Protocol: 58, ICMP: []ICMPType{{Type: 134}}},
	}}).p.Ingress()
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		if x := frame.Make(b); strict.Process(&x, frame.At{Worker: 1}) != frame.Continue {
			refusedInAll(t, b, strict)
		}
		for _, s := range []interface {
			Process(*frame.Frame, frame.At) frame.Verdict
		}{l.p.Ingress(), l.p.Egress(), g} {
			x := frame.Make(b)
			x.Kind = frame.Kind(kind % 3)
			st := l.p.Stats()
			v := s.Process(&x, l.at)
			if string(x.Bytes()) != string(b) || v != frame.Continue && v != frame.Drop(frame.Policy) {
				t.Fatal(v, x.Bytes())
			}
			if s == g {
				continue
			}
			if n := total(l.p.Stats()) - total(st); n != 1 {
				t.Fatalf("counted %d times", n)
			}
		}
	})
}

func total(s Stats) uint64 {
	n := s.Default.Packets + s.Neighbours.Packets + s.Replies + s.Related + s.Fragments + s.Malformed
	for _, c := range s.Rules {
		n += c.Packets
	}
	return n
}
