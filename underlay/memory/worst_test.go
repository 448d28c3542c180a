package memory

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

// A member that reads nothing fills its inbox: another has what is sent to it.
func TestWorstInbox(t *testing.T) {
	run := func(attack bool) (got int) {
		n := NewNetwork(nil)
		defer n.Close()
		from := member(t, n, "192.0.2.1:1", nil)
		stuck, good := member(t, n, "192.0.2.2:1", &Config{Inbox: 16}), member(t, n, "192.0.2.3:1", &Config{Inbox: 16})
		for range 600 {
			for k := 0; attack && k < 16; k++ {
				send(t, from, to("x", 0, endpoint(t, stuck.LocalAddr())))
			}
			for range 16 {
				send(t, from, to("x", 0, endpoint(t, good.LocalAddr())))
			}
			got += len(receive(t, good, 16))
		}
		if o := n.Stats().Overflow; attack && o < 9000 {
			t.Errorf("%d lost: no attack", o)
		}
		return got
	}
	worst.Kept(t, "datagrams queued at an underlay", run(false), run(true))
}

// A member sends more over a long link than may be under way there: what others send arrives, and
// nothing is left behind.
func TestWorstFlight(t *testing.T) {
	run := func(attack bool) (got int) {
		synctest.Test(t, func(t *testing.T) {
			n := NewNetwork(&NetworkConfig{Link: Link{Delay: 1500 * time.Millisecond, Reorder: 0.1}})
			n.way = 64
			bad, from, good := member(t, n, "192.0.2.1:1", nil), member(t, n, "192.0.2.2:1", nil), member(t, n, "192.0.2.3:1", nil)
			for range 600 {
				for k := 0; attack && k < 100; k++ {
					send(t, bad, to("x", 0, endpoint(t, from.LocalAddr())))
				}
				for range 16 {
					send(t, from, to("x", 0, endpoint(t, good.LocalAddr())))
				}
				time.Sleep(time.Second)
				got += len(drain(good))
				drain(from)
				if f := n.Stats().InFlight; f > 2*n.way {
					t.Fatalf("%d under way", f)
				}
			}
			if o := n.Stats().Overflow; attack && o < 9000 {
				t.Errorf("%d lost: no attack", o)
			}
			time.Sleep(time.Minute)
			got += len(drain(good))
			for _, st := range n.links {
				if st.way != 0 {
					t.Errorf("%d under way in the end", st.way)
				}
			}
			n.Close()
		})
		return got
	}
	worst.Kept(t, "datagrams in flight in memory", run(false), run(true))
}

// drain returns what waits at a member, and forgets it.
func drain(m *Underlay) (all []string) {
	for _, box := range m.boxes {
		for box.Len() > 0 {
			b, _, err := box.Take(context.Background())
			if err != nil {
				break
			}
			all = append(all, string(b))
		}
	}
	return all
}
