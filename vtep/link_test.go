package vtep

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func fakeAt(local netip.AddrPort) *fake { return &fake{local: local, mtu: 1500} }

// After SetUnderlay packets from the new address are our own, and those from the old one are a
// peer's; peers have the numbers they had, and the old underlay is closed.
func TestSetUnderlay(t *testing.T) {
	first, six := fake4(), fake6()
	v := newVTEP(t, nil, first, six)
	check.OK(t, v.Control().Open(vni))
	own := netip.MustParseAddrPort("192.0.2.9:4789")
	one := addPeer(t, v, at(1))
	r, w := v.Readers()[0], v.Writer(0)
	u := fakeAt(own)
	check.OK(t, v.SetUnderlay(u))
	if first.closed != 1 || u.closed != 0 || six.closed != 0 || u.path == nil {
		t.Errorf("closed: old %d, new %d, IPv6 %d", first.closed, u.closed, six.closed)
	}
	for _, c := range []struct {
		src  netip.AddrPort
		want frame.Reason
	}{{own, frame.OwnAddress}, {local4, 0}, {at(1), 0}} {
		if fs := u.hear(t, r, c.src, vx(vni, inner(1))); fs[0].Drop != c.want {
			t.Errorf("from %v: %v, want %v", c.src, fs[0].Drop, c.want)
		}
	}
	check.OK(t, w.Write(out(one, 2)))
	if len(first.sent) != 0 || len(u.sent) != 2 || v.Stats().Tx.Frames != 2 {
		t.Errorf("sent: %d by the old underlay, %d by the new one", len(first.sent), len(u.sent))
	}
	if n := addPeer(t, v, at(1)); n != one {
		t.Errorf("the peer is %d, it was %d", n, one)
	}
	check.True(t, check.Err(v.AddPeer(own)) != nil, "the new address is a peer")
	addPeer(t, v, local4)
	wild := fakeAt(netip.MustParseAddrPort("0.0.0.0:5000")) // peers keep port 4789
	check.OK(t, v.SetUnderlay(wild))
	if fs := wild.hear(t, r, own, vx(vni, inner(1))); fs[0].Drop != 0 {
		t.Errorf("at the wildcard address: %v", fs[0].Drop)
	}
	check.OK(t, w.Write(out(addPeer(t, v, netip.MustParseAddrPort("192.0.2.77:0")), 1)))
	if to := wild.sent[0].to[0]; to.Port() != 4789 {
		t.Errorf("sent to %v", to)
	}
}

// A Send that finds its underlay closed under it loses nothing: what was not sent to anybody goes
// out by the new one, what was sent to some does not go twice.
func TestSetUnderlayWhileSending(t *testing.T) {
	first, second := fake4(), fakeAt(at(99))
	v := newVTEP(t, nil, first)
	flood(t, v, vni, at(1), at(2))
	one := addPeer(t, v, at(1))
	first.send = func(ds []frame.Datagram) error {
		check.OK(t, v.SetUnderlay(second))
		ds[0].Lost, ds[0].Drop = 0, 0
		ds[1].Lost, ds[1].Drop = 1, frame.PortDown // of two
		ds[2].Lost, ds[2].Drop = 1, frame.PortDown
		return net.ErrClosed
	}
	o := out(one, 3)
	o[1].Peer = 0
	check.OK(t, v.Writer(0).Write(o))
	check.True(t, len(second.sent) == 1 && second.sent[0].to[0] == at(1), "sent again: %+v", second.sent)
	if s := v.Stats(); o[0].Drop != 0 || o[1].Drop != 0 || o[2].Drop != 0 || s.Lost.Total() != 1 || s.Lost[frame.PortDown] != 1 {
		t.Errorf("%v %v %v, lost %v", o[0].Drop, o[1].Drop, o[2].Drop, s.Lost)
	}
}

// Nor does one that the next SetUnderlay finds sending again.
func TestSetUnderlayTwiceWhileSending(t *testing.T) {
	first, second, third := fake4(), fakeAt(at(99)), fakeAt(at(98))
	v := newVTEP(t, nil, first)
	one := addPeer(t, v, at(1))
	swap := func(next *fake) func(ds []frame.Datagram) error {
		return func(ds []frame.Datagram) error {
			check.OK(t, v.SetUnderlay(next))
			ds[0].Lost, ds[0].Drop = 1, frame.PortDown
			return net.ErrClosed
		}
	}
	first.send, second.send = swap(second), swap(third)
	o := out(one, 1)
	if err := v.Writer(0).Write(o); err != nil || len(third.sent) != 1 || o[0].Drop != 0 {
		t.Errorf("%v, %d sent, %v", err, len(third.sent), o[0].Drop)
	}
}

