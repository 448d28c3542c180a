package underlaytest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// A Reader of each underlay is brought into each state it can be in; then the underlay is paused
// or closed, or its interface deleted or moved away. Whatever comes of it comes as an error, and
// nothing is left behind.

// A State is what a Reader is doing when something happens.
type State string

// All states.
const (
	New     State = "never read"
	Waiting State = "waiting in Read"
	Between State = "between two Reads"
	Rest    State = "with a rest undelivered"
	BackOff State = "backing off"
)

// A Subject is one underlay, and its Reader that is brought into a state.
type Subject struct {
	U    Underlay
	R    frame.Reader
	In   *datagrams.Inbox // of R, nil in memory
	Rest func() bool      // something is received and not handed over; nil where In says so
	Feed func()           // has something sent to it; what it is comes in one or two messages of up to 64 datagrams

	t       *testing.T
	name    string
	b       *frame.Batch
	failing atomic.Bool // every call of the kernel fails
	ended   chan error  // of a Read that waits
}

// A Kind is a kind of underlay.
type Kind struct {
	Gone   bool    // it says that its interface is gone; others wait for another
	Except []State // it cannot be in

	// Open opens an underlay at host A at an address of its own, the k-th, and returns what
	// feeds it, from host B.
	Open func(v *Veth, k int) *Subject
}

// Fails reports whether a call of the kernel is to fail, for who stands in front of it.
func (x *Subject) Fails() bool {
	if !x.failing.Load() {
		return false
	}
	x.In.Errno = unix.ENOMEM
	return true
}

// States tests all kinds in all states. Setup is called first on each network.
func States(t *testing.T, setup func(v *Veth), kinds map[string]Kind) {
	for name, what := range map[string]struct {
		event func(v *Veth) // to all at once
		then  func(x *Subject, s State, gone bool)
	}{
		"Pause":             {func(*Veth) {}, func(x *Subject, s State, _ bool) { x.U.Pause(); x.paused(s) }},
		"Close":             {func(*Veth) {}, func(x *Subject, s State, _ bool) { x.closed(s) }},
		"interface deleted": {func(v *Veth) { v.A.IP("link", "del", "eth0") }, (*Subject).gone},
		"interface moved":   {func(v *Veth) { v.A.IP("link", "set", "eth0", "netns", v.B.NS, "name", "gone0") }, (*Subject).gone},
	} {
		t.Run(name, func(t *testing.T) {
			BothFamilies(t, func(t *testing.T, v *Veth) {
				setup(v)
				fds, goroutines := OpenFiles(t), goleak.IgnoreCurrent()
				var checks []func()
				for name, kind := range kinds {
					for k, s := range []State{New, Waiting, Between, Rest, BackOff} {
						if slices.Contains(kind.Except, s) {
							continue
						}
						x := kind.Open(v, k)
						x.t, x.name = t, fmt.Sprintf("%s, %s", name, s)
						x.enter(s)
						checks = append(checks, func() {
							what.then(x, s, kind.Gone)
							x.closed(New)
						})
					}
				}
				what.event(v)
				for _, check := range checks {
					check()
				}
				now := OpenFiles(t)
				for end := time.Now().Add(5 * time.Second); now != fds && time.Now().Before(end); now = OpenFiles(t) {
					time.Sleep(10 * time.Millisecond) // of commands that have ended a moment ago
				}
				if now != fds {
					t.Errorf("%d descriptors before, %d after", fds, now)
				}
				goleak.VerifyNone(t, goroutines)
			})
		})
	}
}

// readInBackground is where goroutines are that InRead looks for.
func (x *Subject) readInBackground() { x.ended <- x.R.Read(x.b) }

