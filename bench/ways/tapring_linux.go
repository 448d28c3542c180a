package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tapRing is one io_uring_enter for many reads of a TAP. The file is non-blocking, so
// that a read of an empty device completes with EAGAIN: on a blocking one every read that
// finds nothing would be armed to wait for the device, and a single packet would wake them
// all. The price is the reads that are in vain, so their number follows what was there
// last time. When none brought anything it waits by poll(2).
type tapRing struct {
	fd, min, most, next int
	each                int
	ring                *uring
	buf                 []byte
}

func newTapRing() (taker, error) { return newReadRing(0, 32, smallRoom, vnetHeader+smallFrame) }

// newReadRing reads up to most packets at once, each into its own room.
func newReadRing(offload, most, each, min int) (taker, error) {
	fd, err := openTAP(unix.O_NONBLOCK, offload)
	if err != nil {
		return nil, err
	}
	t := &tapRing{fd: fd, min: min, most: most, next: 1, each: each}
	if t.ring, err = newRing(most); err == nil {
		t.buf, err = pages(most * each)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *tapRing) Close() {
	if t.ring != nil {
		t.ring.Close()
	}
	if t.buf != nil {
		unix.Munmap(t.buf)
	}
	unix.Close(t.fd)
}

func (t *tapRing) take() (n int, err error) {
	for i := range t.next {
		t.ring.add(sqe{opcode: opRead, fd: int32(t.fd), off: ^uint64(0),
			addr: address(unsafe.Pointer(&t.buf[i*t.each])), len: uint32(t.each)})
	}
	for done := 0; done < t.next; {
		if err := t.ring.enter(t.next - done); err != nil {
			return n, err
		}
		done += t.ring.reap(func(c *cqe) {
			switch {
			case int(c.res) >= t.min:
				n++
			case c.res >= 0:
				err = fmt.Errorf("io_uring: a packet of %d bytes", c.res)
			case c.res != -int32(unix.EAGAIN):
				err = refused("IORING_OP_READ", unix.Errno(-c.res))
			}
		})
	}
	switch {
	case n == t.next:
		t.next = min(2*t.next, t.most)
	case err == nil && n == 0:
		t.next = 1
		err = wait(t.fd)
	default:
		t.next = max(n, 1)
	}
	return n, err
}

// tapMultishot is one read that stays: as long as it lives the kernel takes a buffer of
// the ring of provided ones for each packet and posts a completion, and the reader enters
// the kernel only to fetch them (IORING_OP_READ_MULTISHOT, Linux 6.7). It needs a file
// that can be polled, and a blocking one: with O_NONBLOCK it would end at the first
// EAGAIN. It also ends when it runs out of buffers, and is then posted again.
type tapMultishot struct {
	fd    int
	ring  *uring
	bufs  *bufferRing
	alive bool
}

func newTapMultishot() (taker, error) {
	fd, err := openTAP(0, 0)
	if err != nil {
		return nil, err
	}
	t := &tapMultishot{fd: fd}
	if t.ring, err = newRing(2 * batch); err == nil {
		t.bufs, err = t.ring.provide(4*batch, smallRoom)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *tapMultishot) Close() {
	if t.ring != nil {
		t.ring.Close()
	}
	if t.bufs != nil {
		t.bufs.Close()
	}
	unix.Close(t.fd)
}

func (t *tapMultishot) take() (n int, err error) {
	if !t.alive {
		t.ring.add(sqe{opcode: opReadMultishot, flags: sqeBufferSelect, fd: int32(t.fd), off: ^uint64(0)})
		t.alive = true
	}
	if err := t.ring.enter(1); err != nil {
		return 0, err
	}
	t.ring.reap(func(c *cqe) {
		t.alive = t.alive && c.flags&cqeMore != 0
		if c.flags&cqeBuffer != 0 {
			t.bufs.back(uint16(c.flags >> 16))
		}
		switch {
		case c.res >= vnetHeader+smallFrame:
			n++
		case c.res >= 0:
			err = fmt.Errorf("io_uring: a packet of %d bytes", c.res)
		case c.res != -int32(unix.ENOBUFS):
			err = refused("IORING_OP_READ_MULTISHOT", unix.Errno(-c.res))
		}
	})
	t.bufs.publish()
	return n, err
}
