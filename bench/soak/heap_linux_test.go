package soak

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"time"
)

const module = "github.com/vxswitch/vxswitch/"

// A site is a place that allocates: the innermost function of a stack that is the
// library's, or else the innermost of all.
type site struct {
	name   string
	ours   bool
	worker bool // in a worker of the switch: from a Read to the next
}

// A heap is how many objects each site has allocated so far.
type heap map[site]int64

// takeHeap reads the memory profile, in which every allocation is if
// runtime.MemProfileRate is 1.
func takeHeap() heap {
	runtime.GC() // the profile is that of the last collection
	var records []runtime.MemProfileRecord
	for n, ok := runtime.MemProfile(nil, true); !ok; {
		records = make([]runtime.MemProfileRecord, n+n/2+50)
		n, ok = runtime.MemProfile(records, true)
		records = records[:min(n, len(records))]
	}
	h := heap{}
	for i := range records {
		if s, ok := siteOf(records[i].Stack()); ok {
			h[s] += records[i].AllocObjects
		}
	}
	return h
}

// siteOf leaves out what the test does itself, as far as it does not run the library's
// goroutines: its samples ask the switches for statistics.
func siteOf(stack []uintptr) (s site, ok bool) {
	frames := runtime.CallersFrames(stack)
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, "bench/soak.(*sampler)") || strings.Contains(f.Function, "bench/soak.takeHeap") {
			return s, false
		}
		if library(f.Function) && !s.ours {
			s.name, s.ours = strings.TrimPrefix(f.Function, module), true
		}
		if f.Function == module+"switch.(*worker).run" {
			s.worker = true
		}
		if s.name == "" {
			s.name = f.Function
		}
		if !more {
			return s, true
		}
	}
}

// library reports whether a function is in one of the packages users import, or one
// they stand on; the tests and labs are not.
func library(function string) bool {
	name, ok := strings.CutPrefix(function, module)
	return ok && !strings.HasPrefix(name, "bench/") && !strings.HasPrefix(name, "internal/lab/")
}

// A growth is how many objects a site has allocated between two heaps.
type growth struct {
	site
	objects int64
}

// since returns what was allocated after before, the most first.
func (h heap) since(before heap) (gs []growth) {
	for s, n := range h {
		if n > before[s] {
			gs = append(gs, growth{s, n - before[s]})
		}
	}
	slices.SortFunc(gs, func(a, b growth) int {
		return cmp.Or(cmp.Compare(b.objects, a.objects), cmp.Compare(a.name, b.name))
	})
	return gs
}

const (
	perFrame  = 10_000 // one object of a site for so many frames: more is in proportion to them
	perSecond = 20     // objects of a site outside the workers, that looks after something by the clock
)

// guilty returns the library's sites that allocate for frames.
func guilty(gs []growth, frames uint64, d time.Duration) []growth {
	return slices.DeleteFunc(slices.Clone(gs), func(g growth) bool {
		limit := float64(frames) / perFrame
		if !g.worker {
			limit += perSecond * d.Seconds()
		}
		return !g.ours || float64(g.objects) <= limit
	})
}
