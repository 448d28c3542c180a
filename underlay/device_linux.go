package underlay

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// SO_BINDTODEVICE binds a socket to an interface's index. If the interface is deleted and another one gets its name,
// the socket stays bound to the index that is gone.

// checkDevice is the interval of the checks of the index.
const checkDevice = time.Second / 2

// every calls f at each interval until Close.
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

// keepDevice binds the sockets to the configured Device again if that name has got another index.
func (u *base) keepDevice() {
	if u.deviceChanged() {
		_ = u.bindDevice() // retried at the next interval
	}
}

// deviceChanged reports whether a device of that name exists and is not the one that the first receive socket is bound
// to (SO_BINDTOIFINDEX, Linux 5.1).
func (u *base) deviceChanged() bool {
	index, err := u.indexOf(u.cfg.Device)
	bound, e := u.readers[0].sock.option(unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX)
	return err == nil && e == nil && bound != index
}

// bindDevice binds every socket to the device, the first receive socket last: if another one fails, deviceChanged still
// reports true.
func (u *base) bindDevice() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var errs []error
	bind := func(s *sock) {
		errs = append(errs, sys.Control(s.raw, func(fd int) error { return unix.BindToDevice(fd, u.cfg.Device) }))
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
