package vtep

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A setting is of an address: whoever lists or learns the peer, and whatever number it has.
func TestSetPeersLastsByAddress(t *testing.T) {
	u := fake4()
	v := newVTEP(t, &Config{Header: Header{TTL: 9, TOS: 16}}, u)
	check.OK(t, v.Control().Open(vni))
	r, w := v.Readers()[0], v.Writer(0)
	want := func(what string, peer uint16, port uint16, ttl, tos uint8) {
		t.Helper()
		u.sent = nil
		check.OK(t, w.Write(out(peer, 1)))
		if s := u.sent[0]; len(s.to) != 1 || s.to[0].Addr() != at(1).Addr() || s.to[0].Port() != port || s.ttl != ttl || s.tos != tos {
			t.Errorf("%s: %+v, want port %d, TTL %d, TOS %d", what, s, port, ttl, tos)
		}
	}
	one := at(1).Addr()
	check.OK(t, v.SetPeers([]PeerConfig{{Address: one, Port: 8472, Header: Header{TTL: 3}}, {Address: at(2).Addr()}}))
	for i := range 3 {
		n := u.hear(t, r, at(1), vx(vni, inner(1)))[0].From.Peer()
		want(fmt.Sprint("learned ", i), n, 8472, 3, 16)
		if got := addPeer(t, v, at(1)); got != n {
			t.Fatal("another number")
		}
		want("listed, with another port", n, 8472, 3, 16)
		v.DeletePeer(n)
		gone := v.Control().Retire(func(uint16) bool { return false })
		check.Need(t, slices.Equal(gone, []uint16{n}), "%v", gone)
		v.Control().Free(gone)
	}
	flood(t, v, vni, netip.AddrPortFrom(one, 0))
	want("flooded", 0, 8472, 3, 16)

	hop := check.Must(v.NextHop(netip.AddrPortFrom(one, 0), 7))(t)
	far := check.Must(v.NextHop(netip.AddrPortFrom(one, 5555), 7))(t)
	want("a next hop", hop, 8472, 3, 16)
	want("a next hop with a port of its own", far, 5555, 3, 16)

	check.OK(t, v.SetPeers([]PeerConfig{{Address: one, Port: 99, Header: Header{TOS: TOSZero}}}))
	want("flooded, changed", 0, 99, 9, 0)
	want("a next hop, changed", hop, 99, 9, 0)
	want("a next hop with a port of its own, changed", far, 5555, 9, 0)
	if got := v.Flood(vni); len(got) != 1 || got[0].Port() != 99 {
		t.Errorf("the flood list is %v", got)
	}

	check.OK(t, v.SetPeers(nil))
	want("flooded, taken back", 0, 4789, 9, 16)
	want("a next hop, taken back", hop, 4789, 9, 16)
	check.OK(t, v.SetFlood(vni, netip.AddrPortFrom(one, 1234)))
	check.OK(t, v.SetPeers([]PeerConfig{{Address: one, Port: 99}}))
	want("a port of its own", 0, 99, 9, 16)
	if n := v.varied.Load(); n != 0 {
		t.Errorf("%d hops have a header or path MTU of their own: they differ in the port alone", n)
	}
	check.OK(t, v.SetPeers(nil))
	want("the port it was listed with", 0, 1234, 9, 16)
}

// A peer with another port also gets flooded frames there.
func TestAddPeerAimsFloodLists(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	flood(t, v, vni, at(1), at(2))
	addPeer(t, v, netip.AddrPortFrom(at(2).Addr(), 5555))
	check.OK(t, v.Writer(0).Write(out(0, 1)))
	if got := u.sent[0].to; len(got) != 2 || got[0] != at(1) || got[1].Port() != 5555 {
		t.Errorf("%v", got)
	}
}

