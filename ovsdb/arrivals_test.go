package ovsdb

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Arrivals are the MACs that were not there, whatever else has changed.
func TestArrivals(t *testing.T) {
	a, b := netip.MustParseAddrPort("192.0.2.1:0"), netip.MustParseAddrPort("192.0.2.2:0")
	mac := func(vni frame.VNI, n byte, at netip.AddrPort) control.Row {
		return control.MAC{VNI: vni, MAC: frame.MAC{2, 0, 0, 0, 0, n}, VTEP: at}
	}
	flood := control.Flood{VNI: 5, VTEP: a}
	before := []control.Row{flood, mac(5, 1, a), mac(5, 3, a), mac(7, 2, a)}
	check.Slice(t, "arrivals", arrivals([]control.Row{flood, mac(5, 1, b), mac(5, 2, a), mac(5, 3, a), mac(6, 3, a), mac(7, 2, a), mac(7, 9, b)}, before),
		[]control.Row{mac(5, 2, a), mac(6, 3, a), mac(7, 9, b)})
	check.Slice(t, "arrivals of fewer", arrivals([]control.Row{mac(5, 3, a)}, before), nil)
	check.Slice(t, "arrivals where there was none", arrivals(before, []control.Row{}), before[1:])
}
