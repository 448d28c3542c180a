package sys

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TunSupported says whether OpenTAP can work on this system.
const TunSupported = true

// EBADFD is what a queue says whose device was deleted.
const EBADFD = unix.EBADFD

// A Tun is an open queue of a TAP device.
type Tun struct {
	File *os.File        // the queue; pollable. Its Fd method must not be called: it makes the file blocking.
	Conn syscall.RawConn // of File

	mu      sync.Mutex
	ctl     *os.File        // a socket for interface ioctls, in the namespace of the device
	ctlConn syscall.RawConn // of ctl
	ns      uint64          // inode of that namespace, 0 = unknown
}

// OpenTAP attaches to the TAP device name, which it creates if there is none. The
// kernel picks a name for "" and fills in a "%d". The name must be shorter than
// 16 bytes. The error is a bare errno: EBUSY when somebody else is attached,
// EINVAL when a device of that name is no TAP of this kind or the name is bad.
func OpenTAP(name string) (*Tun, error) {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)

	// The order matters: a tun file that is put into the poller before TUNSETIFF
	// reports an error for good, and one that is blocking when it becomes an
	// os.File is never pollable (Go 1.26, Linux 6.18).
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		unix.Close(fd)
		return nil, err
	}
	// A persistent device keeps the offloads an earlier program asked for. Without
	// the virtio header that goes with them its packets would come in as
	// superframes and with checksums that nobody completes.
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, 0); err != nil {
		unix.Close(fd)
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	t := &Tun{File: os.NewFile(uintptr(fd), "/dev/net/tun")}
	if t.Conn, err = t.File.SyscallConn(); err == nil {
		t.ns, _ = t.namespace()
		err = t.control()
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Close gives up the queue; a device that is not persistent goes with its last
// one.
func (t *Tun) Close() error {
	err := t.File.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctl != nil {
		t.ctl.Close()
	}
	return err
}

// control opens the socket for interface ioctls in the namespace of the calling
// thread.
func (t *Tun) control() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if t.ctl != nil {
		t.ctl.Close()
	}
	t.ctl = os.NewFile(uintptr(fd), "tun control socket")
	t.ctlConn, err = t.ctl.SyscallConn()
	return err
}

// do runs an ioctl on a file without taking its descriptor out of the poller.
func do(c syscall.RawConn, f func(fd int) error) error {
	var err error
	if cerr := c.Control(func(fd uintptr) { err = f(int(fd)) }); cerr != nil {
		return cerr
	}
	return err
}

// Name asks the kernel what the device is called: it may have been renamed.
func (t *Tun) Name() (string, error) {
	ifr, err := unix.NewIfreq("")
	if err != nil {
		return "", err
	}
	err = do(t.Conn, func(fd int) error { return unix.IoctlIfreq(fd, unix.TUNGETIFF, ifr) })
	return ifr.Name(), err
}

// ioctl runs an interface ioctl on the device: prepare fills the request in.
func (t *Tun) ioctl(req uint, prepare func(*unix.Ifreq)) (*unix.Ifreq, error) {
	name, err := t.Name()
	if err != nil {
		return nil, err
	}
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	if prepare != nil {
		prepare(ifr)
	}
	return ifr, do(t.ctlConn, func(fd int) error { return unix.IoctlIfreq(fd, req, ifr) })
}

// MTU asks for the MTU of the device, without Ethernet header. It follows a device
// that was moved to another network namespace, given the privilege to enter it. It
// may wait for the kernel's rtnl lock: not for the data path.
func (t *Tun) MTU() (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.follow(); err != nil {
		return 0, err
	}
	ifr, err := t.ioctl(unix.SIOCGIFMTU, nil)
	if err != nil {
		return 0, err
	}
	return int(ifr.Uint32()), nil
}

// SetMTU sets the MTU of the device, without Ethernet header.
func (t *Tun) SetMTU(mtu int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := t.ioctl(unix.SIOCSIFMTU, func(ifr *unix.Ifreq) { ifr.SetUint32(uint32(mtu)) })
	return err
}

// Up brings the device up. It asks for no privilege when it is up already.
func (t *Tun) Up() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	ifr, err := t.ioctl(unix.SIOCGIFFLAGS, nil)
	if err != nil || ifr.Uint16()&unix.IFF_UP != 0 {
		return err
	}
	flags := ifr.Uint16() | unix.IFF_UP
	_, err = t.ioctl(unix.SIOCSIFFLAGS, func(ifr *unix.Ifreq) { ifr.SetUint16(flags) })
	return err
}

// SetMAC sets the address of the device. The tun driver takes this ioctl on the
// queue itself, whatever namespace the device is in.
func (t *Tun) SetMAC(mac [6]byte) error {
	var req struct { // struct ifreq with ifr_hwaddr
		name   [unix.IFNAMSIZ]byte
		family uint16
		addr   [14]byte
		_      [8]byte
	}
	req.family = unix.ARPHRD_ETHER
	copy(req.addr[:], mac[:])
	return do(t.Conn, func(fd int) error {
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFHWADDR, uintptr(unsafe.Pointer(&req))); e != 0 {
			return e
		}
		return nil
	})
}

// namespace returns the inode of the network namespace the device is in now.
// TUNGETDEVNETNS exists since Linux 5.4.
func (t *Tun) namespace() (ino uint64, err error) {
	err = t.inNamespace(func(ns int) error {
		var st unix.Stat_t
		err := unix.Fstat(ns, &st)
		ino = st.Ino
		return err
	})
	return ino, err
}

func (t *Tun) inNamespace(f func(ns int) error) error {
	return do(t.Conn, func(fd int) error {
		ns, err := unix.IoctlRetInt(fd, unix.TUNGETDEVNETNS)
		if err != nil {
			return err
		}
		defer unix.Close(ns)
		return f(ns)
	})
}

// follow opens the control socket anew if the device is in another namespace than
// before. A kernel that does not say where it is leaves the socket as it is.
func (t *Tun) follow() error {
	ino, err := t.namespace()
	if err != nil || ino == t.ns {
		return nil
	}
	err = t.inNamespace(func(ns int) error {
		// Setns is for one thread. It is not unlocked and so ends with the goroutine:
		// no other goroutine ever runs in the foreign namespace.
		res := make(chan error, 1)
		go func() {
			runtime.LockOSThread()
			if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
				res <- fmt.Errorf("entering the device's network namespace: %w", err)
				return
			}
			res <- t.control()
		}()
		return <-res
	})
	if err == nil {
		t.ns = ino
	}
	return err
}

// ReadFD is read(2), once, without an allocation for any outcome.
func ReadFD(fd uintptr, p []byte) (int, syscall.Errno) {
	return rw(unix.SYS_READ, fd, p)
}

// WriteFD is write(2), once, without an allocation for any outcome.
func WriteFD(fd uintptr, p []byte) (int, syscall.Errno) {
	return rw(unix.SYS_WRITE, fd, p)
}

func rw(trap, fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, _, e := unix.Syscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

// A Pair is the scratch memory of a writev(2) of two parts.
type Pair [2]unix.Iovec

// WriteFD writes a and b, in one piece, without an allocation for any outcome.
func (v *Pair) WriteFD(fd uintptr, a, b []byte) (int, syscall.Errno) {
	v[0].Base, v[1].Base = unsafe.SliceData(a), unsafe.SliceData(b)
	v[0].SetLen(len(a))
	v[1].SetLen(len(b))
	defer clear(v[:]) // the parts are borrowed
	for {
		n, _, e := unix.Syscall(unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(v)), uintptr(len(v)))
		if e != unix.EINTR {
			return int(n), e
		}
	}
}
