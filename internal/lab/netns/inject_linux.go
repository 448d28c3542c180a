package netns

import (
	"errors"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Inject sends frames out of a device of the host as they are, from the destination
// MAC on, past the host's own stack. They leave in order: from one processor, so that
// none overtakes another in the kernel's queues. A device that has just come up is
// waited for, since it drops what it is given.
func (h *Host) Inject(dev string, frames ...[]byte) {
	h.t.Helper()
	var err error
	h.Do(func() { err = h.inject(dev, frames) })
	if err != nil {
		h.t.Fatalf("lab: host %s: sending on %s: %v", h.Name, dev, err)
	}
}

func (h *Host) inject(dev string, frames [][]byte) error {
	ifi, err := running(dev)
	if err != nil {
		return err
	}
	if h.raw == nil { // one for the test: to close it takes the kernel tens of milliseconds
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		h.raw = os.NewFile(uintptr(fd), "raw socket of "+h.Name)
		h.t.Cleanup(func() { h.raw.Close() })
	}
	unpin, err := pin()
	if err != nil {
		return err
	}
	defer unpin()
	fd := int(h.raw.Fd())
	for _, f := range frames {
		if err := unix.Sendto(fd, f, 0, &unix.SockaddrLinklayer{Ifindex: ifi.Index}); err != nil {
			return err
		}
	}
	return nil
}

// running waits until a device carries packets.
func running(dev string) (*net.Interface, error) {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		ifi, err := net.InterfaceByName(dev)
		if err != nil || ifi.Flags&net.FlagRunning != 0 {
			return ifi, err
		}
		if time.Now().After(end) {
			return nil, errors.New("the device is not up")
		}
	}
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
