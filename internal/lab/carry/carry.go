package carry

import (
	"os"
	"sync/atomic"
	"testing"

	vswitch "github.com/vxswitch/vxswitch/switch"
)

// datapath is the environment variable that says how tests run: "kernel", with flows carried; "all", with none left out; "needless",
// those that are left out, each of which must fail or carry nothing.
const datapath = "DATAPATH"

// Kernel reports whether the tests run with flows carried in the kernel.
func Kernel() bool { return os.Getenv(datapath) != "" }

// A carrier is an offload.Offload.
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

// On has the flows of a switch carried, in the network namespace of the calling thread, if the tests run so: until the test ends,
// but no longer than what is cleaned up by an earlier t.Cleanup. frames has the counters of the switch made up to date, and
// returns how many frames were carried, 0 if the tests do not run so.
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
