package policy

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// allowed lets host 1 open anything, and nobody else.
func allowed() *Config {
	return &Config{Default: Deny, Rules: []Rule{{Name: "one", Src: prefixes("10.0.0.1/32", "fd00::1/128")}}}
}

// What was opened is answered, at every stage, and in its own network only.
func TestReplies(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, kind := range []string{"tcp", "udp", "sctp", "gre", "icmp"} {
			l := newLab(t, allowed())
			x := pkt{kind: kind, v6: v6, src: 1, dst: 2, sport: 1000, dport: 80, flags: "S", id: 77}
			re := x.answer()
			l.in(false, re)
			l.in(true, x)
			l.in(true, re)
			l.out(true, re)
			l.out(true, x)
			back := re
			back.flags = "S"
			if back.typ = 0; kind == "tcp" || kind == "icmp" {
				l.in(false, back) // asks by itself
			}
			l.vni = 101
			l.in(false, re)
			l.vni = 100
			other := re
			other.sport, other.id = 81, 78
			l.in(kind == "gre", other)
			other = re
			other.src = 3
			l.in(false, other)
			st := l.p.Stats()
			if n := st.Flows.Tracked; n != 1 || st.Flows.Opened != 1 || st.Rules["one"].Packets != 2 {
				t.Errorf("%s: %+v", kind, st)
			}
			bare := re
			bare.bare = true
			l.in(true, bare)
			tagged := re
			tagged.vlans = 2
			l.in(true, tagged)
		}
	}
}

func TestStateless(t *testing.T) {
	cfg := allowed()
	cfg.Stateless = true
	l := newLab(t, cfg)
	x := pkt{kind: "udp", src: 1, dst: 2}
	l.in(true, x)
	l.in(false, x.answer())
	if l.p.flows.len() != 0 {
		t.Error("tracked")
	}
}

// In segments that a gateway joins a flow has two VNIs.
func TestRouted(t *testing.T) {
	cfg := allowed()
	cfg.Routed = true
	l := newLab(t, cfg)
	x := pkt{kind: "udp", src: 1, dst: 2}
	l.in(true, x)
	l.vni = 200
	l.in(true, x.answer())
}

// What is no beginning passes, and opens nothing.
func TestNoBeginning(t *testing.T) {
	for _, x := range []pkt{
		{kind: "tcp", src: 1, dst: 2, flags: "A"}, {kind: "tcp", src: 1, dst: 2, flags: "SA"}, {kind: "tcp", src: 1, dst: 2, flags: "R"},
		{kind: "tcp", src: 1, dst: 2, flags: "F"}, {kind: "icmp", src: 1, dst: 2, typ: echoAnswer}, {kind: "icmp", src: 1, dst: 2, typ: 13},
		{kind: "udp", src: 1, dst: 2, frag: "later"}, {kind: "arp", src: 1, dst: 2},
		{kind: "udp", src: 1, dstIP: netip.MustParseAddr("224.0.0.1")}, {kind: "udp", src: 1, dstIP: netip.MustParseAddr("255.255.255.255")},
		{kind: "udp", v6: true, src: 1, dstIP: netip.MustParseAddr("ff02::1")}, {kind: "nd", v6: true, typ: 135, src: 1, dst: 2},
	} {
		l := newLab(t, allowed())
		l.in(true, x)
		if l.p.flows.len() != 0 {
			t.Errorf("%+v", x)
		}
	}
	cfg := allowed()
	cfg.PickUp = true
	l := newLab(t, cfg)
	x := pkt{kind: "tcp", src: 1, dst: 2, flags: "A"}
	l.in(true, x)
	l.in(true, x.answer())
	x.sport, x.flags = 9, "R"
	l.in(true, x)
	l.in(false, x.answer())
}

