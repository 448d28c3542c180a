package bfd

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

const ms = time.Millisecond

// up waits until both ends are up, have agreed on their timers, and have said so.
func (p *pair) up() {
	p.t.Helper()
	time.Sleep(10 * time.Second)
	synctest.Wait()
	for _, s := range []Session{p.sessionA(), p.sessionB()} {
		if s.State != Up || s.Status != Alive {
			p.t.Fatalf("%v: %v, %v", s.Peer, s.State, s.Status)
		}
	}
	p.ab.taken()
	p.ba.taken()
}

// until lets time pass until a condition holds.
func until(ok func() bool) {
	for !ok() {
		time.Sleep(ms)
		synctest.Wait()
	}
}

// timed gives a test a session of two Speakers whose packets take some time, and a clock that does not wait.
func timed(t *testing.T, delay time.Duration, a, b SessionConfig, test func(*testing.T, *pair)) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, delay)
		defer p.close()
		p.add(a, b)
		test(t, p)
	})
}

// A session begins slowly, comes up, is reported at once, and becomes fast by a poll sequence.
func TestBegin(t *testing.T) {
	timed(t, 2*ms, SessionConfig{Interval: 50 * ms, Multiplier: 4}, SessionConfig{Interval: 100 * ms}, func(t *testing.T, p *pair) {
		start := time.Now()
		p.ab.set(true)
		p.ba.set(true)
		time.Sleep(20 * time.Second)
		slowly := p.ab.taken()
		for i, s := range slowly {
			check.Equal(t, "state", s.State, Down)
			check.Equal(t, "min TX while down", s.MinTx, slow)
			check.Equal(t, "min RX", s.MinRx, 50*ms)
			check.Equal(t, "your discriminator", s.Your, 0)
			if d := s.at.Sub(start); i > 0 && (d < slow/4*3 || d > slow) || i == 0 && d > slow {
				t.Errorf("packet %d after %v", i, d)
			}
			start = s.at
		}
		check.True(t, len(slowly) >= 20 && len(slowly) <= 27, "%d packets in 20 s", len(slowly))
		check.Equal(t, "changes", len(p.changesA.taken()), 0)

		start = time.Now()
		p.ab.set(false)
		p.ba.set(false)
		p.up()
		a, b := p.sessionA(), p.sessionB()
		check.Equal(t, "A sends each", a.Interval, 100*ms)
		check.Equal(t, "B sends each", b.Interval, 100*ms)
		check.Equal(t, "A detects within", a.Detection, 3*100*ms)
		check.Equal(t, "B detects within", b.Detection, 4*100*ms)
		check.Equal(t, "A's peer", a.RemoteDiscriminator, b.Discriminator)
		check.Equal(t, "code", a.Diag, NoDiag)
		for _, c := range [][]Change{p.changesA.taken(), p.changesB.taken()} {
			check.Equal(t, "changes", len(c), 1)
			check.Equal(t, "status", c[0].Status, Alive)
			check.True(t, c[0].When.Sub(start) <= slow+10*ms, "up after %v", c[0].When.Sub(start))
		}
		time.Sleep(5 * time.Second)
		for _, s := range p.ab.taken() {
			if s.Poll || s.Final || s.MinTx != 50*ms || s.MinRx != 50*ms || s.Multiplier != 4 || s.My != a.Discriminator || s.Your != b.Discriminator {
				t.Fatalf("%+v", s)
			}
		}
	})
}

// Packets are 75 to 100 percent of the interval apart, with multiplier 1 75 to 90 percent, and not all the same.
func TestJitter(t *testing.T) {
	for _, interval := range []time.Duration{10 * ms, 50 * ms, 300 * ms, time.Second, 7 * time.Second} {
		for _, multiplier := range []int{1, 3} {
			timed(t, 0, SessionConfig{Interval: interval, Multiplier: multiplier}, SessionConfig{Interval: interval}, func(t *testing.T, p *pair) {
				time.Sleep(60 * time.Second)
				p.up()
				time.Sleep(200 * interval)
				most := interval
				if multiplier == 1 {
					most = interval / 10 * 9
				}
				list := p.ab.taken()
				low, high, sum := most, time.Duration(0), time.Duration(0)
				for i := 1; i < len(list); i++ {
					d := list[i].at.Sub(list[i-1].at)
					low, high, sum = min(low, d), max(high, d), sum+d
				}
				if low < interval/4*3 || high > most || high-low < (most-interval/4*3)/2 {
					t.Errorf("%v x %d: packets are %v to %v apart", interval, multiplier, low, high)
				}
				if n := len(list); n < 199 || n > 270 {
					t.Errorf("%v x %d: %d packets in 200 intervals", interval, multiplier, n)
				}
			})
		}
	}
}

