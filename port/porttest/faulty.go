// Package porttest provides a port with faults, for tests of programs that import this library.
package porttest

import (
	"cmp"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wrap"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/setting"
)

// Faults configures the faults of one direction: the probability of each, 0 to 1, for every frame. The
// zero value has none.
type Faults struct {
	Loss      float64 // the frame is lost
	Corrupt   float64 // one bit of it changes
	Duplicate float64 // it arrives twice
	Delay     float64 // it waits for By; later frames overtake it
	Reorder   float64 // the next frame overtakes it; if there is none it leaves after By

	By time.Duration // 0 = 10 ms
}

// maxQueue bounds the queues, in frames.
const maxQueue = 1 << 16

// check adds what is wrong with the faults of direction dir.
func (f *Faults) check(w *setting.Check, dir string) {
	for i, rate := range []float64{f.Loss, f.Corrupt, f.Duplicate, f.Delay, f.Reorder} {
		if !(rate >= 0 && rate <= 1) {
			name := []string{"Loss", "Corrupt", "Duplicate", "Delay", "Reorder"}[i]
			w.Want(dir+"."+name, rate, "0 to 1")
		}
	}
	if f.By < 0 {
		w.Want(dir+".By", f.By, "0 or more")
	}
}

// FaultyConfig configures [NewFaulty]. The zero value works and has no faults.
type FaultyConfig struct {
	In    Faults // of frames received from the port
	Out   Faults // of frames written to it
	Seed  uint64 // of the random numbers: the same seed hits the same frames
	Queue int    // frames that may wait in each direction and receive queue, 1 to 65536; 0 = 1024
}

func (c *FaultyConfig) check() error {
	w := setting.Of("porttest: FaultyConfig")
	w.Number("Queue", c.Queue, 1, maxQueue, 1024)
	c.In.check(w, "In")
	c.Out.check(w, "Out")
	return w.Err()
}

// FaultCounts counts the frames of one direction.
type FaultCounts struct {
	Frames     uint64 `json:"frames"` // all, lost ones included
	Lost       uint64 `json:"lost"`
	Corrupted  uint64 `json:"corrupted"`
	Duplicated uint64 `json:"duplicated"`
	Delayed    uint64 `json:"delayed"`
	Reordered  uint64 `json:"reordered"`
	Full       uint64 `json:"full"`    // no room in the queue
	Refused    uint64 `json:"refused"` // dropped by the port
}

// FaultyStats is a snapshot of the counters.
type FaultyStats struct {
	In  FaultCounts `json:"in"`
	Out FaultCounts `json:"out"`
}

// A Faulty loses, corrupts, duplicates, delays and reorders the frames of a port, both ways.
//
//	switch --Write--> faults --> queue --goroutine--> Write of the port
//	       <--Read--- queue <-- faults <--goroutine-- Read of the port
//
// Each receive queue and each Writer has a sequence of random numbers of its own, used in the order of
// the fields of [Faults]. So the faults of a frame depend on the seed and on the frames before it there,
// not on time. Frames that are not delayed stay in order. A frame that is both delayed and reordered is
// delayed. If a frame is to be reordered while another one waits to be overtaken, it overtakes that one.
//
// As on a wire, a Writer does not learn that a frame is lost. If the queue is full it does, by
// [frame.PortFull]. Frames that the port drops are counted in Stats only. Every frame is copied once:
// this is not for measuring speed.
type Faulty struct {
	p    port.Port
	port port.Port // what is attached
	seed uint64
	size int
	dirs [2]direction

	out    *line
	broken atomic.Pointer[error] // what Write of the port said

	mu     sync.Mutex
	in     []*faultyReader // made with the first call of Readers
	paused bool
	closed bool
	err    error // of Close
	ends   sync.WaitGroup
}

// Directions.
const (
	inward = iota
	outward
)

type direction struct {
	mu     sync.Mutex
	faults Faults
	counts FaultCounts
}

func (d *direction) set(f Faults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = f
}

func (d *direction) refused(out []frame.Out) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range out {
		if out[i].Drop != frame.NotDropped {
			d.counts.Refused++
		}
	}
}

func (d *direction) stats() FaultCounts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts
}