// InRead returns how many goroutines wait in a function that is called readInBackground.
func InRead() (n int) {
	buf := make([]byte, 1<<20)
	for g := range bytes.SplitSeq(buf[:runtime.Stack(buf, true)], []byte("\n\n")) {
		head, _, _ := bytes.Cut(g, []byte("\n"))
		for _, how := range []string{"[IO wait", "[sync.Cond.Wait", "[select"} {
			if bytes.Contains(head, []byte(how)) && bytes.Contains(g, []byte("readInBackground(")) {
				n++
			}
		}
	}
	return n
}

// enter brings the Reader into a state.
func (x *Subject) enter(s State) {
	t := x.t
	if x.In != nil {
		x.Rest = func() bool { return x.In.At < x.In.N }
	}
	x.b, x.ended = frame.NewBatch(new(frame.Arenas)), make(chan error, 1)
	switch s {
	case BackOff:
		x.failing.Store(true)
		fallthrough
	case Waiting:
		before := InRead()
		go x.readInBackground()
		fake.Until(t, "Read waits", func() bool { return InRead() > before })
	case Between, Rest:
		for range 100 {
			for x.Feed(); ; {
				if err := x.R.Read(x.b); err != nil {
					t.Fatalf("%s: %v", x.name, err)
				}
				if s == Rest || !x.Rest() {
					break
				}
			}
			if x.Rest() == (s == Rest) {
				break
			}
		}
		if x.Rest() != (s == Rest) {
			t.Fatalf("%s: is not", x.name)
		}
		if x.In != nil && x.In.Blocks[0] == nil || len(x.b.Frames) == 0 {
			t.Fatalf("%s: holds no memory", x.name)
		}
	}
}

// read is the Read that is under way, or another.
func (x *Subject) read(s State) error {
	if s == Waiting || s == BackOff {
		select {
		case err := <-x.ended:
			return err
		case <-time.After(10 * time.Second):
			x.t.Fatalf("%s: Read waits", x.name)
		}
	}
	return x.R.Read(x.b)
}

// wantEnd reads until an error, which must be want then and ever after.
func (x *Subject) wantEnd(s State, rest bool, want error) {
	x.t.Helper()
	err := x.read(s)
	for rest && err == nil {
		err = x.R.Read(x.b)
	}
	for range 2 {
		if !errors.Is(err, want) {
			x.t.Errorf("%s: %v, want %v", x.name, err, want)
		}
		if x.b.Frames != nil {
			x.t.Errorf("%s: the batch holds memory", x.name)
		}
		err = x.R.Read(x.b)
	}
	if want == frame.ErrPaused && s == Rest || x.In == nil {
		return
	}
	if i := slices.IndexFunc(x.In.Blocks[:], func(b *frame.Block) bool { return b != nil }); i >= 0 || x.Rest() {
		x.t.Errorf("%s: holds message memory", x.name)
	}
}

// paused checks that a pause ends what is under way, and that it ends.
func (x *Subject) paused(s State) {
	x.wantEnd(s, false, frame.ErrPaused)
	x.failing.Store(false)
	x.U.Resume()
	if s != Rest {
		x.Feed()
	}
	if err := x.R.Read(x.b); err != nil || len(x.b.Frames) == 0 {
		x.t.Errorf("%s: after the pause %v, %d frames", x.name, err, len(x.b.Frames))
	}
}

func (x *Subject) closed(s State) {
	for range 2 {
		if err := x.U.Close(); err != nil {
			x.t.Errorf("%s: Close: %v", x.name, err)
		}
	}
	x.wantEnd(s, false, net.ErrClosed)
}

// OpenFiles returns how many files the process has open.
func OpenFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// gone checks a Reader whose interface is gone: what it has it hands over, and then it says so,
// if it can see that; else it waits for another, and can be paused.
func (x *Subject) gone(s State, gone bool) {
	want := error(unix.ENODEV)
	if !gone {
		x.U.Pause()
		want = frame.ErrPaused
	}
	x.wantEnd(s, gone, want)
	if gone {
		if err := x.R.Read(x.b); !strings.Contains(err.Error(), `"eth0"`) {
			x.t.Errorf("%s: %v", x.name, err)
		}
	}
}