func TestTimeouts(t *testing.T) {
	const opened, answered, assured, closed = 0, 1, 2, 3
	for _, c := range []struct {
		kind string
		what int
		want frame.Tick
	}{
		{"tcp", opened, 3}, {"tcp", answered, 8}, {"tcp", assured, 50}, {"tcp", closed, 5},
		{"udp", opened, 4}, {"udp", answered, 4}, {"udp", assured, 20},
		{"icmp", opened, 6}, {"icmp", answered, 6}, {"icmp", assured, 6},
		{"gre", opened, 9}, {"gre", answered, 9}, {"gre", assured, 7},
	} {
		for _, sweep := range []bool{false, true} {
			for _, before := range []bool{false, true} {
				cfg := allowed()
				s := time.Second
				cfg.Timeouts = Timeouts{TCPOpening: 3 * s, TCPHalfOpen: 8 * s, TCP: 50 * s, TCPClosing: 5 * s, UDPOpening: 4 * s, UDP: 20 * s, ICMP: 6 * s, OtherOpening: 9 * s, Other: 7 * s}
				l := newLab(t, cfg)
				x := pkt{kind: c.kind, src: 1, dst: 2, sport: 5, dport: 6, flags: "S"}
				l.in(true, x)
				l.at.Tick++
				l.in(true, x)
				if c.what >= answered {
					l.in(true, x.answer())
					if c.kind == "tcp" {
						l.in(true, x) // a SYN again assures nothing
					}
				}
				if x.flags = "A"; c.what >= assured {
					l.in(true, x)
				}
				if c.what == closed {
					fin := x.answer()
					fin.flags = "FA"
					l.in(true, fin)
				}
				l.at.Tick += c.want
				if before {
					l.at.Tick--
				}
				if sweep {
					l.p.Housekeep(l.at.Tick)
					l.p.Ingress().Housekeep(l.at.Tick)
				}
				l.in(before, x.answer())
				if n := l.p.Stats().Flows; n.Tracked != b2i(before) || n.Aged != uint64(1-b2i(before)) {
					t.Errorf("%+v: %+v", c, n)
				}
			}
		}
	}
}

// A connection that is over may begin again, from either side if the rules say so.
func TestAgain(t *testing.T) {
	l := newLab(t, &Config{Default: Deny, Rules: []Rule{{DstPorts: []PortRange{Port(80)}}, {Direction: Egress, DstPorts: []PortRange{Port(1000)}}}})
	x := pkt{kind: "tcp", src: 1, dst: 2, sport: 1000, dport: 80, flags: "S"}
	l.in(true, x)
	rst := x.answer()
	rst.flags = "R"
	l.in(true, rst)
	l.in(true, x)
	l.at.Tick += 29
	l.in(true, x.answer())
	ack := x
	ack.flags = "A"
	l.in(true, ack)
	l.at.Tick += 100 // not closing any more
	l.in(true, x.answer())
	syn := x.answer()
	syn.flags = "S"
	l.in(false, syn)
	l.out(true, syn)
	l.in(false, syn) // it is the one at 80 still
	l.in(true, rst)
	l.out(true, syn) // now it is the other's
	l.in(true, syn.answer())
	mid := syn
	mid.flags = "A"
	l.out(true, mid)
	l.in(false, mid)
	if n := l.p.flows.len(); n != 1 {
		t.Error(n)
	}
}

// Each direction has rules of its own, and the first packet of a flow passes both slots.
func TestBothSlots(t *testing.T) {
	l := newLab(t, &Config{Default: Deny, Rules: []Rule{{Direction: Ingress}, {Direction: Egress, DstPorts: []PortRange{Port(53)}}}})
	x := pkt{kind: "udp", src: 1, dst: 2, sport: 1000, dport: 54}
	l.in(true, x)
	l.out(false, x)
	l.in(true, x)
	l.out(false, x)
	x.dport = 53
	l.in(true, x)
	l.out(true, x)
	l.out(true, x.answer())
	l.update(&Config{Default: Deny, Rules: []Rule{{Direction: Ingress}, {Direction: Egress, DstPorts: []PortRange{Port(54)}}}})
	l.out(false, x.answer())
	l.out(false, x)
}

// A change of rules and sets is one for open flows too, both ways.
func TestUpdateFlows(t *testing.T) {
	set := func(s ...string) *Config {
		return &Config{Default: Deny, Rules: []Rule{{Name: "web", SrcSet: "clients", DstPorts: []PortRange{Port(80)}}, {Name: "ping", Protocol: 1, SrcSet: "clients"}}, Sets: map[string][]netip.Prefix{"clients": prefixes(s...)}}
	}
	for _, kind := range []string{"tcp", "udp", "icmp"} {
		l := newLab(t, set("10.0.0.1/32"))
		x := pkt{kind: kind, src: 1, dst: 2, sport: 1000, dport: 80, flags: "S", id: 5}
		l.in(true, x)
		x.flags = "A"
		l.in(true, x.answer())
		l.update(set("10.0.0.0/24"))
		l.in(true, x.answer())
		l.in(true, x)
		l.update(set("10.0.0.9/32"))
		l.in(false, x.answer())
		l.in(false, x)
		l.update(set("10.0.0.1/32"))
		x.flags = "S"
		l.in(true, x)
		x.flags = "A"
		must(t, l.p.AddToSet("clients", prefixes("10.0.0.7/32", "10.0.0.0/16")...))
		l.in(true, x.answer())
		must(t, l.p.DeleteFromSet("clients", prefixes("10.0.0.1/32", "10.0.0.9/32")...))
		l.in(true, x.answer()) // the /16
		must(t, l.p.DeleteFromSet("clients", prefixes("10.0.0.0/16")...))
		l.in(false, x)
		l.in(false, x.answer())
		st := l.p.Stats()
		if st.Flows.Revoked != 2 || st.Flows.Tracked != 0 || st.Rules["web"].Packets+st.Rules["ping"].Packets != 3 {
			t.Errorf("%+v", st)
		}
		keep := set()
		keep.Sets["clients"] = nil
		l.update(keep)
		if s := l.p.Set("clients"); len(s) != 1 || s[0] != prefixes("10.0.0.7/32")[0] {
			t.Error(s)
		}
	}
	l := newLab(t, set())
	if l.p.AddToSet("x", prefixes("10.0.0.0/8")...) == nil || l.p.AddToSet("clients", netip.Prefix{}) == nil || l.p.Set("x") != nil {
		t.Error("no error")
	}
}

