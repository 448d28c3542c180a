package bench

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// copyProgram is the variable of the environment that makes this program one that copies frames from one TAP to another, and does nothing
// else: one thread of the system, in two system calls for each frame. No program in user space has them sooner.
const copyProgram = "VXSWITCH_EVPN_COPY"

// The TAPs of that program.
const (
	copyA = "ca"
	copyB = "cb"
)

func startCopy(t *testing.T, h *netns.Host) *netns.Proc {
	p := startSelf(t, h, ahead, copyProgram, "yes")
	for _, name := range []string{copyA, copyB} {
		h.IP("link", "set", name, "up")
	}
	return p
}

// serveCopy is that program. It prints "ready".
func serveCopy(string) error {
	debug.SetGCPercent(-1)
	runtime.LockOSThread()
	from, err := openTAP(copyA)
	if err != nil {
		return err
	}
	to, err := openTAP(copyB)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for p := make([]byte, 2048); ; {
		if n, err := unix.Read(from, p); err == nil {
			unix.Write(to, p[:n])
		}
	}
}

// openTAP makes a TAP whose reads wait in the kernel.
func openTAP(name string) (int, error) {
	r, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	r.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	return fd, unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
}
