package bench

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// turns runs two things alternately, n batches of each, and returns the median time of a
// turn for one frame, of each.
func turns(n, chunk int, one, other func(batches int)) (a, b float64) {
	var took [2][]float64
	for n > 0 {
		k := min(n, chunk)
		for i, f := range []func(int){one, other} {
			start := time.Now()
			f(k)
			took[i] = append(took[i], float64(time.Since(start).Nanoseconds())/float64(k*frame.MaxBatch))
		}
		n -= k
	}
	for i := range took {
		slices.Sort(took[i])
	}
	return took[0][len(took[0])/2], took[1][len(took[1])/2]
}

// An attacker is another port of the segment, that sends at a rate of its own: ordinary
// frames between hosts that are known, or hostile ones.
type attacker struct {
	*rig.Port
	attacks  atomic.Bool
	sent     atomic.Int64
	interval time.Duration // between batches; 0 = as fast as it gets
	next     time.Time
	ordinary func(*frame.Batch)
	hostile  func(*frame.Batch)
}

const (
	strangers = 1 << 20
	own       = 1000 // MACs of the attacker's ordinary frames, and those they are for
)

// newAttacker adds an attacker to a bed whose hosts talk. What it does to them is the
// caller's to say, in hostile.
func newAttacker(tb testing.TB, r *bed, interval time.Duration) *attacker {
	tb.Helper()
	a := &attacker{Port: rig.NewPort(), interval: interval}
	if _, err := r.vsi.Attach(a, 0); err != nil {
		tb.Fatal(err)
	}
	var known [][]byte
	for i := range own {
		known = append(known, rig.Packet(rig.MAC(1, (i*7+3)%own), rig.MAC(2, i), 60))
	}
	a.ordinary = anew(known)
	a.Fill = a.fill
	a.Run(own/frame.MaxBatch + 1)
	return a
}

func (a *attacker) fill(b *frame.Batch) {
	if a.interval > 0 {
		for now := time.Now(); ; now = time.Now() { // busy: a timer is too coarse, and it is the same for both
			if !now.Before(a.next) {
				a.next = now.Add(a.interval)
				break
			}
		}
	}
	a.sent.Add(frame.MaxBatch)
	if a.attacks.Load() {
		a.hostile(b)
	} else {
		a.ordinary(b)
	}
}

// attack sends so many hostile batches.
func (a *attacker) attack(batches int) {
	a.attacks.Store(true)
	a.Run(batches)
}

// newSharedBed is a bed that several workers may send through: its wire counts nothing.
func newSharedBed(tb testing.TB, segment *vswitch.VSIConfig) *bed {
	tb.Helper()
	return newBedOver(tb, nil, segment, func(w *rig.Wire) vtep.Underlay { return shared{w} })
}

type shared struct{ *rig.Wire }

func (shared) Sender(int) frame.Sender { return nowhere{} }

type nowhere struct{}

func (nowhere) Send([]frame.Datagram) error { return nil }

// beside measures a frame of the bed's own port while the attacker attacks, and while it
// sends as many ordinary frames.
func (r *bed) beside(b *testing.B, a *attacker) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	var stop atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !stop.Load() {
			a.Run(16)
		}
	}()
	var sent [2]int64
	var took [2]time.Duration
	phase := func(attacks bool) func(int) {
		i := map[bool]int{true: 1}[attacks]
		return func(n int) {
			a.attacks.Store(attacks)
			was, start := a.sent.Load(), time.Now()
			r.port.Run(n)
			sent[i] += a.sent.Load() - was
			took[i] += time.Since(start)
		}
	}
	r.port.Fill = anew(r.port.Packets)
	b.ReportAllocs()
	b.ResetTimer()
	ordinary, attacked := turns(b.N/frame.MaxBatch+1, 4000, phase(false), phase(true))
	b.StopTimer()
	stop.Store(true)
	<-ended
	b.ReportMetric(attacked, "ns/op")
	b.ReportMetric(attacked/ordinary, "x-ordinary")
	for i, unit := range []string{"ordinary-frames/s", "hostile-frames/s"} { // the same, or the ratio means nothing
		b.ReportMetric(float64(sent[i])/took[i].Seconds(), unit)
	}
}
