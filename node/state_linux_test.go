package node

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
)

// Whoever reads the events of a node knows what it has, whatever is configured: gateways with their addresses, ports,
// peers, and neighbours when their table is made anew.
func TestStateOfNode(t *testing.T) {
	b := newBench(t)
	events := b.Switch().Events()
	defer events.Close()
	has := map[string]bool{}
	key := func(e frame.Event) string {
		switch e.Kind {
		case frame.EventPortUp, frame.EventPortDown:
			return fmt.Sprint("port ", e.Dest, " ", e.Name)
		case frame.EventPeerUp, frame.EventPeerDown:
			return fmt.Sprint("peer ", e.Dest, " ", e.Name)
		case frame.EventSegmentUp, frame.EventSegmentDown:
			return fmt.Sprint("segment ", e.VNI)
		case frame.EventAttached, frame.EventDetached:
			return fmt.Sprint("member ", e.VNI, " ", e.Dest)
		case frame.EventGatewayUp, frame.EventGatewayDown:
			return fmt.Sprint("gateway ", e.VNI, " ", e.Name)
		case frame.EventNeighbourLearned:
			return fmt.Sprint("neighbour ", e.VNI, " ", e.IP)
		}
		t.Errorf("%+v", e)
		return ""
	}
	gateways := 0
	step := func(what, file string) {
		t.Helper()
		must(t, b.Apply(parse(t, file)))
		for {
			soon, stop := context.WithTimeout(t.Context(), time.Millisecond)
			e, err := events.Next(soon)
			if stop(); err != nil {
				break
			}
			switch e.Kind {
			case frame.EventGatewayUp:
				gateways++
				has[key(e)] = true
			case frame.EventPortDown, frame.EventPeerDown, frame.EventSegmentDown, frame.EventDetached, frame.EventGatewayDown:
				delete(has, key(e))
				if e.Kind == frame.EventPortDown {
					maps.DeleteFunc(has, func(k string, _ bool) bool { // with its peers
						var n int
						_, err := fmt.Sscanf(k, fmt.Sprintf("peer %d/%%d", e.Dest.Port()), &n)
						return err == nil
					})
				}
			case frame.EventFlushed:
				maps.DeleteFunc(has, func(k string, _ bool) bool {
					var vni frame.VNI
					_, err := fmt.Sscanf(k, "neighbour %d", &vni)
					return err == nil && vni == e.VNI
				})
				for e := range b.Switch().State(e.VNI) {
					has[key(e)] = true
				}
			default:
				has[key(e)] = true
			}
		}
		want := map[string]bool{}
		for e := range b.Switch().State() {
			want[key(e)] = true
		}
		if !maps.Equal(has, want) {
			t.Errorf("%s: by the events %v, want %v", what, has, want)
		}
	}
	file := `{"tunnels": [{"name": "v", "local": "192.0.2.1"}], "ports": [{"name": "p1"}],
		"segments": [{"vni": 10, "tunnel": "v", "flood": ["192.0.2.2", "192.0.2.%d"], "members": [{"port": "p1"}],
			"neighbours": {"mode": "suppress", "limit": %d},
			"gateway": {"vrf": "red", "mac": "02:00:00:00:00:01", "addresses": ["10.1.%d.1/16"]}}], "vrfs": [{"name": "red"}]}`
	step("nothing", `{}`)
	step("a file", fmt.Sprintf(file, 3, 100, 0))
	if gateways != 1 || len(has) != 8 {
		t.Errorf("%d gateways, %v", gateways, has)
	}
	table := b.Neighbours(10).Table()
	table.Learn(&arp.Claim{IP: netip.MustParseAddr("10.1.0.7"), MAC: frame.MAC{2, 0, 0, 0, 0, 7}, From: b.segments[10].members["p1"].Dest(0)}, 0)
	step("the same", fmt.Sprintf(file, 3, 100, 0))
	if gateways != 1 || len(has) != 9 {
		t.Errorf("%d gateways, %v", gateways, has)
	}
	step("another peer", fmt.Sprintf(file, 4, 100, 0))
	step("another address of the gateway", fmt.Sprintf(file, 4, 100, 9))
	if gateways != 2 || !has["neighbour 10 10.1.0.7"] {
		t.Errorf("%d gateways, %v", gateways, has)
	}
	step("another neighbour table", fmt.Sprintf(file, 4, 99, 9))
	if has["neighbour 10 10.1.0.7"] || has["neighbour"] {
		t.Errorf("%v", has)
	}
	step("nothing again", `{}`)
}
