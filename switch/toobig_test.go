package vswitch

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// packet returns a frame with an IPv4 packet of n bytes in it, DF set.
func packet(dst, src frame.MAC, n int) []byte {
	b := eth(dst, src, wire.TypeIPv4, make([]byte, n)...)
	h := wire.IPv4Header{TTL: 9, Protocol: wire.ProtoUDP, DF: true, TotalLen: uint16(n), Src: [4]byte{10, 0, 0, src[5]}, Dst: [4]byte{10, 0, 0, dst[5]}}
	h.Put(b[ethLen:])
	return b
}

// tooBigLab has the switch's own stage in the slot of the segment, and ports a with an MTU of 9014
// and small with one of 1464.
func tooBigLab(t *testing.T, cfg TooBigConfig, test func(l *lab, a, small *stub)) {
	inLab(t, func(l *lab) {
		check.OK(t, l.s.Configure(Config{TooBig: cfg}))
		check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{TooBig: l.s.TooBig()}}))
		a, small := newStub("a"), newStub("small")
		a.mtu, small.mtu = 9014, 1464
		check.Must(l.v.Attach(a, 0))(t)
		check.Must(l.v.Attach(small, 0))(t)
		test(l, a, small)
	})
}

// wantAnswer fails the test unless exactly one frame was sent: the answer to a packet
// from src to dst that says mtu.
func wantAnswer(t *testing.T, got []frame.Out, src, dst frame.MAC, mtu int) frame.Out {
	t.Helper()
	check.Need(t, len(got) == 1, "%d frames, want one answer", len(got))
	b := got[0].F.Bytes()
	if len(b) < 42 || frame.MAC(b) != src || frame.MAC(b[6:]) != dst || b[23] != wire.ProtoICMP || b[34] != 3 || b[35] != 4 {
		t.Fatalf("no answer: % x", b[:min(len(b), 42)])
	}
	if m := binary.BigEndian.Uint16(b[40:]); int(m) != mtu {
		t.Errorf("MTU %d, want %d", m, mtu)
	}
	return got[0]
}

// wantAccounts fails the test unless every frame is in exactly one counter, and in that of its attachment.
func (l *lab) wantAccounts() {
	l.t.Helper()
	st := l.s.Stats()
	l.s.wantSums(l.t)
	for _, p := range st.Ports {
		if p.Accepted.Frames != p.Rx.Frames-p.RxDrops.Total() {
			l.t.Errorf("port %s: accepted %+v: %+v", p.Name, p.Accepted, p)
		}
		if sum := p.Forwarded + p.Replied + p.Consumed + p.Flood.Broadcast + p.Flood.Multicast + p.Flood.Unknown + p.RxDrops.Total(); sum != p.Rx.Frames {
			l.t.Errorf("port %s: %d frames in, %d accounted for: %+v", p.Name, p.Rx.Frames, sum, p)
		}
	}
}

func TestTooBigKnown(t *testing.T) {
	tooBigLab(t, TooBigConfig{}, func(l *lab, a, small *stub) {
		small.send(eth(frame.Broadcast, mac(2), 0x88b5))
		a.sent()
		a.send(packet(mac(2), mac(1), 1451))
		wantAnswer(t, a.sent(), mac(1), mac(2), 1450)
		check.True(t, len(small.sent()) == 0, "the small port got something")
		fits := packet(mac(2), mac(1), 1450)
		a.send(fits)
		if got := small.sent(); len(got) != 1 || !bytes.Equal(got[0].F.Bytes(), fits) {
			t.Errorf("what fits: %v", got)
		}
		if p := l.s.Stats().Ports[1]; p.Replied != 1 || p.Forwarded != 1 || p.RxDrops.Total() != 0 {
			t.Errorf("%+v", p)
		}
		l.wantAccounts()
	})
}

// Frames around one that is answered are what they were, in their order.
func TestTooBigInABatch(t *testing.T) {
	tooBigLab(t, TooBigConfig{}, func(l *lab, a, small *stub) {
		small.send(eth(frame.Broadcast, mac(2), 0x88b5))
		a.sent()
		before, after := packet(mac(2), mac(1), 100), packet(mac(2), mac(1), 101)
		a.send(before, packet(mac(2), mac(1), 1500), packet(mac(77), mac(1), 1500), after)
		got := small.sent()
		if len(got) != 2 || !bytes.Equal(got[0].F.Bytes(), before) || !bytes.Equal(got[1].F.Bytes(), after) {
			t.Errorf("%v", got)
		}
		answers := a.sent()
		check.Need(t, len(answers) == 2, "%d answers", len(answers))
		wantAnswer(t, answers[:1], mac(1), mac(2), 1450)
		wantAnswer(t, answers[1:], mac(1), mac(77), 1450)
		l.wantAccounts()
	})
}

