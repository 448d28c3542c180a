package policy

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

var (
	_ vswitch.Judge = (*Stage)(nil)
	_ vswitch.Judge = (*Guard)(nil)
)

// judged fails unless Judge says of a frame with a tuple what Process does with it, and counts alike. It reports whether there was one.
func judged(t *testing.T, p *Policy, s vswitch.Judge, b []byte) bool {
	t.Helper()
	x, ok := frame.TupleOf(b)
	if !ok {
		return false
	}
	before := p.Stats()
	carried, pass := s.Judge(frame.MAC(b[6:]), frame.MAC(b), x)
	check.True(t, reflect.DeepEqual(p.Stats(), before), "Judge has counted")
	f := frame.Make(b)
	v := s.Process(&f, frame.At{Tick: 5, Worker: 1})
	if v == frame.Continue != pass {
		t.Fatalf("%v: Judge says %v, Process %v\n%x", x, pass, v, b)
	}
	if !bytes.Equal(f.Bytes(), b) {
		t.Fatalf("%x has become %x", b, f.Bytes())
	}
	if carried == nil {
		return true
	}
	once := p.Stats()
	carried(frame.Count{Frames: 1, Bytes: uint64(len(b))})
	twice := p.Stats()
	plus := func(n, m Count) Count { return Count{2*n.Packets - m.Packets, 2*n.Bytes - m.Bytes} }
	want := once
	want.Default, want.Neighbours, want.Rules = plus(once.Default, before.Default), plus(once.Neighbours, before.Neighbours), map[string]Count{}
	for name, n := range once.Rules {
		want.Rules[name] = plus(n, before.Rules[name])
	}
	if !reflect.DeepEqual(twice, want) || reflect.DeepEqual(twice, before) {
		t.Fatalf("%v: before %+v, by Process %+v, by the Offload %+v", x, before, once, twice)
	}
	return true
}

// randomRule returns a rule that matches some of what randomPkt returns.
func randomRule(r *rand.Rand) (x Rule) {
	one := func() bool { return r.IntN(3) == 0 }
	x.Action, x.Direction = Action(r.IntN(2)), Direction(r.IntN(3))
	if one() {
		x.Src = prefixes("10.0.0.0/30", "fd00::/126")
	}
	if one() {
		x.Dst = prefixes("10.0.0.2/32", "fd00::3/128")
	}
	if one() {
		x.DstSet = "set"
	}
	if one() {
		x.SrcMACs = []frame.MAC{macOf(r.IntN(5))}
	}
	if one() {
		x.DstMACs = []frame.MAC{macOf(r.IntN(5))}
	}
	if one() {
		x.EtherTypes = []uint16{[]uint16{0x800, 0x86dd}[r.IntN(2)]}
	}
	if one() {
		x.Groups = []uint16{uint16(r.IntN(2))}
	}
	switch r.IntN(4) {
	case 0:
		x.Protocol, x.DstPorts = []uint8{0, 6, 17}[r.IntN(3)], []PortRange{{80, 82}}
	case 1:
		x.Protocol, x.SrcPorts = []uint8{0, 6, 17}[r.IntN(3)], []PortRange{{80, 82}, Port(4789)}
	case 2:
		x.Protocol = []uint8{1, 58}[r.IntN(2)]
		x.ICMP = []ICMPType{{Type: []uint8{8, 0, 128, 129}[r.IntN(4)], OneCode: r.IntN(2) == 0}}
	}
	return x
}

func randomPkt(r *rand.Rand) pkt {
	port := func() uint16 { return []uint16{80, 81, 82, 83, 4789, 68, 67, 546, 547}[r.IntN(9)] }
	x := pkt{kind: []string{"tcp", "udp", "icmp"}[r.IntN(3)], v6: r.IntN(2) == 0, src: r.IntN(5), dst: r.IntN(5), sport: port(), dport: port(), flags: "A"}
	if x.kind == "icmp" && r.IntN(2) == 0 {
		x.typ = echoAnswer
	}
	switch r.IntN(10) {
	case 0:
		x.srcIP = netip.IPv4Unspecified()
		if x.v6 {
			x.srcIP = netip.IPv6Unspecified()
		}
	case 1:
		if x.v6 {
			x.srcIP = netip.MustParseAddr("fe80::ff:fe00:1")
		}
	case 2:
		x.frag = "first"
	case 3:
		x.vlans = 1
	}
	return x
}

// TestJudge: for random rules, guards and packets, an Offload may carry those that Process lets pass, and counts as that does.
func TestJudge(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n := 0
	for range 300 {
		cfg := &Config{Stateless: true, Default: Action(r.IntN(2)), Sets: map[string][]netip.Prefix{"set": prefixes("10.0.0.1/32")}}
		for range r.IntN(6) {
			cfg.Rules = append(cfg.Rules, randomRule(r))
		}
		p := check.Must(New(cfg))(t)
		g := check.Must(NewGuard(&GuardConfig{MACs: []frame.MAC{macOf(1), macOf(2)}, Addrs: prefixes("10.0.0.1/32", "fd00::1/128"),
			LinkLocal: r.IntN(2) == 0, DHCPServer: r.IntN(2) == 0, Tunnels: r.IntN(2) == 0, IPIP: r.IntN(2) == 0, VXLAN: r.IntN(2) == 0}))(t)
		for i := range 60 {
			if i == 30 {
				must(t, p.AddToSet("set", prefixes("fd00::/127")...))
			}
			x := randomPkt(r)
			b := x.bytes(t)
			for _, s := range []vswitch.Judge{p.Ingress(), p.Egress(), g} {
				if judged(t, p, s, b) {
					n++
				}
			}
		}
	}
	check.True(t, n > 300*60, "%d packets have a tuple", n)
}

