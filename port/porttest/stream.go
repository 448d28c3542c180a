package porttest

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A faultStream is the frames of one receive queue or one Writer on their way into a
// line.
type faultStream struct {
	f    *Faulty
	dir  int
	line *line
	rng  *rand.Rand
	held uint64 // id of the frame that leaves behind the next; 0 = none
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
	faults, counts := s.f.faults[s.dir].Load(), &s.f.counts[s.dir]
	counts.frames.Add(1)
	// As many numbers for each frame, whatever the rates: changing one rate does not
	// change which frames the other faults hit.
	var hit [numFaults]bool
	for i, rate := range faults.rates() {
		hit[i] = s.rng.Float64() < rate
	}
	bit := s.rng.Uint64()

	if hit[loss] {
		counts.faults[loss].Add(1)
		return frame.NotDropped
	}
	f := o.F.Clone()
	if p := f.Bytes(); hit[corrupt] && len(p) > 0 {
		bit %= uint64(len(p)) * 8
		p[bit/8] ^= 1 << (bit % 8)
		counts.faults[corrupt].Add(1)
	}
	wait := time.Duration(0)
	held := hit[reorder] && !hit[delay] && s.held == 0
	if hit[delay] || held {
		wait = cmp.Or(faults.By, 10*time.Millisecond)
	}
	id, why := s.put(o, f, wait)
	if why != frame.NotDropped {
		return why
	}
	if hit[duplicate] {
		if _, why := s.put(o, f.Clone(), wait); why == frame.NotDropped {
			counts.faults[duplicate].Add(1)
		}
	}
	switch {
	case hit[delay]:
		counts.faults[delay].Add(1)
	case held:
		counts.faults[reorder].Add(1)
		s.held = id
	case s.held != 0:
		s.line.hurry(s.held)
		s.held = 0
	}
	return frame.NotDropped
}

func (s *faultStream) put(o *frame.Out, f frame.Frame, wait time.Duration) (uint64, frame.Reason) {
	p := passage{out: *o}
	p.out.F = &f
	id, why := s.line.put(p, wait)
	if why == frame.PortFull {
		s.f.counts[s.dir].full.Add(1)
	}
	return id, why
}
