package vswitch

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A port whose Read fails is detached, with an event that says why; the others go on.
func TestPortDown(t *testing.T) {
	inLab(t, func(l *lab) {
		a, _ := l.port("a", 0)
		b, bt := l.port("b", 0)
		c, _ := l.port("c", 0)
		a.send(eth(mac(9), mac(1), 0x800))
		b.send(eth(mac(9), mac(2), 0x800))
		a.sent()
		c.sent()
		events := l.s.Events()
		defer events.Close()
		b.err = errors.New("device deleted")
		b.once.Do(func() { close(b.end) })
		ev, err := events.Next(context.Background())
		if err != nil || ev.Kind != frame.EventDetached || ev.VNI != l.v.VNI() || ev.Dest != bt.Dest(0) {
			t.Fatalf("%+v, %v", ev, err)
		}
		ev, err = events.Next(context.Background())
		if err != nil || ev.Kind != frame.EventPortDown || ev.Dest != bt.Dest(0) || !errors.Is(ev.Err, b.err) {
			t.Fatalf("%+v, %v", ev, err)
		}
		check.ErrorIs(t, "Err of the attachment", bt.Err(), b.err)
		check.True(t, b.closed.Load(), "failed and not closed")
		a.send(eth(mac(2), mac(1), 0x800)) // b's MAC is forgotten: flooded
		check.True(t, len(c.sent()) == 1, "traffic does not go on")
		check.ErrorIs(t, "Detach of a failed port", bt.Detach(), net.ErrClosed)
		check.Must(l.v.Attach(newStub("b"), 0))(t)
	})
}

// kept is a stub that can be paused.
type kept struct {
	*stub
	mu     sync.Mutex
	paused chan struct{}
}

func newKept() *kept { return &kept{stub: newStub("kept"), paused: make(chan struct{})} }

func (k *kept) Readers() []frame.Reader { return []frame.Reader{k} }

func (k *kept) Pause() { k.mu.Lock(); defer k.mu.Unlock(); close(k.paused) }

func (k *kept) Resume() {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.paused:
		k.paused = make(chan struct{})
	default:
	}
}

func (k *kept) Read(b *frame.Batch) error {
	k.mu.Lock()
	paused := k.paused
	k.mu.Unlock()
	b.Reset()
	select {
	case ps := <-k.in:
		for _, p := range ps {
			copy(b.New(len(p)).Bytes(), p)
		}
		return nil
	case <-paused:
		return frame.ErrPaused
	}
}

func TestKeep(t *testing.T) {
	inLab(t, func(l *lab) {
		k := newKept()
		a, _ := l.port("a", 0)
		for range 3 {
			at := check.Must(l.v.AttachWith(k, 0, &AttachConfig{KeepOpen: true}))(t)
			k.send(eth(mac(9), mac(1), 0x800))
			check.Need(t, len(a.sent()) == 1, "no traffic")
			check.OK(t, at.Detach())
		}
		check.Must(l.v.AttachWith(k, 0, &AttachConfig{KeepOpen: true}))(t)
		l.s.Close()
		check.True(t, !k.closed.Load(), "a kept port was closed")
		check.True(t, a.closed.Load(), "another was not")
	})
}

func TestRunEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(s *Switch, cancel func())
	}{
		{"context", func(_ *Switch, cancel func()) { cancel() }},
		{"Close", func(s *Switch, _ func()) { s.Close() }},
		{"both", func(s *Switch, cancel func()) { cancel(); s.Close() }},
	} {
		s := check.Must(New(nil))(t)
		p := newStub("p")
		check.Must(check.Must(s.VSI(1, nil))(t).Attach(p, 0))(t)
		ctx, cancel := context.WithCancel(context.Background())
		end := make(chan error)
		go func() { end <- s.Run(ctx) }()
		for !running(s) {
			runtime.Gosched()
		}
		if err := s.Run(ctx); err == nil || errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: a second Run: %v", c.name, err)
		}
		c.end(s, cancel)
		if err := <-end; err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		check.True(t, p.closed.Load(), "%s: port not closed", c.name)
		if err := s.Close(); err != nil {
			t.Errorf("%s: Close again: %v", c.name, err)
		}
		check.ErrorIs(t, c.name+": Run again", s.Run(ctx), net.ErrClosed)
		check.ErrorIs(t, c.name+": VSI", check.Err(s.VSI(2, nil)), net.ErrClosed)
		check.True(t, check.Err(s.Events().Next(ctx)) != nil, "%s: Events after the end", c.name)
		cancel()
	}
}

