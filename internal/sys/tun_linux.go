package sys

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// TunSupported says whether OpenTun can work on this system.
const TunSupported = true

// EBADFD is what a queue says that is attached to no device, or whose device was
// deleted.
const EBADFD = unix.EBADFD

// TunMode is what a device of the tun driver is; it says what its queues carry.
type TunMode struct {
	TUN   bool // IP packets, not Ethernet frames
	Multi bool // may have several queues
	Vnet  bool // a virtio header in front of each packet
	New   bool // of OpenTun: EBUSY if there is a device of that name
}

func (m TunMode) flags() uint16 {
	flags := uint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if m.TUN {
		flags = unix.IFF_TUN | unix.IFF_NO_PI
	}
	if m.Multi {
		flags |= unix.IFF_MULTI_QUEUE
	}
	if m.Vnet {
		flags |= unix.IFF_VNET_HDR
	}
	if m.New {
		flags |= unix.IFF_TUN_EXCL
	}
	return flags
}

// A Tun is one queue of a TUN or TAP device.
type Tun struct {
	File *os.File        // the queue; pollable. Its Fd method must not be called: it makes the file blocking.
	Conn syscall.RawConn // of File
}

// OpenTun attaches a queue to the device name, which it creates if there is none.
// The kernel picks a name for "" and fills in a "%d". The name must be shorter than
// 16 bytes. The error is a bare errno: EBUSY when somebody else is attached, EINVAL
// when a device of that name is of another mode or the name is bad.
//
// A device that others are attached to, or were, may not have got the mode asked
// for: see Info.
func OpenTun(name string, m TunMode) (*Tun, error) {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	ifr.SetUint16(m.flags())

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
	return newTun(fd)
}

// TakeTun makes a Tun of a file that is attached to a device already. It works on a
// duplicate of the descriptor, since nobody knows whether the file's own is in the
// poller, and since when; f is not closed.
func TakeTun(f *os.File) (*Tun, error) {
	c, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	dup := -1
	if err := Control(c, func(fd int) (err error) {
		dup, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return err
	}); err != nil {
		return nil, err
	}
	return newTun(dup)
}

// newTun makes a Tun of an attached descriptor, which is closed on error.
func newTun(fd int) (*Tun, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	t := &Tun{File: os.NewFile(uintptr(fd), "/dev/net/tun")}
	var err error
	if t.Conn, err = t.File.SyscallConn(); err == nil {
		if _, none := t.Info(); none == nil { // of what is no tun Info tells the caller
			err = polled(t.File)
		}
	}
	if err != nil {
		t.File.Close()
		return nil, err
	}
	return t, nil
}

// Close gives up the queue; a device that is not persistent goes with its last
// one.
func (t *Tun) Close() error { return t.File.Close() }

// SetPersist has the device stay when its last queue is closed.
func (t *Tun) SetPersist() error {
	return Control(t.Conn, func(fd int) error { return unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1) })
}

// TunInfo is what the kernel says about the device of a queue.
type TunInfo struct {
	TunMode
	Name    string // now: it may have been renamed
	Persist bool   // the device stays when its last queue is closed
	Header  int    // length of the virtio header, 0 without Vnet; a persistent device keeps what an earlier owner set
}

// Info asks for the device of the queue. The error is EBADFD when there is none,
// and ENOTTY when the file is something else altogether. Whether packets are preceded
// by a struct tun_pi is not told, see [Link.PacketInfo]: TUNGETIFF uses the bit of
// IFF_NO_PI, 0x1000, for IFF_NOFILTER (Linux 6.18).
func (t *Tun) Info() (i TunInfo, err error) {
	err = Control(t.Conn, func(fd int) error {
		ifr, err := unix.NewIfreq("")
		if err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, unix.TUNGETIFF, ifr); err != nil {
			return err
		}
		flags := ifr.Uint16()
		i = TunInfo{
			TunMode: TunMode{TUN: flags&unix.IFF_TUN != 0, Multi: flags&unix.IFF_MULTI_QUEUE != 0, Vnet: flags&unix.IFF_VNET_HDR != 0},
			Name:    ifr.Name(), Persist: flags&unix.IFF_PERSIST != 0,
		}
		if i.Vnet {
			i.Header, err = unix.IoctlGetInt(fd, unix.TUNGETVNETHDRSZ)
		}
		return err
	})
	return i, err
}
