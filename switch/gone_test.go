package vswitch

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// slowTunnel is a tunnel whose reader, having looked up the peers of a batch, is not heard of
// until the test says so.
type slowTunnel struct {
	*stubTunnel
	gone   atomic.Uint64
	named  chan struct{}
	resume chan struct{}
}

func (s *slowTunnel) Readers() []frame.Reader      { return []frame.Reader{s} }
func (s *slowTunnel) Control() frame.TunnelControl { return s }

func (s *slowTunnel) Read(b *frame.Batch) error {
	if err := s.stub.Read(b); err != nil {
		return err
	}
	b.Gone, b.Known = &s.gone, s.gone.Load()
	tunnelled(b)
	s.named <- struct{}{}
	<-s.resume
	return nil
}

func (s *slowTunnel) Retire(named func(uint16) bool) []uint16 {
	nums := s.stubTunnel.Retire(named)
	if nums != nil {
		s.gone.Add(1)
	}
	return nums
}

// The number of a peer is given away while a reader holds it, on the way from the look-up to the
// worker: frames under it are nobody's, and teach nothing.
func TestPeerGoneWhileRead(t *testing.T) {
	for _, gone := range []bool{false, true} {
		inLab(t, func(l *lab) {
			a, _ := l.port("a", 0)
			tun := &slowTunnel{stubTunnel: &stubTunnel{stub: newStub("t")}, named: make(chan struct{}), resume: make(chan struct{})}
			at := check.Must(l.v.Attach(tun, 1))(t)
			tun.in <- [][]byte{fromPeer(7, 1, eth(frame.Broadcast, mac(1), 0x800))}
			<-tun.named
			if gone {
				tun.retired.Store(&[]uint16{7})
			}
			l.s.agePeers() // does not wait for who is in Read
			if n := tun.freed.Load(); n == 1 != gone {
				t.Fatalf("%d numbers freed", n)
			}
			tun.resume <- struct{}{}
			synctest.Wait()
			check.Equal(t, "frames forwarded", len(a.sent()), 1)
			switch d, ok := l.v.FDB().Lookup(mac(1)); {
			case gone && ok:
				t.Errorf("learned at %v, which may be another peer by now", d)
			case !gone && d != at.Dest(7):
				t.Errorf("%v, %v", d, ok)
			}
			l.wantAccounts()
		})
	}
}

// A frame that is queued for a peer does not leave to another that has its number since.
func TestInjectedForGonePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := check.Must(New(nil))(t)
		v := check.Must(s.VSI(1, nil))(t)
		tun := &stubTunnel{stub: newStub("t")}
		a := check.Must(v.Attach(tun, 1))(t)
		f := frame.Make(eth(mac(1), mac(2), 0x800))
		send := func() { v.Send(a.Dest(5), &f); v.Send(a.Dest(6), &f) }
		send()
		tun.retired.Store(&[]uint16{5})
		s.agePeers()
		send()
		end := make(chan error)
		go func() { end <- s.Run(t.Context()) }()
		synctest.Wait()
		var peers []uint16
		for _, o := range tun.sent() {
			peers = append(peers, o.Peer)
		}
		if d := s.Stats().Ports[0].RxDrops; !slices.Equal(peers, []uint16{6, 5, 6}) || d[frame.PortDown] != 1 {
			t.Errorf("sent to %v, %d drops", peers, d.Total())
		}
		s.Close()
		<-end
	})
}
