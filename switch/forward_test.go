package vswitch

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestTrunk(t *testing.T) {
	inLab(t, func(l *lab) {
		trunk, _ := l.port("trunk", 10)
		access, _ := l.port("access", 0)
		v2 := check.Must(l.s.VSI(2, nil))(t)
		check.Must(v2.Attach(trunk, 20))(t)
		other := newStub("other")
		check.Must(v2.Attach(other, 0))(t)

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
		check.Must(l.v.Attach(tun, 77))(t)
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
		check.Must(l.v.AttachWith(tun, 1, &AttachConfig{Hub: true}))(t)
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
		at := check.Must(l.v.AttachWith(tun, 1, &AttachConfig{Hub: true}))(t)
		gt := check.Must(l.v.AttachWith(copies, 1, &AttachConfig{Hub: true}))(t)
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
		check.Must(l.v.Attach(tun, 1))(t)
		f := frame.Make(eth(frame.Broadcast, mac(1), 0x800))
		check.Need(t, l.s.Inject(l.v, &f), "refused")
		synctest.Wait()
		check.True(t, len(a.sent()) == 1 && len(tun.sent()) == 1, "not flooded to all")
		if _, ok := l.v.FDB().Lookup(mac(1)); ok {
			t.Error("learned from a frame of its own")
		}
		l.v.FDB().Set(mac(7), at.Dest(0), fdb.Static)
		f = frame.Make(eth(mac(7), mac(1), 0x800))
		l.s.Inject(l.v, &f)
		synctest.Wait()
		check.True(t, len(a.sent()) == 1 && len(tun.sent()) == 0, "unicast not forwarded to its port alone")
		l.s.Close()
		check.True(t, !l.s.Inject(l.v, &f), "taken after Close")
	})
}

// What finds no room in the queue of the switch's own frames is counted.
func TestInjectedFull(t *testing.T) {
	s := check.Must(New(&Config{Injected: 2}))(t)
	defer s.Close()
	v := check.Must(s.VSI(1, nil))(t)
	f := frame.Make(eth(frame.Broadcast, mac(1), 0x800))
	for i := range 5 {
		check.Equal(t, fmt.Sprintf("frame %d", i), s.Inject(v, &f), i < 2)
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
		check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{TooBig: hears(func(at frame.At) { told = at })}}))
		send := func(to frame.Dest, n int) {
			f := frame.Make(make([]byte, n))
			f.Kind = frame.IPv4
			f.GSO = frame.GSO{Flags: frame.NeedsCsum, CsumStart: uint16(f.Headroom()) + 20}
			check.Need(t, l.v.Send(to, &f), "refused")
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
		check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{Gateway: gatewayStub{mac(7)}}}))
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
			check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{Gateway: say(c.says)}}))
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
		check.True(t, len(b.sent()) == 0 && len(c.sent()) == 1, "egress policy or flood class not followed")
		if d := l.s.Stats().Ports[2].TxDrops; d[frame.Policy] != 2 {
			t.Errorf("policy drops at b: %d", d[frame.Policy])
		}
	})
}
