package bgp

import (
	"bufio"
	"net"
	"net/netip"
	"testing"
)

// Of two connections in OpenConfirm that of the higher identifier's owner stays (RFC 4271, section 6.8).
func TestCollision(t *testing.T) {
	t.Parallel()
	for name, id := range map[string][4]byte{"ours": {1, 1, 1, 1}, "theirs": {200, 1, 1, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, b, _, dialed := dialed(t)
			came := connect(t, c)
			for _, s := range []*script{dialed, came} {
				s.say(helloAs(id, 0, 0))
				s.want(typeOpen)
				if s == dialed {
					s.want(typeKeepalive)
				}
			}
			stays, goes := came, dialed
			if name == "ours" {
				stays, goes = dialed, came
			}
			if n := parseNotification(goes.want(typeNotification)); n.Code != errCease || n.Subcode != ceaseCollision {
				t.Error(n)
			}
			stays.say(appendKeepalive(nil))
			until(t, "session", func() bool { return state(b) == "established" })
		})
	}
}

// A peer with graceful restart that opens a connection has lost the one that we opened, whoever has the higher identifier.
func TestRestartOfDialed(t *testing.T) {
	t.Parallel()
	c, b, h, s := dialed(t)
	id := [4]byte{1, 1, 1, 1}
	s.open(helloAs(id, 60, kept))
	until(t, "session", func() bool { return state(b) == "established" })
	connect(t, c).open(helloAs(id, 60, kept))
	until(t, "another session", func() bool { c, _ := h.counts(); return c.ups == 2 })
	if c, _ := h.counts(); c.downs != 0 || c.stale != 1 {
		t.Errorf("%+v", c)
	}
}

// A connection that is to become Established when another is kept was never a session: nothing of it comes to an end.
func TestLateCollision(t *testing.T) {
	t.Parallel()
	addr := netip.MustParseAddr("192.0.2.2")
	b, h, _ := start(t, Config{AS: 65000, RouterID: netip.MustParseAddr("192.0.2.1"), Peers: []Peer{{Addr: addr, AS: 65000, Passive: true}}})
	p := (*b.peers.Load())[addr]
	until(t, "the peer", func() bool { return p.location().ctx != nil })
	begin := func(dialed bool) *script {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { theirs.Close() })
		p.running.Go(func() { p.failed(second(p.session(p.location(), ours, dialed))) })
		s := &script{t, theirs, bufio.NewReader(theirs)}
		s.want(typeOpen)
		return s
	}
	current := func() *session {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.current
	}
	goes := begin(true)
	goes.say(appendKeepalive(helloAs(addr.As4(), 0, 0))) // ours has still to be read
	until(t, "the first", func() bool { return current() != nil })
	was := current()
	stays := begin(false)
	stays.say(helloAs(addr.As4(), 0, 0))
	until(t, "the second", func() bool { return current() != was })
	for err := error(nil); err == nil; {
		_, _, err = goes.next()
	}
	stays.want(typeKeepalive)
	stays.say(appendKeepalive(nil))
	until(t, "session", func() bool { return state(b) == "established" })
	if c, err := h.counts(); c.ups != 1 || c.downs+c.stale != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// A peer that keeps the connection it has opened says so on the other. That is no error to show.
func TestCollisionOfPeer(t *testing.T) {
	t.Parallel()
	c, b, _, s := dialed(t)
	s.want(typeOpen)
	s.say(notify(errCease, ceaseCollision).marshal())
	until(t, "the error", func() bool { return b.Status()[0].Last != nil })
	connect(t, c).open(helloAs([4]byte{200, 1, 1, 1}, 0, 0))
	until(t, "session", func() bool { return state(b) == "established" })
	if err := b.Status()[0].Last; err != nil {
		t.Error(err)
	}
}