// A waiting is an underlay whose Reads wait until it is closed or paused.
type waiting struct {
	*fake
	stop  chan error
	reads chan struct{}
}

func newWaiting(local netip.AddrPort) *waiting {
	return &waiting{fake: fakeAt(local), stop: make(chan error, 9), reads: make(chan struct{}, 9)}
}

func (u *waiting) Readers() []frame.Reader   { return []frame.Reader{u} }
func (u *waiting) Read(b *frame.Batch) error { u.reads <- struct{}{}; return <-u.stop }
func (u *waiting) Close() error              { u.stop <- net.ErrClosed; return nil }
func (u *waiting) Pause()                    { u.stop <- frame.ErrPaused }

// A Read that waits goes over to the new underlay. One that is paused stays so, and ends with
// the VTEP.
func TestSetUnderlayReaders(t *testing.T) {
	a, b, c := newWaiting(at(1)), newWaiting(at(2)), newWaiting(at(3))
	v := newVTEP(t, nil, a)
	r := v.Readers()[0]
	read := func() chan error {
		done := make(chan error, 1)
		go func() { done <- r.Read(frame.NewBatch(nil)) }()
		return done
	}
	done := read()
	<-a.reads
	check.OK(t, v.SetUnderlay(b))
	<-b.reads
	v.Pause()
	if err := <-done; err != frame.ErrPaused {
		t.Fatal(err)
	}
	check.OK(t, v.SetUnderlay(c)) // is paused
	if err := <-read(); err != frame.ErrPaused {
		t.Fatal(err)
	}
	v.Resume()
	done = read()
	<-c.reads
	select {
	case err := <-done:
		t.Fatal(err)
	case <-time.After(10 * time.Millisecond):
	}
	go v.Close()
	if err := <-done; err != net.ErrClosed {
		t.Fatal(err)
	}
}

// A Read goes over before the old underlay is closed: packet sockets take 50 ms for that.
func TestSetUnderlayClosesLast(t *testing.T) {
	a, b := newWaiting(at(1)), newWaiting(at(2))
	slow := &slowClose{a, t, b.reads}
	v := newVTEP(t, nil, slow)
	done := make(chan error, 1)
	go func() { done <- v.Readers()[0].Read(frame.NewBatch(nil)) }()
	<-a.reads
	check.OK(t, v.SetUnderlay(b))
	check.OK(t, v.Close())
	if err := <-done; err != net.ErrClosed {
		t.Fatal(err)
	}
}

// A slowClose ends the Reads of an underlay after there was one of the next.
type slowClose struct {
	*waiting
	t    *testing.T
	next chan struct{}
}

func (u *slowClose) Close() error {
	select {
	case <-u.next:
	case <-time.After(5 * time.Second):
		u.t.Error("the Read waits for Close")
	}
	return u.waiting.Close()
}

// The new underlay is in the groups of the open VNIs, before it is used.
func TestSetUnderlayGroups(t *testing.T) {
	old := &groupFake{fake: fake4()}
	v := newVTEP(t, nil, old)
	flood(t, v, 1, groupAt(1), groupAt(2))
	flood(t, v, 2, groupAt(2), at(1))
	flood(t, v, 3, groupAt(3))
	v.Control().Shut(3)
	old.log = nil
	failing := &groupFake{fake: fakeAt(at(9)), fail: groupAt(2).Addr()}
	if err := v.SetUnderlay(failing); err == nil || !strings.Contains(err.Error(), "239.0.0.2: no room") || failing.closed != 0 || old.closed != 0 {
		t.Error(err)
	}
	failing.did(t, "join 239.0.0.1", "leave 239.0.0.1")
	u := &groupFake{fake: fakeAt(at(9))}
	check.OK(t, v.SetUnderlay(u))
	u.did(t, "join 239.0.0.1", "join 239.0.0.2")
	old.did(t)
	v.Control().Shut(1)
	u.did(t, "leave 239.0.0.1")
}

// A flood list leaves out the address that is our own now, and no other: in the list given
// to all members alike, the old one is another's again.
func TestSetUnderlayFlood(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	old := local4
	flood(t, v, 1, at(1), old, at(2), at(3))
	flood(t, v, 2, at(1), at(3))
	flood(t, v, 3, old) // nobody else yet
	lists := func(want ...[]netip.AddrPort) {
		t.Helper()
		for i, w := range want {
			check.Slice(t, fmt.Sprintf("VNI %d", i+1), v.Flood(frame.VNI(i+1)), w)
		}
	}
	type list = []netip.AddrPort
	lists(list{at(1), at(2), at(3)}, list{at(1), at(3)}, nil)
	check.OK(t, v.SetUnderlay(fakeAt(at(2))))
	lists(list{at(1), old, at(3)}, list{at(1), at(3)}, list{old})
	check.OK(t, v.SetUnderlay(fakeAt(at(3))))
	lists(list{at(1), old, at(2)}, list{at(1)}, list{old})
	check.OK(t, v.SetUnderlay(fakeAt(old)))
	lists(list{at(1), at(2), at(3)}, list{at(1), at(3)}, nil)
	// No peer is held by a list that does not have it.
	check.OK(t, v.SetFlood(1))
	check.OK(t, v.SetFlood(2))
	check.OK(t, v.SetFlood(3))
	for vni := range uint32(4) {
		v.Control().Shut(vni)
	}
	check.Equal(t, "networks are left", v.networks.Len(), 0)
	for h := range v.hops.all {
		check.True(t, h.refs == 0 && !h.listed(), "%v: %d references", h.to.Load()[0], h.refs)
	}
}

