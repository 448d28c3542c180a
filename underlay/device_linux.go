package underlay

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// SO_BINDTODEVICE binds a socket to an interface's index. When the interface is deleted and
// another is made under its name, the socket is bound to nothing, for ever.

// checkDevice is how often the index is looked at.
const checkDevice = time.Second / 2

// keepDevice binds the sockets to the configured Device again whenever that name has another
// index, until Close.
func (u *base) keepDevice() {
	t := time.NewTicker(checkDevice)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if u.deviceChanged() {
				_ = u.bindDevice() // if it fails, the next time
			}
		case <-u.done:
			return
		}
	}
}

// deviceChanged reports whether there is a device of the name, and it is not the one the
// first receive socket is bound to (SO_BINDTOIFINDEX, Linux 5.1). The socket is asked, for
// it knows its network namespace.
func (u *base) deviceChanged() (changed bool) {
	_ = u.readers[0].sock.Load().raw.Control(func(fd uintptr) {
		ifr, err := unix.NewIfreq(u.cfg.Device)
		if err != nil || unix.IoctlIfreq(int(fd), unix.SIOCGIFINDEX, ifr) != nil {
			return
		}
		bound, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX)
		changed = err == nil && uint32(bound) != ifr.Uint32()
	})
	return changed
}

// bindDevice binds every socket to the device, the first receive socket last: while any
// other fails, deviceChanged sees that there is something to do.
func (u *base) bindDevice() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var errs []error
	bind := func(s *sock) {
		var err error
		if e := s.raw.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), u.cfg.Device) }); e != nil {
			err = e
		}
		errs = append(errs, err)
	}
	for _, p := range u.ranges {
		p.all(func(s *txSock) { bind(s.sock) })
	}
	for _, r := range u.readers[1:] {
		bind(r.sock.Load())
	}
	if u.groups != nil {
		u.groups.each(func(s *groupSock) { bind(s.sock) })
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	bind(u.readers[0].sock.Load())
	return errors.Join(errs...)
}
