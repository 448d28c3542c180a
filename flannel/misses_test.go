package flannel

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// A packet without a neighbour gets a row, as long as there is a lease.
func TestMisses(t *testing.T) {
	for g := 1; g <= 2; g++ {
		m, to := mapper(t, fmt.Sprintf(vxlanNetwork, ""), func(c *MapperConfig) { c.Generation = g }), model()
		now := time.Unix(1000, 0)
		pod := netip.MustParseAddr("10.3.2.7")
		if m.Neighbour(pod, now) {
			t.Error("answered without a lease")
		}
		m.Set(record("10.3.2.0-24", 5, vxlan("192.0.2.2", 2)))
		for _, no := range []string{"10.3.3.7", "192.0.2.7", "fc00:3:0:2::7"} {
			if m.Neighbour(netip.MustParseAddr(no), now) {
				t.Errorf("%s is answered", no)
			}
		}
		if !m.Neighbour(pod, now) || !m.Neighbour(pod, now.Add(time.Second)) {
			t.Error("not answered")
		}
		want := func(what, neighbour string, n int) {
			t.Helper()
			got := rows(t, m, to)
			if len(got) != n || neighbour != "" && !slices.Contains(got, neighbour) {
				t.Errorf("generation %d: %s: %v, want %d with %s", g, what, got, n, neighbour)
			}
		}
		want("asked", "mac 02:00:00:00:00:02 vni 1 ip 10.3.2.7 vtep 192.0.2.2:0", 2)
		m.Set(record("10.3.2.4-30", 6, vxlan("192.0.2.3", 3)))
		want("a younger lease has a part", "mac 02:00:00:00:00:02 vni 1 ip 10.3.2.7 vtep 192.0.2.2:0", 2)
		m.Delete("10.3.2.4-30")
		m.Set(record("10.3.2.4-30", 4, vxlan("192.0.2.3", 3)))
		want("an older lease has it", "mac 02:00:00:00:00:03 vni 1 ip 10.3.2.7 vtep 192.0.2.3:0", 3)
		m.Delete("10.3.2.4-30")
		want("which has gone", "mac 02:00:00:00:00:02 vni 1 ip 10.3.2.7 vtep 192.0.2.2:0", 2)
		m.Set(record("10.3.2.0-24", 5, vxlan("192.0.2.9", 9)))
		want("another VTEP", "mac 02:00:00:00:00:09 vni 1 ip 10.3.2.7 vtep 192.0.2.9:0", 2)
		if n := m.Forget(now.Add(time.Second)); n != 1 {
			t.Errorf("%d left", n)
		}
		if n := m.Forget(now.Add(2 * time.Second)); n != 0 {
			t.Errorf("%d left", n)
		}
		want("forgotten", "", 1)
		if got := m.MAC(mac(9), now); got != (g == 1) {
			t.Errorf("generation %d: a MAC: %v", g, got)
		}
		m.Neighbour(pod, now)
		m.Delete("10.3.2.0-24")
		want("without a lease", "", 0)
		m.Set(record("10.3.2.0-24", 5, vxlan("192.0.2.2", 2)))
		for i := range 3 * maxAsked {
			m.Neighbour(netip.AddrFrom4([4]byte{10, 3, 2, byte(i)}), now)
		}
		m.Set(record("10.3.128.0-17", 5, vxlan("192.0.2.3", 3)))
		for i := range 3 * maxAsked {
			m.Neighbour(netip.AddrFrom4([4]byte{10, 3, 128 + byte(i>>8), byte(i)}), now)
		}
		if len(m.asked) != maxAsked || len(m.queue) > 2*maxAsked+1 {
			t.Errorf("%d asked, %d in the queue", len(m.asked), len(m.queue))
		}
	}
	m := mapper(t, fmt.Sprintf(vxlanNetwork, ""), nil)
	m.Set(record("10.3.2.0-24", 5, vxlan("192.0.2.2", 2)))
	if m.Neighbour(netip.MustParseAddr("10.3.2.7"), time.Time{}) || m.MAC(mac(2), time.Time{}) {
		t.Error("generation 3 answers misses")
	}
}

// Of what is no longer needed in the queue, nothing is taken out with what is: each row is forgotten in its time.
func TestMissesAgain(t *testing.T) {
	m, now := mapper(t, fmt.Sprintf(vxlanNetwork, ""), func(c *MapperConfig) { c.Generation = 2 }), time.Unix(1000, 0)
	m.Set(record("10.3.2.0-24", 5, vxlan("192.0.2.2", 2)))
	m.Neighbour(netip.MustParseAddr("10.3.2.7"), now)
	for range 2 * maxAsked {
		m.Neighbour(netip.MustParseAddr("10.3.2.8"), now.Add(time.Second)) // the switch has lost it
	}
	if n := m.Forget(now.Add(time.Second)); n != 1 {
		t.Errorf("%d left, want one", n)
	}
	if n := m.Forget(now.Add(2 * time.Second)); n != 0 {
		t.Errorf("%d left, want none", n)
	}
}