// The counters of names that stay go on; one that comes back begins anew.
func TestCounters(t *testing.T) {
	x := pkt{kind: "udp", src: 1, dst: 2, dport: 80}
	rules := func(names ...string) *Config {
		c := &Config{Default: Deny, Stateless: true}
		for _, n := range names {
			c.Rules = append(c.Rules, Rule{Name: n, DstPorts: []PortRange{Port(80)}})
		}
		return c
	}
	l := newLab(t, rules("a", "b"))
	want := func(name string, n uint64) {
		t.Helper()
		if got := l.p.Stats().Rules[name].Packets; got != n {
			t.Errorf("%s: %d, want %d", name, got, n)
		}
	}
	l.in(true, x)
	l.update(rules("b", "a"))
	l.in(true, x)
	l.at.Worker = 7
	l.in(true, x)
	want("a", 1)
	want("b", 2)
	for range 300 {
		l.update(rules("c", "a"))
		l.update(rules("d", "a"))
	}
	want("a", 1)
	l.update(rules("b"))
	want("b", 0)
	l.in(true, x)
	want("b", 1)
}

// Errors about a flow pass, and others do not.
func TestRelated(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		unreachable, cut := uint8(3), 28
		if v6 {
			unreachable, cut = 1, 48
		}
		for _, kind := range []string{"tcp", "udp", "icmp", "gre"} {
			l := newLab(t, allowed())
			x := pkt{kind: kind, v6: v6, src: 1, dst: 2, sport: 1000, dport: 80, flags: "S", id: 3}
			re := x.answer()
			about := func(p pkt, from, to, cut int) pkt {
				return pkt{kind: "icmp", v6: v6, src: from, dst: to, typ: unreachable, about: &p, cut: cut}
			}
			l.in(false, about(x, 9, 1, 0))
			l.in(true, x)
			l.in(true, about(x, 9, 1, 0)) // a router's
			l.out(true, about(x, 2, 1, cut))
			l.in(true, about(re, 9, 2, 0))
			l.in(false, about(x, 9, 2, 0)) // not to who sent it
			l.in(false, about(x, 9, 1, cut-9))
			y := x
			y.src = 3
			l.in(false, about(y, 9, 3, 0))
			e := about(x, 9, 1, 0)
			e.typ = 5
			if v6 {
				e.typ = 137
			}
			l.in(false, e) // a redirect
			if st := l.p.Stats(); st.Related != 3 || st.Flows.Tracked != 1 {
				t.Errorf("%+v", st)
			}
		}
	}
}

// A flow has the group of its opener's packet that the rules judged last, and keeps it when the
// table grows: by that its other side's packets are judged anew.
func TestGroupOfFlow(t *testing.T) {
	only := func(name string, group uint16) *Config {
		return &Config{Default: Deny, Rules: []Rule{{Name: name, Groups: []uint16{group}}}}
	}
	l := newLab(t, only("a", 1))
	x := pkt{kind: "udp", src: 1, dst: 2, sport: 1000, dport: 80, group: 1}
	back := x.answer()
	back.group = 5
	l.in(true, x)
	l.in(true, back)
	l.update(only("b", 1))
	l.in(true, back)
	l.update(only("c", 2))
	x.group = 2
	l.in(true, x)
	l.update(only("d", 2))
	l.in(true, back)
	l.update(only("e", 1))
	l.in(false, back)

	var f flows
	f.init(1 << 14)
	w := key{1, 2, 3, 4, 5}
	f.insert(&w, &newFlow{stIngress | stAnswered, 1, 9, 0}, &forever)
	f.grow((*f.arrays.Load())[0])
	f.sweep(1, &forever)
	if y, ok := f.find(&w, 1, &forever); !ok || y.group != 9 || y.a != (*f.arrays.Load())[0] {
		t.Errorf("%v, group %d", ok, y.group)
	}
}
