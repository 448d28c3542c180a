package bgp

import (
	"bufio"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
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
	return scripted(t, conn)
}

func scripted(t *testing.T, conn net.Conn) *script {
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	return &script{t, conn, bufio.NewReader(conn)}
}

func (s *script) say(b []byte) {
	s.t.Helper()
	check.Must(s.Write(b))(s.t)
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
		check.OK(s.t, err)
		if got == typ {
			return body
		}
		if got == typeNotification {
			s.t.Fatal(parseNotification(body))
		}
	}
}

const kept = 0x80 // the flag of helloAs: routes outlast a restart

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
	l := check.Must(net.Listen("tcp", c.Listen[0].String()))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

// dialed starts a speaker and returns the connection that it opens.
func dialed(t *testing.T) (Config, *BGP, *heard, *script) {
	t.Helper()
	c, other := pair(t, 65000, 65000, nil)
	l := listening(t, &other)
	b, h, _ := start(t, c)
	return c, b, h, scripted(t, check.Must(l.Accept())(t))
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
		if n := parseNotification(s.want(typeNotification)); n.Code != errUpdate {
			t.Errorf("%s: %v", m.name, n)
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
		s := scripted(t, conn)
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
			if n := parseNotification(s.want(typeNotification)); n.Code != c.code || n.Subcode != c.sub {
				t.Error(n)
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
