//go:build !race

package icmperr

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// No answer, and no refusal, allocates.
func TestAllocations(t *testing.T) {
	s := newTooBig(MaxRate, MaxRate)
	for name, in := range map[string][]byte{
		"IPv4": udp4(t, 1500), "IPv6": udp6(t, 1500), "tagged": udp4(t, 1500, 7), "an ICMP error": icmp4(t, 3),
	} {
		f := entered(in)
		buf := f.Bytes()
		if n := testing.AllocsPerRun(100, func() {
			copy(buf, in)
			f.Extend(len(buf) - f.Len())
			if s.Process(&f, frame.At{MTU: 1464}) == frame.Continue {
				t.Fatal("not asked")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if st := s.Stats(); st.Sent4 != 202 || st.Sent6 != 101 || st.ICMPError != 101 {
		t.Errorf("%+v", st)
	}
}
