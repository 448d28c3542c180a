package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// Waiting: a datagram goes there and back between two sockets in two namespaces, over a
// veth, and both ends wait in the same way. Each end is a process: two goroutines of one
// would take turns on one thread and never wait for each other, which flatters the poller
// of Go above all. A process is on a CPU of its own, with one processor of Go therefore.
//
// In the lines "not bound" a process may use every CPU, as a program does by default. On
// an idle machine the scheduler then likes to put the one that is woken beside the one that
// woke it: that spares waking an idle CPU, which in a virtual machine costs more than the
// ways to wait differ by. So those two lines are to be compared with each other only.
//
// CPU time is that of the processes, the runtime's own threads included; what interrupts
// and idle CPUs cost on top is not in it.

// A waiter receives one datagram, after waiting at most about a tick: 0 bytes if none came.
type waiter interface {
	recv(p []byte) (int, error)
	wake() // who waits longer than a tick
	Close()
}

// A waitWay is one way to wait.
type waitWay struct {
	name  string
	bound bool // to a CPU
	open  func(fd int) (waiter, error)
}

func waitWays() []waitWay {
	return []waitWay{
		{"the poller of Go (RawConn.Read)", true, newPollerWait},
		{"blocking recv", true, newBlockingWait},
		{"poll, recv", true, newPollWait},
		{"epoll_wait, recv", true, newEpollWait},
		{"spin up to 100 us, poll", true, func(fd int) (waiter, error) { return newSpinWait(fd, false) }},
		{"spin with sched_yield up to 100 us, poll", true, func(fd int) (waiter, error) { return newSpinWait(fd, true) }},
		{"the poller of Go, not bound to CPUs", false, newPollerWait},
		{"blocking recv, not bound to CPUs", false, newBlockingWait},
	}
}

func waitGroup() group {
	g := group{letter: "D", title: "Waiting for a small datagram, there and back: the poller of Go, and other ways",
		metrics: []metric{
			{name: "round trips/s"},
			{name: "CPU us/round trip, both ends", less: true},
		}}
	for i, w := range waitWays() {
		g.ways = append(g.ways, way{w.name, func(ctx context.Context, l *lab, d time.Duration) (sample, error) {
			return l.roundTrips(ctx, d, i, w.bound)
		}})
	}
	return g
}

// roundTrips measures one way to wait.
func (l *lab) roundTrips(ctx context.Context, d time.Duration, way int, bound bool) (m sample, err error) {
	far, err := l.startEnd(ctx, l.b, bound, l.cpus[1], endArgs{Way: way, Local: addrB, Remote: addrA})
	if err != nil {
		return m, err
	}
	near, err := l.startEnd(ctx, l.a, bound, l.cpus[0], endArgs{Way: way, Local: addrA, Remote: addrB, For: d})
	if err != nil {
		_, late := far.finish()
		return m, errors.Join(err, late)
	}
	ping, err := near.result()
	echo, late := far.finish()
	if err = errors.Join(err, late); err != nil {
		return m, err
	}
	if ping.Trips == 0 || echo.Trips == 0 {
		return m, errors.New("no answer in time")
	}
	if ping.Lost > 0 {
		m.note = fmt.Sprint(ping.Lost, " lost")
	}
	m.values = []float64{float64(ping.Trips) / ping.Clock.Seconds(),
		(float64(ping.CPU)/float64(ping.Trips) + float64(echo.CPU)/float64(echo.Trips)) / 1000}
	return m, nil
}

// An end is one of the two sockets.
type end struct {
	waiter
	fd int
}

func newEnd(a endArgs) (e end, err error) {
	if e.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return e, fmt.Errorf("socket: %w", err)
	}
	to := func(s string) unix.Sockaddr {
		return &unix.SockaddrInet4{Addr: netip.MustParseAddr(s).As4(), Port: 7}
	}
	err = unix.Bind(e.fd, to(a.Local))
	if err == nil {
		err = unix.Connect(e.fd, to(a.Remote))
	}
	if err == nil {
		e.waiter, err = waitWays()[a.Way].open(e.fd)
	}
	if err != nil {
		unix.Close(e.fd)
	}
	return e, err
}

func (e end) send(p []byte) error {
	n, errno := sys.WriteFD(uintptr(e.fd), p)
	// The other end may not be there yet, or any more.
	if errno != 0 && errno != unix.ECONNREFUSED && errno != unix.EAGAIN || errno == 0 && n != len(p) {
		return fmt.Errorf("send: %w", errno)
	}
	return nil
}

// ping sends and waits for the answer, again and again. One that is lost is sent again.
func ping(e end, d time.Duration) (r endResult, err error) {
	out, in, number := make([]byte, 22), make([]byte, 64), uint64(0)
	trip := func() (int, error) {
		number++
		binary.NativeEndian.PutUint64(out, number)
		if err := e.send(out); err != nil {
			return 0, err
		}
		for {
			n, err := e.recv(in)
			if err != nil || n == 0 {
				return 0, err
			}
			if binary.NativeEndian.Uint64(in) == number { // not one that came too late
				return 1, nil
			}
		}
	}
	for late := time.Now().Add(5 * time.Second); ; { // until the other end is there
		n, err := trip()
		if err != nil {
			return r, err
		}
		if n > 0 {
			break
		}
		if time.Now().After(late) {
			return r, errors.New("no answer")
		}
	}
	s := newSpan(context.Background(), d, unix.RUSAGE_SELF)
	for !s.over.Load() && err == nil {
		var n int
		n, err = trip()
		r.Trips += n
		r.Lost += 1 - n
	}
	r.Clock, r.CPU = s.end()
	return r, err
}

// echo answers until it is over. Its time begins with the first datagram.
func echo(e end, over *atomic.Bool) (r endResult, err error) {
	buf, begin := make([]byte, 64), time.Duration(0)
	for !over.Load() {
		n, err := e.recv(buf)
		if err == nil && n > 0 {
			if r.Trips == 0 {
				begin = cpuTime(unix.RUSAGE_SELF)
			}
			r.Trips++
			err = e.send(buf[:n])
		}
		if err != nil {
			return r, err
		}
	}
	r.CPU = cpuTime(unix.RUSAGE_SELF) - begin
	return r, nil
}
