package vtep

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func (v *VTEP) countsOf(peer uint16) PeerStats {
	for _, p := range v.Stats().Peers {
		if p.Peer == peer {
			return p
		}
	}
	return PeerStats{}
}

// A peer has the frames and bytes that came from it, without dropped ones, and the time of the last.
func TestReceivedFromPeers(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	check.OK(t, v.Control().Open(vni))
	one, two := addPeer(t, v, at(1)), addPeer(t, v, at(2))
	r := v.Readers()[0]
	var clock atomic.Int64
	clock.Store(1_000_000)
	b := frame.NewBatch(nil)
	b.Clock = &clock
	hear := func(from netip.AddrPort, packets ...[]byte) {
		for _, p := range packets {
			u.in = append(u.in, packetIn{src: endpoint(t, from), data: slices.Clone(p)})
		}
	}
	hear(at(1), vx(vni, inner(1)), vx(vni, inner(1)), vx(vni+1, inner(1)), vx(vni, inner(1)[:30]))
	hear(at(3), vx(vni+1, inner(1)))
	hear(at(1), vx(vni, inner(1)))
	check.OK(t, r.Read(b))
	clock.Add(5)
	hear(at(1), vx(vni+1, inner(1))) // dropped
	check.OK(t, r.Read(b))
	if p := v.countsOf(one); p.Rx != (frame.Count{Frames: 4, Bytes: 3*60 + 30}) || !p.LastHeard.Equal(time.Unix(1_000_000, 0)) {
		t.Errorf("%+v", p)
	}
	if p := v.countsOf(two); p.Rx.Frames != 0 || !p.LastHeard.IsZero() {
		t.Errorf("never heard: %+v", p)
	}
	hear(at(2), vx(vni, inner(1)))
	check.OK(t, r.Read(b))
	if p := v.countsOf(two); !p.LastHeard.Equal(time.Unix(1_000_005, 0)) {
		t.Errorf("%+v", p)
	}
	before := time.Now().Truncate(time.Second)
	u.hear(t, r, at(2), vx(vni, inner(1))) // without the clock of a switch
	if p := v.countsOf(two); p.Rx.Frames != 2 || p.LastHeard.Before(before) || p.LastHeard.After(time.Now()) {
		t.Errorf("%+v, %v", p, before)
	}
	// The next peer with the number begins at zero.
	v.DeletePeer(two)
	gone := v.Control().Retire(func(uint16) bool { return false })
	v.Control().Free(gone)
	check.True(t, slices.Equal(gone, []uint16{two}), "%v", gone)
	if n := addPeer(t, v, at(4)); n != two || v.countsOf(n).Rx != (frame.Count{}) || !v.countsOf(n).LastHeard.IsZero() {
		t.Errorf("%d: %+v", n, v.countsOf(n))
	}
}

// Copies of flooded frames count for each peer of the list but the one that is left out, also after the list has changed.
func TestFloodedToPeers(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	flood(t, v, vni, at(1), at(2), at(3))
	nums := []uint16{addPeer(t, v, at(1)), addPeer(t, v, at(2)), addPeer(t, v, at(3))}
	w := v.Writer(1)
	write := func(n int, skip uint16) {
		o := out(0, n)
		for i := range o {
			o[i].Skip = skip
		}
		check.OK(t, w.Write(o))
	}
	want := func(n ...uint64) {
		t.Helper()
		for i, n := range n {
			if got := v.countsOf(nums[i]).Tx; got != (frame.Count{Frames: n, Bytes: 60 * n}) {
				t.Errorf("peer %d: %+v, want %d", i, got, n)
			}
		}
	}
	write(10, 0)
	want(10, 10, 10)
	write(5, nums[1])
	want(15, 10, 15)
	check.OK(t, w.Write(out(nums[2], 3)))
	write(2, 0)
	check.OK(t, v.SetFlood(vni, at(1)))
	write(1, 0)
	want(18, 12, 20)
	check.OK(t, v.SetFloodPeers(vni, FloodPeer{Addr: at(1), NoUnknown: true}, FloodPeer{Addr: at(2)})) // inner is unknown unicast
	write(4, 0)
	want(18, 16, 20)
	check.OK(t, v.SetPeers([]PeerConfig{{Address: at(2).Addr(), Port: 4790}})) // a new list with the port
	write(4, 0)
	check.OK(t, v.SetPeers(nil))
	want(18, 20, 20)
}

// None is lost, and none counts twice, while several workers send, lists change, and others read.
func TestFloodedUnderTraffic(t *testing.T) {
	u := fake4()
	u.send = func([]frame.Datagram) error { return nil }
	v := newVTEP(t, nil, quiet{u})
	flood(t, v, vni, at(1), at(2))
	num := addPeer(t, v, at(1))
	const workers, writes, each = 3, 1000, 4
	var sending, others sync.WaitGroup
	stop := make(chan struct{})
	running := func() bool {
		select {
		case <-stop:
			return false
		default:
			return true
		}
	}
	for i := range workers {
		w := v.Writer(i)
		sending.Go(func() {
			o := out(0, each)
			for range writes {
				if err := w.Write(o); err != nil {
					t.Error(err)
				}
			}
		})
	}
	others.Go(func() {
		for i := 0; running(); i++ {
			if err := v.SetFlood(vni, at(1), at(2+i%2)); err != nil {
				t.Error(err)
			}
		}
	})
	others.Go(func() {
		for last := uint64(0); running(); {
			n := v.countsOf(num).Tx.Frames
			if n < last {
				t.Errorf("%d after %d", n, last)
			}
			last = n
		}
	})
	sending.Wait()
	close(stop)
	others.Wait()
	const n = workers * writes * each
	if got := v.countsOf(num).Tx; got != (frame.Count{Frames: n, Bytes: 60 * n}) {
		t.Errorf("%+v, want %d", got, n)
	}
}

// quiet is a fake with a Sender for each worker.
type quiet struct{ *fake }

func (quiet) Sender(int) frame.Sender { return quiet{} }

func (quiet) Send([]frame.Datagram) error { return nil }
