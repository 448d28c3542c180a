package node

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

// Nobody but the node changes the rows of the configuration, and other owners have names.
func TestOwners(t *testing.T) {
	n := running(t)
	must(t, n.Apply(parse(t, first)))
	u := control.Update{Snapshot: true}
	if err := n.Plane().Program(Owner, u); err == nil || !strings.Contains(err.Error(), `owner: "config": is reserved`) {
		t.Error(err)
	}
	if err := n.Program(Owner, u); err == nil {
		t.Error("Program takes the owner of the configuration")
	}
	n.Plane().Forget(Owner)
	wantDump(t, n, firstDump)
	must(t, n.Apply(new(Config)))
	for want, owners := range map[string][]string{
		`node: Options.Owners[1]: "": must be`:       {"bgp", ""},
		`node: Options.Owners[0]: "config": must be`: {Owner},
		`node: Options.Owners[0]: "a\n": must be`:    {"a\n"},
		`node: Options.Owners[1]: "bgp": duplicate`:  {"bgp", "bgp"},
	} {
		if n, err := New(&Options{Owners: owners}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", owners, err)
			n.Close()
		}
	}
}

// A row for the MAC that a gateway gets later waits until the gateway has another one.
func TestRowLosesToGateway(t *testing.T) {
	n := running(t)
	must(t, n.Apply(parse(t, first)))
	mac := frame.MAC{2, 0, 0, 0, 0, 0x10}
	row := control.MAC{VNI: 10, MAC: mac, VTEP: netip.MustParseAddrPort("127.0.0.2:0")}
	must(t, n.Program("bgp", control.Update{Add: []control.Row{row}}))
	seg, err := n.Segment(10, nil)
	must(t, err)
	waits := func() (reasons []string) {
		for r, err := range n.Plane().Waiting("bgp") {
			reasons = append(reasons, r.String()+": "+err.Error())
		}
		return reasons
	}
	old := frame.MAC{2, 0, 0, 0, 0xff, 0x10}
	for _, g := range []frame.MAC{mac, old, mac, old} {
		must(t, seg.Update(func(s *Segment) error { s.Gateway.MAC = g; return nil }))
		vsi, err := seg.Switch()
		must(t, err)
		d, ok := vsi.FDB().Lookup(mac)
		if w := waits(); !ok || (d == 0) != (g == mac) || (len(w) == 1 && strings.HasSuffix(w[0], "MAC.MAC: 02:00:00:00:00:10: is a MAC of the switch itself")) != (g == mac) {
			t.Errorf("gateway %v: %v is at %v, %q wait", g, mac, d, w)
		}
	}
}
