package vswitch

import (
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
)

// lab is a running switch with a VSI and stub ports, in a synctest bubble.
type lab struct {
	t   *testing.T
	s   *Switch
	v   *VSI
	end chan error
}

func inLab(t *testing.T, test func(l *lab)) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t, s: must[*Switch](t)(New(nil)), end: make(chan error, 1)}
		l.v = must[*VSI](t)(l.s.VSI(1, nil))
		go func() { l.end <- l.s.Run(context.Background()) }()
		defer func() { l.s.Close() }()
		test(l)
	})
}

func (l *lab) port(name string, tag uint32) (*stub, *Attachment) {
	p := newStub(name)
	return p, must[*Attachment](l.t)(l.v.Attach(p, tag))
}

// send has a port read these frames, and waits until they are dealt with.
func (s *stub) send(frames ...[]byte) {
	s.in <- frames
	synctest.Wait()
}

// sent returns what was written to the port, and forgets it.
func (s *stub) sent() []frame.Out {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.out
	s.out = nil
	return out
}

func (l *lab) drops(port int) frame.Drops { return l.s.Stats().Ports[port].RxDrops }

func TestTrunk(t *testing.T) {
	inLab(t, func(l *lab) {
		trunk, _ := l.port("trunk", 10)
		access, _ := l.port("access", 0)
		v2 := must[*VSI](t)(l.s.VSI(2, nil))
		must[*Attachment](t)(v2.Attach(trunk, 20))
		other := newStub("other")
		must[*Attachment](t)(v2.Attach(other, 0))

		plain := eth(frame.Broadcast, mac(1), 0x800, 1, 2, 3, 4)
		tag := func(vid byte, b []byte) []byte {
			return slices.Concat(b[:12], []byte{0x81, 0, 0xe0, vid}, b[12:]) // priority 7
		}
		trunk.send(tag(10, plain))
		if got := access.sent(); len(got) != 1 || string(got[0].F.Bytes()) != string(plain) || got[0].Tag != 0 {
			t.Errorf("access port: %v", got)
		}
		if got := other.sent(); len(got) != 0 {
			t.Errorf("VLAN 10 reached VLAN 20's segment: %v", got)
		}
		trunk.send(tag(20, plain))
		if got := other.sent(); len(got) != 1 || got[0].F.VNI != 2 {
			t.Errorf("VLAN 20: %v", got)
		}
		access.send(plain)
		if got := trunk.sent(); len(got) != 1 || got[0].Tag != 10 || string(got[0].F.Bytes()) != string(plain) {
			t.Errorf("trunk: %v", got)
		}
		access.send(tag(0, plain)) // priority tag only
		if got := trunk.sent(); len(got) != 1 || string(got[0].F.Bytes()) != string(plain) {
			t.Errorf("priority tag: %v", got)
		}
		trunk.send(tag(30, plain), plain, tag(10, tag(7, plain)))
		access.send(tag(10, plain))
		if d := l.drops(1); d[frame.UnknownVLAN] != 2 || d[frame.InnerVLAN] != 1 {
			t.Errorf("trunk drops: unknown-vlan %d, inner-vlan %d", d[frame.UnknownVLAN], d[frame.InnerVLAN])
		}
		if d := l.drops(2); d[frame.UnknownVLAN] != 1 {
			t.Errorf("tagged frame on an access port: unknown-vlan %d", d[frame.UnknownVLAN])
		}
	})
}

func TestTunnelFrames(t *testing.T) {
	inLab(t, func(l *lab) {
		a, _ := l.port("a", 0)
		tun := &stubTunnel{stub: newStub("t")}
		must[*Attachment](t)(l.v.Attach(tun, 77))
		if _, ok := tun.open.Load(uint32(77)); !ok {
			t.Fatal("the tag was not opened")
		}
		b := eth(mac(9), mac(5), 0x800)
		tun.send(fromPeer(3, 77, b), fromPeer(3, 78, b))
		if got := a.sent(); len(got) != 1 || got[0].F.VNI != 1 || !got[0].F.Tunnel {
			t.Errorf("from the tunnel: %v", got)
		}
		if d := l.drops(2); d[frame.UnknownVNI] != 1 {
			t.Errorf("unknown-vni %d", d[frame.UnknownVNI])
		}
		a.send(eth(mac(5), mac(1), 0x800), eth(frame.Broadcast, mac(1), 0x800))
		got := tun.sent()
		if len(got) != 2 || got[0].Peer != 3 || got[0].Tag != 77 || got[1].Peer != 0 || got[1].Skip != 0 {
			t.Errorf("to the tunnel: %v", got)
		}
	})
}

