package sys

import (
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Link is the network device behind a Tun: what is set on a device and not on a
// queue. It finds the device under whatever name and in whatever network namespace
// it is now. Its methods may wait for the kernel's rtnl lock: they are not for the
// data path.
type Link struct {
	t *Tun

	mu   sync.Mutex
	ctl  *os.File        // a socket of rtnetlink: interface ioctls work on it as well
	conn syscall.RawConn // of ctl
	ns   uint64          // inode of the namespace ctl is in
}

// NewLink returns the device of a queue. It starts to look for it in the namespace
// of the calling thread.
func NewLink(t *Tun) (*Link, error) {
	l := &Link{t: t}
	return l, l.enter()
}

// Close forgets the device.
func (l *Link) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctl != nil {
		l.ctl.Close()
	}
}

// enter opens the control socket in the namespace of the calling thread.
func (l *Link) enter() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	if l.ctl != nil {
		l.ctl.Close()
	}
	l.ctl = os.NewFile(uintptr(fd), "tun control socket")
	l.conn, err = l.ctl.SyscallConn()
	var st unix.Stat_t
	if unix.Stat("/proc/thread-self/ns/net", &st) == nil {
		l.ns = st.Ino
	} else if l.ns == 0 { // without /proc: where the device is
		l.ns, _ = l.where()
	}
	return err
}

// where returns the inode of the network namespace the device is in now.
// TUNGETDEVNETNS exists since Linux 5.4 and needs CAP_NET_ADMIN in that namespace.
func (l *Link) where() (ino uint64, err error) {
	err = l.inNamespace(func(ns int) error {
		var st unix.Stat_t
		err := unix.Fstat(ns, &st)
		ino = st.Ino
		return err
	})
	return ino, err
}

func (l *Link) inNamespace(f func(ns int) error) error {
	return Control(l.t.Conn, func(fd int) error {
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
func (l *Link) follow() error {
	ino, err := l.where()
	if err != nil || ino == l.ns {
		return nil
	}
	return l.inNamespace(func(ns int) error {
		if err := inNamespace(ns, l.enter); err != nil {
			return err
		}
		l.ns = ino
		return nil
	})
}

// ioctl runs an interface ioctl on the device: prepare fills the request in.
func (l *Link) ioctl(req uint, prepare func(*unix.Ifreq)) (*unix.Ifreq, error) {
	info, err := l.t.Info()
	if err != nil {
		return nil, err
	}
	ifr, err := unix.NewIfreq(info.Name)
	if err != nil {
		return nil, err
	}
	if prepare != nil {
		prepare(ifr)
	}
	return ifr, Control(l.conn, func(fd int) error { return unix.IoctlIfreq(fd, req, ifr) })
}

// MTU asks for the MTU of the device, without Ethernet header.
func (l *Link) MTU() (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.follow(); err != nil {
		return 0, err
	}
	ifr, err := l.ioctl(unix.SIOCGIFMTU, nil)
	if err != nil {
		return 0, err
	}
	return int(ifr.Uint32()), nil
}

// SetMTU sets the MTU of the device, without Ethernet header.
func (l *Link) SetMTU(mtu int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.follow(); err != nil {
		return err
	}
	_, err := l.ioctl(unix.SIOCSIFMTU, func(ifr *unix.Ifreq) { ifr.SetUint32(uint32(mtu)) })
	return err
}

// Carrier reports whether the device is up and has a carrier.
func (l *Link) Carrier() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.follow(); err != nil {
		return false, err
	}
	ifr, err := l.ioctl(unix.SIOCGIFFLAGS, nil)
	if err != nil {
		return false, err
	}
	return ifr.Uint16()&carrier == carrier, nil
}

// Up brings the device up. It asks for no privilege when it is up already.
func (l *Link) Up() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.follow(); err != nil {
		return err
	}
	ifr, err := l.ioctl(unix.SIOCGIFFLAGS, nil)
	if err != nil || ifr.Uint16()&unix.IFF_UP != 0 {
		return err
	}
	flags := ifr.Uint16() | unix.IFF_UP
	_, err = l.ioctl(unix.SIOCSIFFLAGS, func(ifr *unix.Ifreq) { ifr.SetUint16(flags) })
	return err
}

// Kind returns what device name is in the namespace of the calling thread: its
// driver, and of the tun driver "tun" or "tap". It helps to explain an EINVAL.
func Kind(name string) (driver, kind string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", ""
	}
	defer unix.Close(fd)
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, name)
	if err != nil {
		return "", ""
	}
	return unix.ByteSliceToString(info.Driver[:]), unix.ByteSliceToString(info.Bus_info[:])
}

// SetMAC sets the address of the device. The tun driver takes this ioctl on the
// queue itself, whatever namespace the device is in.
func (l *Link) SetMAC(mac [6]byte) error {
	var req struct { // struct ifreq with ifr_hwaddr
		name   [unix.IFNAMSIZ]byte
		family uint16
		addr   [14]byte
		_      [8]byte
	}
	req.family = unix.ARPHRD_ETHER
	copy(req.addr[:], mac[:])
	return Control(l.t.Conn, func(fd int) error {
		is := req
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCGIFHWADDR, uintptr(unsafe.Pointer(&is))); e == 0 && is.addr == req.addr {
			return nil // with any call the kernel forgets all neighbours on the device
		}
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFHWADDR, uintptr(unsafe.Pointer(&req))); e != 0 {
			return e
		}
		return nil
	})
}

// Place returns the index of the device, and which network namespace it is in (see [Namespace]).
func (l *Link) Place() (index int, ns uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.follow(); err != nil {
		return 0, 0, err
	}
	ifr, err := l.ioctl(unix.SIOCGIFINDEX, nil)
	if err != nil {
		return 0, 0, err
	}
	err = Control(l.conn, func(fd int) error {
		ns, _ = netnsCookie(uintptr(fd))
		return nil
	})
	return int(ifr.Uint32()), ns, err
}
