package porttest

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/delay"
)

// A faultStream is the frames of one receive queue or one Writer on their way into a
// line.
type faultStream struct {
	f    *Faulty
	dir  int
	line *line
	rng  *rand.Rand
	held *delay.Item[passage] // the frame that leaves behind the next; nil = none
}

func (f *Faulty) stream(dir, number int, l *line) *faultStream {
	return &faultStream{f: f, dir: dir, line: l, rng: rand.New(rand.NewPCG(f.seed, uint64(dir)<<32|uint64(number)))}
}

// pump lets in what r reads until it fails.
func (s *faultStream) pump(r frame.Reader) {
	b := frame.NewBatch(nil)
	for {
		err := r.Read(b)
		switch {
		case errors.Is(err, frame.ErrPaused):
			if !s.line.resumed() {
				return
			}
			continue
		case err != nil:
			s.line.put(passage{err: err}, 0)
			return
		}
		for i := range b.Frames {
			s.pass(&frame.Out{F: &b.Frames[i]})
		}
	}
}

// pass draws what happens to a frame and lets a copy of it into the line. The reason is
// that of a frame for which there is no room.
func (s *faultStream) pass(o *frame.Out) frame.Reason {
	d := &s.f.dirs[s.dir]
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts.Frames++
	// As many numbers for each frame, whatever the rates: changing one rate does not
	// change which frames the other faults hit.
	hit := func(rate float64) bool { return s.rng.Float64() < rate }
	lost, corrupt, twice, delayed, reorder := hit(d.faults.Loss), hit(d.faults.Corrupt), hit(d.faults.Duplicate), hit(d.faults.Delay), hit(d.faults.Reorder)
	bit := s.rng.Uint64()

	if lost {
		d.counts.Lost++
		return frame.NotDropped
	}
	f := o.F.Clone()
	if p := f.Bytes(); corrupt && len(p) > 0 {
		bit %= uint64(len(p)) * 8
		p[bit/8] ^= 1 << (bit % 8)
		d.counts.Corrupted++
	}
	wait := time.Duration(0)
	held := reorder && !delayed && s.held == nil
	if delayed || held {
		wait = cmp.Or(d.faults.By, 10*time.Millisecond)
	}
	put := func(f frame.Frame) (*delay.Item[passage], frame.Reason) {
		p := passage{out: *o}
		p.out.F = &f
		x, why := s.line.put(p, wait)
		if why == frame.PortFull {
			d.counts.Full++
		}
		return x, why
	}
	twin := frame.Frame{}
	if twice {
		twin = f.Clone() // the receiver of the first may rewrite it
	}
	x, why := put(f)
	if why != frame.NotDropped {
		return why
	}
	if twice {
		if _, why := put(twin); why == frame.NotDropped {
			d.counts.Duplicated++
		}
	}
	switch {
	case delayed:
		d.counts.Delayed++
	case held:
		d.counts.Reordered++
		s.held = x
	case s.held != nil:
		s.line.hurry(s.held)
		s.held = nil
	}
	return frame.NotDropped
}
