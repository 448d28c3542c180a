package policy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/framing"
)

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
	c.more(&r)
	return r
}

// more gives a rule conditions that most have not.
func (c *chooser) more(r *Rule) {
	names := []string{"a", "b"}
	sets := func() []string { return names[:1+c.n(2)] }
	ported := r.Protocol == 0 || hasPorts(r.Protocol)
	what := c.n(256)
	if what < 64 {
		r.NotSrc = c.prefixes()
	}
	if what%5 == 1 {
		r.NotDst = c.prefixes()
	}
	if what%7 == 1 {
		r.AllSrcSets = sets()
	}
	if what%7 == 2 {
		r.AllDstSets = sets()
	}
	if what%9 == 1 {
		r.NotSrcSets = sets()
	}
	if what%9 == 2 {
		r.NotDstSets = sets()
	}
	if what%11 == 1 {
		r.NotProtocol = []uint8{1, 6, 17, 47}[c.n(4)]
	}
	switch {
	case ported && what%4 == 0:
		switch c.n(6) {
		case 0:
			r.NotSrcPorts = c.ports()
		case 1:
			r.NotDstPorts = c.ports()
		case 2:
			r.SrcPortSets = sets()
		case 3:
			r.DstPortSets = sets()
		case 4:
			r.NotSrcPortSets = sets()
		case 5:
			r.NotDstPortSets, r.SrcPortSets, r.DstPortSets = sets(), sets(), sets()
		}
	case !ported && r.Protocol != 47 && what%3 == 0:
		r.NotICMP = []ICMPType{{Type: []uint8{0, 3, 8, 128}[c.n(4)], OneCode: c.n(2) == 0}}
	}
	if what%6 == 5 {
		r.Action = []Action{Pass, Log}[c.n(2)]
	}
}

func (c *chooser) endpoint() Endpoint {
	return Endpoint{ipOf(c.n(3) == 0, c.n(5)), []uint8{6, 17, 132}[c.n(3)], uint16(c.n(4)) * 300}
}

func (c *chooser) endpoints() (list []Endpoint) {
	for range 1 + c.n(8) {
		list = append(list, c.endpoint())
	}
	return list
}

func (c *chooser) tiers() (list []Tier) {
	for i := range c.n(4) {
		t := Tier{Name: fmt.Sprint("tier", i), Direction: Direction([]int{0, 0, 1, 2}[c.n(4)])}
		if n := c.n(5); n < 3 {
			t.Default = new([]Action{Allow, Deny, Pass}[n])
		}
		for range c.n(6) {
			t.Rules = append(t.Rules, c.rule())
		}
		list = append(list, t)
	}
	return list
}

func (c *chooser) config(old *Config) *Config {
	cfg := &Config{Default: Action(c.n(2)), Stateless: c.n(16) == 15, Routed: c.n(8) == 7, Sets: map[string][]netip.Prefix{"a": c.prefixes(), "b": c.prefixes()}}
	cfg.Routed = cfg.Routed && !cfg.Stateless
	many := 1
	if c.n(4) == 3 {
		many = 20
	}
	for range c.n(20) * many {
		cfg.Rules = append(cfg.Rules, c.rule())
	}
	cfg.PortSets = map[string][]Endpoint{"a": c.endpoints(), "b": c.endpoints()}
	cfg.Tiers = c.tiers()
	if old != nil && c.n(2) == 0 { // most of it as it was
		*cfg = *old
		cfg.Rules = append([]Rule{c.rule()}, old.Rules...)
		if c.n(2) == 0 {
			cfg.Tiers = c.tiers()
		}
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
		for _, r := range m.rules() {
			rules[r.name] = m.stats.Rules[r.name]
		}
		m.stats.Rules = rules
	}
	names()
	var past []pkt
	for step := 0; step < steps && len(c.in) > 0; step++ {
		switch c.n(40) {
		case 0:
			was := cfg
			cfg = c.config(cfg)
			if reflect.DeepEqual(was.Sets, cfg.Sets) && c.n(2) == 0 { // as if they were written once more
				kept := *cfg
				kept.Sets, kept.PortSets = map[string][]netip.Prefix{"a": nil, "b": nil}, map[string][]Endpoint{"a": nil, "b": cfg.PortSets["b"]}
				l.update(&kept)
			} else {
				l.update(cfg)
			}
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
			must(t, err)
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
			name, x, add := []string{"a", "b"}[c.n(2)], c.endpoint(), c.n(2) == 0
			i := slices.Index(cfg.PortSets[name], x)
			if add {
				must(t, l.p.AddToPortSet(name, x))
			} else {
				must(t, l.p.DeleteFromPortSet(name, x))
			}
			if add == (i < 0) {
				sets := map[string][]Endpoint{"a": slices.Clone(cfg.PortSets["a"]), "b": slices.Clone(cfg.PortSets["b"])}
				if add {
					sets[name] = append(sets[name], x)
				} else {
					sets[name] = slices.DeleteFunc(sets[name], func(y Endpoint) bool { return y == x })
				}
				next := *cfg
				next.PortSets = sets
				cfg = &next
				m.cfg = cfg
				m.change++
			}
			continue
		case 4:
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
