package sys

import (
	"encoding/binary"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A PacketSocket is a socket of packet(7) that carries Ethernet frames of one interface.
type PacketSocket struct {
	File *os.File        // pollable. Its Fd method must not be called: it makes the file blocking.
	Conn syscall.RawConn // of File
}

// PacketMode says what a PacketSocket is for.
type PacketMode struct {
	Receive bool // frames come in; else it is for sending only
	Vnet    bool // a virtio header in front of each frame
	Shut    bool // nothing comes in before Filter, though the socket is bound
	Buffer  int  // bytes: of the receive buffer with Receive, else of the send buffer
}

// OpenPacket opens a socket in the network namespace of the calling thread. It receives
// nothing until Bind: its protocol is 0, so frames of other interfaces never get in. The
// error is EPERM without CAP_NET_RAW.
func OpenPacket(m PacketMode) (*PacketSocket, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	s := new(PacketSocket)
	if s.File, s.Conn, err = Pollable(fd, "packet socket"); err != nil {
		return nil, err
	}
	if err := Control(s.Conn, m.set); err != nil {
		s.File.Close()
		return nil, err
	}
	return s, nil
}

func (m PacketMode) set(fd int) error {
	option := func(name string, level, number int) error {
		if err := unix.SetsockoptInt(fd, level, number, 1); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	if m.Vnet {
		if err := option("PACKET_VNET_HDR", unix.SOL_PACKET, unix.PACKET_VNET_HDR); err != nil {
			return err
		}
	}
	if !m.Receive {
		return os.NewSyscallError("SO_SNDBUF", SetBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, m.Buffer))
	}
	if err := option("PACKET_AUXDATA", unix.SOL_PACKET, unix.PACKET_AUXDATA); err != nil {
		return err
	}
	if err := option("PACKET_IGNORE_OUTGOING (Linux 4.20)", unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING); err != nil {
		return err
	}
	if m.Shut {
		if err := RefuseAll(fd); err != nil {
			return err
		}
	}
	return os.NewSyscallError("SO_RCVBUF", SetBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, m.Buffer))
}

// SetBuffer sets a buffer size beyond the limit of the system, or without CAP_NET_ADMIN up to it.
func SetBuffer(fd, force, plain, size int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, size) == nil {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, size)
}

// Index returns the index of an interface in the socket's network namespace. The name is
// shorter than 16 bytes.
func (s *PacketSocket) Index(name string) (index int, err error) {
	index, err = InterfaceIndex(s.Conn, name)
	if err != nil && err != unix.ENODEV { // needs no explanation
		err = os.NewSyscallError("SIOCGIFINDEX", err)
	}
	return index, err
}

// InterfaceIndex returns the index of an interface in the network namespace of a socket.
func InterfaceIndex(c syscall.RawConn, name string) (int, error) {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	err = Control(c, func(fd int) error { return unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, ifr) })
	return int(ifr.Uint32()), err
}

// Bind binds the socket to an interface, whose frames of all protocols come in from now on if
// receive is set. While the interface is down nothing does, and when it comes up it goes on
// by itself; each time it goes down the next call of recvmsg says ENETDOWN, once.
func (s *PacketSocket) Bind(index int, receive bool) error {
	sa := &unix.SockaddrLinklayer{Ifindex: index}
	if receive {
		sa.Protocol = binary.NativeEndian.Uint16([]byte{unix.ETH_P_ALL >> 8, unix.ETH_P_ALL & 0xff})
	}
	return Control(s.Conn, func(fd int) error { return unix.Bind(fd, sa) })
}

// Join shares what comes in with another socket that is bound to the same interface: a flow
// goes to one of them, by the hash of its addresses and ports. With nil it makes a group with
// a new id, for others to join.
//
// From here on it is the group that ignores what goes out, which has to be told:
// PACKET_IGNORE_OUTGOING of its sockets means nothing any more (seen on Linux 6.18). An older
// kernel does not know the flag and says EINVAL.
func (s *PacketSocket) Join(other *PacketSocket) error {
	const kind = unix.PACKET_FANOUT_HASH | unix.PACKET_FANOUT_FLAG_IGNORE_OUTGOING
	how := (kind | unix.PACKET_FANOUT_FLAG_UNIQUEID) << 16
	if other != nil {
		if err := Control(other.Conn, func(fd int) error {
			v, err := unix.GetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_FANOUT)
			how = v&0xffff | kind<<16
			return err
		}); err != nil {
			return err
		}
	}
	return Control(s.Conn, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_FANOUT, how) })
}

