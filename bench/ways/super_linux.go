package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// Superframes out of a device: the sender's socket has UDP_SEGMENT set and the TAP takes
// UDP superframes (TUN_F_USO4, Linux 6.2), so that what is sent in one piece arrives in
// one piece. The copy out of the kernel's pages is what all ways have in common; they
// differ in where it goes.

const (
	pieces    = 45   // of a superframe
	pieceSize = 1450 // of its payload
	superRoom = 1 << 16

	ethernetIPUDP = 14 + 20 + 8
	superFrame    = vnetHeader + ethernetIPUDP + pieces*pieceSize

	usoOffload = unix.TUN_F_CSUM | unix.TUN_F_USO4 | unix.TUN_F_USO6
)

func superGroup() group {
	g := group{letter: "B", title: "UDP superframes of 65 KB out of a TAP: read(2) into one buffer, and other ways",
		metrics: []metric{
			{name: "CPU ns/superframe of the reader", less: true},
			{name: "superframes/s"},
			{name: "CPU ns/superframe, reader and sender", less: true},
		}}
	t := traffic{target: tapNobody, size: pieceSize, super: pieces, dev: "tap"}
	g.add(t, "read(2)", func() (taker, error) { return newSuperRead(false) })
	g.add(t, "readv(2), 45 pieces with gaps", func() (taker, error) { return newSuperRead(true) })
	g.add(t, "io_uring, reads in batches", func() (taker, error) { return newReadRing(usoOffload, 8, 1<<17, superFrame) })
	return g
}

// superRead reads superframes one by one: into one buffer, or with a gap of headerRoom in
// front of the payload of each segment, for the headers of a tunnel to be written into.
// The headers of the superframe have a piece of their own. The gaps cost the kernel an
// iovec each, and spare the sender half of its own.
type superRead struct {
	fd    int
	buf   []byte
	parts []unix.Iovec
}

const headerRoom = 64

func newSuperRead(gaps bool) (taker, error) {
	fd, err := openTAP(unix.O_NONBLOCK, usoOffload)
	if err != nil {
		return nil, err
	}
	s := &superRead{fd: fd}
	if s.buf, err = pages(2 * superRoom); err != nil {
		unix.Close(fd)
		return nil, err
	}
	part := func(at, size int) {
		v := unix.Iovec{Base: &s.buf[at]}
		v.SetLen(size)
		s.parts = append(s.parts, v)
	}
	if gaps {
		part(0, vnetHeader+ethernetIPUDP)
		at := headerRoom
		for range pieces {
			at += headerRoom
			part(at, pieceSize)
			at += pieceSize
		}
	}
	return s, nil
}

func (s *superRead) Close() {
	unix.Close(s.fd)
	unix.Munmap(s.buf)
}

func (s *superRead) take() (int, error) {
	n, e := 0, unix.Errno(0)
	if s.parts != nil {
		n, e = readv(s.fd, s.parts)
	} else {
		n, e = sys.ReadFD(uintptr(s.fd), s.buf)
	}
	switch {
	case e == unix.EAGAIN:
		return 0, wait(s.fd)
	case e != 0:
		return 0, fmt.Errorf("read: %w", e)
	case n != superFrame:
		return 0, fmt.Errorf("read: a packet of %d bytes, want %d", n, superFrame)
	}
	return 1, nil
}

// readv is readv(2), once, without an allocation.
func readv(fd int, parts []unix.Iovec) (int, unix.Errno) {
	for {
		n, _, e := unix.Syscall(unix.SYS_READV, uintptr(fd), uintptr(unsafe.Pointer(&parts[0])), uintptr(len(parts)))
		if e != unix.EINTR {
			return int(n), e
		}
	}
}
