package vtep

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// drops has the VTEP read one packet from each address for each VNI, all in one batch, and
// returns why they were dropped.
func drops(t *testing.T, u *fake, r frame.Reader, vnis []frame.VNI, from ...netip.AddrPort) (got []frame.Reason) {
	t.Helper()
	for _, a := range from {
		for _, n := range vnis {
			u.in = append(u.in, packetIn{src: endpoint(t, a), data: vx(n, inner(1))})
		}
	}
	b := frame.NewBatch(nil)
	check.OK(t, r.Read(b))
	for i := range b.Frames {
		got = append(got, b.Frames[i].Drop)
	}
	return got
}

func TestListedPerVNI(t *testing.T) {
	const no, ok, none = frame.UnknownPeer, frame.NotDropped, frame.UnknownVNI
	u := fake4()
	v := newVTEP(t, &Config{Peers: ListedPerVNI}, u)
	check.OK(t, v.Control().Open(100))
	check.OK(t, v.Control().Open(200))
	r := v.Readers()[0]
	vnis := []frame.VNI{100, 200, 300}
	want := func(what string, want ...frame.Reason) {
		t.Helper()
		check.Slice(t, what, drops(t, u, r, vnis, at(1), at(2), at(3)), want)
	}
	want("nobody", no, no, no, no, no, no, no, no, no)
	flood(t, v, 100, at(1))
	flood(t, v, 200, at(2))
	want("flood lists", ok, no, none, no, ok, none, no, no, no)
	check.OK(t, v.Allow(100, at(2), at(2), local4, netip.AddrPortFrom(at(3).Addr(), 0)))
	want("allowed", ok, no, none, ok, ok, none, ok, no, none)
	check.Slice(t, "allowed are", v.Allowed(100), []netip.AddrPort{at(2), at(3)})
	flood(t, v, 100, at(3), at(1))
	v.Disallow(100, at(2), at(3), at(9), netip.AddrPort{})
	v.Disallow(999, at(2))
	want("disallowed", ok, no, none, no, ok, none, ok, no, none)
	check.OK(t, v.SetFlood(100))
	check.OK(t, v.SetFlood(200))
	want("emptied", no, no, no, no, no, no, no, no, no)

	// AddPeer lists a peer for no VNI.
	addPeer(t, v, at(1))
	want("AddPeer", no, no, none, no, no, no, no, no, no)
	if st := v.Stats(); st.Learned != 3-1 { // who was listed once waits for Retire
		t.Errorf("%d learned peers", st.Learned)
	}
	// What is left of a VNI goes with its last peer.
	check.OK(t, v.Control().Open(300))
	check.OK(t, v.Allow(300, at(5)))
	v.Control().Shut(300)
	if got := v.Allowed(300); len(got) != 1 {
		t.Errorf("VNI 300, shut: %v are allowed", got)
	}
	v.Disallow(300, at(5))
	if _, there := v.networks.Load(300); there {
		t.Error("VNI 300 is still there")
	}
	for _, err := range []error{v.Allow(1<<24, at(1)), v.Allow(100, at6(1)), v.Allow(100, netip.AddrPort{})} {
		check.True(t, err != nil, "no error")
	}
}

// A peer that is allowed is kept, and forgotten once it is not.
func TestAllowKeepsPeer(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	check.OK(t, v.Control().Open(100))
	check.OK(t, v.Allow(100, at(1)))
	nobody := func(uint16) bool { return false }
	for range 3 {
		if got := v.Control().Retire(nobody); len(got) != 0 {
			t.Errorf("%v retired", got)
		}
	}
	v.Disallow(100, at(1))
	v.Control().Retire(nobody)
	if got := v.Control().Retire(nobody); len(got) != 1 {
		t.Errorf("%v retired", got)
	}
}