// NewFaulty adds faults to p. Attach what [Faulty.Port] returns; closing that closes p. A nil cfg is the
// zero value. NewFaulty fails if p is nil or a tunnel. On an error p stays open.
func NewFaulty(p port.Port, cfg *FaultyConfig) (*Faulty, error) {
	var c FaultyConfig
	if cfg != nil {
		c = *cfg
	}
	if err := wrap.Check(p); err != nil {
		return nil, fmt.Errorf("porttest: Faulty: %w", err)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	f := &Faulty{p: p, seed: c.Seed, size: cmp.Or(c.Queue, 1024)}
	f.dirs[inward].faults, f.dirs[outward].faults = c.In, c.Out
	f.out = newLine(f.size)
	f.port = wrap.Around(faultyPort{f}, p)
	f.ends.Go(func() { f.send(p.Writer(0)) })
	return f, nil
}

// Port returns the port to attach. Its Close discards waiting frames, closes the wrapped port, and waits
// for the goroutines to end.
func (f *Faulty) Port() port.Port { return f.port }

// Set changes the faults of both directions, for later frames.
func (f *Faulty) Set(in, out Faults) error {
	if err := (&FaultyConfig{In: in, Out: out}).check(); err != nil {
		return err
	}
	f.dirs[inward].set(in)
	f.dirs[outward].set(out)
	return nil
}

// Stats returns a snapshot of the counters.
func (f *Faulty) Stats() FaultyStats {
	return FaultyStats{In: f.dirs[inward].stats(), Out: f.dirs[outward].stats()}
}

// send writes the frames that are due until the line is closed.
func (f *Faulty) send(w frame.Writer) {
	var ps [frame.MaxBatch]passage
	var out [frame.MaxBatch]frame.Out
	for {
		n, err := f.out.take(ps[:])
		if err != nil {
			return
		}
		for i := range n {
			out[i] = ps[i].out
			out[i].Drop = frame.NotDropped
		}
		err = w.Write(out[:n])
		f.dirs[outward].refused(out[:n])
		if err != nil { // broken as a whole
			f.broken.Store(&err)
			f.out.close()
		}
	}
}

type faultyPort struct{ f *Faulty }

func (p faultyPort) Writer(w int) frame.Writer {
	return &faultyWriter{p.f.stream(outward, w, p.f.out)}
}

func (p faultyPort) Readers() []frame.Reader {
	f := p.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.in == nil {
		for i, r := range f.p.Readers() {
			l := newLine(f.size)
			l.pause(f.paused)
			if f.closed {
				l.close()
			}
			f.in = append(f.in, &faultyReader{line: l})
			f.ends.Go(func() { f.stream(inward, i, l).pump(r) })
		}
	}
	var rs []frame.Reader
	for _, r := range f.in {
		rs = append(rs, r)
	}
	return rs
}

func (p faultyPort) Close() error {
	f := p.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		f.out.close()
		for _, r := range f.in {
			r.line.close()
		}
		f.err = f.p.Close()
		f.ends.Wait()
	}
	return f.err
}

func (p faultyPort) Pause() {
	p.pause(true) // first, or the goroutine that reads does not know why its Read ends
	p.f.p.(wrap.Pauser).Pause()
}

func (p faultyPort) Resume() {
	p.f.p.(wrap.Pauser).Resume()
	p.pause(false)
}

func (p faultyPort) pause(on bool) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.f.paused = on
	for _, r := range p.f.in {
		r.line.pause(on)
	}
}

type faultyReader struct {
	line *line
	ps   [frame.MaxBatch]passage
}

func (r *faultyReader) Read(b *frame.Batch) error {
	b.Release()
	n, err := r.line.take(r.ps[:])
	if err != nil {
		return err
	}
	for _, p := range r.ps[:n] {
		if p.err != nil {
			err = p.err
			r.line.put(p, 0) // it is said again with the next Read
			continue
		}
		*b.Borrow(nil, 0, 0) = *p.out.F
	}
	clear(r.ps[:n]) // borrowed by b alone
	if len(b.Frames) > 0 {
		return nil
	}
	return err
}

type faultyWriter struct{ s *faultStream }

func (w *faultyWriter) Write(out []frame.Out) error {
	for i := range out {
		o := &out[i]
		if o.Drop = w.s.pass(o); o.Drop == frame.PortDown {
			for k := range out[i:] {
				out[i+k].Drop = frame.PortDown
			}
			if err := w.s.f.broken.Load(); err != nil {
				return *err
			}
			return net.ErrClosed
		}
	}
	return nil
}
