package main

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// inMemory returns a node whose underlays are in memory.
func inMemory(t *testing.T) *node.Node {
	net := memory.NewNetwork(nil)
	t.Cleanup(func() { net.Close() })
	n, err := node.New(&node.Options{Listen: func(t *node.Tunnel) (vtep.Underlay, error) {
		return net.Listen(t.AddrPort(), nil)
	}})
	must(t, err)
	t.Cleanup(func() { n.Close() })
	return n
}

// The stats line has no counts without -neigh; with it, the neighbours by address and what
// was done with messages.
func TestNeighbourStats(t *testing.T) {
	for _, mode := range []string{"off", "suppress"} {
		o, err := parse([]string{"-local", "10.0.0.1", "-id", "77", "-maxaddress", "3", "-ageing", "60", "-neigh", mode})
		must(t, err)
		n := inMemory(t)
		v, err := n.Tunnel("p2p", o.node.Tunnels[0])
		must(t, err)
		s := o.node.Segments[0]
		s.Members = nil // the device
		_, err = n.Segment(77, &s)
		must(t, err)
		r := n.Neighbours(77)
		if r != nil {
			must(t, r.Table().Set(netip.MustParseAddr("192.0.2.9"), frame.MAC{2, 9}, arp.Static, 0))
			for n := range byte(5) {
				r.Table().Learn(&arp.Claim{IP: netip.AddrFrom4([4]byte{192, 0, 2, n}), MAC: frame.MAC{2, n}, From: frame.NewDest(1, 1)}, 0)
			}
			f := frame.Make([]byte{12: 8, 13: 6, 59: 0}) // ARP in name only
			f.From = frame.NewDest(9, 0)
			r.Process(&f, frame.At{})
		}
		text := takeStats(n, v, nil)
		var got map[string]any
		must(t, json.Unmarshal([]byte(strings.TrimPrefix(text, "stats ")), &got))
		if mode == "off" {
			if _, has := got["neigh_counts"]; r != nil || has || !reflect.DeepEqual(got["neigh"], []any{}) {
				t.Errorf("off: %s", text)
			}
			continue
		}
		row := func(ip, mac, origin, state string) any {
			return map[string]any{"vni": 77.0, "ip": ip, "mac": mac, "origin": origin, "state": state}
		}
		if want := []any{ // -maxaddress bounds what is heard, and one place has half of it
			row("192.0.2.0", "02:00:00:00:00:00", "snooped", "reachable"), row("192.0.2.1", "02:01:00:00:00:00", "snooped", "reachable"),
			row("192.0.2.9", "02:09:00:00:00:00", "static", "permanent"),
		}; !reflect.DeepEqual(got["neigh"], want) {
			t.Errorf("neigh %v, want\n%v", got["neigh"], want)
		}
		counts := got["neigh_counts"].(map[string]any)
		if !reflect.DeepEqual(counts["arp"], map[string]any{"malformed": 1.0}) || !reflect.DeepEqual(counts["nd"], map[string]any{}) || counts["asked"] != 0.0 {
			t.Errorf("neigh_counts %v", counts)
		}
		if table := counts["table"].(map[string]any); table["entries"] != 3.0 || table["snooped"] != 2.0 || table["learned"] != 2.0 || table["full"] != 3.0 {
			t.Errorf("table %v", table)
		}
		r.Housekeep(59)
		if r.Table().Len() != 3 {
			t.Error("aged before -ageing")
		}
		if r.Housekeep(60); r.Table().Len() != 1 {
			t.Error("-ageing is not the table's")
		}
	}
}

// A device may be called as the tunnel is: what comes in from it is not received.
func TestDeviceCalledP2P(t *testing.T) {
	n := inMemory(t)
	v, err := n.Tunnel("p2p", node.Tunnel{Local: netip.MustParseAddr("10.0.0.1")})
	must(t, err)
	seg, err := n.Segment(1, nil)
	must(t, err)
	must(t, seg.Join(v))
	device := port.NewPipe(&port.PipeConfig{Name: "p2p"})
	must(t, seg.Add(device, nil))
	go n.Run(t.Context())
	must(t, device.Send(append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1}, make([]byte, 50)...)))
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		text := takeStats(n, v, nil)
		var got struct {
			Rx    struct{ Frames uint64 }
			Flood struct{ Broadcast uint64 }
			FDB   []any
		}
		must(t, json.Unmarshal([]byte(strings.TrimPrefix(text, "stats ")), &got))
		if (len(got.FDB) == 0 || got.Flood.Broadcast == 0) && time.Now().Before(until) {
			continue // it has not been heard yet
		}
		if len(got.FDB) != 1 || got.Flood.Broadcast != 1 || got.Rx.Frames != 0 {
			t.Error(text)
		}
		return
	}
}