// To an unknown host a frame goes to those that take it, as it is, and the sender
// hears of the least MTU, once.
func TestTooBigFlooded(t *testing.T) {
	for _, mtus := range [][]int{{1464, 1364}, {1364, 1464}} {
		inLab(t, func(l *lab) {
			l.v.Configure(VSIConfig{Slots: Slots{TooBig: l.s.TooBig()}})
			a, _ := l.port("a", 0)
			one, _ := l.port("one", 0)
			big, _ := l.port("big", 0)
			two, _ := l.port("two", 0)
			one.mtu, two.mtu = mtus[0], mtus[1]
			in := packet(mac(9), mac(1), 1500)
			a.send(in)
			if got := big.sent(); len(got) != 1 || !bytes.Equal(got[0].F.Bytes(), in) {
				t.Errorf("the big port: %v", got)
			}
			check.True(t, len(one.sent())+len(two.sent()) == 0, "a small port got something")
			wantAnswer(t, a.sent(), mac(1), mac(9), 1350)
			st := l.s.Stats()
			if p := st.Ports[1]; p.Flood.Unknown != 1 || p.Replied != 0 || p.RxDrops.Total() != 0 {
				t.Errorf("%+v", p)
			}
			if st.Ports[2].TxDrops[frame.TooBig] != 1 || st.Ports[4].TxDrops[frame.TooBig] != 1 {
				t.Error("copies not counted as too-big")
			}
			l.wantAccounts()
		})
	}
}

// Nobody is told about broadcast and multicast; those ports that take it get it.
func TestTooBigGroups(t *testing.T) {
	tooBigLab(t, TooBigConfig{}, func(l *lab, a, small *stub) {
		big, _ := l.port("big", 0)
		for _, dst := range []frame.MAC{frame.Broadcast, {1, 0, 0x5e, 0, 0, 1}} {
			in := packet(dst, mac(1), 1500)
			a.send(in)
			if got := big.sent(); len(got) != 1 || !bytes.Equal(got[0].F.Bytes(), in) {
				t.Errorf("%v: %v", dst, got)
			}
			check.True(t, len(a.sent())+len(small.sent()) == 0, "%v: answered", dst)
		}
		// A group with an entry is known, and still a group.
		l.v.FDB().Set(frame.MAC{1, 0, 0x5e, 0, 0, 9}, frame.NewDest(2, 0), fdb.Static)
		a.send(packet(frame.MAC{1, 0, 0x5e, 0, 0, 9}, mac(1), 1500))
		if d := l.drops(1); len(a.sent()) != 0 || d[frame.TooBig] != 1 {
			t.Errorf("group with an entry: %v", d)
		}
		l.wantAccounts()
	})
}

// On a trunk the answer is in the VLAN the frame came in.
func TestTooBigTrunk(t *testing.T) {
	tooBigLab(t, TooBigConfig{}, func(l *lab, _, small *stub) {
		trunk, _ := l.port("trunk", 10)
		small.send(eth(frame.Broadcast, mac(2), 0x88b5))
		trunk.sent()
		b := packet(mac(2), mac(1), 1500)
		trunk.send(slices.Concat(b[:12], []byte{0x81, 0, 0, 10}, b[12:]))
		if o := wantAnswer(t, trunk.sent(), mac(1), mac(2), 1450); o.Tag != 10 {
			t.Errorf("tag %d", o.Tag)
		}
		l.wantAccounts()
	})
}

