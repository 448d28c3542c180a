package metrics

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/vtep"
)

// What has passed through a switch is what a scrape of it says, sample by sample.
func TestScrape(t *testing.T) {
	mem.Run(t, nil, func(f *mem.Fabric) {
		a, b := f.Node("10.0.0.1"), f.Node("10.0.0.2")
		f.Mesh(100, a, b)
		h1, h2 := a.Host(100), b.Host(100)

		h1.Send(mem.ARPRequest(h1, h2.IP)) // 60 bytes, flooded
		h2.Send(data(h2, h1, 86))
		for range 3 {
			h1.Send(data(h1, h2, 986))
		}
		group := data(h1, h2, 100)
		group[6] = 1
		h1.Send(group) // bad-source-mac
		h1.Send(data(h1, h1, 100))

		c := New(&Config{Switch: a.Switch, Sources: func() Sources {
			return Sources{
				VTEPs:     map[string]*vtep.VTEP{"vtep0": a.VTEP, "none": nil},
				Underlays: map[string]Underlay{"v4": a.Underlay, "none": nil},
			}
		}})
		want := `
# HELP vxswitch_attachment_receive_bytes_total Bytes of frames that came in and were not dropped.
# TYPE vxswitch_attachment_receive_bytes_total counter
vxswitch_attachment_receive_bytes_total{number="1",port="vtep",tag="100",vni="100"} 86
vxswitch_attachment_receive_bytes_total{number="2",port="host1",tag="0",vni="100"} 3018
# HELP vxswitch_attachment_transmit_frames_total Frames that went out: to a tunnel one, whatever the number of peers.
# TYPE vxswitch_attachment_transmit_frames_total counter
vxswitch_attachment_transmit_frames_total{number="1",port="vtep",tag="100",vni="100"} 4
vxswitch_attachment_transmit_frames_total{number="2",port="host1",tag="0",vni="100"} 1
# HELP vxswitch_drops_total Of vxswitch_port_dropped_frames_total, by reason. A reason appears with its first drop.
# TYPE vxswitch_drops_total counter
vxswitch_drops_total{direction="receive",number="2",port="host1",reason="bad-source-mac"} 1
vxswitch_drops_total{direction="receive",number="2",port="host1",reason="reflect"} 1
# HELP vxswitch_fdb_entries MACs in the table, of any kind.
# TYPE vxswitch_fdb_entries gauge
vxswitch_fdb_entries{vni="100"} 2
# HELP vxswitch_fdb_learned_total MACs learned.
# TYPE vxswitch_fdb_learned_total counter
vxswitch_fdb_learned_total{vni="100"} 2
# HELP vxswitch_port_accepted_bytes_total Bytes of frames that came in and were not dropped.
# TYPE vxswitch_port_accepted_bytes_total counter
vxswitch_port_accepted_bytes_total{number="0",port="switch"} 0
vxswitch_port_accepted_bytes_total{number="1",port="vtep"} 86
vxswitch_port_accepted_bytes_total{number="2",port="host1"} 3018
# HELP vxswitch_port_decided_frames_total Frames that came in and were neither flooded nor dropped, by what became of them.
# TYPE vxswitch_port_decided_frames_total counter
vxswitch_port_decided_frames_total{decision="consumed",number="0",port="switch"} 0
vxswitch_port_decided_frames_total{decision="consumed",number="1",port="vtep"} 0
vxswitch_port_decided_frames_total{decision="consumed",number="2",port="host1"} 0
vxswitch_port_decided_frames_total{decision="forwarded",number="0",port="switch"} 0
vxswitch_port_decided_frames_total{decision="forwarded",number="1",port="vtep"} 1
vxswitch_port_decided_frames_total{decision="forwarded",number="2",port="host1"} 3
vxswitch_port_decided_frames_total{decision="replied",number="0",port="switch"} 0
vxswitch_port_decided_frames_total{decision="replied",number="1",port="vtep"} 0
vxswitch_port_decided_frames_total{decision="replied",number="2",port="host1"} 0
# HELP vxswitch_port_dropped_frames_total Frames that came in, or copies meant to go out, and were dropped.
# TYPE vxswitch_port_dropped_frames_total counter
vxswitch_port_dropped_frames_total{direction="receive",number="0",port="switch"} 0
vxswitch_port_dropped_frames_total{direction="receive",number="1",port="vtep"} 0
vxswitch_port_dropped_frames_total{direction="receive",number="2",port="host1"} 2
vxswitch_port_dropped_frames_total{direction="transmit",number="0",port="switch"} 0
vxswitch_port_dropped_frames_total{direction="transmit",number="1",port="vtep"} 0
vxswitch_port_dropped_frames_total{direction="transmit",number="2",port="host1"} 0
# HELP vxswitch_port_receive_bytes_total Bytes of frames that came in.
# TYPE vxswitch_port_receive_bytes_total counter
vxswitch_port_receive_bytes_total{number="0",port="switch"} 0
vxswitch_port_receive_bytes_total{number="1",port="vtep"} 86
vxswitch_port_receive_bytes_total{number="2",port="host1"} 3218
# HELP vxswitch_port_receive_frames_total Frames that came in.
# TYPE vxswitch_port_receive_frames_total counter
vxswitch_port_receive_frames_total{number="0",port="switch"} 0
vxswitch_port_receive_frames_total{number="1",port="vtep"} 1
vxswitch_port_receive_frames_total{number="2",port="host1"} 6
# HELP vxswitch_port_transmit_bytes_total Bytes of frames that went out.
# TYPE vxswitch_port_transmit_bytes_total counter
vxswitch_port_transmit_bytes_total{number="0",port="switch"} 0
vxswitch_port_transmit_bytes_total{number="1",port="vtep"} 3018
vxswitch_port_transmit_bytes_total{number="2",port="host1"} 86
# HELP vxswitch_underlay_receive_datagrams_total Datagrams handed to a reader.
# TYPE vxswitch_underlay_receive_datagrams_total counter
vxswitch_underlay_receive_datagrams_total{underlay="v4"} 1
# HELP vxswitch_underlay_transmit_datagrams_total Datagrams taken by the kernel.
# TYPE vxswitch_underlay_transmit_datagrams_total counter
vxswitch_underlay_transmit_datagrams_total{underlay="v4"} 4
# HELP vxswitch_vsi_drops_total Of vxswitch_vsi_dropped_frames_total, by reason. A reason appears with its first drop.
# TYPE vxswitch_vsi_drops_total counter
vxswitch_vsi_drops_total{reason="bad-source-mac",vni="100"} 1
vxswitch_vsi_drops_total{reason="reflect",vni="100"} 1
# HELP vxswitch_vsi_flooded_frames_total Frames flooded, once each, by class.
# TYPE vxswitch_vsi_flooded_frames_total counter
vxswitch_vsi_flooded_frames_total{class="broadcast",vni="100"} 1
vxswitch_vsi_flooded_frames_total{class="multicast",vni="100"} 0
vxswitch_vsi_flooded_frames_total{class="unknown",vni="100"} 0
# HELP vxswitch_vsi_receive_frames_total Frames that came in and were not dropped, of all attachments that there are and were.
# TYPE vxswitch_vsi_receive_frames_total counter
vxswitch_vsi_receive_frames_total{vni="100"} 5
# HELP vxswitch_vsi_transmit_bytes_total Bytes of frames that went out.
# TYPE vxswitch_vsi_transmit_bytes_total counter
vxswitch_vsi_transmit_bytes_total{vni="100"} 3104
# HELP vxswitch_vtep_peer_mtu_bytes Longest inner frame towards the peer.
# TYPE vxswitch_vtep_peer_mtu_bytes gauge
vxswitch_vtep_peer_mtu_bytes{number="1",peer="10.0.0.2:4789",vtep="vtep0"} 1464
# HELP vxswitch_vtep_peer_receive_bytes_total Bytes of frames accepted from the peer.
# TYPE vxswitch_vtep_peer_receive_bytes_total counter
vxswitch_vtep_peer_receive_bytes_total{number="1",peer="10.0.0.2:4789",vtep="vtep0"} 86
# HELP vxswitch_vtep_peer_transmit_bytes_total Bytes of frames handed to the underlay for the peer.
# TYPE vxswitch_vtep_peer_transmit_bytes_total counter
vxswitch_vtep_peer_transmit_bytes_total{number="1",peer="10.0.0.2:4789",vtep="vtep0"} 3018
# HELP vxswitch_vtep_peer_receive_frames_total Frames accepted from the peer.
# TYPE vxswitch_vtep_peer_receive_frames_total counter
vxswitch_vtep_peer_receive_frames_total{number="1",peer="10.0.0.2:4789",vtep="vtep0"} 1
# HELP vxswitch_vtep_peer_transmit_frames_total Frames handed to the underlay for the peer, copies of flooded ones included.
# TYPE vxswitch_vtep_peer_transmit_frames_total counter
vxswitch_vtep_peer_transmit_frames_total{number="1",peer="10.0.0.2:4789",vtep="vtep0"} 4
# HELP vxswitch_vtep_peers Peers, by where they are known from: listed, or learned and counted against MaxPeers.
# TYPE vxswitch_vtep_peers gauge
vxswitch_vtep_peers{origin="learned",vtep="vtep0"} 0
vxswitch_vtep_peers{origin="listed",vtep="vtep0"} 1
`
		var names []string
		for line := range strings.Lines(want) {
			if w := strings.Fields(line); len(w) > 2 && w[1] == "TYPE" {
				names = append(names, w[2])
			}
		}
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(c)
		if err := testutil.GatherAndCompare(r, strings.NewReader(want), names...); err != nil {
			t.Error(err)
		}
		a.Close() // the tables are empty then
		counters := slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, "_total") })
		if err := testutil.GatherAndCompare(r, strings.NewReader(want), counters...); err != nil {
			t.Errorf("closed: %v", err)
		}
	})
}

// data is a frame of n bytes.
func data(from, to *mem.Host, n int) []byte { return mem.Unicast(from, to, strings.Repeat("x", n-14)) }
