package vtep

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// spread returns where each of n flows to a group goes.
func spread(t *testing.T, v *VTEP, u *fake, group uint16, n int) (to []netip.AddrPort) {
	t.Helper()
	w := v.Writer(0)
	for _, o := range out(group, n) {
		u.sent = nil
		outs := []frame.Out{o}
		check.OK(t, w.Write(outs))
		check.Need(t, outs[0].Drop == frame.NotDropped && len(u.sent) == 1 && len(u.sent[0].to) == 1, "dropped as %v, sent %v", outs[0].Drop, u.sent)
		to = append(to, u.sent[0].to[0])
	}
	return to
}

// A group that loses a peer, or gets one, keeps its number; only the flows of that peer move.
func TestSetGroup(t *testing.T) {
	const flows = 1000
	u := fake4()
	v := newVTEP(t, nil, u)
	changes := 0
	defer v.Watch(func() { changes++ })()
	var peers []uint16
	for i := range 3 {
		peers = append(peers, addPeer(t, v, at(i+1)))
	}
	g := check.Must(v.Group(peers...))(t)
	all := spread(t, v, u, g, flows)
	moved := func(what string, peers []uint16, without netip.AddrPort) {
		t.Helper()
		was := changes
		check.OK(t, v.SetGroup(g, peers...))
		check.True(t, changes > was, "%s: nobody was told", what)
		for i, to := range spread(t, v, u, g, flows) {
			if to == without || all[i] != without && to != all[i] {
				t.Fatalf("%s: flow %d goes to %v, not to %v", what, i, to, all[i])
			}
		}
	}
	moved("without the second", []uint16{peers[0], peers[2]}, at(2))
	check.True(t, !v.Leads(g, peers[1]) && v.Leads(g, peers[0]), "who may send")
	check.Equal(t, "the group is", v.PeerName(g), "group of 198.51.0.1:4789, 198.51.0.3:4789")
	moved("with all", peers, netip.AddrPort{})
	for _, n := range []uint16{0, 99, peers[0]} {
		check.ErrorHas(t, v.SetGroup(n, peers...), fmt.Sprintf("vtep: group: %d: must be a number of Group", n))
	}
	check.ErrorHas(t, v.SetGroup(g), "vtep: group: at least one peer is needed")
	check.ErrorHas(t, v.SetGroup(g, peers[0], 99), "vtep: group: there is no peer 99")
	check.ErrorHas(t, v.SetGroup(g, g), fmt.Sprintf("vtep: group: there is no peer %d", g))
	check.True(t, slices.Equal(spread(t, v, u, g, flows), all), "an error has moved flows")
	v.DeletePeer(g)
	check.True(t, v.SetGroup(g, peers[0]) != nil, "a group that is deleted was changed")
	v.Close()
	check.True(t, errors.Is(v.SetGroup(g, peers[0]), net.ErrClosed), "after Close")
}

// A peer stays as long as it is in a group, and no longer.
func TestSetGroupHoldsPeers(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	one, two := addPeer(t, v, at(1)), addPeer(t, v, at(2))
	g := check.Must(v.Group(one))(t)
	retire := func() []uint16 { return v.Control().Retire(func(uint16) bool { return true }) }
	check.OK(t, v.SetGroup(g, two, one))
	v.DeletePeer(one)
	v.DeletePeer(two)
	check.True(t, retire() == nil, "a peer of a group was retired")
	check.OK(t, v.SetGroup(g, two))
	check.Slice(t, "retired", retire(), []uint16{one})
	v.DeletePeer(g)
	check.True(t, len(retire()) == 2, "a peer of no group is left")
	check.Equal(t, "learned", v.Stats().Learned, 0)
}

// Events say when all peers of a group are dead, also because the others left.
func TestSetGroupDown(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	one, two := addPeer(t, v, at(1)), addPeer(t, v, at(2))
	g := check.Must(v.Group(one, two))(t)
	check.OK(t, v.SetDown(at(1).Addr(), true))
	var told []frame.EventKind
	v.Control().Tell(func(e frame.Event) {
		if e.Dest.Peer() == g && e.Kind != frame.EventPeerUp {
			told = append(told, e.Kind)
		}
	})
	check.OK(t, v.SetGroup(g, one))
	check.OK(t, v.SetGroup(g, one, two))
	check.Slice(t, "told", told, []frame.EventKind{frame.EventPeerDead, frame.EventPeerAlive})
}

// A group of one peer has the path of the peer, and what is carried counts for it.
func TestPathOfGroup(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	check.OK(t, v.Control().Open(vni))
	one, two := addPeer(t, v, at(1)), addPeer(t, v, at(2))
	g := check.Must(v.Group(one))(t)
	p, of := check.Must(v.Path(g, vni))(t), check.Must(v.Path(one, vni))(t)
	check.Equal(t, "the path goes to", p, of)
	v.Carried(g, frame.Count{}, frame.Count{Frames: 3, Bytes: 300})
	for _, x := range v.Stats().Peers {
		if want := map[uint16]uint64{one: 3}[x.Peer]; x.Tx.Frames != want {
			t.Errorf("peer %d was sent %d frames, want %d", x.Peer, x.Tx.Frames, want)
		}
	}
	check.OK(t, v.SetGroup(g, two, one))
	if _, err := v.Path(g, vni); err != ErrNoPeer {
		t.Errorf("two peers: %v", err)
	}
}

// Writers meet groups in the middle of a change.
func TestSetGroupUnderTraffic(t *testing.T) {
	u := fake4()
	u.send = func([]frame.Datagram) error { return nil }
	v := newVTEP(t, nil, u)
	one, two := addPeer(t, v, at(1)), addPeer(t, v, at(2))
	g := check.Must(v.Group(one, two))(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 2000 {
			check.OK(t, v.SetGroup(g, []uint16{one, two}[i%2]))
		}
	})
	w, outs := v.Writer(0), out(g, 64)
	for range 500 {
		check.OK(t, w.Write(outs))
		for i := range outs {
			check.Need(t, outs[i].Drop == frame.NotDropped, "dropped as %v", outs[i].Drop)
		}
		_, _ = v.MTU(g), v.PeerName(g)
	}
	wg.Wait()
}
