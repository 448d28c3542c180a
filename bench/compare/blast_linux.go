package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// A train is messages of one size that go out, or come in, with one system call.
type train struct {
	msgs [burst]sys.Mmsghdr
	iovs [burst]unix.Iovec
	bufs [burst][]byte
}

func newTrain(size int) *train {
	t := new(train)
	for i := range t.msgs {
		t.bufs[i] = make([]byte, size)
		t.iovs[i].Base = &t.bufs[i][0]
		t.iovs[i].SetLen(size)
		t.msgs[i].Hdr.Iov = &t.iovs[i]
		t.msgs[i].Hdr.SetIovlen(1)
	}
	return t
}

const (
	farewells    = 3 // packets that say it is over
	farewellStep = 10 * time.Millisecond
)

// passing are errors of a send that say nothing about the next one.
var passing = [...]unix.Errno{unix.EAGAIN, unix.EINTR, unix.ENOBUFS, unix.ENOMEM, unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH}

// blast sends numbered packets with a payload of size for a while, pps in a second, or
// as fast as it can if that is 0. Then it says that it is over.
func blast(addr string, size int, d time.Duration, pps float64) (s sent, err error) {
	c, err := net.Dial("udp", addr)
	if err != nil {
		return s, err
	}
	f, err := blocking(c)
	if err != nil {
		return s, err
	}
	defer f.Close()
	return newTrain(size).send(f, 0, func([]byte, uint64) {}, d, pps)
}

// send sends as blast does. In a message the payload begins at at; before each, head is asked for what precedes it.
func (t *train) send(f *os.File, at int, head func(b []byte, n uint64), d time.Duration, pps float64) (s sent, err error) {
	fd := f.Fd()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	p := pace{pps: pps}
	begin := time.Now()
	for now := begin; now.Sub(begin) < d; now = time.Now() {
		n := burst
		if pps > 0 {
			var wait time.Duration
			if n, wait = p.due(now.Sub(begin)); n == 0 {
				nap(wait)
				continue
			}
		}
		for i, b := range t.bufs[:n] {
			head(b, s.Sent+uint64(i))
			binary.BigEndian.PutUint64(b[at:], s.Sent+uint64(i))
		}
		k, e := sys.Sendmmsg(fd, t.msgs[:n], 0)
		p.went(k)
		s.Sent += uint64(k)
		if e != 0 {
			if !slices.Contains(passing[:], e) {
				return s, fmt.Errorf("sendmmsg: %w", e)
			}
			s.Errors++
		}
	}
	s.Seconds = time.Since(begin).Seconds()

	b := make([]byte, max(len(t.bufs[0]), at+lastSize))
	copy(b, t.bufs[0])
	putLast(b[at:], s.Sent)
	for range farewells {
		if _, err := f.Write(b); err != nil && !slices.ContainsFunc(passing[:], func(e unix.Errno) bool { return errors.Is(err, e) }) {
			return s, err
		}
		nap(farewellStep)
	}
	return s, nil
}

// nap sleeps in the kernel, which is on time to some 50 microseconds; the runtime's
// timers may be a millisecond late when nothing else runs.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	unix.Nanosleep(&ts, nil)
}