// A path that is cut is Dead the detection time after the last packet, not sooner and not later; when it is back the session
// is Alive after Hold, and a second cut within Hold is not reported.
func TestDetectAndHold(t *testing.T) {
	timed(t, 5*ms, SessionConfig{Hold: 4 * time.Second}, SessionConfig{}, func(t *testing.T, p *pair) {
		p.up()
		p.changesA.taken()
		p.ba.set(true) // A hears nothing
		time.Sleep(5 * time.Second)
		cut := p.ba.taken() // B sends on, and hears that A is down
		heard := cut[0].at.Add(5 * ms)
		c := p.changesA.taken()
		if len(c) != 1 || c[0].Status != Dead || c[0].Diag != TimeExpired {
			t.Fatalf("%+v", c)
		}
		if d := c[0].When.Sub(heard); d > 900*ms || d < 900*ms-300*ms {
			t.Errorf("dead %v after the first packet that did not come", d)
		}
		b := p.changesB.taken()
		if len(b) != 2 || b[1].Status != Dead || b[1].Diag != NeighborDown || b[1].RemoteDiag != TimeExpired {
			t.Fatalf("%+v", b)
		}
		if d := b[1].When.Sub(c[0].When); d != 5*ms {
			t.Errorf("told after %v", d)
		}
		check.Equal(t, "state", p.sessionA().State, Down)
		check.Equal(t, "detection", p.sessionA().Detection, 0)

		p.ba.set(false)
		until(func() bool { return p.sessionA().State == Up })
		back := time.Now()
		check.True(t, len(p.changesA.taken()) == 0 && p.sessionA().Status == Dead, "reported before Hold")
		time.Sleep(2 * time.Second)
		p.ba.set(true)
		until(func() bool { return p.sessionA().State != Up })
		p.ba.set(false)
		until(func() bool { return p.sessionA().State == Up })
		again := time.Now()
		time.Sleep(4*time.Second - 2*ms)
		check.Equal(t, "changes before Hold", len(p.changesA.taken()), 0)
		time.Sleep(3 * ms)
		synctest.Wait()
		c = p.changesA.taken()
		if len(c) != 1 || c[0].Status != Alive {
			t.Fatalf("%+v", c)
		}
		if d := c[0].When.Sub(again); d > 4*time.Second || d < 4*time.Second-2*ms || !again.After(back) {
			t.Errorf("alive after %v", d)
		}
	})
}

// With Hold switched off a session is Alive whenever it is up.
func TestNoHold(t *testing.T) {
	timed(t, 0, SessionConfig{Hold: -1}, SessionConfig{}, func(t *testing.T, p *pair) {
		p.up()
		for range 3 {
			p.ba.set(true)
			time.Sleep(5 * time.Second)
			p.ba.set(false)
			time.Sleep(5 * time.Second)
		}
		synctest.Wait()
		check.Slice(t, "changes", p.changesA.statuses(), []Status{Alive, Dead, Alive, Dead, Alive, Dead, Alive})
	})
}

