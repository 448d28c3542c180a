package datapath

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/qemu"
)

// inGuest says that the test runs in the guest of TestOlderKernel.
const inGuest = "DATAPATH_IN_GUEST"

// A kernel without tcx links (Debian's, Linux 6.1) is refused in one line that says what is missing. Its verifier accepts the programs.
func TestOlderKernel(t *testing.T) {
	if os.Getenv(inGuest) != "" {
		d, err := Load(16)
		fmt.Printf("Load: %v\n", err)
		if err == nil {
			d.Close()
		}
		spec := check.Must(specOf(16))(t)
		c, err := ebpf.NewCollection(spec)
		fmt.Printf("verifier: %v\n", err)
		if err == nil {
			c.Close()
		}
		return
	}
	if testing.Short() {
		t.Skip("boots a guest")
	}
	n := netns.New(t)
	g := qemu.Boot(t, n.Host("h"), qemu.Config{Programs: map[string]string{"/bin/datapath.test": check.Must(os.Executable())(t)}})
	release := g.Run("uname -r")
	out := g.Run(inGuest + "=1 /bin/datapath.test -test.run '^TestOlderKernel$'")
	t.Logf("Linux %s: %s", strings.TrimSpace(release), out)
	if !strings.HasPrefix(release, "6.1.") {
		t.Skipf("Linux %s is not the older kernel this is about", strings.TrimSpace(release))
	}
	check.True(t, strings.Contains(out, "Load: datapath: the kernel has no tcx links; it must be Linux 6.6 or later\nverifier: <nil>\n"), "%s", out)
}
