package bfd

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = check.OK

var (
	addrA = netip.MustParseAddr("192.0.2.1")
	addrB = netip.MustParseAddr("192.0.2.2")
)

// A sent is a packet that was sent, and when.
type sent struct {
	at time.Time
	Control
	srcPort, dstPort uint16
}

// A wire is a Path to another Speaker. It keeps what it carries.
type wire struct {
	mu    sync.Mutex
	to    *Speaker
	back  *wire // the Path of the other Speaker
	delay time.Duration
	cut   bool
	ttl   uint8
	seen  []sent
	err   error
	left  []Peer
}

func (w *wire) Send(p *Packet) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	c, why := Parse(p.Payload)
	if why != NotDiscarded {
		panic(why)
	}
	w.seen = append(w.seen, sent{time.Now(), c, p.SrcPort, p.DstPort})
	if w.cut || w.to == nil {
		return nil
	}
	b := append([]byte(nil), p.Payload...)
	from := Peer{Path: w.back, Local: p.Peer.Remote, Remote: p.Peer.Local, Multihop: p.Peer.Multihop}
	to, ttl := w.to, w.ttl
	time.AfterFunc(w.delay, func() { to.Receive(from, ttl, b) })
	return nil
}

func (w *wire) Leave(p Peer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = append(w.left, p)
}

// leavers returns how many sessions have left.
func (w *wire) leavers() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.left)
}

func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
}

// taken returns what was sent since it was called last.
func (w *wire) taken() []sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.seen
	w.seen = nil
	return s
}

// A pair is two Speakers, A and B, with a session.
type pair struct {
	t                  testing.TB
	a, b               *Speaker
	ab, ba             *wire // what A and B send
	pa, pb             Peer  // the session of A, and of B
	changesA, changesB changes
}

// changes keeps what Notify was told.
type changes struct {
	mu   sync.Mutex
	list []Change
}

func (c *changes) add(x Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, x)
}

func (c *changes) taken() []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.list
	c.list = nil
	return l
}

// statuses returns the status after each change since it was taken last.
func (c *changes) statuses() (list []Status) {
	for _, x := range c.taken() {
		list = append(list, x.Status)
	}
	return list
}

func newPair(t testing.TB, delay time.Duration) *pair {
	p := &pair{t: t, a: New(), b: New(), ab: &wire{delay: delay, ttl: 255}, ba: &wire{delay: delay, ttl: 255}}
	p.ab.to, p.ab.back, p.ba.to, p.ba.back = p.b, p.ba, p.a, p.ab
	p.pa, p.pb = Peer{Path: p.ab, Local: addrA, Remote: addrB}, Peer{Path: p.ba, Local: addrB, Remote: addrA}
	return p
}

func (p *pair) close() {
	must(p.t, p.a.Close())
	must(p.t, p.b.Close())
}

// add begins the session at both ends.
func (p *pair) add(a, b SessionConfig) {
	p.t.Helper()
	a.Notify, b.Notify = p.changesA.add, p.changesB.add
	must(p.t, p.a.Add(p.pa, &a))
	must(p.t, p.b.Add(p.pb, &b))
}

func (p *pair) sessionA() Session { return check.Must(p.a.Session(p.pa))(p.t) }
func (p *pair) sessionB() Session { return check.Must(p.b.Session(p.pb))(p.t) }
