package flannel

import (
	"fmt"
	"testing"
	"time"
)

// Of more leases than a node keeps, those that had no place get one when others go: the plane reads all again, and calls that no outage.
func TestTooMany(t *testing.T) {
	bubble(t, `{"Network": "10.0.0.0/8", "Backend": {"Type": "vxlan"}}`, func(t *testing.T, m *Memory) {
		for i := range maxLeases {
			m.Put(fmt.Sprintf("none %d", i), []byte("{}"), 0)
		}
		s := run(t, m, "192.0.2.1", nil)
		s.subnet()
		a := vxlanAttrs("192.0.2.9", 9)
		m.Put("10.9.9.0-24", a.Value(), 0)
		time.Sleep(time.Minute)
		if st := s.Status(); st.Leases != maxLeases || st.Refused[TooMany] != 1 {
			t.Errorf("%d leases, refused %v", st.Leases, st.Refused)
		}
		m.Remove("none 7")
		time.Sleep(time.Minute)
		if st := s.Status(); st.Leases != maxLeases || st.Refused[TooMany] != 0 || !st.Stale.IsZero() || st.Snapshots != 2 {
			t.Errorf("%d leases, refused %v, stale %v, %d snapshots", st.Leases, st.Refused, st.Stale, st.Snapshots)
		}
		s.want("the youngest", "10.9.9.0/24")
	})
}
