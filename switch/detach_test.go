package vswitch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// busy is a port that is never out of frames to send.
type busy struct {
	name   string
	frames [][]byte
	closed atomic.Bool
	late   atomic.Int64 // frames it was given after Close
	got    atomic.Int64
}

func (p *busy) Name() string             { return p.name }
func (p *busy) Readers() []frame.Reader  { return []frame.Reader{p} }
func (p *busy) Writer(int) frame.Writer  { return p }
func (p *busy) Offloads() frame.Offloads { return frame.OffloadAll }
func (p *busy) MTU(uint16) int           { return 1514 }
func (p *busy) Close() error             { p.closed.Store(true); return nil }
func (p *busy) Read(b *frame.Batch) error {
	if p.closed.Load() {
		return net.ErrClosed
	}
	b.Reset()
	for _, x := range p.frames {
		copy(b.New(len(x)).Bytes(), x)
	}
	return nil
}

func (p *busy) Write(out []frame.Out) error {
	if p.closed.Load() {
		p.late.Add(int64(len(out)))
	}
	p.got.Add(int64(len(out)))
	return nil
}

// busyPort sends from its own MACs to those of all the others, and broadcasts.
func busyPort(id, others byte) *busy {
	p := &busy{name: fmt.Sprint("busy", id)}
	for i := range others {
		if i != id {
			p.frames = append(p.frames, eth(mac(i), mac(id), 0x800), eth(frame.Broadcast, mac(id), 0x800))
		}
	}
	return p
}

// eventLog checks the order of events: what happens to a port lies between its PortUp
// and its PortDown.
type eventLog struct {
	t   *testing.T
	up  map[uint16]bool
	n   int
	bad int
}

func (l *eventLog) follow(e *Events) {
	for {
		ev, err := e.Next(context.Background())
		if err != nil {
			return
		}
		l.n++
		p := ev.Dest.Port()
		switch ev.Kind {
		case frame.EventOverflow:
			l.t.Error("events lost")
			return
		case frame.EventPortUp:
			l.expect(ev, !l.up[p])
			l.up[p] = true
		case frame.EventPortDown:
			l.expect(ev, l.up[p])
			delete(l.up, p)
		case frame.EventMACMoved:
			l.expect(ev, l.up[p])
		default:
			l.expect(ev, l.up[p])
		}
	}
}

func (l *eventLog) expect(ev frame.Event, ok bool) {
	if l.bad++; !ok && l.bad < 1000 {
		l.t.Errorf("event %d: %v %v for port %v, up %v", l.n, ev.Kind, ev.MAC, ev.Dest, l.up)
		l.bad = 1000
	}
}

// Detach under full traffic: two ports that never rest, a third that comes and goes
// a thousand times. When Detach has returned, no frame reaches the closed port, no
// entry names its number, and no later event does.
func TestDetachUnderTraffic(t *testing.T) {
	rounds := 1000
	if testing.Short() {
		rounds = 100
	}
	s := check.Must(New(nil))(t)
	v := check.Must(s.VSI(1, nil))(t)
	log := &eventLog{t: t, up: map[uint16]bool{}}
	var followed, running sync.WaitGroup
	events := s.Events()
	followed.Go(func() { log.follow(events) })
	var ports []*busy
	for id := range byte(2) {
		ports = append(ports, busyPort(id, 3))
		check.Must(v.Attach(ports[id], 0))(t)
	}
	running.Go(func() { s.Run(context.Background()) })

	var delivered int64
	for range rounds {
		p := busyPort(2, 3)
		a := check.Must(v.Attach(p, 0))(t)
		for deadline := time.Now().Add(10 * time.Second); p.got.Load() == 0; time.Sleep(20 * time.Microsecond) {
			check.Need(t, !time.Now().After(deadline), "no traffic")
		}
		num := a.Dest(0).Port()
		check.OK(t, a.Detach())
		check.Need(t, p.closed.Load(), "detached and not closed")
		for e := range v.FDB().All() {
			check.Need(t, e.Dest.Port() != num, "entry %v names port %d, which is free", e.MAC, num)
		}
		if d, ok := v.FDB().Lookup(mac(2)); ok && d.Port() == num {
			t.Fatalf("look-up finds port %d, which is free", num)
		}
		if err := a.Detach(); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("second Detach: %v", err)
		}
		time.Sleep(50 * time.Microsecond)
		if n := p.late.Load(); n != 0 {
			t.Fatalf("%d frames to a closed port", n)
		}
		delivered += p.got.Load()
	}
	for _, p := range ports {
		check.True(t, p.late.Load() == 0, "%s: frames after Close", p.name)
	}
	s.Close()
	running.Wait()
	followed.Wait()
	check.True(t, len(log.up) == 0, "ports up after Close: %v", log.up)
	t.Logf("%d rounds, %d frames to the port that comes and goes, %d events", rounds, delivered, log.n)
}