// Ports that SetPeers and AddPeer have set are not undone, and last no longer than before.
func TestSetUnderlayPorts(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	port := func(a netip.AddrPort, port uint16) netip.AddrPort { return netip.AddrPortFrom(a.Addr(), port) }
	check.OK(t, v.SetPeers([]PeerConfig{{Address: at(1).Addr(), Port: 5000}}))
	flood(t, v, 1, port(at(1), 0), port(at(2), 0), port(at(3), 6000), local4)
	addPeer(t, v, port(at(2), 7000))
	listed := func(want ...netip.AddrPort) {
		t.Helper()
		if got := v.Flood(1); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	listed(port(at(1), 5000), port(at(2), 7000), port(at(3), 6000))
	check.OK(t, v.SetUnderlay(fakeAt(at(9))))
	listed(port(at(1), 5000), port(at(2), 7000), port(at(3), 6000), local4)
	check.OK(t, v.SetUnderlay(fakeAt(at(3))))
	listed(port(at(1), 5000), port(at(2), 7000), local4)
	check.OK(t, v.SetPeers(nil))
	listed(at(1), port(at(2), 7000), local4)
	check.OK(t, v.SetUnderlay(fakeAt(local4)))
	listed(at(1), port(at(2), 7000), port(at(3), 6000))
}

// On an error nothing has changed.
func TestSetUnderlayErrors(t *testing.T) {
	first := fake4()
	v := newVTEP(t, nil, first)
	flood(t, v, vni, at(1), at(7))
	two := &twoQueues{fakeAt(at(7))}
	for want, u := range map[string]Underlay{
		"is nil":                         (*fake)(nil),
		"no underlay of this address fa": fake6(),
		"has 2 Readers: must be 1":       two,
		"is its underlay already":        first,
		"Config.Type":                    fakeAt(netip.AddrPortFrom(at(7).Addr(), 0)),
		"invalid":                        fakeAt(netip.AddrPort{}),
	} {
		check.ErrorHas(t, v.SetUnderlay(u), "vtep: SetUnderlay: ", want)
	}
	if fs := first.hear(t, v.Readers()[0], first.local, vx(vni, inner(1))); fs[0].Drop != frame.OwnAddress || len(v.Flood(vni)) != 2 || first.closed+two.closed != 0 {
		t.Errorf("%v, flood %v", fs[0].Drop, v.Flood(vni))
	}
	check.OK(t, v.Close())
	if err := v.SetUnderlay(fakeAt(at(7))); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if err := newVTEP(t, &Config{Type: encap.TypeIPIP}, raw4()).SetUnderlay(fake4()); err == nil {
		t.Error("UDP for IP-in-IP")
	}
}

// An underlay without a number for the old address is not used at all: no Writer goes over to it meanwhile.
func TestSetUnderlayFull(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	for vni := range frame.VNI(1000) {
		flood(t, v, vni, at(1), at(9))
	}
	flood(t, v, 1000, at(1), local4)
	one := addPeer(t, v, at(1))
	v.hops.next = 1<<16 - 1
	u := &watched{fake: fakeAt(at(9))}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for w := v.Writer(0); ; {
			select {
			case <-stop:
				return
			default:
				_ = w.Write(out(one, 1))
			}
		}
	}()
	for range 20 {
		check.ErrorIs(t, "no peer number", v.SetUnderlay(u), ErrFull)
	}
	close(stop)
	<-done
	if n := u.senders.Load(); n != 0 || len(v.Flood(7)) != 2 || len(v.Flood(1000)) != 1 || u.closed != 0 {
		t.Errorf("%d Writers went over; flood lists %v, %v", n, v.Flood(7), v.Flood(1000))
	}
}

// A watched counts its Senders.
type watched struct {
	*fake
	senders atomic.Int32
}

func (u *watched) Sender(w int) frame.Sender { u.senders.Add(1); return u.fake }

type twoQueues struct{ *fake }

func (u twoQueues) Readers() []frame.Reader { return []frame.Reader{u, u} }
