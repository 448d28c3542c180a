package bgp

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// third returns the settings of a speaker that a, one of a pair, may have beside b, and those of a for it.
func third(a Config) (c Config, for3 Peer) {
	for3 = a.Peers[0]
	x := a.RouterID.As4()
	x[3] = 3
	for3.Addr = netip.AddrFrom4(x)
	c = Config{AS: a.AS, RouterID: for3.Addr, Listen: []netip.AddrPort{netip.AddrPortFrom(for3.Addr, for3.Port)}}
	back := for3
	back.Addr, back.Local = a.RouterID, for3.Addr
	c.Peers = []Peer{back}
	return c, for3
}

// of returns how a peer is, with nothing in it if it is none.
func of(b *BGP, addr netip.Addr) (s Status) {
	for _, s := range b.Status() {
		if s.Addr == addr {
			return s
		}
	}
	return s
}

func TestSetPeers(t *testing.T) {
	t.Parallel()
	ca, cb := pair(t, 65000, 65000, nil)
	cc, for3 := third(ca)
	a, ha, _ := start(t, ca)
	b, _, _ := start(t, cb)
	c, hc, _ := start(t, cc)
	both := []Peer{ca.Peers[0], for3}
	b.Advertise(samples()[1])
	c.Advertise(samples()[2])
	a.Advertise(samples()[3])
	set := func(list ...Peer) {
		t.Helper()
		check.OK(t, a.SetPeers(list, 0))
	}
	up := func(addr netip.Addr) {
		t.Helper()
		until(t, addr.String(), func() bool { return of(a, addr).State == "established" && of(a, addr).Routes == 1 })
	}
	up(cb.RouterID)
	if n := ha.count(); n != 1 {
		t.Fatalf("%d routes, though the third is no peer", n)
	}
	set(both...)
	up(cc.RouterID)
	until(t, "ours", func() bool { return hc.count() == 1 })
	since := of(a, cb.RouterID).Since

	other := for3
	other.Hold = 9 * time.Second
	set(ca.Peers[0], other)
	if n := ha.count(); n != 1 {
		t.Errorf("%d routes after the session has ended", n)
	}
	until(t, "the end", func() bool {
		_, err := hc.counts()
		n := (*Notification)(nil)
		return errors.As(err, &n) && n.Code == errCease && n.Subcode == ceaseRemoved
	})
	up(cc.RouterID)

	set(ca.Peers[0])
	if n := ha.count(); n != 1 || of(a, cc.RouterID).State != "" {
		t.Errorf("%d routes, %+v", n, of(a, cc.RouterID))
	}
	time.Sleep(300 * time.Millisecond) // the third tries again, and is turned away
	if _, ok := (*a.peers.Load())[cc.RouterID]; ok || ha.count() != 1 {
		t.Error("the third is still heard")
	}
	if s := of(a, cb.RouterID); s.Since != since {
		t.Errorf("the session that stays is of %v, was of %v", s.Since, since)
	}
	set()
	if n := ha.count(); n != 0 {
		t.Errorf("%d routes without peers", n)
	}
}

// A listener takes the password of a peer that comes later, another one, and none.
func TestSetPassword(t *testing.T) {
	t.Parallel()
	ca, cb := pair(t, 65000, 65000, nil)
	ca.Peers[0].Passive = true
	a, _, _ := start(t, ca)
	b, _, _ := start(t, cb)
	until(t, "without", func() bool { return state(b) == "established" })
	for _, password := range []string{"one", "another", ""} {
		pa, pb := ca.Peers[0], cb.Peers[0]
		pa.Password, pb.Password = password, password
		check.OK(t, errors.Join(a.SetPeers([]Peer{pa}, 0), b.SetPeers([]Peer{pb}, 0)))
		until(t, fmt.Sprintf("%q", password), func() bool { return state(a) == "established" && state(b) == "established" })
	}
}

// Before Run and after it SetPeers starts nothing.
func TestSetPeersApart(t *testing.T) {
	t.Parallel()
	ca, cb := pair(t, 65000, 65000, nil)
	early, err := New(ca)
	check.OK(t, err)
	if err := early.SetPeers(nil, 0); err != nil || len(early.Status()) != 0 {
		t.Error(err, early.Status())
	}
	a, _, stop := start(t, ca)
	b, _, _ := start(t, cb)
	until(t, "session", func() bool { return state(a) == "established" })
	stop()
	if err := a.SetPeers([]Peer{ca.Peers[0]}, 0); err != nil {
		t.Error(err)
	}
	other := ca.Peers[0]
	other.Hold = 9 * time.Second
	if err := a.SetPeers([]Peer{other}, 0); err != nil {
		t.Error(err)
	}
	time.Sleep(200 * time.Millisecond)
	if s := state(b); s == "established" || s == "openconfirm" {
		t.Errorf("%s with a speaker that has ended", s)
	}
}
