package netns

import (
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// Inject sends frames out of a device of the host as they are, from the destination
// MAC on, past the host's own stack. They leave in order: from one processor, so that
// none overtakes another in the kernel's queues.
func (h *Host) Inject(dev string, frames ...[]byte) {
	h.t.Helper()
	var err error
	h.Do(func() { err = inject(dev, frames) })
	if err != nil {
		h.t.Fatalf("lab: host %s: sending on %s: %v", h.Name, dev, err)
	}
}

func inject(dev string, frames [][]byte) error {
	ifi, err := net.InterfaceByName(dev)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	unpin, err := pin()
	if err != nil {
		return err
	}
	defer unpin()
	for _, f := range frames {
		if err := unix.Sendto(fd, f, 0, &unix.SockaddrLinklayer{Ifindex: ifi.Index}); err != nil {
			return err
		}
	}
	return nil
}

// pin keeps the goroutine on the first processor the process may use, until unpin.
func pin() (unpin func(), err error) {
	runtime.LockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	for cpu := 0; ; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	return func() {
		unix.SchedSetaffinity(0, &all)
		runtime.UnlockOSThread()
	}, nil
}
