package offload

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// openRoutes returns a home in a host with two ways to the other one, and its routes.
func openRoutes(t *testing.T) (a *netns.Host, r *routes) {
	t.Helper()
	n := netns.New(t)
	a = n.Host("a")
	b := n.Host("b")
	n.Link(a, "192.0.2.1/24", b, "192.0.2.2/24")
	n.Link(a, "198.51.100.1/24", b, "198.51.100.2/24")
	a.Do(func() {
		h := check.Must(openHome())(t)
		r = check.Must(newRoutes(h))(t)
		t.Cleanup(func() { r.close(); h.close() })
	})
	return a, r
}

// TestManyChanges: changes are followed after there were more at once than the kernel keeps.
func TestManyChanges(t *testing.T) {
	a, r := openRoutes(t)
	w := way{local: addr(1), peer: addr(2)}
	was := r.to(w)
	var text strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&text, "route add 203.0.%d.%d/32 via 192.0.2.2\n", i>>8, i&255)
	}
	name := filepath.Join(t.TempDir(), "routes")
	check.OK(t, os.WriteFile(name, []byte(text.String()), 0o600))
	a.IP("-batch", name)
	for {
		select {
		case <-r.changed:
			continue
		default:
		}
		break
	}
	a.IP("route", "add", "192.0.2.2/32", "via", "198.51.100.2")
	a.Until("the route is another", func() bool {
		select {
		case <-r.changed:
			return r.differ() && r.to(w) != was
		default:
			return false
		}
	})
}

// TestRule: rules that select another table are followed.
func TestRule(t *testing.T) {
	a, r := openRoutes(t)
	w := way{local: addr(1), peer: addr(2)}
	was := r.to(w)
	a.IP("route", "add", "192.0.2.2/32", "via", "198.51.100.2", "table", "7")
	a.Until("the other table's route is told", func() bool { return len(r.changed) > 0 })
	<-r.changed
	r.differ()
	a.IP("rule", "add", "to", "192.0.2.2/32", "table", "7")
	a.Until("the rule is told", func() bool { return len(r.changed) > 0 })
	<-r.changed
	if !r.differ() || r.to(w) == was {
		t.Errorf("the way is the one before: %+v", r.to(w))
	}
}

// TestCarrier: a device that goes down and up is no change of a device, which would void all flows; one whose MTU changes is, and
// one that is deleted has gone.
func TestCarrier(t *testing.T) {
	a, r := openRoutes(t)
	index := r.to(way{local: addr(1), peer: addr(2)}).index
	told := func(what string) (n news) {
		t.Helper()
		a.Until(what+" is told", func() bool {
			select {
			case <-r.changed:
				n = r.take()
				return true
			default:
				return false
			}
		})
		return n
	}
	a.MTU("eth0", 1400)
	if n := told("the MTU"); !n.changed || len(n.gone) != 0 || n.lost {
		t.Errorf("the MTU: %+v", n)
	}
	a.IP("link", "set", "eth0", "down")
	a.IP("link", "set", "eth0", "up")
	if n := told("the carrier"); n.changed || len(n.gone) != 0 || n.lost {
		t.Errorf("the carrier: %+v", n)
	}
	a.IP("link", "del", "eth0")
	var gone bool
	a.Until("it has gone", func() bool { _, gone = told("the end").gone[index]; return gone })
	if len(r.used) != 0 {
		t.Errorf("in use are %v", r.used)
	}
}

// TestWrappedRoute: where a route adds headers of its own, the kernel sends: what is carried would leave without them.
func TestWrappedRoute(t *testing.T) {
	a, r := openRoutes(t)
	a.IP("addr", "add", "fd00::1/64", "dev", "eth0", "nodad")
	if _, err := a.Try(t.Context(), "ip", "route", "add", "fd01::/64", "encap", "seg6", "mode", "encap", "segs", "fd00::9", "dev", "eth0"); err != nil {
		t.Skip(err)
	}
	w := way{local: netip.MustParseAddr("fd00::1"), peer: netip.MustParseAddr("fd00::2")}
	if r.to(w) == (exit{}) {
		t.Fatal("no way to a neighbour")
	}
	w.peer = netip.MustParseAddr("fd01::5")
	if x := r.to(w); x != (exit{}) {
		t.Errorf("the way is %+v", x)
	}
}

// TestRouteMTU: the MTU of a route counts if it is smaller than that of its device.
func TestRouteMTU(t *testing.T) {
	a, r := openRoutes(t)
	w := way{local: addr(1), peer: addr(2)}
	a.IP("route", "add", "192.0.2.2/32", "via", "198.51.100.2", "mtu", "1200")
	if x := r.to(w); x.mtu != 1200 {
		t.Errorf("%+v", x)
	}
	a.IP("route", "replace", "192.0.2.2/32", "via", "198.51.100.2", "mtu", "9000")
	if !r.differ() || r.to(w).mtu != 1500 {
		t.Errorf("%+v", r.to(w))
	}
	w = way{local: netip.MustParseAddr("fd00::1"), peer: netip.MustParseAddr("fd01::5")}
	a.IP("addr", "add", "fd00::1/64", "dev", "eth0", "nodad")
	a.IP("route", "add", "fd01::/64", "via", "fd00::2", "mtu", "1300")
	if x := r.to(w); x.mtu != 1300 {
		t.Errorf("%+v", x)
	}
}
