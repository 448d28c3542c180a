package gobgp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Reflect runs gobgpd as a route reflector of EVPN, which waits for its clients. Its identifier is id, an IPv4 address.
func Reflect(t testing.TB, h *netns.Host, as uint32, id string, clients ...string) *netns.Proc {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "[global.config]\nas = %d\nrouter-id = %q\n", as, id)
	for _, c := range clients {
		fmt.Fprintf(&b, `[[neighbors]]
[neighbors.config]
neighbor-address = %q
peer-as = %d
[neighbors.transport.config]
passive-mode = true
[neighbors.route-reflector.config]
route-reflector-client = true
route-reflector-cluster-id = %q
[[neighbors.afi-safis]]
[neighbors.afi-safis.config]
afi-safi-name = "l2vpn-evpn"
`, c, as, id)
	}
	file := filepath.Join(t.TempDir(), "gobgpd.toml")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return h.Start("gobgpd", "-f", file, "--api-hosts", "127.0.0.1:50051")
}
