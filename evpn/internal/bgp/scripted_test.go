package bgp

import (
	"bufio"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// script is a peer whose every message is the test's.
type script struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

// connect connects as the only peer of c.
func connect(t *testing.T, c Config) *script {
	t.Helper()
	p := c.Peers[0]
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(p.Addr, 0)), Timeout: 5 * time.Second}
	var conn net.Conn
	until(t, "connection", func() (ok bool) {
		var err error
		conn, err = d.Dial("tcp", c.Listen[0].String())
		return err == nil
	})
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	return &script{t, conn, bufio.NewReader(conn)}
}

func (s *script) say(b []byte) {
	s.t.Helper()
	if _, err := s.Write(b); err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) update(body []byte) {
	s.say(setLength(append(appendHeader(nil, typeUpdate), body...)))
}

// next returns the next message, or an error when the connection ends.
func (s *script) next() (uint8, []byte, error) {
	return readMessage(s.r, make([]byte, maxExtended), maxExtended)
}

// want reads up to a message of a type.
func (s *script) want(typ uint8) []byte {
	s.t.Helper()
	for {
		got, body, err := s.next()
		if err != nil {
			s.t.Fatal(err)
		}
		if got == typ {
			return body
		}
		if got == typeNotification {
			s.t.Fatal(parseNotification(body))
		}
	}
}

// helloAs is an OPEN of AS 65000 with graceful restart of so many seconds, 0 for none.
func helloAs(id [4]byte, restart byte, flags byte) []byte {
	o := open{as: 65000, hold: 9 * time.Second, id: id}
	b := o.marshal()
	if restart > 0 {
		i := slices.Index(b[headerLen:], capRestart) + headerLen
		b = slices.Concat(b[:i], []byte{capRestart, 6, 0, restart, 0, afi, safi, flags}, b[i+4:])
		b[headerLen+9] += 4
		b[headerLen+11] += 4
	}
	return setLength(b)
}

func (s *script) open(b []byte) {
	s.t.Helper()
	s.say(b)
	s.want(typeOpen)
	s.say(appendKeepalive(nil))
	s.want(typeKeepalive)
}

// passive returns the configuration of one that waits for a script.
func passive(t *testing.T) Config {
	c, _ := pair(t, 65000, 65000, func(p *Peer) { p.Passive = true })
	return c
}

// listening listens where a speaker with these settings would.
func listening(t *testing.T, c *Config) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", c.Listen[0].String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// Every UPDATE of the table of malformed ones on a live session: it stays, or the peer is told why not.
func TestMalformedLive(t *testing.T) {
	t.Parallel()
	c := passive(t)
	c.RouterID = netip.AddrFrom4(internal.id)
	b, h, _ := start(t, c)
	s := connect(t, c)
	id := [4]byte{9, 9, 9, 9}
	s.open(helloAs(id, 0, 0))
	sessions := 1
	for _, m := range malformed {
		s.update(m.body)
		if m.want != reset {
			s.say(setLength(append(appendHeader(nil, typeRefresh), 0, afi, 0, safi)))
			continue
		}
		for {
			typ, body, err := s.next()
			if err != nil {
				t.Fatalf("%s: %v", m.name, err)
			}
			if typ == typeNotification {
				if n := parseNotification(body); n.Code != errUpdate {
					t.Errorf("%s: %v", m.name, n)
				}
				break
			}
		}
		until(t, m.name, func() bool { return state(b) != "established" })
		s.Close()
		s = connect(t, c)
		s.open(helloAs(id, 0, 0))
		sessions++
	}
	s.update(unreach(nil)[headerLen:])
	until(t, "end of RIB", func() bool { c, _ := h.counts(); return c.ends == 1 })
	if c, _ := h.counts(); c.ups != sessions {
		t.Errorf("%d sessions, want %d", c.ups, sessions)
	}
	left := b.Status()[0].LeftOut
	for _, m := range malformed {
		if m.want != reset && m.want != taken && left[m.want] == 0 {
			t.Errorf("%s: %s is not counted", m.name, m.want)
		}
	}
}

