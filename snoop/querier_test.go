package snoop

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// Without a querier everything is flooded.
func TestNoQuerier(t *testing.T) {
	l := newLab(t, Config{})
	l.from(port1, old(igmpReport2, groupA))
	l.pass(20)
	l.wantAll("no querier", groupA)
	l.from(port2, asks(host4, 125))
	l.pass(10)
	l.wantAll("hosts may still answer", groupA)
	l.pass(1)
	l.want("a querier", groupA, port1, port2)
	l.wantAll("the other family", group6)
	l.pass(255)
	l.wantAll("a lost querier", groupA)
	if len(l.sent) != 0 {
		t.Errorf("%d queries of ours", len(l.sent))
	}
}

// The first answers go to routers alone: a host that hears that of another is silent, and its place would stay unknown when the
// groups are no longer flooded.
func TestFirstAnswers(t *testing.T) {
	for _, x := range []struct {
		name      string
		cfg       Config
		ask       func(l *lab, src netip.Addr)
		group     netip.Addr
		report    byte
		querier   netip.Addr
		of        []frame.Dest // routers
		listeners []frame.Dest
	}{
		{"another asks", Config{}, func(l *lab, src netip.Addr) { l.from(port3, asks(src, 125)) }, groupA, igmpReport2, host4, []frame.Dest{port3}, []frame.Dest{port1, port2, port3}},
		{"another asks, IPv6", Config{}, func(l *lab, src netip.Addr) { l.from(port3, asks(src, 125)) }, group6, mldReport1, host6, []frame.Dest{port3}, []frame.Dest{port1, port2, port3}},
		{"we ask", Config{Querier: true}, func(l *lab, _ netip.Addr) { l.pass(1) }, groupA, igmpReport2, host4, nil, []frame.Dest{port1, port2}},
	} {
		l := newLab(t, x.cfg)
		b := old(x.report, x.group)
		if _, all := l.to(b); !all {
			t.Errorf("%s: before, a report is not flooded", x.name)
		}
		x.ask(l, x.querier)
		for _, port := range []frame.Dest{port1, port2} {
			l.from(port, b)
			if got, all := l.to(b); all || !slices.Equal(got, x.of) {
				t.Errorf("%s: an answer goes to %v, everywhere %v", x.name, got, all)
			}
			l.wantAll(x.name+": hosts may still answer", x.group)
		}
		l.pass(11)
		l.want(x.name, x.group, x.listeners...)
	}
}

// A listener is believed for as long as the querier's own times say.
func TestQueriersTimes(t *testing.T) {
	l := newLab(t, Config{Interval: 10 * time.Second})
	l.from(port2, asks(host4, 60))
	l.pass(11)
	l.from(port1, old(igmpReport2, groupA))
	l.from(port2, asks(host4, 60))
	l.pass(60)
	l.from(port2, asks(host4, 60))
	l.pass(69)
	l.want("two intervals of 60 s, and ten", groupA, port1, port2)
	l.pass(1)
	l.want("over", groupA, port2)
}

// Queriers elect one: the lowest address, or with none the lowest MAC.
func TestElection(t *testing.T) {
	for _, x := range []struct {
		name  string
		cfg   Config
		b     []byte // its MAC is 02:00:00:00:00:09
		wins  bool
		until int // seconds of silence
	}{
		{"no addresses, its MAC is lower", Config{MAC: mac(10)}, asks(zero, 125), true, 136},
		{"no addresses, its MAC is higher", Config{MAC: mac(8)}, asks(zero, 125), false, 0},
		{"only ours has none", Config{MAC: mac(10)}, asks(host4, 125), false, 0},
		{"only its has none", Config{MAC: mac(8), Address: host4}, asks(zero, 125), true, 136},
		{"its address is lower", Config{MAC: mac(8), Address: host4.Next()}, asks(host4, 125), true, 249},
		{"and it asks more often", Config{MAC: mac(8), Address: host4.Next()}, asks(host4, 20), true, 249},
	} {
		x.cfg.Querier = true
		l := newLab(t, x.cfg)
		l.pass(1)
		l.from(port1, x.b)
		l.sent = nil
		count := func() (n int) {
			for _, s := range l.sent {
				if p, _ := look(s.b); p.family == v4 {
					n++
				}
			}
			return n
		}
		l.pass(130)
		if got := count() == 0; got != x.wins {
			t.Errorf("%s: wins %v", x.name, got)
		}
		if !x.wins {
			continue
		}
		l.pass(x.until - 131)
		if count() != 0 {
			t.Errorf("%s: asked before %d s", x.name, x.until)
		}
		if l.pass(2); count() != 1 {
			t.Errorf("%s: %d queries after %d s", x.name, count(), x.until)
		}
	}
}

