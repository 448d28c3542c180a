package carry

import (
	"os"
	"sync/atomic"
	"testing"

	vswitch "github.com/vxswitch/vxswitch/switch"
)

// datapath is the environment variable that says how the tests of a package run:
//
//	""        as they are, all of them
//	kernel    those of its list with flows carried, but those that are left out
//	all       all of them with flows carried
//	needless  those that are left out, with flows carried: each must fail or carry nothing
const datapath = "DATAPATH"

// Kernel reports whether the tests run with flows carried in the kernel.
func Kernel() bool { return os.Getenv(datapath) != "" }

// A carrier carries the flows of a switch: in testdata/open.txt, an offload.Offload.
type carrier interface {
	Carried() (uint64, error)
	Close() error
}

var carried atomic.Int64

// Count adds frames that were carried in a test.
func Count(t testing.TB, frames int) {
	t.Logf("carry: %d frames were carried", frames)
	carried.Add(int64(frames))
}

// On has the flows of a switch carried, in the network namespace of the calling thread, if the tests run so. It ends with the test,
// before what was given to t.Cleanup earlier. frames brings the counters of the switch up to date and returns how many frames were
// carried, 0 if the tests do not run so.
func On(t testing.TB, sw *vswitch.Switch) (frames func() int) {
	t.Helper()
	if !Kernel() {
		return func() int { return 0 }
	}
	c, err := open(sw)
	if err != nil {
		t.Fatal(err)
	}
	frames = func() int {
		n, err := c.Carried()
		if err != nil {
			t.Error(err)
		}
		return int(n)
	}
	t.Cleanup(func() {
		Count(t, frames())
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return frames
}