// A hub floods to its other peers and leaves the source out; without a number for the
// source it does not flood back at all.
func TestHub(t *testing.T) {
	inLab(t, func(l *lab) {
		tun := &stubTunnel{stub: newStub("t")}
		must[*Attachment](t)(l.v.AttachWith(tun, 1, &AttachConfig{Hub: true}))
		b := eth(frame.Broadcast, mac(5), 0x800)
		tun.send(fromPeer(3, 1, b))
		if got := tun.sent(); len(got) != 1 || got[0].Peer != 0 || got[0].Skip != 3 {
			t.Errorf("%v", got)
		}
		tun.send(fromPeer(0, 1, b))
		if got := tun.sent(); len(got) != 0 {
			t.Errorf("flooded back to whoever sent it: %v", got)
		}
		if d := l.drops(1); d[frame.NoEgress] != 1 {
			t.Errorf("no-egress %d", d[frame.NoEgress])
		}
	})
}

// An entry may name a tunnel's flood list, that of a group MAC above all. What it does not
// lead to is where the frame comes from.
func TestHubEntryOfFloodList(t *testing.T) {
	inLab(t, func(l *lab) {
		tun, copies := &stubTunnel{stub: newStub("t")}, newGPEStub("g")
		at := must[*Attachment](t)(l.v.AttachWith(tun, 1, &AttachConfig{Hub: true}))
		gt := must[*Attachment](t)(l.v.AttachWith(copies, 1, &AttachConfig{Hub: true}))
		a, _ := l.port("a", 0)
		for _, dst := range []frame.MAC{{1, 0, 0x5e, 1, 2, 3}, mac(9)} {
			l.v.FDB().Set(dst, at.Dest(0), fdb.Static)
			a.send(eth(dst, mac(6), 0x800))
			if got := tun.sent(); len(got) != 1 || got[0].Peer != 0 || got[0].Skip != 0 {
				t.Errorf("%v from another port: %v", dst, got)
			}
			tun.send(fromPeer(3, 1, eth(dst, mac(5), 0x800)))
			if got := tun.sent(); len(got) != 1 || got[0].Peer != 0 || got[0].Skip != 3 {
				t.Errorf("%v from a peer: %v", dst, got)
			}
			tun.send(fromPeer(0, 1, eth(dst, mac(5), 0x800)))
			l.v.FDB().Set(dst, gt.Dest(0), fdb.Static)
			copies.send(fromPeer(3, 1, eth(dst, mac(5), 0x800)))
			if got := append(tun.sent(), copies.sent()...); len(got) != 0 {
				t.Errorf("%v, from nobody that has a number, and a copy: %v", dst, got)
			}
		}
		for port := 1; port <= 2; port++ {
			if d := l.drops(port); d.Total() != 2 || d[frame.SplitHorizon]+d[frame.Reflect] != 2 {
				t.Errorf("port %d: %v", port, d)
			}
		}
		l.wantAccounts()
	})
}

