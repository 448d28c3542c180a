package node

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
)

// A control plane's rows follow segments, ports and hosts by themselves, whatever comes first.
func TestRowsFollow(t *testing.T) {
	b := newBench(t)
	base := `{"tunnels": [{"name": "v", "local": "192.0.2.1"}], "ports": [{"name": "p1"}],
		"segments": [{"vni": 10, "tunnel": "v", "members": [{"port": "p1"}]}]}`
	h := frame.MAC{2, 0, 0, 0, 0, 1}
	away := control.MAC{VNI: 10, MAC: h, VTEP: netip.MustParseAddrPort("192.0.2.100:0")}
	must(t, b.Program("evpn", control.Update{Loose: true, Add: []control.Row{away, control.Flood{VNI: 10, VTEP: away.VTEP}}}))
	if err := b.Program("evpn", control.Update{Add: []control.Row{control.Flood{VNI: 11, VTEP: away.VTEP}}}); len(control.Refused(err)) != 1 {
		t.Error(err)
	}
	must(t, b.Apply(parse(t, base)))
	origin := func() fdb.Origin {
		e, ok := b.segments[10].vsi.FDB().Get(h)
		if !ok {
			return 99
		}
		return e.Origin
	}
	wait := func(what string, want fdb.Origin) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); origin() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %v, want %v", what, origin(), want)
			}
		}
	}
	wait("a segment that came after its rows", fdb.OriginControl)
	table := b.segments[10].vsi.FDB()
	table.Learn(h, b.segments[10].vsi.Attachments()[1].Dest(0), 0)
	wait("the host has come here", fdb.OriginLearned)
	table.Delete(h)
	wait("and gone", fdb.OriginControl)
	must(t, b.Apply(parse(t, `{}`)))
	for row, err := range b.Plane().Waiting("evpn") {
		t.Log(row, err)
	}
	must(t, b.Apply(parse(t, base)))
	wait("the segment is back", fdb.OriginControl)
}