// A querier that has lost the election is no router.
func TestLoser(t *testing.T) {
	l := newLab(t, Config{})
	l.from(port2, asks(host4, 125))
	l.from(port3, asks(host4.Next(), 125))
	l.pass(11)
	l.want("the winner", groupA, port2)
	l.from(port1, asks(netip.MustParseAddr("192.0.2.8"), 125))
	l.want("and a new one", groupA, port1, port2)
}

// Queries of a Snooper are those that another one understands.
func TestQuestions(t *testing.T) {
	l := newLab(t, Config{Querier: true, MAC: mac(1), Interval: 250 * time.Second})
	l.pass(1)
	if len(l.sent) != 2 {
		t.Fatalf("%d queries", len(l.sent))
	}
	for _, s := range l.sent {
		p, ok := look(s.b)
		m, why := p.parse()
		if !ok || why != frame.NotDropped || p.kind != query || s.to != 0 || m.maxResp != 10_000 || m.interval < 240 || m.interval > 250 || m.robustness != 2 || !m.general() {
			t.Errorf("%v %v: %+v", ok, why, m)
		}
		own := newLab(t, Config{Querier: true, MAC: mac(1)})
		if own.from(port1, s.b); len(*own.routers[p.family].Load()) != 0 {
			t.Error("a query of ours that comes back makes a router")
		}
	}
	for _, g := range []netip.Addr{groupA, group6} {
		f := l.question(mapped(raw(g)).family(), mapped(raw(g)), 1)
		p, _ := look(f.Bytes())
		if m, why := p.parse(); why != frame.NotDropped || m.group != mapped(raw(g)) || m.maxResp != 1000 || p.dst != m.group {
			t.Errorf("%v: %v %+v", g, why, m)
		}
	}
}

// A question of the querier about a group ends it, unless somebody answers, it says that timers stay as they are, or it comes from
// elsewhere.
func TestQuestionAboutGroup(t *testing.T) {
	for _, x := range []struct {
		from  frame.Dest
		flags byte
		want  []frame.Dest
	}{{port2, 2, []frame.Dest{port2}}, {port2, 8 | 2, []frame.Dest{port1, port2}}, {port3, 2, []frame.Dest{port1, port2}}} {
		l := newLab(t, Config{})
		l.from(port2, asks(host4, 125))
		l.pass(11)
		l.from(port1, old(igmpReport2, groupA))
		l.from(x.from, igmp(host4, groupA, igmpQuery, 10, 0, 0, 239, 1, 2, 3, x.flags, 125, 0, 0))
		l.pass(6)
		l.want("asked", groupA, x.want...)
	}
}

// When a place has gone, hosts are asked soon: they may be elsewhere now.
func TestAskedWhenAPlaceHasGone(t *testing.T) {
	l := newLab(t, Config{Querier: true})
	l.pass(60)
	l.sent = nil
	l.pass(1)
	if len(l.sent) != 0 {
		t.Errorf("%d queries before", len(l.sent))
	}
	l.Left(port1)
	if l.pass(1); len(l.sent) != int(families) {
		t.Errorf("%d queries after, want one for each family", len(l.sent))
	}
}