// Frames of the switch's own reach everybody, whatever the split-horizon groups.
func TestInject(t *testing.T) {
	inLab(t, func(l *lab) {
		a, at := l.port("a", 0)
		tun := &stubTunnel{stub: newStub("t")}
		must[*Attachment](t)(l.v.Attach(tun, 1))
		f := frame.Make(eth(frame.Broadcast, mac(1), 0x800))
		if !l.s.Inject(l.v, &f) {
			t.Fatal("refused")
		}
		synctest.Wait()
		if len(a.sent()) != 1 || len(tun.sent()) != 1 {
			t.Error("not flooded to all")
		}
		if _, ok := l.v.FDB().Lookup(mac(1)); ok {
			t.Error("learned from a frame of its own")
		}
		l.v.FDB().Set(mac(7), at.Dest(0), fdb.Static)
		f = frame.Make(eth(mac(7), mac(1), 0x800))
		l.s.Inject(l.v, &f)
		synctest.Wait()
		if len(a.sent()) != 1 || len(tun.sent()) != 0 {
			t.Error("unicast not forwarded to its port alone")
		}
		l.s.Close()
		if l.s.Inject(l.v, &f) {
			t.Error("taken after Close")
		}
	})
}

// What finds no room in the queue of the switch's own frames is counted.
func TestInjectedFull(t *testing.T) {
	s := must[*Switch](t)(New(&Config{Injected: 2}))
	defer s.Close()
	v := must[*VSI](t)(s.VSI(1, nil))
	f := frame.Make(eth(frame.Broadcast, mac(1), 0x800))
	for i := range 5 {
		if got := s.Inject(v, &f); got != (i < 2) {
			t.Errorf("frame %d: %v", i, got)
		}
	}
	if d := s.Stats().Ports[0].TxDrops; d[frame.PortFull] != 3 || d.Total() != 3 {
		t.Errorf("%v", d)
	}
}

// What the switch sends to one member goes there whatever the FDB says, IP packets too; what
// is too long for it goes to the stage that is told where to.
func TestSend(t *testing.T) {
	inLab(t, func(l *lab) {
		a, _ := l.port("a", 0)
		b, to := l.port("b", 0)
		b.mtu = 100
		var told frame.At
		if err := l.v.Configure(VSIConfig{Slots: Slots{TooBig: hears(func(at frame.At) { told = at })}}); err != nil {
			t.Fatal(err)
		}
		send := func(to frame.Dest, n int) {
			f := frame.Make(make([]byte, n))
			f.Kind = frame.IPv4
			f.GSO = frame.GSO{Flags: frame.NeedsCsum, CsumStart: uint16(f.Headroom()) + 20}
			if !l.v.Send(to, &f) {
				t.Fatal("refused")
			}
			synctest.Wait()
		}
		send(to.Dest(5), 100)
		got := b.sent()
		if len(got) != 1 || got[0].Peer != 5 || got[0].F.Kind != frame.IPv4 || len(a.sent()) != 0 {
			t.Fatalf("%v", got)
		}
		if f := got[0].F; f.From != 0 || int(f.GSO.CsumStart)-f.Headroom() != 20 {
			t.Errorf("%+v", f)
		}
		send(to.Dest(5), 101)
		if told.To != to.Dest(5) || told.MTU != 100 || len(b.sent()) != 0 || l.drops(0)[frame.TooBig] != 1 {
			t.Errorf("too long: %+v, %v", told, l.drops(0))
		}
		send(frame.NewDest(77, 0), 50)
		if d := l.drops(0); d[frame.PortDown] != 1 {
			t.Errorf("to a port that is not there: %v", d)
		}
		l.wantAccounts()
	})
}

// hears is a stage that looks at what it is told.
type hears func(at frame.At)

func (h hears) Process(_ *frame.Frame, at frame.At) frame.Verdict { h(at); return frame.Continue }

// gatewayStub rewrites the source and sends the frame round again, as its own.
type gatewayStub struct{ mac frame.MAC }

func (g gatewayStub) Process(f *frame.Frame, _ frame.At) frame.Verdict {
	copy(f.Bytes(), g.mac[:])
	return frame.Reenter
}

