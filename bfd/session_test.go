package bfd

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// The rules of RFC 5880, section 6.8.6, written out: from each state, what each received one makes of it.
func TestStates(t *testing.T) {
	const x = 255 // the diagnostic code stays
	for _, r := range []struct {
		is, got, will State
		diag          Diag
		status        Status // of a session that was Alive, if it was Up
	}{
		{AdminDown, AdminDown, AdminDown, x, Unknown},
		{AdminDown, Down, AdminDown, x, Unknown},
		{AdminDown, Init, AdminDown, x, Unknown},
		{AdminDown, Up, AdminDown, x, Unknown},
		{Down, AdminDown, Down, x, Unknown},
		{Down, Down, Init, x, Unknown},
		{Down, Init, Up, NoDiag, Alive},
		{Down, Up, Down, x, Unknown},
		{Init, AdminDown, Down, NeighborDown, Unknown},
		{Init, Down, Init, x, Unknown},
		{Init, Init, Up, NoDiag, Alive},
		{Init, Up, Up, NoDiag, Alive},
		{Up, AdminDown, Down, NeighborDown, Unknown},
		{Up, Down, Down, NeighborDown, Dead},
		{Up, Init, Up, x, Alive},
		{Up, Up, Up, x, Alive},
	} {
		for _, poll := range []bool{false, true} {
			s := New()
			cfg := check.Must(filled(nil))(t)
			p := newSession(s, Peer{}, cfg, 0)
			p.state, p.diag = r.is, EchoFailed
			if r.is == Up {
				p.status, p.ever = Alive, true
			}
			p.receive(&Control{State: r.got, Diag: PathDown, Poll: poll, Multiplier: 3, My: 7, Your: p.my, MinTx: slow, MinRx: slow}, 1)
			diag := r.diag
			if diag == x {
				diag = EchoFailed
			}
			if p.state != r.will || p.diag != diag || p.status != r.status {
				t.Errorf("%v received in %v: %v, %v, %v; want %v, %v, %v", r.got, r.is, p.state, p.diag, p.status, r.will, diag, r.status)
			}
			check.Equal(t, "discriminator of the peer", p.last.My, 7)
			wants := r.is != AdminDown // the others are discarded before their P bit is looked at
			check.Equal(t, "heard in "+r.is.String(), p.heard, true)
			b, _, _ := p.step(nil, 2)
			if c, _ := Parse(b); poll && wants != (len(b) > 0 && c.Final && !c.Poll) {
				t.Errorf("%v with P received in %v: answer %+v", r.got, r.is, c)
			}
			if c, _ := Parse(b); r.is != r.will && (c.State != r.will || c.Your != 7) {
				t.Errorf("%v received in %v: not told at once: %+v", r.got, r.is, c)
			}
			must(t, s.Close())
		}
	}
}

// The end of the detection time takes Init and Up down, with code 1 (RFC 5880, section 6.8.4).
func TestExpire(t *testing.T) {
	for is, will := range map[State]State{AdminDown: AdminDown, Down: Down, Init: Down, Up: Down} {
		s := New()
		cfg, _ := filled(nil)
		p := newSession(s, Peer{}, cfg, 0)
		p.receive(&Control{State: Up, Multiplier: 3, My: 7, Your: 1, MinTx: slow, MinRx: slow}, 1)
		p.state, p.diag = is, EchoFailed
		p.step(nil, 3*slow) // a nanosecond before
		check.Equal(t, is.String()+" before", p.state, is)
		p.step(nil, 3*slow+1)
		check.Equal(t, is.String()+" after", p.state, will)
		if is != will {
			check.Equal(t, "code", p.diag, TimeExpired)
		}
		check.Equal(t, "discriminator of the peer", p.last.My, 0)
		must(t, s.Close())
	}
}

// A Speaker that is late itself gives a session a moment more, once.
func TestLate(t *testing.T) {
	s := New()
	defer s.Close()
	cfg, _ := filled(nil)
	p := newSession(s, Peer{}, cfg, 0)
	c := &Control{State: Up, Multiplier: 3, My: 7, Your: 1, MinTx: slow, MinRx: slow}
	p.receive(c, 1)
	p.state = Up
	late := 3*slow + 1 + grace + 1
	_, again, _ := p.step(nil, late)
	check.Equal(t, "state when late", p.state, Up)
	check.True(t, again <= late+grace, "again in %v", again-late)
	p.receive(c, late+1)
	p.step(nil, late+grace)
	check.Equal(t, "state after a packet that had come", p.state, Up)
	late += 1 + 3*slow + grace + 1
	p.step(nil, late)
	p.step(nil, late+grace)
	check.Equal(t, "state after silence", p.state, Down)
}

// Intervals that change during a poll sequence need another: the answer may be to a packet that had the old ones.
func TestPollAgain(t *testing.T) {
	s := New()
	defer s.Close()
	cfg, _ := filled(nil)
	p := newSession(s, Peer{}, cfg, 0)
	final := &Control{State: Up, Final: true, Multiplier: 3, My: 7, Your: 1, MinTx: ms, MinRx: ms}
	p.receive(&Control{State: Init, Multiplier: 3, My: 7, Your: 1, MinTx: ms, MinRx: ms}, 1)
	p.receive(final, 2)
	check.True(t, p.state == Up && !p.poll && p.txInterval() == DefaultInterval, "%v, %v", p.poll, p.txInterval())
	for _, d := range []time.Duration{400, 500} {
		cfg.Interval = d * ms
		p.change(cfg, 3)
	}
	p.receive(final, 4)
	check.True(t, p.poll && p.txInterval() == DefaultInterval, "after the first answer: %v, %v", p.poll, p.txInterval())
	p.receive(final, 5)
	check.True(t, !p.poll && p.txInterval() == 500*ms, "after the second: %v, %v", p.poll, p.txInterval())
}

// Sessions that are removed while they are due, and while their packets come.
func TestRemoveUnderWay(t *testing.T) {
	s := New()
	defer s.Close()
	path := &deaf{}
	peer := func(i int) Peer {
		return Peer{Path: path, Local: addrA, Remote: netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)})}
	}
	const n = 200
	done := make(chan struct{})
	var receiver sync.WaitGroup
	receiver.Go(func() {
		c := Control{State: Down, Multiplier: 3, My: 9, MinTx: MinInterval, MinRx: MinInterval}
		b := c.Append(nil)
		for i := 0; ; i = (i + 1) % n {
			select {
			case <-done:
				return
			default:
				s.Receive(peer(i), 255, b)
			}
		}
	})
	for range 20 {
		for i := range n {
			must(t, s.Add(peer(i), &SessionConfig{Interval: MinInterval}))
		}
		for i := range n {
			must(t, s.Remove(peer(i)))
		}
	}
	close(done)
	receiver.Wait()

	// Noticed and due at once.
	var h timers
	other := New()
	defer other.Close()
	cfg := check.Must(filled(nil))(t)
	x := newSession(other, peer(0), cfg, 0)
	x.leave()
	other.step(x, &h)
	other.step(x, &h)
}

// deaf is a Path that nobody hears.
type deaf struct{}

func (*deaf) Send(*Packet) error { return nil }