// Promiscuous has the interface receive frames to any address while the socket is open.
func (s *PacketSocket) Promiscuous(index int) error {
	return Control(s.Conn, func(fd int) error {
		return unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP,
			&unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC})
	})
}

// Buffer returns the size of the socket's receive or send buffer as the kernel counts, 0
// after Close.
func (s *PacketSocket) Buffer(receive bool) (n int) {
	which := unix.SO_SNDBUF
	if receive {
		which = unix.SO_RCVBUF
	}
	Control(s.Conn, func(fd int) (err error) {
		n, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, which)
		return err
	})
	return n
}

// Drops returns how many frames the kernel has dropped because the receive buffer was full; a
// 32-bit counter that wraps.
func (s *PacketSocket) Drops() (n uint32, ok bool) {
	Control(s.Conn, func(fd int) error {
		n, ok = Drops(uintptr(fd))
		return nil
	})
	return n, ok
}

// PacketUSO reports whether a packet socket takes UDP superframes (Linux 6.2). Nothing but the
// version tells: to a kernel that does not they are an EINVAL, as are many other things.
func PacketUSO() bool {
	var u unix.Utsname
	var major, minor int
	if unix.Uname(&u) != nil {
		return false
	}
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); n < 2 {
		return false
	}
	return major > 6 || major == 6 && minor >= 2
}

// A PacketReader is the scratch memory of recvmsg(2) on a packet socket. The zero value
// works; it is used by one goroutine.
type PacketReader struct {
	hdr unix.Msghdr
	iov [2]unix.Iovec
	ctl [192]byte // the auxdata, and one or two messages that somebody else asked for
}

// PacketAux is what the kernel says beside a frame.
type PacketAux struct {
	VLAN       bool // a tag was taken out of the frame
	TPID, TCI  uint16
	Unfinished bool // the transport checksum is to be completed
	Cut        bool // the frame was longer than the room for it
}

// Read receives one frame, without an allocation for any outcome: its virtio header in head,
// which is empty for a socket without, and n bytes of the frame in p.
func (r *PacketReader) Read(fd uintptr, head, p []byte) (n int, aux PacketAux, errno syscall.Errno) {
	r.iov[0].Base, r.iov[1].Base = unsafe.SliceData(head), unsafe.SliceData(p)
	r.iov[0].SetLen(len(head))
	r.iov[1].SetLen(len(p))
	r.hdr = unix.Msghdr{Iov: &r.iov[0], Control: &r.ctl[0]}
	r.hdr.SetIovlen(len(r.iov))
	r.hdr.SetControllen(len(r.ctl))
	for {
		var v uintptr
		v, _, errno = unix.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&r.hdr)), unix.MSG_DONTWAIT)
		n = int(v)
		if errno != unix.EINTR {
			break
		}
	}
	r.iov[0].Base, r.iov[1].Base = nil, nil // borrowed
	if errno != 0 {
		return 0, aux, errno
	}
	aux.parse(r.ctl[:r.hdr.Controllen])
	aux.Cut = r.hdr.Flags&unix.MSG_TRUNC != 0
	return max(n-len(head), 0), aux, 0
}

const auxdataLen = 20

// parse reads struct tpacket_auxdata (linux/if_packet.h).
//
//	0        4     8         12    14    16     18     20
//	+--------+-----+---------+-----+-----+------+------+
//	| status | len | snaplen | mac | net | tci  | tpid |
//	+--------+-----+---------+-----+-----+------+------+
func (a *PacketAux) parse(b []byte) {
	for {
		level, typ, d, rest, ok := NextCmsg(b)
		if !ok {
			return
		}
		b = rest
		if level != unix.SOL_PACKET || typ != unix.PACKET_AUXDATA || len(d) < auxdataLen {
			continue
		}
		status := binary.NativeEndian.Uint32(d)
		a.Unfinished = status&unix.TP_STATUS_CSUMNOTREADY != 0
		if a.VLAN = status&unix.TP_STATUS_VLAN_VALID != 0; a.VLAN {
			a.TCI, a.TPID = binary.NativeEndian.Uint16(d[16:]), unix.ETH_P_8021Q
			if status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
				a.TPID = binary.NativeEndian.Uint16(d[18:])
			}
		}
	}
}
