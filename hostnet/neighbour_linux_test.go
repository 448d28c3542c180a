package hostnet

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
)

var words = regexp.MustCompile(`(\S+) lladdr (\S+) .*PERMANENT`)

// A next hop with a MAC is a permanent neighbour, as long as there is a route with it; a former process's is known again,
// and what Leave has left nobody has touched.
func TestNextHopMAC(t *testing.T) {
	t.Parallel()
	h := netns.New(t).Host("host")
	open := func(lasts bool) *port.Device {
		return netns.Open(t, h, func() (*port.Device, error) {
			return port.OpenTAP("tap0", &port.DeviceConfig{Persistent: lasts, MAC: frame.MAC{2, 0, 0, 0, 0, 1}})
		})
	}
	first := open(true)
	begin := func(addr ...string) *Host {
		c := &Config{Device: "tap0", Namespace: h.NS, Sole: true}
		for _, a := range addr {
			c.Addresses = append(c.Addresses, netip.MustParsePrefix(a))
		}
		x := check.Must(Open(c))(t)
		t.Cleanup(func() { x.Close() })
		return x
	}
	neighbours := func() string {
		var list []string
		for _, m := range words.FindAllStringSubmatch(h.IP("-4", "neigh", "show", "dev", "tap0")+h.IP("-6", "neigh", "show", "dev", "tap0"), -1) {
			list = append(list, m[1]+" "+m[2])
		}
		slices.Sort(list)
		return strings.Join(list, ", ")
	}
	to := func(prefix string, mac byte) Route {
		p := netip.MustParsePrefix(prefix)
		return Route{Prefix: p, Via: p.Addr(), OnLink: true, MAC: frame.MAC{2, 0, 0, 0, 0, mac}}
	}
	x := begin("10.3.1.0/32", "fc00:3:0:1::/128")
	list := []Route{to("10.3.2.0/24", 2), to("10.3.3.0/24", 3), to("fc00:3:0:2::/64", 2)}
	h.IP("neigh", "add", "10.3.9.0", "lladdr", "02:00:00:00:00:77", "dev", "tap0", "nud", "permanent") // of somebody else, for a route without a MAC
	plain := Route{Prefix: netip.MustParsePrefix("10.3.9.0/24"), Via: netip.MustParseAddr("10.3.9.0"), OnLink: true}
	check.OK(t, x.SetRoutes(plain, list[0]))
	check.Equal(t, "repair", x.repair().String(), "")
	check.Equal(t, "neighbours", neighbours(), "10.3.2.0 02:00:00:00:00:02, 10.3.9.0 02:00:00:00:00:77")
	check.OK(t, x.SetRoutes(list[0]))
	check.Equal(t, "repair", x.repair().String(), "") // of no route's, on a Sole device
	check.Equal(t, "neighbours", neighbours(), "10.3.2.0 02:00:00:00:00:02")
	check.OK(t, x.SetRoutes(list...))
	check.Equal(t, "neighbours", neighbours(), "10.3.2.0 02:00:00:00:00:02, 10.3.3.0 02:00:00:00:00:03, fc00:3:0:2:: 02:00:00:00:00:02")
	list[0].MAC = frame.MAC{2, 0, 0, 0, 0, 9}
	told := (&alone{Host: h, t: t}).changes(func() { check.OK(t, x.SetRoutes(list[0], list[2])) })
	check.Equal(t, "neighbours", neighbours(), "10.3.2.0 02:00:00:00:00:09, fc00:3:0:2:: 02:00:00:00:00:02")
	check.True(t, strings.Contains(told, "Deleted 10.3.3.0/24") && !strings.Contains(told, "10.3.2.0/24"), "a route was touched for its next hop's MAC: %s", told)

	x.Leave()
	check.OK(t, first.Close())
	shown := func() string {
		return h.IP("route", "show", "proto", "118") + h.IP("-6", "route", "show", "proto", "118")
	}
	check.Equal(t, "neighbours", neighbours(), "10.3.2.0 02:00:00:00:00:09, fc00:3:0:2:: 02:00:00:00:00:02")
	check.True(t, strings.Count(shown(), "via") == 2, "left: %s", shown())
	second := open(true)
	check.True(t, second.Existed(), "the device was not persistent")
	x = begin("10.3.7.0/32", "fc00:3:0:1::/128")
	if got := h.IP("-o", "address", "show", "dev", "tap0"); strings.Contains(got, "10.3.1.0") || !strings.Contains(got, "10.3.7.0/32") || !strings.Contains(got, "fe80::") {
		t.Errorf("addresses %s", got)
	}
	check.OK(t, x.SetRoutes(to("10.3.8.0/24", 8), list[2]))
	check.Equal(t, "neighbours", neighbours(), "10.3.8.0 02:00:00:00:00:08, fc00:3:0:2:: 02:00:00:00:00:02")
	check.OK(t, second.Close())
	check.OK(t, x.Delete())
	check.OK(t, x.Delete())
	check.Equal(t, "devices", h.IP("-o", "link", "show", "type", "tun"), "")

	for _, wrong := range []Route{{Prefix: list[0].Prefix, MAC: list[0].MAC}, {Prefix: list[0].Prefix, Via: list[0].Via, OnLink: true, MAC: frame.MAC{1}}} {
		_, errs := (&Config{Device: "tap0"}).plan([]Route{wrong})
		check.True(t, len(errs) == 1 && strings.Contains(errs.Error(), "MAC: "), "%v: %v", wrong, errs)
	}
}