// The gateway sees a flooded frame last, may rewrite it, and what others got is not
// what it wrote. A loop between two hands ends.
func TestGateway(t *testing.T) {
	inLab(t, func(l *lab) {
		a, _ := l.port("a", 0)
		b, bt := l.port("b", 0)
		l.v.FDB().Set(mac(7), bt.Dest(0), fdb.Static)
		if err := l.v.Configure(VSIConfig{Slots: Slots{Gateway: gatewayStub{mac(7)}}}); err != nil {
			t.Fatal(err)
		}
		a.send(eth(frame.Broadcast, mac(1), 0x800))
		got := b.sent()
		if len(got) != 2 || frame.MAC(got[0].F.Bytes()) != frame.Broadcast || frame.MAC(got[1].F.Bytes()) != mac(7) {
			t.Errorf("%v", got)
		}
		l.v.FDB().Set(mac(7), 0, fdb.Static) // to the switch itself: again and again
		a.send(eth(mac(7), mac(1), 0x800))
		if d := l.drops(1); d[frame.TTL] != 1 {
			t.Errorf("a loop ended with %v", d)
		}
	})
}

// What a gateway alone was shown, and has dropped, is counted under the gateway's reason.
func TestFloodedToTheGatewayAlone(t *testing.T) {
	for _, c := range []struct {
		says frame.Verdict
		want frame.Reason
	}{{frame.Continue, 0}, {frame.Drop(frame.BadChecksum), frame.BadChecksum}, {frame.Consume, 0}} {
		inLab(t, func(l *lab) {
			a, _ := l.port("a", 0)
			if err := l.v.Configure(VSIConfig{Slots: Slots{Gateway: say(c.says)}}); err != nil {
				t.Fatal(err)
			}
			a.send(eth(frame.Broadcast, mac(1), 0x800))
			d := l.drops(1)
			if flooded := l.s.Stats().Ports[1].Flood.Broadcast; c.want == 0 && (d.Total() != 0 || flooded != 1) || c.want != 0 && (d.Total() != 1 || d[c.want] != 1 || flooded != 0) {
				t.Errorf("%v: dropped %v, flooded %d", c.says, d, flooded)
			}
			b, _ := l.port("b", 0)
			a.send(eth(frame.Broadcast, mac(1), 0x800))
			if st := l.s.Stats().Ports[1]; len(b.sent()) != 1 || st.RxDrops != d {
				t.Errorf("%v, beside another: dropped %v", c.says, st.RxDrops)
			}
			l.wantAccounts()
		})
	}
}

func TestEgressSlotAndNoFlood(t *testing.T) {
	inLab(t, func(l *lab) {
		a, _ := l.port("a", 0)
		b, bt := l.port("b", 0)
		c, ct := l.port("c", 0)
		bt.Configure(AttachConfig{Slots: Slots{Egress: say(frame.Drop(frame.Policy))}})
		ct.Configure(AttachConfig{NoFlood: Broadcast})
		a.send(eth(frame.Broadcast, mac(1), 0x800), eth(frame.MAC{1}, mac(1), 0x800))
		if len(b.sent()) != 0 || len(c.sent()) != 1 {
			t.Error("egress policy or flood class not followed")
		}
		if d := l.s.Stats().Ports[2].TxDrops; d[frame.Policy] != 2 {
			t.Errorf("policy drops at b: %d", d[frame.Policy])
		}
	})
}

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
		if err != nil || ev.Kind != frame.EventPortDown || ev.Dest != bt.Dest(0) || !errors.Is(ev.Err, b.err) {
			t.Fatalf("%+v, %v", ev, err)
		}
		if !b.closed.Load() {
			t.Error("failed and not closed")
		}
		a.send(eth(mac(2), mac(1), 0x800)) // b's MAC is forgotten: flooded
		if len(c.sent()) != 1 {
			t.Error("traffic does not go on")
		}
		if err := bt.Detach(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Detach of a failed port: %v", err)
		}
		must[*Attachment](t)(l.v.Attach(newStub("b"), 0))
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
func (k *kept) Pause()                  { k.mu.Lock(); defer k.mu.Unlock(); close(k.paused) }
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
			at := must[*Attachment](t)(l.v.AttachWith(k, 0, &AttachConfig{KeepOpen: true}))
			k.send(eth(mac(9), mac(1), 0x800))
			if len(a.sent()) != 1 {
				t.Fatal("no traffic")
			}
			if err := at.Detach(); err != nil {
				t.Fatal(err)
			}
		}
		must[*Attachment](t)(l.v.AttachWith(k, 0, &AttachConfig{KeepOpen: true}))
		l.s.Close()
		if k.closed.Load() {
			t.Error("a kept port was closed")
		}
		if !a.closed.Load() {
			t.Error("another was not")
		}
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
		s := must[*Switch](t)(New(nil))
		p := newStub("p")
		must[*Attachment](t)(must[*VSI](t)(s.VSI(1, nil)).Attach(p, 0))
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
		if !p.closed.Load() {
			t.Errorf("%s: port not closed", c.name)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: Close again: %v", c.name, err)
		}
		if err := s.Run(ctx); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: Run again: %v", c.name, err)
		}
		if _, err := s.VSI(2, nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: VSI: %v", c.name, err)
		}
		if _, err := s.Events().Next(ctx); err == nil {
			t.Errorf("%s: Events after the end", c.name)
		}
		cancel()
	}
}