// FuzzJudge is TestJudge for any bytes, and one policy and guard.
func FuzzJudge(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 64 {
		x := randomPkt(r)
		f.Add(x.bytes(f))
	}
	cfg := &Config{Stateless: true, Default: Deny, Sets: map[string][]netip.Prefix{"set": prefixes("0.0.0.0/0", "fd00::/64")}}
	for range 8 {
		cfg.Rules = append(cfg.Rules, randomRule(r))
	}
	cfg.Tiers = []Tier{{Name: "first", Rules: []Rule{{Action: Pass, NotSrc: prefixes("10.0.0.0/24")}, {Action: Deny, NotDstPorts: []PortRange{{100, 65535}}}}}}
	p := check.Must(New(cfg))(f)
	g := check.Must(NewGuard(&GuardConfig{Addrs: prefixes("10.0.0.0/8", "fd00::/64")}))(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, s := range []vswitch.Judge{p.Ingress(), p.Egress(), g} {
			judged(t, p, s, b)
		}
	})
}

// With flows tracked no packet is judged by its tuple alone; nor is what is no tuple.
func TestJudgeNothing(t *testing.T) {
	x := pkt{kind: "udp", src: 1, dst: 2}
	tuple, ok := frame.TupleOf(x.bytes(t))
	check.True(t, ok, "no tuple")
	p := check.Must(New(nil))(t)
	if _, pass := p.Ingress().Judge(macOf(1), macOf(2), tuple); pass {
		t.Error("of a policy with flows")
	}
	must(t, p.Update(&Config{Stateless: true}))
	if _, pass := p.Ingress().Judge(macOf(1), macOf(2), tuple); !pass {
		t.Error("not of one without")
	}
	mixed, mapped := tuple, tuple
	mixed.Dst = ipOf(true, 2)
	mapped.Src, mapped.Dst = netip.AddrFrom16(tuple.Src.As16()), netip.AddrFrom16(tuple.Dst.As16())
	for _, bad := range []frame.Tuple{{}, mixed, mapped} {
		if _, pass := p.Ingress().Judge(macOf(1), macOf(2), bad); pass {
			t.Errorf("%v passes", bad)
		}
	}
}

// TestJudgeWatch: after each change of rules, sets and guards the Offload asks again, and finds what is new.
func TestJudgeWatch(t *testing.T) {
	p := check.Must(New(&Config{Stateless: true, Sets: map[string][]netip.Prefix{"s": nil}, Rules: []Rule{{Action: Deny, SrcSet: "s"}}}))(t)
	g := check.Must(NewGuard(nil))(t)
	x := pkt{kind: "udp", src: 1, dst: 2}
	tuple, _ := frame.TupleOf(x.bytes(t))
	told := 0
	pass := true
	for _, s := range []vswitch.Judge{p.Ingress(), p.Egress(), g} {
		stop := s.Watch(func() {
			told++
			_, pass = s.Judge(macOf(1), macOf(2), tuple)
		})
		defer stop()
	}
	for _, c := range []struct {
		name string
		do   func() error
		told int
		pass bool
	}{
		{"a set", func() error { return p.AddToSet("s", prefixes("10.0.0.1/32")...) }, 2, false},
		{"the same", func() error { return p.AddToSet("s", prefixes("10.0.0.1/32")...) }, 0, false},
		{"out of a set", func() error { return p.DeleteFromSet("s", prefixes("10.0.0.1/32")...) }, 2, true},
		{"rules", func() error { return p.Update(&Config{Stateless: true, Default: Deny}) }, 2, false},
		{"flows", func() error { return p.Update(nil) }, 2, false},
		{"wrong rules", func() error { _ = p.Update(&Config{Default: 9}); return nil }, 0, false},
		{"a guard", func() error { return g.Update(&GuardConfig{MACs: []frame.MAC{macOf(1)}}) }, 1, true},
		{"another MAC", func() error { return g.Update(&GuardConfig{MACs: []frame.MAC{macOf(2)}}) }, 1, false},
	} {
		told = 0
		must(t, c.do())
		if told != c.told || pass != c.pass {
			t.Errorf("%s: told %d times, passes is %v", c.name, told, pass)
		}
	}
	stop := g.Watch(func() { t.Error("told after its end") })
	stop()
	must(t, g.Update(nil))
}

// What passed by a rule that has gone since is counted for nobody, whoever got its counter.
func TestCarriedLate(t *testing.T) {
	named := func(names ...string) *Config {
		c := &Config{Stateless: true}
		for _, n := range names {
			c.Rules = append(c.Rules, Rule{Name: n})
		}
		return c
	}
	p := check.Must(New(named("a")))(t)
	x := pkt{kind: "udp", src: 1, dst: 2}
	tuple, _ := frame.TupleOf(x.bytes(t))
	carried, _ := p.Ingress().Judge(macOf(1), macOf(2), tuple)
	n := frame.Count{Frames: 7, Bytes: 700}
	carried(n)
	must(t, p.Update(named("b", "a")))
	carried(n)
	check.Equal(t, "of the rule, which is another one now", p.Stats().Rules["a"], Count{14, 1400})
	must(t, p.Update(named("b")))
	must(t, p.Update(named("b", "c", "d")))
	carried(n)
	for name, c := range p.Stats().Rules {
		check.Equal(t, "of rule "+name, c, Count{})
	}
}
