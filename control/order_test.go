package control_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// spied is a VTEP that says when it is written to.
type spied struct {
	*vtep.VTEP
	told func(string)
}

func (s *spied) AddPeer(a netip.AddrPort) (uint16, error) {
	s.told("peer")
	return s.VTEP.AddPeer(a)
}

func (s *spied) DeletePeer(n uint16) {
	s.told("peer")
	s.VTEP.DeletePeer(n)
}

func (s *spied) SetFloodPeers(vni frame.VNI, to ...vtep.FloodPeer) error {
	s.told("flood")
	return s.VTEP.SetFloodPeers(vni, to...)
}

// Tables are written from the peers up to the routes, and cleared the other way: whoever looks
// at one finds what stands below it. What is written last is seen by those written before: each
// notes which tables already have their entry.
func TestOrder(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	net := memory.NewNetwork(nil)
	defer net.Close()
	u, err := net.Listen(netip.MustParseAddrPort("10.0.0.1:4789"), nil)
	must(err)
	v, err := vtep.New(nil, u)
	must(err)
	sw, err := vswitch.New(nil)
	must(err)
	defer sw.Close()
	vsi, err := sw.VSI(red, nil)
	must(err)
	gw, err := l3.NewGateway(nil)
	must(err)
	vrf := gw.VRF("red")

	var log []string
	var table *arp.Table
	told := func(what string) {
		if _, ok := vsi.FDB().Get(mac(1)); ok {
			what += " mac"
		}
		if _, ok := table.Lookup(ip(1)); ok {
			what += " neighbour"
		}
		if len(vrf.Routes()) > 0 {
			what += " route"
		}
		log = append(log, what)
	}
	x := &spied{v, told}
	_, err = vsi.Attach(x, uint32(red))
	must(err)
	_, err = vsi.Attach(port.NewPipe(nil), 0)
	must(err)
	table, err = arp.NewTable(nil)
	must(err)
	table.Watch(func(netip.Addr) bool { return false }, func(netip.Addr) { told("arp") })
	p, err := control.New(&control.Config{Switch: sw, Gateway: gw, Neighbours: func(frame.VNI) *arp.Table { return table }})
	must(err)

	all := rows(control.Prefix{VRF: "red", Prefix: pfx("10.0.0.0/8")}, // the last first
		control.MAC{VNI: red, MAC: mac(1), IP: ip(1), VTEP: at(2)}, control.Flood{VNI: red, VTEP: at(2)})
	want := func(what string, w ...string) {
		t.Helper()
		if !slices.Equal(log, w) {
			t.Errorf("%s: %q, want %q", what, log, w)
		}
		log = nil
	}
	must(p.Program("bgp", control.Update{Add: all}))
	want("what comes", "peer", "flood", "arp mac neighbour")
	must(p.Program("bgp", control.Update{Add: rows(control.Flood{VNI: red, VTEP: at(3)})}))
	want("a longer list", "flood mac neighbour route")
	must(p.Program("bgp", control.Update{Del: all}))
	want("what goes", "flood", "peer")
	p.Forget("bgp")
	want("the rest", "flood")
}