// After Close every method that changes something says so.
func TestClosed(t *testing.T) {
	s := check.Must(New(nil))(t)
	v := check.Must(s.VSI(1, nil))(t)
	p := newStub("p")
	a := check.Must(v.Attach(p, 0))(t)
	s.Close()
	for name, err := range map[string]error{
		"VSI.Configure": v.Configure(VSIConfig{}), "VSI.Delete": v.Delete(),
		"Attachment.Configure": a.Configure(AttachConfig{}), "Attachment.Detach": a.Detach(),
		"Switch.FlushPort": s.FlushPort(p),
		"VSI.Attach":       func() error { _, err := v.Attach(newStub("q"), 0); return err }(),
		"Switch.Trace":     func() error { _, err := s.Trace(&TraceConfig{}); return err }(),
	} {
		check.True(t, errors.Is(err, net.ErrClosed), "%s: %v", name, err)
	}
}

func running(s *Switch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// Every error names the setting.
func TestConfigErrors(t *testing.T) {
	s := check.Must(New(nil))(t)
	defer s.Close()
	v := check.Must(s.VSI(1, nil))(t)
	p, tun := newStub("p"), &stubTunnel{stub: newStub("t")}
	check.Must(v.Attach(p, 5))(t)
	v2 := check.Must(s.VSI(2, nil))(t)
	attach := func(v *VSI, p Port, tag uint32, cfg AttachConfig) error {
		_, err := v.AttachWith(p, tag, &cfg)
		return err
	}
	check.Must(v.Attach(tun, 5))(t)
	_, errTunnel := v.Attach(tun, 6)
	_, errMACs := New(&Config{MaxMACs: -1})
	_, errInjected := New(&Config{Injected: -1})
	_, errEvents := New(&Config{Events: 1})
	_, errVNI := s.VSI(1<<24, nil)
	_, errVSI := s.VSI(3, &VSIConfig{MaxMACs: -1})
	for _, c := range []struct {
		err  error
		want string
	}{
		{errMACs, "Config.MaxMACs: -1"}, {errInjected, "Config.Injected: -1"}, {errEvents, "Config.Events: 1"}, {errVNI, "VNI 16777216"}, {errVSI, "VSIConfig.MaxMACs"},
		{v.Configure(VSIConfig{Ageing: time.Millisecond}), "VSIConfig.Ageing: 1ms"},
		{v.Configure(VSIConfig{Ageing: (1 << 32) * time.Second}), "VSIConfig.Ageing: 1193046h28m16s"},
		{v.Configure(VSIConfig{MissTimeout: (1 << 32) * time.Second}), "VSIConfig.MissTimeout: 1193046h28m16s"},
		{v.Configure(VSIConfig{NoFlood: 8}), "VSIConfig.NoFlood"},
		{v.Configure(VSIConfig{InnerVLAN: 3}), "VSIConfig.InnerVLAN: 3"},
		{v.Configure(VSIConfig{Refuse: true}), "VSIConfig.Refuse"},
		{attach(v, newStub("x"), 4095, AttachConfig{}), "a VLAN is 1 to 4094"},
		{errTunnel, "port: already attached"},
		{attach(v2, p, 5, AttachConfig{}), "tag: already attached"},
		{attach(v, nil, 0, AttachConfig{}), "port:"},
		{attach(v, newStub("x"), 0, AttachConfig{Hub: true}), "AttachConfig.Hub"},
		{attach(v, tun, 1, AttachConfig{Hub: true, Group: 3}), "AttachConfig.Hub"},
		{attach(v, newStub("x"), 0, AttachConfig{KeepOpen: true}), "AttachConfig.KeepOpen"},
		{attach(v, newStub("x"), 0, AttachConfig{MaxMACs: -1}), "AttachConfig.MaxMACs"},
		{attach(v, newStub("x"), 0, AttachConfig{NoFlood: 9}), "AttachConfig.NoFlood"},
	} {
		check.ErrorHas(t, c.err, "vswitch: ", c.want)
	}
	check.True(t, errors.Is(attach(v, p, 5, AttachConfig{}), ErrTagTaken), "not ErrTagTaken")
}

// Deleting a VSI detaches its members; ports that are in others stay.
func TestDeleteVSI(t *testing.T) {
	inLab(t, func(l *lab) {
		trunk, _ := l.port("trunk", 1)
		a, _ := l.port("a", 0)
		v2 := check.Must(l.s.VSI(2, nil))(t)
		check.Must(v2.Attach(trunk, 2))(t)
		check.OK(t, l.v.Delete())
		if !a.closed.Load() || trunk.closed.Load() {
			t.Errorf("closed: a %v, trunk %v", a.closed.Load(), trunk.closed.Load())
		}
		check.Equal(t, "VSIs", len(l.s.VSIs()), 1)
		check.ErrorIs(t, "attach to a deleted VSI", check.Err(l.v.Attach(newStub("x"), 0)), net.ErrClosed)
		check.ErrorIs(t, "Delete again", l.v.Delete(), net.ErrClosed)
	})
}

// The limit of all VSIs together.
func TestMaxMACs(t *testing.T) {
	s := check.Must(New(&Config{MaxMACs: 3}))(t)
	defer s.Close()
	for vni := range frame.VNI(3) {
		v := check.Must(s.VSI(vni, nil))(t)
		at := check.Must(v.Attach(newStub("p"), 0))(t)
		for i := range byte(2) {
			v.FDB().Learn(mac(i+1), at.Dest(0), 0)
		}
	}
	n := 0
	for _, v := range s.VSIs() {
		v.FDB().Sweep(0, 100)
		if v.FDB().Len() == 0 {
			t.Errorf("VNI %d has nothing of it", v.VNI())
		}
		n += v.FDB().Len()
	}
	check.True(t, n == 3, "%d MACs, limit 3", n)
	check.Must(s.VSI(0, nil))(t).Delete()
	v := check.Must(s.VSI(2, nil))(t)
	check.Equal(t, "a deleted VSI keeps its share", v.FDB().Learn(mac(9), frame.NewDest(3, 0), 0), fdb.New)
}

// Learned entries age in the switch's time, static ones do not.
func TestAgeing(t *testing.T) {
	inLab(t, func(l *lab) {
		a, at := l.port("a", 0)
		l.v.FDB().Set(mac(2), at.Dest(0), fdb.Static)
		check.OK(t, l.v.Configure(VSIConfig{Ageing: 10 * time.Second}))
		a.send(eth(mac(9), mac(1), 0x800))
		time.Sleep(9 * time.Second)
		if _, ok := l.v.FDB().Lookup(mac(1)); !ok {
			t.Error("aged early")
		}
		time.Sleep(3 * time.Second)
		if _, ok := l.v.FDB().Lookup(mac(1)); ok {
			t.Error("did not age")
		}
		if _, ok := l.v.FDB().Lookup(mac(2)); !ok {
			t.Error("a static entry aged")
		}
	})
}

func TestFlush(t *testing.T) {
	s := check.Must(New(nil))(t)
	defer s.Close()
	v1, v2 := check.Must(s.VSI(1, nil))(t), check.Must(s.VSI(2, nil))(t)
	trunk, tun := newStub("trunk"), &stubTunnel{stub: newStub("t")}
	p1, p2 := check.Must(v1.Attach(trunk, 1))(t), check.Must(v2.Attach(trunk, 2))(t)
	t1 := check.Must(v1.Attach(tun, 1))(t)
	fill := func() {
		v1.FDB().Set(mac(9), p1.Dest(0), fdb.Static)
		v1.FDB().Learn(mac(1), p1.Dest(0), 0)
		v2.FDB().Learn(mac(1), p2.Dest(0), 0)
		v1.FDB().Learn(mac(2), t1.Dest(1), 0)
		v1.FDB().Learn(mac(3), t1.Dest(2), 0)
	}
	for _, c := range []struct {
		name   string
		flush  func()
		v1, v2 int // entries left, the static one among them
	}{
		{"one VSI", v1.Flush, 1, 1},
		{"a port, in all VSIs", func() { s.FlushPort(trunk) }, 3, 0},
		{"all peers of a port", func() { s.FlushPort(tun) }, 2, 1},
		{"one peer", func() { s.FlushPeer(t1.Dest(1)) }, 3, 1},
		{"all", s.Flush, 1, 0},
	} {
		fill()
		c.flush()
		if n1, n2 := v1.FDB().Len(), v2.FDB().Len(); n1 != c.v1 || n2 != c.v2 {
			t.Errorf("%s: %d and %d entries left, want %d and %d", c.name, n1, n2, c.v1, c.v2)
		}
	}
	check.ErrorIs(t, "a port that is not attached", s.FlushPort(newStub("x")), net.ErrClosed)
	// More flushes than a generation has numbers.
	fill()
	for i := range 40_000 {
		s.FlushPort(trunk)
		if _, ok := v1.FDB().Lookup(mac(1)); ok {
			t.Fatalf("an entry came back at flush %d", i+1)
		}
	}
}

// An Attach that fails leaves nothing behind: the tunnel's tag is shut again.
func TestAttachFailsWhole(t *testing.T) {
	s := check.Must(New(nil))(t)
	defer s.Close()
	v := check.Must(s.VSI(1, nil))(t)
	s.nums.next = 1<<16 - 1 // every number is in use
	tun := &stubTunnel{stub: newStub("t")}
	if _, err := v.Attach(tun, 77); !errors.Is(err, ErrTooMany) {
		t.Fatalf("error %v", err)
	}
	if _, open := tun.open.Load(uint32(77)); open || len(v.Attachments()) != 0 || tun.closed.Load() {
		t.Errorf("open %v, %d attachments, closed %v", open, len(v.Attachments()), tun.closed.Load())
	}
}