// Other intervals are agreed by a poll sequence, on scheduled packets: a longer one of ours is used after its end, and so is
// a shorter detection time.
func TestPoll(t *testing.T) {
	timed(t, 20*ms, SessionConfig{Interval: 100 * ms}, SessionConfig{Interval: 50 * ms}, func(t *testing.T, p *pair) {
		p.up()
		p.ba.set(true) // the packet with Final is lost
		must(t, p.a.Change(p.pa, &SessionConfig{Interval: 200 * ms, Notify: p.changesA.add}))
		changed := time.Now()
		time.Sleep(150 * ms)
		synctest.Wait()
		s := p.ab.taken()
		check.True(t, len(s) <= 2 && len(s) >= 1, "%d packets", len(s))
		arrived := 0
		for _, s := range s {
			check.True(t, s.Poll && s.MinTx == 200*ms && s.MinRx == 200*ms, "%+v", s)
			check.True(t, s.at != changed, "a packet beside the schedule")
			if time.Since(s.at) >= 20*ms {
				arrived++
			}
		}
		a, b := p.sessionA(), p.sessionB()
		check.Equal(t, "A sends, before the end", a.Interval, 100*ms)
		check.Equal(t, "A detects, before the end: longer at once", a.Detection, 600*ms)
		check.Equal(t, "B sends", b.Interval, 200*ms)
		check.Equal(t, "B detects", b.Detection, 600*ms)
		finals := 0
		for _, s := range p.ba.taken() {
			if s.Final {
				finals++
				check.True(t, !s.Poll, "P and F")
			}
		}
		check.Equal(t, "answers", finals, arrived) // one at once for each
		p.ba.set(false)
		time.Sleep(2 * time.Second)
		check.Equal(t, "A sends", p.sessionA().Interval, 200*ms)
		s = p.ab.taken()
		check.True(t, !s[len(s)-1].Poll, "the poll sequence has no end")

		// Back again: the detection time of A is shorter only when B sends faster.
		p.ba.set(true)
		must(t, p.a.Change(p.pa, &SessionConfig{Interval: 100 * ms, Notify: p.changesA.add}))
		time.Sleep(300 * ms)
		check.Equal(t, "A detects, before the end", p.sessionA().Detection, 600*ms)
		check.Equal(t, "A sends: shorter at once", p.sessionA().Interval, 100*ms)
		p.ba.set(false)
		time.Sleep(2 * time.Second)
		check.Equal(t, "A detects", p.sessionA().Detection, 300*ms)
		check.Equal(t, "changes", len(p.changesA.taken()), 1)
		check.Equal(t, "changes of B", len(p.changesB.taken()), 1)

		// One change after the other, faster than answers come: the last is agreed on.
		for _, i := range []time.Duration{300, 70, 500, 90} {
			must(t, p.a.Change(p.pa, &SessionConfig{Interval: i * ms, Notify: p.changesA.add}))
			time.Sleep(30 * ms)
		}
		time.Sleep(3 * time.Second)
		a, b = p.sessionA(), p.sessionB()
		check.Equal(t, "A sends at last", a.Interval, 90*ms)
		check.Equal(t, "A detects at last", a.Detection, 270*ms)
		check.Equal(t, "B sends at last", b.Interval, 90*ms)
		s = p.ab.taken()
		check.True(t, !s[len(s)-1].Poll, "the last poll sequence has no end")
	})
}

// A peer that wants packets faster gets the next one soon; one that wants none gets only what it asks for.
func TestPeerDecides(t *testing.T) {
	timed(t, 0, SessionConfig{Interval: 50 * ms, Multiplier: 10}, SessionConfig{Interval: 10 * time.Second, Multiplier: 10}, func(t *testing.T, p *pair) {
		time.Sleep(time.Minute)
		p.up()
		check.Equal(t, "A sends", p.sessionA().Interval, 10*time.Second)
		must(t, p.b.Change(p.pb, &SessionConfig{Interval: 50 * ms}))
		start := time.Now()
		for p.sessionA().Interval != 50*ms {
			time.Sleep(ms)
		}
		told := time.Now()
		synctest.Wait()
		p.ab.taken()
		time.Sleep(60 * ms)
		check.True(t, len(p.ab.taken()) > 0, "no packet; told %v after the change", told.Sub(start))

		b := p.sessionB()
		say := func(c Control) {
			c.State, c.Multiplier, c.My, c.Your, c.MinTx = Up, 255, b.Discriminator, p.sessionA().Discriminator, time.Minute
			p.a.Receive(p.pa, 255, c.Append(nil))
			synctest.Wait()
		}
		p.ab.set(true)
		p.ba.set(true)
		say(Control{MinRx: 0})
		p.ab.taken()
		time.Sleep(time.Minute)
		check.Equal(t, "packets for one that wants none", len(p.ab.taken()), 0)
		say(Control{MinRx: 0, Poll: true})
		s := p.ab.taken()
		check.True(t, len(s) == 1 && s[0].Final, "answer: %+v", s)
		say(Control{MinRx: 50 * ms, Demand: true})
		p.ab.taken()
		time.Sleep(time.Minute)
		check.Equal(t, "packets in demand mode", len(p.ab.taken()), 0)
		say(Control{MinRx: 50 * ms})
		time.Sleep(time.Second)
		check.True(t, len(p.ab.taken()) >= 20, "packets after demand mode")
	})
}

// A passive session waits for the peer; two of them wait for ever.
func TestPassive(t *testing.T) {
	timed(t, ms, SessionConfig{Passive: true}, SessionConfig{Passive: true}, func(t *testing.T, p *pair) {
		time.Sleep(time.Minute)
		check.Equal(t, "packets of two passive ends", len(p.ab.taken())+len(p.ba.taken()), 0)
		must(t, p.b.Change(p.pb, &SessionConfig{}))
		p.up()
		p.ba.set(true)
		time.Sleep(5 * time.Second)
		p.ab.taken()
		time.Sleep(time.Minute)
		check.Equal(t, "packets of a passive end that hears nothing", len(p.ab.taken()), 0)
	})
}

