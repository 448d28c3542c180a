package vtep

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// An underlay that is none is an error, whatever the interface around it holds.
func TestNilUnderlay(t *testing.T) {
	for name, us := range map[string][]Underlay{
		"nil": {nil}, "nil pointer": {(*fake)(nil)}, "the second": {fake4(), (*groupFake)(nil)},
	} {
		v, err := New(nil, us...)
		if v != nil || err == nil || !strings.HasPrefix(err.Error(), "vtep: underlay ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is set for a VNI that nobody attached is an error, and changes nothing: it may be misspelt.
// What is set of one that was attached stays for the next time, and may be taken away at any time.
func TestVNIThatIsNotOpen(t *testing.T) {
	v := newVTEP(t, &Config{Peers: ListedPerVNI}, fake4())
	refused := func(when string) {
		t.Helper()
		for what, err := range map[string]error{"SetFlood": v.SetFlood(vni, at(1)), "Allow": v.Allow(vni, at(1))} {
			if !errors.Is(err, ErrNotOpen) || !strings.HasPrefix(err.Error(), "vtep: VNI 100 is not open; ") {
				t.Errorf("%s: %s: %v", when, what, err)
			}
		}
		if st := v.Stats(); len(st.Peers) != 1 || v.networks.Len() != 1 {
			t.Errorf("%s: %d peers, %d networks", when, len(st.Peers), v.networks.Len())
		}
	}
	flood(t, v, 7, at(7))
	refused("never open")
	flood(t, v, vni, at(1), at(2))
	check.OK(t, v.Allow(vni, at(3)))
	v.Control().Shut(vni)
	for what, err := range map[string]error{"SetFlood": v.SetFlood(vni, at(9)), "Allow": v.Allow(vni, at(9))} {
		check.True(t, errors.Is(err, ErrNotOpen), "shut: %s: %v", what, err)
	}
	check.OK(t, v.Control().Open(vni))
	if got := v.Flood(vni); !slices.Equal(got, []netip.AddrPort{at(1), at(2)}) || len(v.Allowed(vni)) != 1 {
		t.Errorf("open again: %v, %v", got, v.Allowed(vni))
	}
	v.Control().Shut(vni)
	check.OK(t, v.SetFlood(vni))
	v.Disallow(vni, at(3))
	for range 2 { // one that was heard of at the last Retire waits for the next
		v.Control().Free(v.Control().Retire(func(uint16) bool { return false }))
	}
	refused("emptied")
}