// What a VTEP of both families refuses, and that nothing has changed then.
func TestSetPeersErrors(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	n := addPeer(t, v, at(1))
	good := PeerConfig{Address: at(1).Addr(), Port: 77}
	check.OK(t, v.SetPeers([]PeerConfig{good}))
	ipip := ipipVTEP(t, Config{}, raw4())
	check.OK(t, ipip.SetPeers([]PeerConfig{{Address: at(1).Addr(), Header: Header{TTL: 5}}}))
	for want, f := range map[string]func() error{
		"PeerConfig.Address: an address is required": func() error { return v.SetPeers([]PeerConfig{{}}) },
		"Address: 239.0.0.1":                         func() error { return v.SetPeers([]PeerConfig{{Address: netip.MustParseAddr("239.0.0.1")}}) },
		"no underlay of this address family":         func() error { return v.SetPeers([]PeerConfig{{Address: at6(1).Addr()}}) },
		"listed twice": func() error {
			return v.SetPeers([]PeerConfig{{Address: at(1).Addr(), Port: 78}, {Address: netip.MustParseAddr("::ffff:" + at(1).Addr().String())}})
		},
		"PeerConfig.Header.TTL: 300":    func() error { return v.SetPeers([]PeerConfig{{Address: at(1).Addr(), Header: Header{TTL: 300}}}) },
		"IP-in-IP has no ports":         func() error { return ipip.SetPeers([]PeerConfig{good}) },
		"peer " + at(3).Addr().String(): func() error { return v.SetPeers([]PeerConfig{{Address: at(3).Addr(), Header: Header{DF: 9}}}) },
	} {
		check.ErrorHas(t, f(), "vtep: peer ", want)
		u.sent = nil
		check.OK(t, v.Writer(0).Write(out(n, 1)))
		if got := u.sent[0].to[0].Port(); got != 77 {
			t.Errorf("%s: port %d", want, got)
		}
	}
}

// Each family has its underlay, and settings go with both.
func TestSetPeersBothFamilies(t *testing.T) {
	four, six := fake4(), fake6()
	v := newVTEP(t, nil, four, six)
	flood(t, v, vni, at(1), at6(1))
	check.OK(t, v.SetPeers([]PeerConfig{{Address: at(1).Addr(), Port: 1, Header: Header{TTL: 3}}, {Address: at6(1).Addr(), Port: 2, Header: Header{TTL: 4}}}))
	check.OK(t, v.Writer(0).Write(out(0, 1)))
	for i, u := range []*fake{four, six} {
		if s := u.sent[0]; len(u.sent) != 1 || s.ttl != uint8(3+i) || s.to[0].Port() != uint16(1+i) {
			t.Errorf("%+v", u.sent)
		}
	}
}

// Settings change while peers are learned and frames are sent: each datagram has all of one
// setting's header.
func TestSetPeersUnderTraffic(t *testing.T) {
	u := fake4()
	u.send = func(ds []frame.Datagram) error {
		for i := range ds {
			if d := &ds[i]; d.TTL != 64 && d.TTL != d.TOS {
				t.Errorf("TTL %d, TOS %d", d.TTL, d.TOS)
			}
		}
		return nil
	}
	v := newVTEP(t, nil, u)
	flood(t, v, vni, at(1), at(2), at(3))
	var all sync.WaitGroup
	all.Go(func() {
		w := v.Writer(0)
		for range 2000 {
			if err := w.Write(append(out(0, 2), out(1, 2)...)); err != nil {
				t.Error(err)
			}
		}
	})
	all.Go(func() {
		r := v.Readers()[0]
		for i := range 500 {
			u.hear(t, r, at(i%50+1), vx(vni, inner(1)))
		}
	})
	for i := range 500 {
		var list []PeerConfig
		for k := range i % 60 {
			list = append(list, PeerConfig{Address: at(k + 1).Addr(), Port: uint16(i), Header: Header{TTL: Value(4 * (i%9 + 1)), TOS: Value(4 * (i%9 + 1))}})
		}
		check.OK(t, v.SetPeers(list))
	}
	all.Wait()
	check.OK(t, v.SetPeers(nil))
	check.Equal(t, "hops have a header or path MTU of their own", v.varied.Load(), 0)
}
