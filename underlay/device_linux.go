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

// every has f look at it, until Close.
func (u *base) every(f func()) {
	u.running.Go(func() {
		t := time.NewTicker(checkDevice)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				f()
			case <-u.done:
				return
			}
		}
	})
}

// keepDevice binds the sockets to the configured Device again if that name has another index.
func (u *base) keepDevice() {
	if u.deviceChanged() {
		_ = u.bindDevice() // if it fails, the next time
	}
}

// deviceChanged reports whether there is a device of the name, and it is not the one the
// first receive socket is bound to (SO_BINDTOIFINDEX, Linux 5.1).
func (u *base) deviceChanged() bool {
	index, err := u.indexOf(u.cfg.Device)
	bound, e := u.readers[0].sock.option(unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX)
	return err == nil && e == nil && bound != index
}

// bindDevice binds every socket to the device, the first receive socket last: while any
// other fails, deviceChanged sees that there is something to do.
func (u *base) bindDevice() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var errs []error
	bind := func(s *sock) {
		errs = append(errs, control(s.raw, func(fd int) error { return unix.BindToDevice(fd, u.cfg.Device) }))
	}
	for _, p := range u.ranges {
		p.all(func(s *txSock) { bind(s.sock) })
	}
	for _, r := range u.readers[1:] {
		bind(r.sock)
	}
	if u.groups != nil {
		u.groups.each(func(s *groupSock) { bind(s.sock) })
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	bind(u.readers[0].sock)
	return errors.Join(errs...)
}
