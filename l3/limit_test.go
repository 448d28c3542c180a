package l3

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// One sender gets its share of a second, all of them together theirs, and the next
// second is a new one.
func TestRates(t *testing.T) {
	s := newTooBig(t, &TooBigConfig{PerSender: 3, Total: 5})
	ask := func(host byte, vni frame.VNI, now frame.Tick) frame.Verdict {
		f := entered(src4(t, 10, 0, 0, host))
		f.VNI, f.From = vni, frame.NewDest(uint16(8*vni)+uint16(host), 0)
		return s.Process(&f, frame.At{MTU: 1464, Tick: now})
	}
	want := func(sent, limited uint64) {
		t.Helper()
		if st := s.Stats(); st.Sent4 != sent || st.Limited != limited {
			t.Errorf("sent %d, limited %d, want %d, %d", st.Sent4, st.Limited, sent, limited)
		}
	}
	for i := range 5 {
		if v := ask(1, 1, 0); (v == frame.Reply) != (i < 3) {
			t.Errorf("frame %d: %v", i, v)
		}
	}
	want(3, 2)
	ask(1, 2, 0) // the same address in another network
	ask(2, 1, 0)
	want(5, 2)
	ask(3, 1, 0) // beyond the total
	want(5, 3)
	for range 5 {
		ask(1, 1, 1)
	}
	want(8, 5)
	ask(2, 1, 0) // a worker that still lives in the second before counts in this one
	want(9, 5)
	for range 5 {
		ask(2, 1, 0)
	}
	want(10, 9)
}

func TestDefaultRates(t *testing.T) {
	s := newTooBig(t, nil)
	for i := range 2000 {
		f := entered(src4(t, 10, 0, byte(i/20), 1))
		s.Process(&f, frame.At{MTU: 1464})
	}
	// 100 senders, who are at one port, which gets half of the total.
	if st := s.Stats(); st.Sent4 != DefaultTotal/2 || st.Sent4+st.Limited != 2000 {
		t.Errorf("%+v", st)
	}
}