// Through a tunnel the answer goes to the peer it came from, known or flooded; to one
// without a number not at all: the tunnel would send it to all of its flood list.
func TestTooBigTunnel(t *testing.T) {
	tooBigLab(t, TooBigConfig{}, func(l *lab, a, small *stub) {
		tun := &stubTunnel{stub: newStub("t")}
		check.Must(l.v.Attach(tun, 77))(t)
		small.send(eth(frame.Broadcast, mac(2), 0x88b5))
		tun.sent()
		for _, dst := range []frame.MAC{mac(2), mac(9)} {
			tun.send(fromPeer(3, 77, packet(dst, mac(1), 1500)))
			if o := wantAnswer(t, tun.sent(), mac(1), dst, 1450); o.Peer != 3 || o.Tag != 77 || o.Skip != 0 {
				t.Errorf("to peer %d, tag %d, without %d", o.Peer, o.Tag, o.Skip)
			}
			tun.send(fromPeer(0, 77, packet(dst, mac(1), 1500)))
			if got := tun.sent(); len(got) != 0 {
				t.Errorf("to a peer without a number: %v", got)
			}
		}
		a.sent()
		if d := l.drops(3); d[frame.TooBig] != 1 || d.Total() != 1 {
			t.Errorf("drops %v", d)
		}
		l.wantAccounts()

		// Whatever a stage says.
		l.v.Configure(VSIConfig{Slots: Slots{TooBig: say(frame.Reply)}})
		tun.send(fromPeer(0, 77, packet(mac(2), mac(1), 1500)), fromPeer(0, 77, packet(mac(9), mac(1), 1500)))
		if got := tun.sent(); len(got) != 0 {
			t.Errorf("to a peer without a number: %v", got)
		}
		if d := l.drops(3); d[frame.NoPeer] != 1 {
			t.Errorf("drops %v", d)
		}
		l.wantAccounts()
	})
}

// From one peer of a hub to another: the answer goes back to the first.
func TestTooBigHub(t *testing.T) {
	inLab(t, func(l *lab) {
		l.v.Configure(VSIConfig{Slots: Slots{TooBig: l.s.TooBig()}})
		tun := &stubTunnel{stub: newStub("t")}
		tun.mtu = 1464
		check.Must(l.v.AttachWith(tun, 1, &AttachConfig{Hub: true}))(t)
		tun.send(fromPeer(5, 1, eth(frame.Broadcast, mac(2), 0x88b5)))
		tun.sent()
		tun.send(fromPeer(3, 1, packet(mac(2), mac(1), 1500)))
		if o := wantAnswer(t, tun.sent(), mac(1), mac(2), 1450); o.Peer != 3 {
			t.Errorf("to peer %d", o.Peer)
		}
		l.wantAccounts()
	})
}

// Frames of the switch's own have no sender to tell.
func TestTooBigInjected(t *testing.T) {
	tooBigLab(t, TooBigConfig{}, func(l *lab, a, small *stub) {
		small.send(eth(frame.Broadcast, mac(2), 0x88b5))
		a.sent()
		f := frame.Make(packet(mac(2), mac(1), 1500))
		l.s.Inject(l.v, &f)
		synctest.Wait()
		if d := l.drops(0); d[frame.TooBig] != 1 || len(a.sent())+len(small.sent()) != 0 {
			t.Errorf("drops %v", d)
		}
		l.wantAccounts()
	})
}

// segments is an ingress stage that makes frames superframes of this segment size.
type segments uint16

func (s segments) Process(f *frame.Frame, _ frame.At) frame.Verdict {
	f.GSO = frame.GSO{Type: frame.GSOUDP, Size: uint16(s), CsumStart: uint16(f.Headroom()) + 34, DataStart: uint16(f.Headroom()) + 42}
	return frame.Continue
}

func TestTooBigSuperframe(t *testing.T) {
	tooBigLab(t, TooBigConfig{}, func(l *lab, a, small *stub) {
		small.send(eth(frame.Broadcast, mac(2), 0x88b5))
		a.sent()
		set := func(size segments) {
			l.v.Configure(VSIConfig{Slots: Slots{Ingress: size, TooBig: l.v.cfg.Slots.TooBig}})
		}
		set(1422)
		in := packet(mac(2), mac(1), 9000)
		a.send(in)
		if got := small.sent(); len(got) != 1 || got[0].F.GSO.Size != 1422 || got[0].F.Len() != len(in) {
			t.Errorf("segments that fit: %v", got)
		}
		set(1423)
		a.send(in)
		if o := wantAnswer(t, a.sent(), mac(1), mac(2), 1450); o.F.GSO != (frame.GSO{}) {
			t.Errorf("the answer is a superframe: %+v", o.F.GSO)
		}
		if got := small.sent(); len(got) != 0 {
			t.Errorf("%v", got)
		}
		l.wantAccounts()
	})
}

