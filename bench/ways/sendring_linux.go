package main

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// atOnce is how many superframes go with one system call, where it is several.
const atOnce = 8

// ringSend is sendmsg by io_uring. What it spares is system calls, as sendmmsg does.
type ringSend struct {
	fd   int
	ring *uring
	msg  superMessage
}

func newSendRing(fd int, cut bool) (sender, error) {
	s := &ringSend{fd: fd}
	var err error
	if s.ring, err = newRing(atOnce); err != nil {
		return nil, err
	}
	if s.msg, err = newSuperMessage(cut); err != nil {
		s.Close()
		return nil, err
	}
	s.ring.pin.Pin(s.msg.hdr)
	s.ring.pin.Pin(&s.msg.iov[0])
	return s, nil
}

func (s *ringSend) Close() {
	s.ring.Close()
	s.msg.Close()
}

func (s *ringSend) send() (n int, err error) {
	for range atOnce {
		s.ring.add(sqe{opcode: opSendmsg, fd: int32(s.fd), addr: address(unsafe.Pointer(s.msg.hdr)), len: 1})
	}
	for done := 0; done < atOnce; {
		if err := s.ring.enter(atOnce - done); err != nil {
			return n, err
		}
		done += s.ring.reap(func(c *cqe) {
			switch {
			case c.res == pieces*pieceSize:
				n++
			case c.res >= 0:
				err = fmt.Errorf("io_uring: %d bytes were sent", c.res)
			case c.res != -int32(unix.ENOBUFS):
				err = refused("IORING_OP_SENDMSG", unix.Errno(-c.res))
			}
		})
	}
	return n, err
}

func (s *ringSend) end() (string, error) { return "", nil }

// zcSend is IORING_OP_SEND_ZC (Linux 6.0) from registered buffers, whose pages are pinned
// once and not for each message as with MSG_ZEROCOPY. Each send has two completions: the
// result, and a notification when the buffer is free again, which says whether it was
// copied after all. On a veth it is; see zerocopySend.
type zcSend struct {
	fd     int
	ring   *uring
	msgs   [lent]superMessage
	free   []int // of msgs
	done   int   // notifications
	copied int
}

func newSendZC(fd int) (_ sender, err error) {
	s := &zcSend{fd: fd}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.ring, err = newRing(2 * lent); err != nil {
		return nil, err
	}
	iov := make([]unix.Iovec, lent)
	for i := range s.msgs {
		if s.msgs[i], err = newSuperMessage(false); err != nil {
			return nil, err
		}
		iov[i] = s.msgs[i].iov[0]
		s.free = append(s.free, i)
	}
	return s, s.ring.register(registerBuffers, unsafe.Pointer(&iov[0]), len(iov))
}

func (s *zcSend) Close() {
	if s.ring != nil {
		s.ring.Close()
	}
	for i := range s.msgs {
		s.msgs[i].Close()
	}
}

func (s *zcSend) send() (n int, err error) {
	for range min(atOnce, len(s.free)) {
		i := s.free[len(s.free)-1]
		s.free = s.free[:len(s.free)-1]
		s.ring.add(sqe{opcode: opSendZC, ioprio: sendFixedBuf | sendReportUsage, fd: int32(s.fd), user: uint64(i), buf: uint16(i),
			addr: address(unsafe.Pointer(&s.msgs[i].memory[0])), len: pieces * pieceSize})
	}
	return s.fetch()
}

// fetch submits what was added and takes completions, one at least unless a tick is over.
func (s *zcSend) fetch() (n int, err error) {
	if err := s.ring.enter(max(1, int(s.ring.queued))); err != nil {
		return 0, err
	}
	s.ring.reap(func(c *cqe) {
		if c.flags&cqeMore == 0 {
			s.free = append(s.free, int(c.user))
		}
		switch {
		case c.flags&cqeNotif != 0:
			s.done++
			if uint32(c.res)&notifCopied != 0 {
				s.copied++
			}
		case c.res == pieces*pieceSize:
			n++
		case c.res >= 0:
			err = fmt.Errorf("io_uring: %d bytes were sent", c.res)
		case c.res != -int32(unix.ENOBUFS):
			err = refused("IORING_OP_SEND_ZC", unix.Errno(-c.res))
		}
	})
	return n, err
}

func (s *zcSend) end() (string, error) {
	for late := time.Now().Add(2 * time.Second); len(s.free) < lent; {
		if time.Now().After(late) {
			return "", errors.New("notifications are missing")
		}
		if _, err := s.fetch(); err != nil {
			return "", err
		}
	}
	return copies(s.copied, s.done), nil
}
