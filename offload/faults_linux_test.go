package offload

import (
	"errors"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fault"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// TestFaults: New leaves nothing behind, whichever system call fails, and the switch takes another Offload.
func TestFaults(t *testing.T) {
	h := netns.New(t).Host("h")
	sw := check.Must(vswitch.New(nil))(t)
	defer sw.Close()
	fault.Each(t, h.Enter, func() error {
		o, err := New(sw, nil)
		if err != nil && strings.Contains(err.Error(), "SO_NETNS_COOKIE") {
			return nil // whatever the kernel says about that
		}
		if err != nil {
			return err
		}
		return o.Close()
	}, func(x fault.Fault, err error) {
		if errors.Is(err, vswitch.ErrOffload) {
			t.Errorf("%v: %v", x, err)
		}
	})
}
