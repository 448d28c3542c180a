package bgp

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// When a peer has withdrawn some, those of its routes come in that were left out before.
func TestRelief(t *testing.T) {
	t.Parallel()
	ca, cb := pair(t, 65000, 65000, nil)
	cb.Peers[0].MaxRoutes = 10
	a, _, _ := start(t, ca)
	b, hb, _ := start(t, cb)
	all := many(25)
	for _, r := range all {
		a.Advertise(r)
	}
	until(t, "15 left out", func() bool { return b.Status()[0].LeftOut["limit"] == 15 && b.Status()[0].Missing == 15 })
	for _, r := range all[:20] {
		a.Withdraw(r.Key)
	}
	until(t, "the rest", func() bool {
		for _, r := range all[20:] {
			if hb.get(ca.RouterID, r.Key) != r {
				return false
			}
		}
		return hb.count() == 5 && b.Status()[0].Missing == 0
	})
	if c, _ := hb.counts(); c.downs > 0 {
		t.Errorf("%+v", c)
	}
}

// sayAll says routes, withdrawAll takes them back at once.
func (s *script) sayAll(routes []route.Route) {
	s.t.Helper()
	for _, r := range routes {
		a := sharedOf(&r)
		s.say(internal.reach(&a, appendNLRI(nil, &r)))
	}
}

func (s *script) withdrawAll(routes []route.Route) {
	s.t.Helper()
	var b []byte
	for _, r := range routes {
		b = appendNLRI(b, &r)
	}
	s.say(unreach(b))
}

// bounded runs one with two peers that may have 20 routes in all, and returns it with a session of each.
func bounded(t *testing.T, hello []byte) (b *BGP, h *heard, one, two *script) {
	c := passive(t)
	c.MaxRoutes = 20
	second := c.Peers[0]
	second.Addr = second.Addr.Next()
	c.Peers = append(c.Peers, second)
	b, h, _ = start(t, c)
	one = connect(t, c)
	one.open(helloAs([4]byte{9, 9, 9, 9}, 0, 0))
	c.Peers = c.Peers[1:]
	two = connect(t, c)
	two.open(hello)
	return b, h, one, two
}

// What one peer gives back may be another's, which is asked for all of its routes, once.
func TestReliefOfOthers(t *testing.T) {
	t.Parallel()
	b, h, one, two := bounded(t, helloAs([4]byte{9, 9, 9, 8}, 0, 0))
	all := many(40)
	one.sayAll(all[:15])
	until(t, "15", func() bool { return h.count() == 15 })
	two.sayAll(all[15:30]) // of which five are its share
	until(t, "10 left out", func() bool { return b.Status()[1].Missing == 10 && b.Status()[1].LeftOut["limit-of-all"] == 10 })
	one.withdrawAll(all[:15])
	if got := two.want(typeRefresh); !isEVPN(got) {
		t.Errorf("%x", got)
	}
	two.sayAll(all[15:30])
	until(t, "all of the second", func() bool { return h.count() == 15 })
	if s := b.Status()[1]; s.Missing != 0 || s.Routes != 15 || s.State != "established" {
		t.Errorf("%+v", s)
	}
}

// A peer without route refresh keeps its session, and what it misses is in its Status until the next.
func TestReliefUnasked(t *testing.T) {
	t.Parallel()
	hello := helloAs([4]byte{9, 9, 9, 8}, 0, 0)
	i := slices.Index(hello[headerLen:], capRefresh) + headerLen
	for ; hello[i+1] != 0 || hello[i+2] != capExtended; i++ {
	}
	hello[i] = 200 // a capability of nobody
	b, h, one, two := bounded(t, hello)
	all := many(40)
	one.sayAll(all[:15])
	until(t, "15", func() bool { return h.count() == 15 })
	two.sayAll(all[15:30])
	until(t, "10 left out", func() bool { return b.Status()[1].Missing == 10 })
	one.withdrawAll(all[:15])
	until(t, "5", func() bool { return h.count() == 5 })
	two.say(setLength(append(appendHeader(nil, typeRefresh), 0, afi, 0, safi)))
	for {
		typ, body, err := two.next()
		if err != nil || typ == typeRefresh || typ == typeNotification {
			t.Fatalf("%d %x, %v", typ, body, err)
		}
		if typ == typeKeepalive {
			break
		}
	}
	if s := b.Status()[1]; s.State != "established" || s.Missing != 10 || s.Routes != 5 {
		t.Errorf("%+v", s)
	}
	two.Close()
	until(t, "no session", func() bool { return b.Status()[1].Missing == 0 && b.Status()[1].Routes == 0 })
}

// Whether a peer is asked depends on the room: for all that is missing, or a sixteenth of a limit; and then not before askPause has passed.
func TestSpare(t *testing.T) {
	addr := netip.MustParseAddr("192.0.2.2")
	for _, c := range []struct {
		known, missing, max, limit, taken int
		short                             bool // still
	}{
		{known: 100, missing: 1, max: 100, limit: 1000, taken: 500, short: true},
		{known: 99, missing: 1, max: 100, limit: 1000, taken: 500},
		{known: 95, missing: 9, max: 100, limit: 1000, taken: 500, short: true},
		{known: 94, missing: 9, max: 100, limit: 1000, taken: 500},
		{known: 600, missing: 70, max: 1000, limit: 1000, taken: 1000, short: true},
		{known: 600, missing: 70, max: 1000, limit: 1000, taken: 938},
		{known: 450, missing: 50, max: 1000, limit: 1000, taken: 1000},
	} {
		b := check.Must(New(Config{AS: 1, RouterID: addr, MaxRoutes: c.limit, Peers: []Peer{{Addr: addr, AS: 1, MaxRoutes: c.max}}}))(t)
		p := (*b.peers.Load())[addr]
		for i := range c.known {
			p.known[uint64(i)] = 0
		}
		b.taken, p.missing, b.short = c.taken, c.missing, true
		s := &session{peer: p, queue: newQueue(), live: true, open: open{refresh: true}}
		p.current = s
		b.relieve()
		if b.short != c.short || s.ask.Load() == c.short || (p.missing == 0) == c.short {
			t.Errorf("%+v: short %v, asked %v, missing %d", c, b.short, s.ask.Load(), p.missing)
		}
		if c.short {
			continue
		}
		s.ask.Store(false)
		p.missing, b.short = c.missing, true
		if b.relieve(); s.ask.Load() || p.asking == nil || !b.short {
			t.Errorf("%+v: asked twice", c)
		}
		p.asking.Stop()
	}
}
