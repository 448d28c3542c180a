package hello

import (
	"net/netip"
	"testing"
	"time"
)

var a, b = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")

// A pair is two neighbours, with a link that is up or down.
type pair struct {
	now    time.Duration
	tables map[netip.Addr]*Table
	cut    bool
}

func (p *pair) deliver(from netip.Addr, list []Send) {
	for _, m := range list {
		if to := p.tables[m.To]; to != nil && !p.cut {
			answer, _ := to.Receive(p.now, from, m.Hello)
			p.deliver(m.To, answer)
		}
	}
}

func (p *pair) run(d time.Duration) {
	for end := p.now + d; p.now < end; p.now += time.Second {
		for _, x := range []netip.Addr{a, b} {
			p.deliver(x, p.tables[x].Poll(p.now))
		}
	}
}

func newPair() *pair {
	p := &pair{tables: map[netip.Addr]*Table{a: New(1), b: New(2)}}
	p.tables[a].Set(0, map[netip.Addr]bool{b: true})
	p.tables[b].Set(0, map[netip.Addr]bool{a: true})
	return p
}

func (p *pair) up(t *testing.T, what string, want bool) {
	t.Helper()
	for x, table := range p.tables {
		if got := table.Status(); got[0].Up != want {
			t.Errorf("%s: the neighbour of %v is up: %v, want %v", what, x, got[0].Up, want)
		}
	}
}

func TestHello(t *testing.T) {
	p := newPair()
	p.run(time.Second)
	p.up(t, "began", true)
	p.run(time.Minute)
	if c := p.tables[a].Changes(); len(c) != 1 || c[0] != (Change{b, true, true}) {
		t.Errorf("changes are %v", c)
	}
	p.cut = true
	p.run(Dead - Every)
	p.up(t, "cut", true)
	p.run(Every + 2*time.Second)
	p.up(t, "cut for long", false)
	p.cut = false
	p.run(Every + time.Second)
	p.up(t, "joined", true)
	p.tables[a].Changes()

	p.tables[b] = New(3) // which says nothing of what was
	p.tables[b].Set(p.now, map[netip.Addr]bool{a: true})
	p.run(time.Second)
	p.up(t, "restarted", true)
	if c := p.tables[a].Changes(); len(c) != 2 || c[0].Up || !c[1].Up {
		t.Errorf("changes after a restart are %v", c)
	}
	p.tables[b].Set(p.now, nil)
	p.run(Dead + Every)
	if p.tables[a].Status()[0].Up {
		t.Error("a neighbour that does not know us is up")
	}
}

// A Hello that another one has overtaken changes nothing.
func TestOvertaken(t *testing.T) {
	p := newPair()
	first := p.tables[a].Poll(0)[0].Hello
	p.run(10 * time.Second)
	if answer, ok := p.tables[b].Receive(p.now, a, first); !ok || len(answer) > 0 {
		t.Errorf("%v, %v", answer, ok)
	}
	p.up(t, "after it", true)
}

func TestStranger(t *testing.T) {
	p := newPair()
	if _, ok := p.tables[a].Receive(0, netip.MustParseAddr("192.0.2.3"), Hello{9, 1, 1}); ok {
		t.Error("a stranger is heard")
	}
	if _, ok := p.tables[a].Receive(0, b, Hello{}); ok {
		t.Error("a neighbour without life is heard")
	}
}
