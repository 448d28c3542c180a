package sys

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
)

// QueuedError is one entry of a socket's error queue (IP_RECVERR, ip(7)): what
// became of a datagram that had been sent earlier.
type QueuedError struct {
	Errno              unix.Errno
	Origin, Type, Code uint8  // SO_EE_ORIGIN_LOCAL, _ICMP or _ICMP6, and the ICMP type and code
	Info               uint32 // the MTU, when Errno is EMSGSIZE

	// Dst is where the datagram was sent. In an entry about the MTU of our own interface
	// its port is 0 over IPv4 (Linux 6.18).
	Dst frame.Endpoint

	// Quoted is borrowed: the start of the payload as the ICMP error quoted it, at most
	// 128 bytes here. The kernel hands over all of it: 520 bytes over IPv4 and 1184 over
	// IPv6 when Linux 6.18 is the router. It is empty in an entry of our own kernel.
	Quoted []byte
}

const (
	queueBatch = 8
	quoteLen   = 128
	queueCtl   = 128
)

// ErrorQueue is scratch for draining error queues, for use by one goroutine. Make
// it with [NewErrorQueue].
type ErrorQueue struct {
	msgs  [queueBatch]Mmsghdr
	names [queueBatch]Sockaddr
	iov   [queueBatch]unix.Iovec
	quote [queueBatch][quoteLen]byte
	ctl   [queueBatch][queueCtl]byte
	err   QueuedError
}

// NewErrorQueue returns scratch for [ErrorQueue.Drain].
func NewErrorQueue() *ErrorQueue {
	q := new(ErrorQueue)
	for i := range q.msgs {
		q.iov[i].Base = &q.quote[i][0]
		q.iov[i].SetLen(quoteLen)
		h := &q.msgs[i].Hdr
		h.Name = (*byte)(unsafe.Pointer(&q.names[i]))
		h.Iov = &q.iov[i]
		h.SetIovlen(1)
		h.Control = &q.ctl[i][0]
	}
	return q
}

// Drain takes up to limit entries off the error queue of a socket, calls fn with
// each, and returns how many there were. It does not wait. The entry is valid
// until fn returns.
//
// Taking the last entry of an ICMP error off the queue also clears the socket's
// pending error, which otherwise fails the next send whoever it is for
// (sock_dequeue_err_skb, seen on Linux 6.18).
func (q *ErrorQueue) Drain(fd uintptr, limit int, fn func(*QueuedError)) int {
	total := 0
	for total < limit {
		msgs := q.msgs[:min(queueBatch, limit-total)]
		for i := range msgs {
			h := &msgs[i].Hdr
			h.Namelen = uint32(unsafe.Sizeof(q.names[i]))
			h.SetControllen(queueCtl)
			h.Flags = 0
		}
		n, errno := Recvmmsg(fd, msgs, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if errno == unix.EINTR {
			continue
		}
		for i := range msgs[:n] {
			q.err = QueuedError{}
			q.err.Dst, _ = Endpoint(&q.names[i], msgs[i].Hdr.Namelen)
			q.err.Quoted = q.quote[i][:min(int(msgs[i].Len), quoteLen)]
			q.err.parse(q.ctl[i][:min(int(msgs[i].Hdr.Controllen), queueCtl)])
			fn(&q.err)
		}
		total += n
		if n < len(msgs) {
			break
		}
	}
	return total
}

// parse reads struct sock_extended_err {u32 errno; u8 origin, type, code, pad; u32
// info, data} out of the control messages in b.
func (e *QueuedError) parse(b []byte) {
	for {
		level, typ, d, rest, ok := NextCmsg(b)
		if !ok {
			return
		}
		b = rest
		v4 := level == unix.IPPROTO_IP && typ == unix.IP_RECVERR
		v6 := level == unix.IPPROTO_IPV6 && typ == unix.IPV6_RECVERR
		if (v4 || v6) && len(d) >= 16 {
			e.Errno = unix.Errno(binary.NativeEndian.Uint32(d))
			e.Origin, e.Type, e.Code = d[4], d[5], d[6]
			e.Info = binary.NativeEndian.Uint32(d[8:])
		}
	}
}