// The same for an attachment of a trunk that stays: only this VSI's entries go.
func TestDetachOneOfTwo(t *testing.T) {
	s := check.Must(New(nil))(t)
	defer s.Close()
	v1, v2 := check.Must(s.VSI(1, nil))(t), check.Must(s.VSI(2, nil))(t)
	trunk, other := newStub("trunk"), newStub("other")
	a1, a2 := check.Must(v1.Attach(trunk, 10))(t), check.Must(v2.Attach(trunk, 20))(t)
	o := check.Must(v1.Attach(other, 0))(t)
	v1.FDB().Learn(mac(1), a1.Dest(0), 0)
	v1.FDB().Learn(mac(2), o.Dest(0), 0)
	v2.FDB().Learn(mac(1), a2.Dest(0), 0)
	check.OK(t, a1.Detach())
	for _, c := range []struct {
		v    *VSI
		mac  frame.MAC
		want bool
	}{{v1, mac(1), false}, {v1, mac(2), true}, {v2, mac(1), true}} {
		if _, ok := c.v.FDB().Lookup(c.mac); ok != c.want {
			t.Errorf("VSI %d, %v: %v", c.v.VNI(), c.mac, ok)
		}
	}
	check.True(t, !trunk.closed.Load(), "the trunk has an attachment left and was closed")
	check.Must(v1.Attach(trunk, 10))(t)
}

// Peers come and go as ports do: retired, flushed, freed.
func TestPeerRetired(t *testing.T) {
	s := check.Must(New(nil))(t)
	defer s.Close()
	v := check.Must(s.VSI(1, nil))(t)
	tun := &stubTunnel{stub: newStub("t")}
	a := check.Must(v.Attach(tun, 1))(t)
	v.FDB().Learn(mac(1), a.Dest(5), 0)
	v.FDB().Learn(mac(2), a.Dest(6), 0)
	tun.retired.Store(&[]uint16{5})
	s.agePeers()
	if _, ok := v.FDB().Lookup(mac(1)); ok {
		t.Error("an entry names a freed peer")
	}
	if _, ok := v.FDB().Lookup(mac(2)); !ok {
		t.Error("another peer's entry went too")
	}
	check.Equal(t, "peers freed", tun.freed.Load(), 1)
}

// What is no port is an error, and a stage that rewrites frames where others share them too.
func TestAttachRefuses(t *testing.T) {
	s := check.Must(New(nil))(t)
	defer s.Close()
	v := check.Must(s.VSI(1, nil))(t)
	var none *stub
	var tunnel *stubTunnel
	for _, p := range []Port{nil, none, tunnel} {
		check.ErrorHas(t, check.Err(v.Attach(p, 0)), "vswitch: ", "nil")
	}
	slots := Slots{Egress: Chain(say(frame.Continue), rewriter{})}
	if _, err := v.AttachWith(newStub("a"), 0, &AttachConfig{Slots: slots}); err == nil || !strings.Contains(err.Error(), "AttachConfig.Slots.Egress") {
		t.Error(err)
	}
	check.ErrorHas(t, v.Configure(VSIConfig{Slots: slots}), "vswitch: ", "VSIConfig.Slots.Egress")
	check.Must(v.AttachWith(newStub("a"), 0, &AttachConfig{Slots: Slots{Ingress: rewriter{}}}))(t)
}

type rewriter struct{}

func (rewriter) Rewrites()                                    {}
func (rewriter) Process(*frame.Frame, frame.At) frame.Verdict { return frame.Continue }
