package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// What a segment, its members and a peer have counted is what the kernel has: its TAP on one side, and its VXLAN device
// on the other. With offloads, the kernel and the node have different ideas of what a frame is, except where the node
// takes what the kernel has made.
func TestKernelCounters(t *testing.T) {
	for _, c := range []struct{ name, keys string }{{"plain", `, "noOffload": true`}, {"offload", ""}} {
		t.Run(c.name, func(t *testing.T) {
			n := netns.New(t)
			a, b := newSystem(t, n, "a"), n.Host("b")
			a.Quiet()
			b.Quiet()
			n.Link(a.Host, "10.0.0.1/24", b, "10.0.0.2/24")
			b.VXLAN("vx0", netns.VXLAN{ID: 100, Local: "10.0.0.2", Remote: "10.0.0.1", Addr: "192.168.7.2/24"})
			b.Run("ethtool", "-K", "vx0", "tso", "off", "gso", "off")
			a.write(strings.NewReplacer("KEYS", c.keys).Replace(`{
				"tunnels": [{"name": "vx", "local": "10.0.0.1"KEYS}],
				"ports": [{"name": "tap0", "mtu": 1450KEYS}],
				"segments": [{"vni": 100, "tunnel": "vx", "flood": ["10.0.0.2"], "members": [{"port": "tap0"}]}],
				"control": {"socket": "SOCKET"}
			}`))
			a.run()
			a.Addr("tap0", "192.168.7.1/24")
			for _, flags := range []string{"", "-R", "-u -b 20M -l 200"} {
				t.Logf("iperf3 %s: %v", flags, a.IPerf(b, "192.168.7.2", strings.Fields(flags)...))
			}

			var s api.Segment
			var peer api.Peer
			read := func() (diff []string) {
				s, peer = a.counters(100)
				tap, vx := s.Members[1], s.Members[0]
				if tap.Port != "tap0" {
					tap, vx = vx, tap
				}
				want := func(what string, got frame.Count, h *netns.Host, dev, way string, header int) {
					k := frame.Count{Frames: uint64(h.Counter(dev, way+"_packets")), Bytes: uint64(h.Counter(dev, way+"_bytes"))}
					if k.Bytes += k.Frames * uint64(header); got != k {
						diff = append(diff, fmt.Sprintf("%s: %+v, the kernel has %+v", what, got, k))
					}
				}
				want("tap0 in", tap.Rx, a.Host, "tap0", "tx", 0)
				if c.name == "plain" { // the kernel's VXLAN device does not count the Ethernet header (Linux 6.18)
					want("from the peer", frame.Count{Frames: peer.Rx, Bytes: peer.RxBytes}, b, "vx0", "tx", 14)
					want("to the peer", frame.Count{Frames: peer.Tx, Bytes: peer.TxBytes}, b, "vx0", "rx", 14)
					want("tap0 out", tap.Tx, a.Host, "tap0", "rx", 0)
				}
				sum := frame.Count{Frames: tap.Rx.Frames + vx.Rx.Frames, Bytes: tap.Rx.Bytes + vx.Rx.Bytes}
				if s.Rx != sum {
					diff = append(diff, fmt.Sprintf("VNI in: %+v, its members %+v", s.Rx, sum))
				}
				return diff
			}
			var diff []string
			t.Cleanup(func() { t.Log(strings.Join(diff, "\n")) })
			a.Until("all is counted as the kernel does", func() bool {
				diff = read()
				return len(diff) == 0
			})
			if s.Rx.Bytes < 10e6 || peer.LastHeard == nil {
				t.Errorf("%+v %+v", s, peer)
			}
			t.Logf("%+v", s)
		})
	}
}

// counters returns the counters of a segment, and of the only peer.
func (s *system) counters(vni int) (segment api.Segment, peer api.Peer) {
	s.t.Helper()
	var segments []api.Segment
	var tunnels []api.VTEP
	must(s.t, json.Unmarshal([]byte(s.ctl(fmt.Sprintf("-json vni vni %d", vni))), &segments))
	must(s.t, json.Unmarshal([]byte(s.ctl("-json vtep")), &tunnels))
	if len(segments) != 1 || len(segments[0].Members) != 2 || len(tunnels) != 1 || len(tunnels[0].Peers) != 1 {
		s.t.Fatalf("%+v %+v", segments, tunnels)
	}
	return segments[0], tunnels[0].Peers[0]
}
