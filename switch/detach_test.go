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
	s := must[*Switch](t)(New(nil))
	v := must[*VSI](t)(s.VSI(1, nil))
	log := &eventLog{t: t, up: map[uint16]bool{}}
	var followed, running sync.WaitGroup
	events := s.Events()
	followed.Go(func() { log.follow(events) })
	var ports []*busy
	for id := range byte(2) {
		ports = append(ports, busyPort(id, 3))
		must[*Attachment](t)(v.Attach(ports[id], 0))
	}
	running.Go(func() { s.Run(context.Background()) })

	var delivered int64
	for range rounds {
		p := busyPort(2, 3)
		a := must[*Attachment](t)(v.Attach(p, 0))
		for deadline := time.Now().Add(10 * time.Second); p.got.Load() == 0; time.Sleep(20 * time.Microsecond) {
			if time.Now().After(deadline) {
				t.Fatal("no traffic")
			}
		}
		num := a.Dest(0).Port()
		if err := a.Detach(); err != nil {
			t.Fatal(err)
		}
		if !p.closed.Load() {
			t.Fatal("detached and not closed")
		}
		for e := range v.FDB().All() {
			if e.Dest.Port() == num {
				t.Fatalf("entry %v names port %d, which is free", e.MAC, num)
			}
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
		if p.late.Load() != 0 {
			t.Errorf("%s: frames after Close", p.name)
		}
	}
	s.Close()
	running.Wait()
	followed.Wait()
	if len(log.up) != 0 {
		t.Errorf("ports up after Close: %v", log.up)
	}
	t.Logf("%d rounds, %d frames to the port that comes and goes, %d events", rounds, delivered, log.n)
}

// The same for an attachment of a trunk that stays: only this VSI's entries go.
func TestDetachOneOfTwo(t *testing.T) {
	s := must[*Switch](t)(New(nil))
	defer s.Close()
	v1, v2 := must[*VSI](t)(s.VSI(1, nil)), must[*VSI](t)(s.VSI(2, nil))
	trunk, other := newStub("trunk"), newStub("other")
	a1, a2 := must[*Attachment](t)(v1.Attach(trunk, 10)), must[*Attachment](t)(v2.Attach(trunk, 20))
	o := must[*Attachment](t)(v1.Attach(other, 0))
	v1.FDB().Learn(mac(1), a1.Dest(0), 0)
	v1.FDB().Learn(mac(2), o.Dest(0), 0)
	v2.FDB().Learn(mac(1), a2.Dest(0), 0)
	if err := a1.Detach(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		v    *VSI
		mac  frame.MAC
		want bool
	}{{v1, mac(1), false}, {v1, mac(2), true}, {v2, mac(1), true}} {
		if _, ok := c.v.FDB().Lookup(c.mac); ok != c.want {
			t.Errorf("VSI %d, %v: %v", c.v.VNI(), c.mac, ok)
		}
	}
	if trunk.closed.Load() {
		t.Error("the trunk has an attachment left and was closed")
	}
	must[*Attachment](t)(v1.Attach(trunk, 10))
}

// Peers come and go as ports do: retired, flushed, freed.
func TestPeerRetired(t *testing.T) {
	s := must[*Switch](t)(New(nil))
	defer s.Close()
	v := must[*VSI](t)(s.VSI(1, nil))
	tun := &stubTunnel{stub: newStub("t")}
	a := must[*Attachment](t)(v.Attach(tun, 1))
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
	if tun.freed.Load() != 1 {
		t.Errorf("%d peers freed", tun.freed.Load())
	}
}

// What is no port is an error, and a stage that rewrites frames where others share them too.
func TestAttachRefuses(t *testing.T) {
	s := must[*Switch](t)(New(nil))
	defer s.Close()
	v := must[*VSI](t)(s.VSI(1, nil))
	var none *stub
	var tunnel *stubTunnel
	for _, p := range []Port{nil, none, tunnel} {
		if _, err := v.Attach(p, 0); err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("%T: %v", p, err)
		}
	}
	slots := Slots{Egress: Chain(say(frame.Continue), rewriter{})}
	if _, err := v.AttachWith(newStub("a"), 0, &AttachConfig{Slots: slots}); err == nil || !strings.Contains(err.Error(), "AttachConfig.Slots.Egress") {
		t.Error(err)
	}
	if err := v.Configure(VSIConfig{Slots: slots}); err == nil || !strings.Contains(err.Error(), "VSIConfig.Slots.Egress") {
		t.Error(err)
	}
	must[*Attachment](t)(v.AttachWith(newStub("a"), 0, &AttachConfig{Slots: Slots{Ingress: rewriter{}}}))
}

type rewriter struct{}

func (rewriter) Rewrites()                                    {}
func (rewriter) Process(*frame.Frame, frame.At) frame.Verdict { return frame.Continue }