// What is beyond the rate is dropped and counted; in the next second there is room.
func TestTooBigLimited(t *testing.T) {
	tooBigLab(t, TooBigConfig{PerSender: 1}, func(l *lab, a, small *stub) {
		small.send(eth(frame.Broadcast, mac(2), 0x88b5))
		a.sent()
		in := packet(mac(2), mac(1), 1500)
		a.send(in, in, in)
		wantAnswer(t, a.sent(), mac(1), mac(2), 1450)
		if d := l.drops(1); d[frame.TooBig] != 2 {
			t.Errorf("drops %v", d)
		}
		l.s.tick.Add(1)
		a.send(in)
		wantAnswer(t, a.sent(), mac(1), mac(2), 1450)
		l.wantAccounts()
	})
}

// A segment with a tunnel tells senders what fits, without a word; who wants it silent says so.
func TestTooBigByDefault(t *testing.T) {
	for _, c := range []struct {
		name     string
		vsi, at  Stage
		answered bool
	}{
		{"nothing set", nil, nil, true},
		{"a stage that does not mind", say(frame.Continue), nil, true},
		{"one of the port that does not", nil, Chain(say(frame.Continue)), true},
		{"none for the segment", NoTooBig{}, nil, false},
		{"none for the port", nil, NoTooBig{}, false},
		{"none behind a stage", nil, Chain(say(frame.Continue), NoTooBig{}), false},
		{"another answer", say(frame.Drop(frame.Policy)), nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{TooBig: c.vsi}}))
				a, tun := newStub("a"), &stubTunnel{stub: newStub("t")}
				a.mtu, tun.mtu = 1514, 1464
				check.Must(l.v.AttachWith(a, 0, &AttachConfig{Slots: Slots{TooBig: c.at}}))(t)
				far := check.Must(l.v.Attach(tun, 77))(t)
				tun.send(fromPeer(3, 77, eth(frame.Broadcast, mac(2), 0x88b5)))
				a.sent()
				reason := frame.TooBig
				if c.vsi == say(frame.Drop(frame.Policy)) {
					reason = frame.Policy
				}
				for k, dst := range []frame.MAC{mac(2), mac(9)} { // known, and not
					a.send(packet(dst, mac(1), 1500))
					if got := a.sent(); c.answered {
						wantAnswer(t, got, mac(1), dst, 1450)
					} else if d := l.drops(1); len(got) != 0 || k == 0 && d[reason] != 1 || d.Total() != d[reason] {
						t.Errorf("to %v: %d answers, drops %v", dst, len(got), d)
					}
				}
				if n := l.s.Stats().TooBig.Sent4; c.answered != (n == 2) || !c.answered && n != 0 {
					t.Errorf("%d counted as answered", n)
				}
				a.send(packet(mac(2), mac(1), 1450))
				if got := tun.sent(); len(got) != 1 || got[0].F.Len() != 1464 {
					t.Errorf("what fits: %v", got)
				}
				l.wantAccounts()

				// Once the tunnel is gone, the segment is a bridge: nobody is told.
				check.OK(t, far.Detach())
				b, _ := l.port("b", 0)
				b.mtu = 1464
				b.send(eth(frame.Broadcast, mac(2), 0x88b5))
				a.sent()
				was := l.drops(1)[reason]
				a.send(packet(mac(2), mac(1), 1500))
				if got, d := a.sent(), l.drops(1); len(got) != 0 || d[reason] != was+1 {
					t.Errorf("without a tunnel: %d answers, drops %v", len(got), d)
				}
				l.wantAccounts()
			})
		})
	}
}

// All segments share one, with its rates, and what one port sends does not take the others' share.
func TestTooBigByDefaultRates(t *testing.T) {
	inLab(t, func(l *lab) {
		tun := &stubTunnel{stub: newStub("t")}
		tun.mtu = 1464
		v2 := check.Must(l.s.VSI(2, nil))(t)
		check.Must(l.v.Attach(tun, 1))(t)
		check.Must(v2.Attach(tun, 2))(t)
		a, b := newStub("a"), newStub("b")
		check.Must(l.v.Attach(a, 0))(t)
		check.Must(v2.Attach(b, 0))(t)
		for k := range 200 {
			a.send(slices.Repeat([][]byte{packet(mac(2), frame.MAC{2, 0, 0, 0, 0, byte(k + 3)}, 1500)}, 12)...)
		}
		st := l.s.Stats().TooBig
		if n := len(a.sent()); n == 0 || n > icmperr.DefaultTotal/2 || st.Sent4 != uint64(n) || st.Sent4+st.Limited != 200*12 {
			t.Errorf("%d answers, %+v", n, st)
		}
		b.send(packet(mac(2), mac(1), 1500))
		wantAnswer(t, b.sent(), mac(1), mac(2), 1450)
		l.wantAccounts()
	})
}
