package datapath

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// with runs f on a thread that has only these capabilities.
func with(t *testing.T, f func(), caps ...int) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		for _, c := range caps {
			data[c/32].Effective |= 1 << (c % 32)
			data[c/32].Permitted |= 1 << (c % 32)
		}
		err := unix.Capset(&head, &data[0])
		if err == nil {
			f()
		}
		done <- err
	}()
	check.OK(t, <-done)
}

// CAP_BPF and CAP_NET_ADMIN are enough; the error says so where they are not there.
func TestCapabilities(t *testing.T) {
	netns.RequireRoot(t)
	for _, c := range []struct {
		what string
		caps []int
		ok   bool
	}{
		{"both", []int{unix.CAP_BPF, unix.CAP_NET_ADMIN}, true},
		{"CAP_NET_ADMIN", []int{unix.CAP_NET_ADMIN}, false},
		{"CAP_BPF", []int{unix.CAP_BPF}, false},
		{"none", nil, false},
	} {
		with(t, func() {
			d, err := Load(16)
			if err == nil {
				check.OK(t, d.Close())
				check.OK(t, d.Close())
			}
			if (err == nil) != c.ok {
				t.Errorf("%s: %v", c.what, err)
			}
			if err != nil && (!errors.Is(err, os.ErrPermission) || strings.Contains(err.Error(), "\n") || !strings.HasSuffix(err.Error(), "must have CAP_BPF and CAP_NET_ADMIN")) {
				t.Errorf("%s: %v", c.what, err)
			}
			t.Logf("%s: %v", c.what, err)
		}, c.caps...)
	}
}
