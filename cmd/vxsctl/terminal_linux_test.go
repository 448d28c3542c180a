package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// terminal returns the two ends of a pseudo terminal.
func terminal(t *testing.T) (far, near *os.File) {
	t.Helper()
	far, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("no pseudo terminal: %v", err)
	}
	n, err := control(far, func(fd int) (int, error) {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return 0, err
		}
		return unix.IoctlGetInt(fd, unix.TIOCGPTN)
	})
	check.OK(t, err)
	near, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("no pseudo terminal: %v", err)
	}
	return far, near
}

// On a terminal top draws in place, ends with q, and leaves the terminal as it was.
func TestTopOnTerminal(t *testing.T) {
	f := newFake(t)
	f.answers["/v1/port"] = `[{"port":1,"name":"tap0","type":"tap"}]`
	f.answers["/v1/drops"] = `[]`
	far, near := terminal(t)
	defer near.Close()
	defer far.Close()
	settings := func() unix.Termios {
		s := check.Must(control(near, func(fd int) (*unix.Termios, error) { return unix.IoctlGetTermios(fd, unix.TCGETS) }))(t)
		return *s
	}
	before := settings()
	var mu sync.Mutex
	var seen bytes.Buffer
	var reads sync.WaitGroup
	reads.Go(func() {
		io.Copy(writerFunc(func(b []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return seen.Write(b)
		}), far)
	})
	text := func() string { mu.Lock(); defer mu.Unlock(); return seen.String() }

	ended := make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		ended <- run(t.Context(), []string{"-socket", f.socket, "top", "-interval", "100ms"}, near, near, &errs)
	}()
	for end := time.Now().Add(10 * time.Second); strings.Count(text(), "\x1b[H") < 2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q", text())
		}
	}
	if now := settings(); now.Lflag&(unix.ICANON|unix.ECHO) != 0 {
		t.Error("keys are seen, or wait for the end of their line")
	}
	io.WriteString(far, "xq")
	select {
	case code := <-ended:
		if code != 0 || errs.Len() > 0 {
			t.Errorf("%d %s", code, &errs)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("q does not end it")
	}
	if settings() != before {
		t.Error("the terminal is not as it was")
	}
	near.Close()
	reads.Wait()
	if got := text(); !strings.Contains(got, "  1 idle") || !strings.HasSuffix(got, "\x1b[?25h") {
		t.Errorf("%q", got)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Packets do not go to a terminal.
func TestCaptureOnTerminal(t *testing.T) {
	f := newFake(t)
	far, near := terminal(t)
	defer near.Close()
	defer far.Close()
	var errs bytes.Buffer
	code := run(t.Context(), []string{"-socket", f.socket, "capture", "vni", "100"}, near, near, &errs)
	if want := "vxsctl: capture: packets are not for a terminal: add -w FILE, or | tcpdump -r -\n"; code != 2 || errs.String() != want || f.last() != "" {
		t.Errorf("%d %s", code, errs.String())
	}
}
