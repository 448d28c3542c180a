package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// Superframes into the network: 45 datagrams of 1450 bytes in one piece, over a veth to
// a socket with UDP_GRO, which receives on the other CPU. UDP_SEGMENT is set on the socket
// and not beside each message; a control message costs nothing that is seen here.
//
// A veth hands the packet to the receiving socket on the sender's CPU: that is in the
// sender's time, and the copy out of the socket is not. What comes too fast for the
// receiver is dropped there, which is cheaper for the sender than to have it received: a
// line with less than 100 % received looks better than it is. A receiver that has
// fallen asleep is woken at the sender's expense, which the ways with several at a time do
// less often: io_uring is to be compared with sendmmsg.

// tunnelHeader is what is put in front of each segment's payload.
const tunnelHeader = 8

// A sender sends superframes, or packets, on a connected socket. It lives on one thread.
type sender interface {
	send() (int, error)   // how many
	end() (string, error) // waits for what is under way; what there is to say
	Close()               // after which the kernel has none of its memory
}

func sendGroup() group {
	g := group{letter: "C", title: "UDP superframes of 45 x 1450 bytes into the network: sendmsg of 90 pieces, and other ways",
		metrics: []metric{
			{name: "CPU ns/superframe of the sender", less: true},
			{name: "superframes/s"},
			{name: "% received"},
		}}
	for _, w := range []struct {
		name string
		open func(fd int) (sender, error)
	}{
		{"sendmsg, 90 pieces", func(fd int) (sender, error) { return newSendmsg(fd, 1, true) }},
		{"sendmsg, 1 piece", func(fd int) (sender, error) { return newSendmsg(fd, 1, false) }},
		{"sendmsg, 1 piece, MSG_ZEROCOPY", newZerocopy},
		{"sendmmsg, 90 pieces, 8 at a time", func(fd int) (sender, error) { return newSendmsg(fd, atOnce, true) }},
		{"sendmmsg, 1 piece, 8 at a time", func(fd int) (sender, error) { return newSendmsg(fd, atOnce, false) }},
		{"io_uring SENDMSG, 90 pieces, 8 at a time", func(fd int) (sender, error) { return newSendRing(fd, true) }},
		{"io_uring SENDMSG, 1 piece, 8 at a time", func(fd int) (sender, error) { return newSendRing(fd, false) }},
		{"io_uring SEND_ZC, 1 registered piece, 8 at a time", newSendZC},
	} {
		g.ways = append(g.ways, way{w.name, func(ctx context.Context, l *lab, d time.Duration) (sample, error) {
			return l.sent(ctx, d, udpRoad(), w.open)
		}})
	}
	return g
}

// A road is two sockets that packets go between.
type road struct {
	dial, listen func() (int, error)
	size         float64 // bytes that the receiver gets for each that is sent
}

// udpRoad has UDP superframes.
func udpRoad() road {
	to := netip.AddrPortFrom(netip.MustParseAddr(addrB), 4789)
	return road{
		dial: func() (int, error) {
			fd, err := dial(to)
			if err == nil {
				err = prepare(fd, option{unix.IPPROTO_UDP, unix.UDP_SEGMENT, pieceSize, "UDP_SEGMENT"})
			}
			return fd, err
		},
		listen: func() (int, error) { return listen(to) },
		size:   pieces * pieceSize,
	}
}

// An option is one of a socket.
type option struct {
	level, name, value int
	text               string
}

// prepare gives a sending socket a large buffer and sets options. A socket that refuses is
// closed.
func prepare(fd int, options ...option) error {
	for _, o := range append(options, option{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 4 << 20, "SO_SNDBUFFORCE"}) {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			unix.Close(fd)
			return refused(o.text, err)
		}
	}
	return nil
}

// sent measures a sender, from its first packets on.
func (l *lab) sent(ctx context.Context, d time.Duration, r road, open func(fd int) (sender, error)) (m sample, err error) {
	var rx int
	if err := on(l.b, l.cpus[1], func() (err error) {
		rx, err = r.listen()
		return err
	}); err != nil {
		return m, err
	}
	defer unix.Close(rx)
	var received atomic.Uint64
	end := beside(l.b, l.cpus[1], func(over *atomic.Bool) error { return receive(rx, &received, over) })
	all := 0
	err = on(l.a, l.cpus[0], func() (err error) {
		fd, err := r.dial()
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		s, err := open(fd)
		if err != nil {
			return err
		}
		defer s.Close()
		if all, err = s.send(); err != nil {
			return err
		}
		t, total := newSpan(ctx, d, unix.RUSAGE_THREAD), 0
		for err == nil && !t.over.Load() {
			var n int
			n, err = s.send()
			total += n
		}
		note, late := "", error(nil)
		if err == nil {
			note, late = s.end()
		}
		clock, cpu := t.end() // with the notifications
		all += total
		if err = errors.Join(err, late); err != nil {
			return err
		}
		if total == 0 {
			return errors.New("nothing was sent")
		}
		m = sample{values: []float64{float64(cpu) / float64(total), float64(total) / clock.Seconds(), 0}, note: note}
		return nil
	})
	if err = errors.Join(err, end()); err != nil {
		return m, err
	}
	m.values[2] = 100 * float64(received.Load()) / (float64(all) * r.size)
	return m, nil
}

// listen opens the receiving socket.
func listen(at netip.AddrPort) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())})
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("receiving socket: %w", err)
	}
	return fd, nil
}

// receive counts bytes until it is over and nothing is left.
func receive(fd int, bytes *atomic.Uint64, over *atomic.Bool) error {
	msgs := receivers(16, superRoom)
	for {
		last := over.Load()
		n, e := sys.Recvmmsg(uintptr(fd), msgs, unix.MSG_DONTWAIT)
		switch {
		case e == unix.EAGAIN && last:
			return nil
		case e == unix.EAGAIN:
			if err := wait(fd); err != nil {
				return err
			}
		case e != 0 && e != unix.EINTR:
			return fmt.Errorf("recvmmsg: %w", e)
		}
		for _, m := range msgs[:n] {
			bytes.Add(uint64(m.Len))
		}
	}
}

// A superframe to send, in memory that does not move: one piece, or header, payload,
// header, payload ... as they lie in the packet that came from a guest and in the scratch
// memory of its headers.
type superMessage struct {
	memory []byte
	iov    []unix.Iovec
	hdr    *unix.Msghdr
}

func newSuperMessage(cut bool) (s superMessage, err error) {
	if s.memory, err = pages(2 * superRoom); err != nil {
		return s, err
	}
	part := func(at, size int) {
		v := unix.Iovec{Base: &s.memory[at]}
		v.SetLen(size)
		s.iov = append(s.iov, v)
	}
	if cut {
		for i := range pieces {
			part(superRoom+i*tunnelHeader, tunnelHeader)
			part(i*(pieceSize-tunnelHeader), pieceSize-tunnelHeader)
		}
	} else {
		part(0, pieces*pieceSize)
	}
	s.hdr = &unix.Msghdr{Iov: &s.iov[0]}
	s.hdr.SetIovlen(len(s.iov))
	return s, nil
}

func (s *superMessage) Close() {
	if s.memory != nil {
		unix.Munmap(s.memory)
	}
}
