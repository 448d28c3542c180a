package soak

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A sample is what is looked at now and then.
type sample struct {
	at         time.Duration // since the first
	rss        int64         // bytes
	goroutines int
	objects    uint64 // on the heap
	frames     uint64 // moved since the first
	mallocs    uint64 // since the first, without the sampler's own
}

func (s sample) String() string {
	return fmt.Sprintf("%5.0f s  %6.1f MiB resident  %3d goroutines  %6d objects  %9d frames  %6d mallocs",
		s.at.Seconds(), float64(s.rss)/(1<<20), s.goroutines, s.objects, s.frames, s.mallocs)
}

// A sampler takes samples of this process. What it allocates itself is not counted.
type sampler struct {
	ends   []*end
	status *os.File
	buf    []byte
	begun  time.Time
	first  uint64 // frames
	after  uint64 // Mallocs at the end of the last sample
	all    []sample
}

func newSampler(t *testing.T, ends ...*end) *sampler {
	t.Helper()
	f := check.Must(os.Open("/proc/self/status"))(t)
	t.Cleanup(func() { f.Close() })
	return &sampler{ends: ends, status: f, buf: make([]byte, 8<<10), all: make([]sample, 0, 1<<12)}
}

// take adds a sample and says it.
func (s *sampler) take(t *testing.T) {
	t.Helper()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	x := sample{goroutines: runtime.NumGoroutine(), objects: m.HeapObjects, rss: s.resident(t)}
	for _, e := range s.ends {
		x.frames += e.frames()
	}
	if len(s.all) == 0 {
		s.begun, s.first = time.Now(), x.frames
	} else {
		x.mallocs = s.all[len(s.all)-1].mallocs + m.Mallocs - s.after
	}
	x.at = time.Since(s.begun)
	x.frames -= s.first
	s.all = append(s.all, x)
	t.Log(x)
	runtime.ReadMemStats(&m)
	s.after = m.Mallocs
}

// resident is VmRSS.
func (s *sampler) resident(t *testing.T) int64 {
	t.Helper()
	n, _ := s.status.ReadAt(s.buf, 0)
	_, rest, _ := bytes.Cut(s.buf[:n], []byte("VmRSS:"))
	line, _, _ := bytes.Cut(rest, []byte("kB"))
	kb, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	if err != nil {
		t.Fatalf("VmRSS in /proc/self/status: %v", err)
	}
	return kb << 10
}

func (s *sampler) last() sample { return s.all[len(s.all)-1] }

// settle is how much the resident memory may be larger at the end than after the
// beginning: a tenth and 2 MiB.
func settle(early float64) float64 { return early*1.1 + 2<<20 }

// grown compares the mean resident memory of the last fifth with that of the second.
func grown(all []sample) error {
	fifth := len(all) / 5
	if fifth == 0 {
		return fmt.Errorf("%d samples are too few", len(all))
	}
	mean := func(xs []sample) (sum float64) {
		for _, x := range xs {
			sum += float64(x.rss)
		}
		return sum / float64(len(xs))
	}
	early, late := mean(all[fifth:2*fifth]), mean(all[len(all)-fifth:])
	if late > settle(early) {
		return fmt.Errorf("resident memory has grown from %.1f to %.1f MiB", early/(1<<20), late/(1<<20))
	}
	return nil
}

func TestGrown(t *testing.T) {
	series := func(mib func(i int) float64) (all []sample) {
		for i := range 50 {
			all = append(all, sample{rss: int64(mib(i) * (1 << 20))})
		}
		return all
	}
	for name, c := range map[string]struct {
		mib  func(i int) float64
		want bool
	}{
		"flat":                   {func(int) float64 { return 40 }, false},
		"warming up":             {func(i int) float64 { return min(40, 10+10*float64(i)) }, false},
		"one peak":               {func(i int) float64 { return 40 + 20*float64(i/49) }, false},
		"a leak":                 {func(i int) float64 { return 40 + float64(i)/2 }, true},
		"a small one of a small": {func(i int) float64 { return 4 + float64(i)/10 }, true},
	} {
		if err := grown(series(c.mib)); (err != nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if grown(make([]sample, 4)) == nil {
		t.Error("four samples are enough")
	}
}