// A peer that is held down by its operator, or removed, is no failure; the session is not reported as Dead when it falls
// silent then, and as Alive when it is back.
func TestAdminDown(t *testing.T) {
	timed(t, ms, SessionConfig{}, SessionConfig{}, func(t *testing.T, p *pair) {
		p.up()
		p.changesA.taken()
		must(t, p.b.Change(p.pb, &SessionConfig{AdminDown: true, Notify: p.changesB.add}))
		time.Sleep(10 * time.Second)
		c := p.changesA.taken()
		if len(c) != 1 || c[0].Status != Unknown || c[0].Diag != NeighborDown || c[0].RemoteDiag != DiagAdminDown {
			t.Fatalf("%+v", c)
		}
		check.Equal(t, "state", p.sessionA().State, Down)
		check.Equal(t, "peer", p.sessionA().RemoteState, AdminDown)
		check.Equal(t, "held down", p.sessionB().State, AdminDown)
		check.True(t, len(p.ba.taken()) > 9, "an end that is held down says so")
		p.ba.set(true)
		time.Sleep(time.Minute)
		check.Equal(t, "changes when it falls silent", len(p.changesA.taken()), 0)
		p.ba.set(false)
		must(t, p.b.Change(p.pb, &SessionConfig{Notify: p.changesB.add}))
		p.up()
		c = p.changesA.taken()
		check.True(t, len(c) == 1 && c[0].Status == Alive, "%+v", c)
		discarded := p.sessionB().Stats.Discarded
		check.True(t, discarded[HeldDown] > 5 && discarded.Total() == discarded[HeldDown], "%v", discarded)

		must(t, p.b.Remove(p.pb))
		time.Sleep(10 * time.Second)
		c = p.changesA.taken()
		check.True(t, len(c) == 1 && c[0].Status == Unknown, "removed: %+v", c)
		check.Equal(t, "sessions left", p.ba.leavers(), 1)
		check.True(t, p.b.Stats().Discarded[UnknownPeer] > 0, "%v", p.b.Stats())

		// A failure while the peer comes back is one.
		must(t, p.b.Add(p.pb, nil))
		p.up()
		p.changesA.taken()
		must(t, p.b.Close())
		time.Sleep(10 * time.Second)
		c = p.changesA.taken()
		check.True(t, len(c) == 1 && c[0].Status == Dead && c[0].Diag == TimeExpired, "closed: %+v", c)
	})
}

// A session with a peer that restarts goes down and up, with the peer's new discriminator.
func TestPeerRestarts(t *testing.T) {
	timed(t, ms, SessionConfig{}, SessionConfig{}, func(t *testing.T, p *pair) {
		p.up()
		was := p.sessionA().RemoteDiscriminator
		must(t, p.b.Close())
		p.b = New()
		p.ab.mu.Lock()
		p.ab.to = p.b
		p.ab.mu.Unlock()
		must(t, p.b.Add(p.pb, &SessionConfig{Notify: p.changesB.add}))
		p.up()
		check.True(t, p.sessionA().RemoteDiscriminator != was, "the same discriminator")
		check.Slice(t, "changes", p.changesA.statuses(), []Status{Alive, Dead, Alive})
	})
}

// A peer that ended while this end was AdminDown is forgotten after its detection time: a passive one in its place never hears
// a packet that names another discriminator.
func TestForgottenInAdminDown(t *testing.T) {
	timed(t, ms, SessionConfig{}, SessionConfig{}, func(t *testing.T, p *pair) {
		time.Sleep(5 * time.Second)
		check.Equal(t, "state", p.sessionA().State, Up)
		must(t, p.a.Change(p.pa, &SessionConfig{AdminDown: true}))
		time.Sleep(30 * time.Second)
		p.ba.set(true) // the good-bye is lost, as in a crash
		must(t, p.b.Remove(p.pb))
		time.Sleep(30 * time.Second)
		p.ba.set(false)
		must(t, p.b.Add(p.pb, &SessionConfig{Passive: true}))
		must(t, p.a.Change(p.pa, &SessionConfig{}))
		time.Sleep(10 * time.Second)
		check.Equal(t, "state after both ends were there again", p.sessionA().State, Up)
	})
}
