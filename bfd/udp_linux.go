package bfd

import (
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// The sockets are not in the runtime's poller: the kernel would wake it for every packet sent or received. With many sessions
// that doubles the processor time.

// udpControl is room for the control messages of a packet.
const udpControl = 128

// A udpReceiver is a socket to receive from. Its goroutine waits in an epoll instance of the socket's own, which wakes it once
// for all packets that arrive until it waits again.
type udpReceiver struct {
	is4, multihop bool

	sock io.Closer
	raw  syscall.RawConn
	wake *os.File // the epoll instance
	ep   syscall.RawConn

	msgs    [udpBatch]sys.Mmsghdr
	from    [udpBatch]sys.Sockaddr
	iov     [udpBatch]unix.Iovec
	payload [udpBatch][udpRoom]byte
	control [udpBatch][udpControl]byte
	event   [1]unix.EpollEvent
}

// open takes over a socket. If that fails it is closed.
func (r *udpReceiver) open(conn *net.UDPConn) (err error) {
	if r.sock, r.raw, err = unpolled(conn); err != nil {
		return err
	}
	if r.wake, r.ep, err = sys.NewEpoll("bfd: epoll instance"); err != nil {
		r.sock.Close()
		return err
	}
	if err := sys.EpollAdd(r.ep, r.raw, 0, 0); err != nil {
		r.Close()
		return err
	}
	for i := range r.msgs {
		h := &r.msgs[i].Hdr
		h.Name, h.Iov, h.Control = (*byte)(unsafe.Pointer(&r.from[i])), &r.iov[i], &r.control[i][0]
		h.SetIovlen(1)
		r.iov[i].Base = &r.payload[i][0]
		r.iov[i].SetLen(udpRoom)
	}
	return nil
}

// Close closes the socket, and ends receive.
func (r *udpReceiver) Close() error {
	r.wake.Close()
	return r.sock.Close()
}

// beside runs f, which opens a socket, in the socket's network namespace: the Speaker's goroutine may be in a different one.
func (r *udpReceiver) beside(f func() error) (err error) {
	if e := r.raw.Control(func(fd uintptr) { err = sys.InNamespaceOf(fd, f) }); e != nil {
		return e
	}
	return err
}

// receive waits for packets and gives them to the Speaker.
func (r *udpReceiver) receive(u *UDP) (n int, err error) {
	for {
		if n, err = r.recvmmsg(); err != unix.EAGAIN {
			break
		}
		if err := sys.EpollChange(r.ep, r.raw, unix.EPOLLIN|unix.EPOLLONESHOT, 0); err != nil {
			return 0, err
		}
		if err := r.ep.Read(func(epfd uintptr) bool {
			n, err := unix.EpollWait(int(epfd), r.event[:], 0)
			return n > 0 || err != nil && err != unix.EINTR
		}); err != nil {
			return 0, err
		}
	}
	var info sys.RxInfo
	for i := range n {
		h := &r.msgs[i].Hdr
		from, ok := sys.Endpoint(&r.from[i], h.Namelen)
		if info.Parse(r.control[i][:h.Controllen]); !ok || !info.HasDst {
			continue
		}
		local, remote := netip.AddrFrom16(info.Dst).Unmap(), netip.AddrFrom16(from.IP).Unmap()
		r.packet(u, local, remote, int(info.If), info.TTL, r.payload[i][:r.msgs[i].Len])
	}
	return n, err
}

func (r *udpReceiver) recvmmsg() (n int, err error) {
	for i := range r.msgs {
		h := &r.msgs[i].Hdr
		h.Namelen = uint32(unsafe.Sizeof(r.from[i]))
		h.SetControllen(udpControl)
	}
	err = sys.Control(r.raw, func(fd int) error {
		var e unix.Errno
		if n, e = sys.Recvmmsg(uintptr(fd), r.msgs[:], unix.MSG_DONTWAIT); e != 0 {
			return e
		}
		return nil
	})
	return n, err
}

// A destination is where a socket sends to. It does not move.
type destination struct {
	msg [1]sys.Mmsghdr
	iov unix.Iovec
	sa  sys.Sockaddr
}

func (d *destination) set(a netip.Addr, port uint16) {
	zone, _ := strconv.Atoi(a.Zone())
	e := frame.Endpoint{IP: a.As16(), Scope: uint32(zone), Port: port}
	h := &d.msg[0].Hdr
	h.Namelen = sys.PutSockaddr(&d.sa, &e, a.Is4())
	h.Name, h.Iov = (*byte)(unsafe.Pointer(&d.sa)), &d.iov
	h.SetIovlen(1)
}

// send sends without waiting, and so without a word to Go's scheduler: a fifth less of a processor than syscall.Sendto.
func (d *destination) send(fd uintptr, b []byte) error {
	d.iov.Base = unsafe.SliceData(b)
	d.iov.SetLen(len(b))
	_, e := sys.Sendmmsg(fd, d.msg[:], unix.MSG_DONTWAIT)
	d.iov.Base = nil
	if e != 0 {
		return e
	}
	return nil
}

// unpolled returns a copy of a socket outside the runtime's poller, and closes the socket, also on errors.
func unpolled(conn *net.UDPConn) (io.Closer, syscall.RawConn, error) {
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	return sys.Unpolled(raw, "BFD socket")
}
