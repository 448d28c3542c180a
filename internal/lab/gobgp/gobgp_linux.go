package gobgp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A Reflector is gobgpd as a route reflector of EVPN, which waits for its clients.
type Reflector struct {
	AS      uint32
	ID      string // an IPv4 address
	Clients []string
	Restart int // seconds that clients keep its routes when it restarts; 0: not at all
}

// Reflect runs a Reflector without graceful restart.
func Reflect(t testing.TB, h *netns.Host, as uint32, id string, clients ...string) *netns.Proc {
	t.Helper()
	return (&Reflector{AS: as, ID: id, Clients: clients}).Start(t, h)
}

// Start runs gobgpd with more arguments, such as -r when it restarts.
func (r *Reflector) Start(t testing.TB, h *netns.Host, args ...string) *netns.Proc {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gobgpd.toml")
	if err := os.WriteFile(file, []byte(r.config()), 0o644); err != nil {
		t.Fatal(err)
	}
	return h.Start("gobgpd", append([]string{"-f", file, "--api-hosts", "127.0.0.1:50051"}, args...)...)
}

func (r *Reflector) config() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[global.config]\nas = %d\nrouter-id = %q\n", r.AS, r.ID)
	for _, c := range r.Clients {
		fmt.Fprintf(&b, `[[neighbors]]
[neighbors.config]
neighbor-address = %q
peer-as = %d
[neighbors.transport.config]
passive-mode = true
[neighbors.route-reflector.config]
route-reflector-client = true
route-reflector-cluster-id = %q
[neighbors.graceful-restart.config]
enabled = %t
restart-time = %d
[[neighbors.afi-safis]]
[neighbors.afi-safis.config]
afi-safi-name = "l2vpn-evpn"
[neighbors.afi-safis.mp-graceful-restart.config]
enabled = %[4]t
`, c, r.AS, r.ID, r.Restart > 0, r.Restart)
	}
	return b.String()
}