// Routes of a peer with graceful restart outlive its session: those it says again stay, the others go at the end of RIB.
func TestGracefulRestart(t *testing.T) {
	t.Parallel()
	const kept = 0x80
	id := [4]byte{9, 9, 9, 9}
	say := func(s *script, n int) {
		for _, r := range many(n) {
			a := sharedOf(&r)
			s.say(internal.reach(&a, appendNLRI(nil, &r)))
		}
	}
	begin := func(t *testing.T, restart byte) (Config, *BGP, *heard, *script) {
		c := passive(t)
		b, h, _ := start(t, c)
		s := connect(t, c)
		s.open(helloAs(id, restart, kept))
		say(s, 10)
		until(t, "routes", func() bool { return h.count() == 10 })
		return c, b, h, s
	}
	t.Run("back", func(t *testing.T) {
		t.Parallel()
		c, b, h, s := begin(t, 60)
		s.Close()
		until(t, "stale", func() bool { return b.Status()[0].Stale && state(b) != "established" })
		if h.count() != 10 {
			t.Errorf("%d routes, want 10", h.count())
		}
		s = connect(t, c)
		s.open(helloAs(id, 60, kept))
		say(s, 4)
		until(t, "another session", func() bool { return state(b) == "established" })
		s.update(unreach(nil)[headerLen:])
		until(t, "4 routes", func() bool { return h.count() == 4 && b.Status()[0].Routes == 4 && !b.Status()[0].Stale })
		if c, _ := h.counts(); c.downs != 0 || c.stale != 1 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("new connection before the old is lost", func(t *testing.T) {
		t.Parallel()
		c, b, h, _ := begin(t, 60)
		s := connect(t, c)
		s.open(helloAs(id, 60, kept))
		s.update(unreach(nil)[headerLen:])
		until(t, "no routes", func() bool { return h.count() == 0 && b.Status()[0].Routes == 0 })
		if c, _ := h.counts(); c.downs != 0 || c.stale != 1 || c.ups != 2 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("lost again before all is said", func(t *testing.T) {
		t.Parallel()
		c, b, h, s := begin(t, 60)
		s.Close()
		until(t, "stale", func() bool { return b.Status()[0].Stale && state(b) != "established" })
		s = connect(t, c)
		s.open(helloAs(id, 60, kept))
		say(s, 4)
		until(t, "4 routes again", func() (ok bool) {
			h.do(func() { ok = len(h.old) == 6 })
			return ok
		})
		s.Close()
		until(t, "those 4 only", func() bool { return h.count() == 4 && b.Status()[0].Routes == 4 && b.Status()[0].Stale })
		if c, _ := h.counts(); c.downs != 0 || c.stale != 2 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("nothing kept", func(t *testing.T) {
		t.Parallel()
		c, _, h, s := begin(t, 60)
		s.Close()
		s = connect(t, c)
		s.open(helloAs(id, 60, 0))
		until(t, "no routes", func() bool { return h.count() == 0 })
	})
	t.Run("not back", func(t *testing.T) {
		t.Parallel()
		_, b, h, s := begin(t, 1)
		s.Close()
		until(t, "no routes", func() bool { return h.count() == 0 && b.Status()[0].Routes == 0 })
		if c, _ := h.counts(); c.downs != 1 || c.stale != 1 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("notification", func(t *testing.T) {
		t.Parallel()
		_, _, h, s := begin(t, 60)
		s.say(notify(errCease, ceaseShutdown, 0).marshal())
		until(t, "no routes", func() bool { return h.count() == 0 })
		if c, _ := h.counts(); c.stale != 0 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("not asked for", func(t *testing.T) {
		t.Parallel()
		_, _, h, s := begin(t, 0)
		s.Close()
		until(t, "no routes", func() bool { return h.count() == 0 })
	})
}

// Of two connections in OpenConfirm that of the higher identifier's owner stays (RFC 4271, section 6.8).
func TestCollision(t *testing.T) {
	t.Parallel()
	for name, id := range map[string][4]byte{"ours": {1, 1, 1, 1}, "theirs": {200, 1, 1, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, other := pair(t, 65000, 65000, nil)
			l := listening(t, &other)
			b, _, _ := start(t, c)
			conn, err := l.Accept() // which ours has dialed
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(20 * time.Second))
			dialed := &script{t, conn, bufio.NewReader(conn)}
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
			for {
				typ, body, err := goes.next()
				if err != nil {
					t.Fatal(err)
				}
				if typ == typeNotification {
					if n := parseNotification(body); n.Code != errCease || n.Subcode != ceaseCollision {
						t.Error(n)
					}
					break
				}
			}
			stays.say(appendKeepalive(nil))
			until(t, "session", func() bool { return state(b) == "established" })
		})
	}
}

// A peer with graceful restart that opens a connection has lost the one that we opened, whoever has the higher identifier.
func TestRestartOfDialed(t *testing.T) {
	t.Parallel()
	const kept = 0x80
	c, other := pair(t, 65000, 65000, nil)
	l := listening(t, &other)
	b, h, _ := start(t, c)
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	id := [4]byte{1, 1, 1, 1}
	(&script{t, conn, bufio.NewReader(conn)}).open(helloAs(id, 60, kept))
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

// A peer that refuses what we say is tried less and less often.
func TestRefused(t *testing.T) {
	t.Parallel()
	c, other := pair(t, 65000, 65000, nil)
	l := listening(t, &other)
	b, h, _ := start(t, c)
	l.(*net.TCPListener).SetDeadline(time.Now().Add(3 * time.Second))
	n := 0
	for ; ; n++ {
		conn, err := l.Accept()
		if err != nil {
			break
		}
		s := &script{t, conn, bufio.NewReader(conn)}
		s.open(helloAs([4]byte{9}, 0, 0))
		s.say(notify(errUpdate, 9).marshal())
		s.Close()
	}
	c1, last := h.counts()
	if !refused(notify(errCease, ceaseRoutes)) || refused(notify(errCease, ceaseShutdown)) {
		t.Error("a limit is not as a refusal, or an end is")
	}
	if n > 10 || c1.ups < 3 || b.Status()[0].Last == nil { // 50 ms at first, doubled each time: 3 s are the first six or seven
		t.Errorf("%d connections in 3 s, %+v, %v", n, c1, last)
	}
}

// A peer that keeps the connection it has opened says so on the other. That is no error to show.
func TestCollisionOfPeer(t *testing.T) {
	t.Parallel()
	c, other := pair(t, 65000, 65000, nil)
	l := listening(t, &other)
	b, _, _ := start(t, c)
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	dialed := &script{t, conn, bufio.NewReader(conn)}
	dialed.want(typeOpen)
	dialed.say(notify(errCease, ceaseCollision).marshal())
	until(t, "the error", func() bool { return b.Status()[0].Last != nil })
	connect(t, c).open(helloAs([4]byte{200, 1, 1, 1}, 0, 0))
	until(t, "session", func() bool { return state(b) == "established" })
	if err := b.Status()[0].Last; err != nil {
		t.Error(err)
	}
}

// A peer that connects and says nothing, or what is not to be said then.
func TestUnexpected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		say       [][]byte
		code, sub uint8
	}{
		"KEEPALIVE first":  {[][]byte{appendKeepalive(nil)}, errFSM, 1},
		"UPDATE too early": {[][]byte{helloAs([4]byte{9}, 0, 0), unreach(nil)}, errFSM, 2},
		"OPEN twice":       {[][]byte{helloAs([4]byte{9}, 0, 0), appendKeepalive(nil), helloAs([4]byte{9}, 0, 0)}, errFSM, 3},
		"our identifier":   {[][]byte{helloAs([4]byte{192, 0, 2, 1}, 0, 0)}, errOpen, 3},
		"no EVPN":          {[][]byte{setLength(append(appendHeader(nil, typeOpen), 4, 0xfd, 0xe8, 0, 9, 9, 9, 9, 9, 0))}, errOpen, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := passive(t)
			conf.RouterID = netip.AddrFrom4([4]byte{192, 0, 2, 1})
			start(t, conf)
			s := connect(t, conf)
			for _, b := range c.say {
				s.say(b)
			}
			for {
				typ, body, err := s.next()
				if err != nil {
					t.Fatal(err)
				}
				if typ == typeNotification {
					if n := parseNotification(body); n.Code != c.code || n.Subcode != c.sub {
						t.Error(n)
					}
					return
				}
			}
		})
	}
}

func TestStrangersAreClosed(t *testing.T) {
	t.Parallel()
	c := passive(t)
	start(t, c)
	var conn net.Conn
	until(t, "connection", func() (ok bool) {
		var err error
		conn, err = net.Dial("tcp", c.Listen[0].String()) // from 127.0.0.1
		return err == nil
	})
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, err := conn.Read(make([]byte, 1))
	if e := net.Error(nil); err == nil || errors.As(err, &e) && e.Timeout() {
		t.Error(err)
	}
}

// nobody takes what is decoded.
type nobody struct{ n int }

func (s *nobody) learned(*route.Route) { s.n++ }
func (s *nobody) withdrawn(*route.Key) {}
func (s *nobody) ended()               {}
func (s *nobody) malformed(string)     {}

func BenchmarkDecode(b *testing.B) {
	var body []byte
	for _, r := range many(1000) {
		body = appendNLRI(body, &r)
	}
	one := many(1)
	a := sharedOf(&one[0])
	m := internal.reach(&a, body)[headerLen:]
	d := decoder{agreement: internal}
	var s nobody
	b.ReportAllocs()
	for s.n < b.N {
		if err := d.update(m, &s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	var o out
	o.routes = make(map[route.Key]route.Route)
	q := newQueue()
	for _, r := range many(batch) {
		o.put(r.Key, &r)
	}
	var buf []byte
	b.ReportAllocs()
	for n := 0; n < b.N; n += batch {
		o.again(&q)
		buf, _ = o.take(&q, &internal, buf[:0])
	}
}
