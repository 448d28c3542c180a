package vtep

import (
	"errors"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// A movable is a fake that takes other addresses, except for those that are not its host's.
type movable struct {
	*fake
	absent map[netip.Addr]bool
}

func (m *movable) SetLocal(a netip.Addr) error {
	if m.absent[a] {
		return syscall.EADDRNOTAVAIL
	}
	m.local = netip.AddrPortFrom(a, m.local.Port())
	return nil
}

// After SetLocal packets from the new address are our own, and those from the old one are a
// peer's; peers have the numbers they had.
func TestSetLocal(t *testing.T) {
	u := &movable{fake4(), nil}
	v := newVTEP(t, nil, u, fake6())
	must(t, v.Open(vni))
	old, own := u.local, netip.MustParseAddrPort("192.0.2.9:4789")
	one := addPeer(t, v, at(1))
	r := v.Readers()[0]
	must(t, v.SetLocal(own.Addr()))
	for _, c := range []struct {
		src  netip.AddrPort
		want frame.Reason
	}{{own, frame.OwnAddress}, {old, 0}, {at(1), 0}} {
		if fs := u.hear(t, r, c.src, vx(vni, inner(1))); fs[0].Drop != c.want {
			t.Errorf("from %v: %v, want %v", c.src, fs[0].Drop, c.want)
		}
	}
	if n := addPeer(t, v, at(1)); n != one {
		t.Errorf("the peer is %d, it was %d", n, one)
	}
	if _, err := v.AddPeer(own); err == nil {
		t.Error("the new address is a peer")
	}
	addPeer(t, v, old)
	must(t, v.SetLocal(netip.IPv4Unspecified()))
	if fs := u.hear(t, r, own, vx(vni, inner(1))); fs[0].Drop != 0 {
		t.Errorf("at the wildcard address: %v", fs[0].Drop)
	}
}

// A flood list leaves out the address that is our own now, and no other: in the list given
// to all members alike, the old one is another's again.
func TestSetLocalFlood(t *testing.T) {
	u := &movable{fake4(), nil}
	v := newVTEP(t, nil, u)
	old := u.local
	flood(t, v, 1, at(1), old, at(2), at(3))
	flood(t, v, 2, at(1), at(3))
	flood(t, v, 3, old) // nobody else yet
	check := func(want ...[]netip.AddrPort) {
		t.Helper()
		for i, w := range want {
			if got := v.Flood(frame.VNI(i + 1)); !slices.Equal(got, w) {
				t.Errorf("VNI %d: %v, want %v", i+1, got, w)
			}
		}
	}
	type list = []netip.AddrPort
	check(list{at(1), at(2), at(3)}, list{at(1), at(3)}, nil)
	must(t, v.SetLocal(at(2).Addr()))
	check(list{at(1), old, at(3)}, list{at(1), at(3)}, list{old})
	must(t, v.SetLocal(at(3).Addr()))
	check(list{at(1), old, at(2)}, list{at(1)}, list{old})
	must(t, v.SetLocal(old.Addr()))
	check(list{at(1), at(2), at(3)}, list{at(1), at(3)}, nil)
	// No peer is held by a list that does not have it.
	must(t, v.SetFlood(1))
	must(t, v.SetFlood(2))
	must(t, v.SetFlood(3))
	for vni := range uint32(4) {
		v.Shut(vni)
	}
	if n := v.networks.Len(); n != 0 {
		t.Errorf("%d networks are left", n)
	}
	for h := range v.hops.all {
		if h.refs != 0 || h.listed() {
			t.Errorf("%v: %d references", h.to.Load()[0], h.refs)
		}
	}
}

// On an error nothing has changed.
func TestSetLocalErrors(t *testing.T) {
	u := &movable{fake4(), map[netip.Addr]bool{at(7).Addr(): true}}
	v := newVTEP(t, nil, u)
	must(t, v.Open(vni))
	flood(t, v, vni, at(1), at(7))
	if err := v.SetLocal(at(7).Addr()); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Error(err)
	}
	for _, a := range []netip.Addr{{}, at6(1).Addr()} {
		if err := v.SetLocal(a); err == nil {
			t.Errorf("%v", a)
		}
	}
	if err := newVTEP(t, nil, fake4()).SetLocal(at(1).Addr()); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	if fs := u.hear(t, v.Readers()[0], u.local, vx(vni, inner(1))); fs[0].Drop != frame.OwnAddress || len(v.Flood(vni)) != 2 {
		t.Errorf("%v, flood %v", fs[0].Drop, v.Flood(vni))
	}
}
