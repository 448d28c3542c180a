package policy

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// Workers judge while rules and sets change: host 1 may always, host 2 never, and of hosts 3
// and 4 exactly one may, whatever is seen in between. No packet is lost from the counts.
func TestConcurrent(t *testing.T) {
	configs := [2]*Config{}
	for i := range configs {
		configs[i] = &Config{Default: Deny, MaxFlows: 5000, Sets: map[string][]netip.Prefix{"x": nil}, Rules: []Rule{
			{Name: "one", Src: []netip.Prefix{netip.PrefixFrom(ipOf(false, 1), 32)}},
			{Name: "pair", Src: []netip.Prefix{netip.PrefixFrom(ipOf(false, 3+i), 32)}, Dst: []netip.Prefix{netip.PrefixFrom(ipOf(false, 9), 32)}},
			{Name: "set", SrcSet: "x", DstPorts: []PortRange{Port(7)}},
		}}
	}
	for i := range 100 - len(configs[1].Rules) {
		configs[1].Rules = append(configs[1].Rules, Rule{Name: nameOfRule(&Rule{}, i), Src: prefixes("192.0.2.0/24")})
	}
	p, err := New(configs[0])
	must(t, err)
	var stop atomic.Bool
	var sent, one atomic.Uint64
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			at := frame.At{Worker: w + 1, Tick: 5}
			send := func(x pkt) bool {
				f := x.frame(t)
				sent.Add(1)
				return p.Ingress().Process(&f, at) == frame.Continue
			}
			for n := uint16(0); !stop.Load(); n++ {
				x := pkt{kind: "udp", src: 1, dst: 2, sport: n % 500, dport: uint16(w)}
				if !send(x) {
					t.Error("one: dropped")
				}
				one.Add(1)
				if re := x.answer(); !send(re) {
					t.Error("one: its answer dropped")
				}
				if send(pkt{kind: "udp", src: 2, dst: 3, sport: n % 100, dport: uint16(w)}) {
					t.Error("two: passed")
				}
				// A new set of rules between the two may let both pass, or none; within one packet
				// each is whole.
				send(pkt{kind: "udp", src: 3, dst: 9, sport: n % 100})
				send(pkt{kind: "udp", src: 4, dst: 9, sport: n % 100})
				send(pkt{kind: "udp", src: 5, dst: 9, dport: 7})
			}
		})
	}
	member := prefixes("10.0.0.5/32", "10.0.0.0/30")
	for n := range 1000 {
		cfg := *configs[n/3%2]
		cfg.Sets = map[string][]netip.Prefix{"x": nil}
		if err := p.Update(&cfg); err != nil {
			t.Error(err)
		}
		if err := p.AddToSet("x", member...); err != nil {
			t.Error(err)
		}
		p.Housekeep(frame.Tick(5 + n/1000))
		p.Stats()
		if err := p.DeleteFromSet("x", member[n%2]); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	wg.Wait()
	if n, want := total(p.Stats()), sent.Load(); n > want || p.Stats().Rules["one"].Packets != one.Load() {
		t.Errorf("%d counted of %d, for one %d of %d", n, want, p.Stats().Rules["one"].Packets, one.Load())
	}
	// In force at once, for the flows there are too.
	must(t, p.Update(&Config{Default: Deny}))
	for i := range uint16(500) {
		x := pkt{kind: "udp", src: 1, dst: 2, sport: i}
		f, re := x.frame(t), x.answer()
		g := re.frame(t)
		at := frame.At{Worker: 4, Tick: 5}
		if p.Ingress().Process(&g, at) == frame.Continue || p.Egress().Process(&f, at) == frame.Continue {
			t.Fatal("passes under the rules before")
		}
	}
	must(t, p.Update(configs[0]))
}

// What is counted while names come and go is counted.
func TestConcurrentCounts(t *testing.T) {
	cfg := func(names ...string) *Config {
		c := &Config{Stateless: true}
		for i, n := range names {
			c.Rules = append(c.Rules, Rule{Name: n, DstPorts: []PortRange{Port(uint16(i))}})
		}
		return c
	}
	configs := []*Config{cfg("a", "b"), cfg("a", "x", "y"), cfg("a")}
	p, err := New(configs[0])
	must(t, err)
	var stop atomic.Bool
	var wg sync.WaitGroup
	var sent [3]uint64
	for w := range sent {
		wg.Go(func() {
			x := pkt{kind: "udp", src: 1, dst: 2}
			f := x.frame(t)
			for !stop.Load() {
				p.Ingress().Process(&f, frame.At{Worker: w + 1})
				sent[w]++
			}
		})
	}
	for n := range 300 {
		if err := p.Update(configs[n%3]); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	wg.Wait()
	if got, want := p.Stats().Rules["a"].Packets, sent[0]+sent[1]+sent[2]; got != want {
		t.Errorf("%d counted of %d", got, want)
	}
}

// Members of sets come and go, and with them classes of addresses, whose numbers are used again: host 1 keeps its port and its set,
// host 2 never has both, whatever else there is.
func TestConcurrentMembers(t *testing.T) {
	p, err := New(&Config{
		Default: Deny, Stateless: true,
		Sets: map[string][]netip.Prefix{"a": prefixes("10.0.0.1/32"), "b": {}}, PortSets: map[string][]Endpoint{"p": {{ipOf(false, 1), 17, 7}}, "q": {}},
		Tiers: []Tier{{Name: "first", Rules: []Rule{{Action: Log, NotDstSets: []string{"b"}}, {Action: Pass, DstPortSets: []string{"p"}, AllDstSets: []string{"a"}}, {Action: Deny}}}},
		Rules: []Rule{{DstSet: "a"}},
	})
	must(t, err)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				for dst, want := range map[int]bool{1: true, 2: false} {
					x := pkt{kind: "udp", src: 3, dst: dst, dport: 7}
					f := x.frame(t)
					if got := p.Ingress().Process(&f, frame.At{Worker: w + 1, Tick: frame.Tick(n / 100)}) == frame.Continue; got != want {
						t.Errorf("to host %d: passed %v", dst, got)
						return
					}
				}
			}
		})
	}
	for n := range 500 {
		x := ipOf(false, 2+n%20)
		one, e := netip.PrefixFrom(x, 32), Endpoint{x, 17, 7}
		set, ports := []string{"b", "a"}[b2i(n%3 == 0)], []string{"p", "q"}[b2i(n%3 == 0)]
		must(t, p.AddToSet(set, one))
		must(t, p.AddToPortSet(ports, e))
		must(t, p.AddToPortSet("q", Endpoint{ipOf(false, 1), 17, uint16(n)}))
		must(t, p.DeleteFromSet(set, one))
		must(t, p.DeleteFromPortSet(ports, e))
		must(t, p.DeleteFromPortSet("q", Endpoint{ipOf(false, 1), 17, uint16(n)}))
	}
	stop.Store(true)
	wg.Wait()
}