// After Close every method that changes something says so.
func TestClosed(t *testing.T) {
	s := must[*Switch](t)(New(nil))
	v := must[*VSI](t)(s.VSI(1, nil))
	p := newStub("p")
	a := must[*Attachment](t)(v.Attach(p, 0))
	s.Close()
	for name, err := range map[string]error{
		"VSI.Configure": v.Configure(VSIConfig{}), "VSI.Delete": v.Delete(),
		"Attachment.Configure": a.Configure(AttachConfig{}), "Attachment.Detach": a.Detach(),
		"Switch.FlushPort": s.FlushPort(p),
		"VSI.Attach":       func() error { _, err := v.Attach(newStub("q"), 0); return err }(),
		"Switch.Trace":     func() error { _, err := s.Trace(&TraceConfig{}); return err }(),
	} {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func running(s *Switch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// Every error names the setting.
func TestConfigErrors(t *testing.T) {
	s := must[*Switch](t)(New(nil))
	defer s.Close()
	v := must[*VSI](t)(s.VSI(1, nil))
	p, tun := newStub("p"), &stubTunnel{stub: newStub("t")}
	must[*Attachment](t)(v.Attach(p, 5))
	v2 := must[*VSI](t)(s.VSI(2, nil))
	attach := func(v *VSI, p Port, tag uint32, cfg AttachConfig) error {
		_, err := v.AttachWith(p, tag, &cfg)
		return err
	}
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
		{attach(v, p, 6, AttachConfig{}), "port: already attached"},
		{attach(v2, p, 5, AttachConfig{}), "tag: already attached"},
		{attach(v, nil, 0, AttachConfig{}), "port:"},
		{attach(v, newStub("x"), 0, AttachConfig{Hub: true}), "AttachConfig.Hub"},
		{attach(v, tun, 1, AttachConfig{Hub: true, Group: 3}), "AttachConfig.Hub"},
		{attach(v, newStub("x"), 0, AttachConfig{KeepOpen: true}), "AttachConfig.KeepOpen"},
		{attach(v, newStub("x"), 0, AttachConfig{MaxMACs: -1}), "AttachConfig.MaxMACs"},
		{attach(v, newStub("x"), 0, AttachConfig{NoFlood: 9}), "AttachConfig.NoFlood"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) || !strings.HasPrefix(c.err.Error(), "vswitch: ") {
			t.Errorf("error %v, want vswitch: ... %q", c.err, c.want)
		}
	}
	if !errors.Is(attach(v, p, 6, AttachConfig{}), ErrTagTaken) {
		t.Error("not ErrTagTaken")
	}
}

// Deleting a VSI detaches its members; ports that are in others stay.
func TestDeleteVSI(t *testing.T) {
	inLab(t, func(l *lab) {
		trunk, _ := l.port("trunk", 1)
		a, _ := l.port("a", 0)
		v2 := must[*VSI](t)(l.s.VSI(2, nil))
		must[*Attachment](t)(v2.Attach(trunk, 2))
		if err := l.v.Delete(); err != nil {
			t.Fatal(err)
		}
		if !a.closed.Load() || trunk.closed.Load() {
			t.Errorf("closed: a %v, trunk %v", a.closed.Load(), trunk.closed.Load())
		}
		if len(l.s.VSIs()) != 1 {
			t.Errorf("%d VSIs", len(l.s.VSIs()))
		}
		if _, err := l.v.Attach(newStub("x"), 0); !errors.Is(err, net.ErrClosed) {
			t.Errorf("attach to a deleted VSI: %v", err)
		}
		if err := l.v.Delete(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Delete again: %v", err)
		}
	})
}

// The limit of all VSIs together.
func TestMaxMACs(t *testing.T) {
	s := must[*Switch](t)(New(&Config{MaxMACs: 3}))
	defer s.Close()
	for vni := range frame.VNI(3) {
		v := must[*VSI](t)(s.VSI(vni, nil))
		at := must[*Attachment](t)(v.Attach(newStub("p"), 0))
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
	if n != 3 {
		t.Errorf("%d MACs, limit 3", n)
	}
	must[*VSI](t)(s.VSI(0, nil)).Delete()
	v := must[*VSI](t)(s.VSI(2, nil))
	if o := v.FDB().Learn(mac(9), frame.NewDest(3, 0), 0); o != fdb.New {
		t.Errorf("a deleted VSI keeps its share: %v", o)
	}
}

// Learned entries age in the switch's time, static ones do not.
func TestAgeing(t *testing.T) {
	inLab(t, func(l *lab) {
		a, at := l.port("a", 0)
		l.v.FDB().Set(mac(2), at.Dest(0), fdb.Static)
		if err := l.v.Configure(VSIConfig{Ageing: 10 * time.Second}); err != nil {
			t.Fatal(err)
		}
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

// A slow reader of events loses them as a whole, and is told.
func TestEventOverflow(t *testing.T) {
	inLab(t, func(l *lab) {
		slow, fast := l.s.Events(), l.s.Events()
		for range DefaultEvents {
			l.s.events.emit(frame.Event{Kind: frame.EventMACLearned})
		}
		if ev, err := fast.Next(context.Background()); err != nil || ev.Kind != frame.EventMACLearned {
			t.Errorf("%v, %v", ev, err)
		}
		l.s.events.emit(frame.Event{Kind: frame.EventMACAged})
		for i, want := range []frame.EventKind{frame.EventOverflow, frame.EventMACAged} {
			if ev, err := slow.Next(context.Background()); err != nil || ev.Kind != want {
				t.Errorf("event %d: %v, %v; want %v", i, ev.Kind, err, want)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := slow.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next with nothing to tell: %v", err)
		}
		slow.Close()
		if _, err := slow.Next(context.Background()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Next after Close: %v", err)
		}
	})
}

func TestFlush(t *testing.T) {
	s := must[*Switch](t)(New(nil))
	defer s.Close()
	v1, v2 := must[*VSI](t)(s.VSI(1, nil)), must[*VSI](t)(s.VSI(2, nil))
	trunk, tun := newStub("trunk"), &stubTunnel{stub: newStub("t")}
	p1, p2 := must[*Attachment](t)(v1.Attach(trunk, 1)), must[*Attachment](t)(v2.Attach(trunk, 2))
	t1 := must[*Attachment](t)(v1.Attach(tun, 1))
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
	if err := s.FlushPort(newStub("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a port that is not attached: %v", err)
	}
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
	s := must[*Switch](t)(New(nil))
	defer s.Close()
	v := must[*VSI](t)(s.VSI(1, nil))
	s.nums.next = 1<<16 - 1 // every number is in use
	tun := &stubTunnel{stub: newStub("t")}
	if _, err := v.Attach(tun, 77); !errors.Is(err, ErrTooMany) {
		t.Fatalf("error %v", err)
	}
	if _, open := tun.open.Load(uint32(77)); open || len(v.Attachments()) != 0 || tun.closed.Load() {
		t.Errorf("open %v, %d attachments, closed %v", open, len(v.Attachments()), tun.closed.Load())
	}
}
