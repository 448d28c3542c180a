package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// plainSend is sendmsg, or sendmmsg with several superframes a system call, copied by it:
// cut into 90 pieces is the way used now; in one piece is what a buffer with gaps for the
// headers allows.
type plainSend struct {
	fd   int
	msg  superMessage
	msgs []sys.Mmsghdr
}

func newSendmsg(fd, n int, cut bool) (sender, error) {
	s := &plainSend{fd: fd, msgs: make([]sys.Mmsghdr, n)}
	var err error
	if s.msg, err = newSuperMessage(cut); err != nil {
		return nil, err
	}
	for i := range s.msgs {
		s.msgs[i].Hdr = *s.msg.hdr
	}
	return s, nil
}

func (s *plainSend) send() (int, error) {
	n, e := sys.Sendmmsg(uintptr(s.fd), s.msgs, 0)
	if e != 0 && e != unix.ENOBUFS && e != unix.EINTR {
		return 0, fmt.Errorf("sendmsg: %w", e)
	}
	return n, nil
}

func (s *plainSend) end() (string, error) { return "", nil }
func (s *plainSend) Close()               { s.msg.Close() }

// zerocopySend has the kernel send from our pages (MSG_ZEROCOPY). A message has at most 17
// fragments, of a page each, so only a superframe in one piece, or few, can go this way:
// 90 pieces are EMSGSIZE. The buffer is lent until a completion in the error queue
// returns it; each says for a range of messages whether they were copied after all.
//
// On a veth they always are, when the packet is handed to the other namespace: there this
// way pays for pinning the pages and for the copy. What a network card makes of it a veth
// does not show.
type zerocopySend struct {
	fd         int
	msgs       [lent]superMessage
	hdr        [1]sys.Mmsghdr
	sent, back int
	copied     int
	oob        []byte
}

// lent is how many buffers may be with the kernel.
const lent = 16

func newZerocopy(fd int) (sender, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1); err != nil {
		return nil, refused("SO_ZEROCOPY", err)
	}
	z := &zerocopySend{fd: fd, oob: make([]byte, 256)}
	for i := range z.msgs {
		var err error
		if z.msgs[i], err = newSuperMessage(false); err != nil {
			z.Close()
			return nil, err
		}
	}
	return z, nil
}

func (z *zerocopySend) Close() {
	for i := range z.msgs {
		z.msgs[i].Close()
	}
}

func (z *zerocopySend) send() (int, error) {
	if z.sent-z.back == lent {
		if err := z.collect(); err != nil {
			return 0, err
		}
		if z.sent-z.back == lent {
			return 0, z.await()
		}
	}
	z.hdr[0].Hdr = *z.msgs[z.sent%lent].hdr
	_, e := sys.Sendmmsg(uintptr(z.fd), z.hdr[:], unix.MSG_ZEROCOPY)
	switch {
	case e == unix.ENOBUFS: // no room for the notification: net.core.optmem_max
		return 0, z.collect()
	case e == unix.EINTR:
		return 0, nil
	case e != 0 && z.sent == 0:
		return 0, refused("MSG_ZEROCOPY", e)
	case e != 0:
		return 0, fmt.Errorf("sendmsg: %w", e)
	}
	z.sent++
	return 1, nil
}

// await waits until there is a completion, at most a tick: a socket with something in its
// error queue polls as POLLERR.
func (z *zerocopySend) await() error {
	p := [1]unix.PollFd{{Fd: int32(z.fd)}}
	if _, err := unix.Poll(p[:], tick); err != nil && err != unix.EINTR {
		return fmt.Errorf("poll: %w", err)
	}
	return nil
}

// collect takes what completions there are.
func (z *zerocopySend) collect() error {
	for {
		_, n, _, _, err := unix.Recvmsg(z.fd, nil, z.oob, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if err == unix.EAGAIN {
			return nil
		}
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("error queue: %w", err)
		}
		for b, ok := z.oob[:n], true; ok; {
			var level, typ int
			var d []byte
			level, typ, d, b, ok = sys.NextCmsg(b)
			// struct sock_extended_err: the range is in ee_info and ee_data.
			if ok && level == unix.IPPROTO_IP && typ == unix.IP_RECVERR && len(d) >= 16 && d[4] == unix.SO_EE_ORIGIN_ZEROCOPY {
				n := int(binary.NativeEndian.Uint32(d[12:])-binary.NativeEndian.Uint32(d[8:])) + 1
				z.back += n
				if d[6]&unix.SO_EE_CODE_ZEROCOPY_COPIED != 0 {
					z.copied += n
				}
			}
		}
	}
}

func (z *zerocopySend) end() (string, error) {
	for late := time.Now().Add(2 * time.Second); z.back < z.sent; {
		if time.Now().After(late) {
			return "", errors.New("completions are missing")
		}
		if err := errors.Join(z.await(), z.collect()); err != nil {
			return "", err
		}
	}
	return copies(z.copied, z.sent), nil
}

func copies(n, of int) string {
	return fmt.Sprintf("%.0f%% copied after all", 100*float64(n)/float64(of))
}
