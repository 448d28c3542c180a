//go:build linux && !race

package underlay_test

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
	"github.com/vxswitch/vxswitch/underlay"
)

// Datagrams and runs from two groups, of an underlay that hears itself.
func TestGroupAllocs(t *testing.T) {
	underlaytest.InNamespace(t, func(t *testing.T) {
		u := listen(t, "10.9.0.1:4789", &underlay.UDPConfig{Control: loopGroups})
		var to2 []frame.Endpoint
		for _, g := range []string{"239.1.1.1", "239.1.1.2"} {
			a := netip.MustParseAddr(g)
			if err := u.Join(a); err != nil {
				t.Error(err)
				return
			}
			to2 = append(to2, underlaytest.Endpoint(t, netip.AddrPortFrom(a, 4789)))
		}
		var ds []frame.Datagram
		for i := range 4 {
			ds = append(ds, underlaytest.To("lone", uint16(i<<14), to2...))
		}
		s, r, batch := u.Sender(0), u.Readers()[1], frame.NewBatch(new(frame.Arenas))
		if n := testing.AllocsPerRun(100, func() {
			if err := s.Send(ds); err != nil {
				t.Error(err)
			}
			for n := 0; n < 8; n += len(batch.Frames) {
				if err := r.Read(batch); err != nil {
					t.Error(err)
					return
				}
			}
		}); n != 0 {
			t.Errorf("%v allocations for a Send and its Reads", n)
		}
	})
}
