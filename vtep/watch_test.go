package vtep

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// TestWatchers: each watcher is told until it ends, whoever else comes and goes.
func TestWatchers(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	var a, b int
	endA := v.Watch(func() { a++ })
	endB := v.Watch(func() { b++ })
	check.OK(t, v.Control().Open(vni))
	if a != 1 || b != 1 {
		t.Errorf("told %d and %d times", a, b)
	}
	endA()
	endA()
	v.Control().Shut(vni)
	if a != 1 || b != 2 {
		t.Errorf("after the end of one: told %d and %d times", a, b)
	}
	endB()
	check.OK(t, v.Control().Open(vni))
	if a != 1 || b != 2 {
		t.Errorf("after the end of both: told %d and %d times", a, b)
	}
}

// TestSamePathMTU: an ICMP error that says what is known is no change: anybody on the path could void all Paths, time and again.
func TestSamePathMTU(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	check.Must(v.AddPeer(at(1)))(t)
	n := 0
	v.Watch(func() { n++ })
	for range 5 {
		u.path(endpoint(t, at(1)), 1300, nil)
	}
	if n != 1 {
		t.Errorf("%d changes, there was one", n)
	}
}

// TestEvictedIsNotHeard: a learned peer that another has replaced sends as a new peer, so what came from the old one is no answer
// any more.
func TestEvictedIsNotHeard(t *testing.T) {
	u := fake4()
	v := newVTEP(t, &Config{MaxPeers: 4}, u)
	check.OK(t, v.Control().Open(vni))
	from := func(net, host byte) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, net, host}), 4789)
	}
	r := v.Readers()[0]
	for i := range 4 {
		u.hear(t, r, from(1, byte(i+1)), vx(vni, inner(1)))
	}
	heard := func(peer uint16) bool { p, err := v.Path(peer, vni); return err == nil && p.Heard }
	n, told := 0, 0
	v.Watch(func() { told++ })
	u.hear(t, r, from(2, 1), vx(vni, inner(1))) // replaces one of the other prefix
	for peer := range uint16(4) {
		if heard(peer + 1) {
			n++
		}
	}
	if n != 3 || told != 1 {
		t.Errorf("%d of 4 peers are heard after one was replaced; told of %d changes", n, told)
	}
}
