package metrics_test

import (
	"bufio"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/vxswitch/vxswitch/metrics"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A switch with a VTEP, as Prometheus sees it.
func Example() {
	net := memory.NewNetwork(nil) // in memory, instead of underlay.ListenUDP
	defer net.Close()
	u, err := net.Listen(netip.MustParseAddrPort("192.0.2.1:4789"), nil)
	if err != nil {
		panic(err)
	}
	v, err := vtep.New(nil, u)
	if err != nil {
		panic(err)
	}
	sw, err := vswitch.New(nil)
	if err != nil {
		panic(err)
	}
	defer sw.Close()
	vsi, _ := sw.VSI(100, nil)
	_, _ = vsi.Attach(v, 100)
	_ = v.SetFlood(100, netip.MustParseAddrPort("192.0.2.2:4789"))

	reg := prometheus.NewRegistry()
	reg.MustRegister(metrics.New(&metrics.Config{Switch: sw, Sources: func() metrics.Sources {
		return metrics.Sources{
			VTEPs:     map[string]*vtep.VTEP{"vtep": v},
			Underlays: map[string]metrics.Underlay{"vtep": u},
		}
	}}))
	server := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	defer server.Close()

	resp, err := server.Client().Get(server.URL + "/metrics")
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		if strings.HasPrefix(s.Text(), "vxswitch_vtep_pee") || strings.HasPrefix(s.Text(), "vxswitch_fdb_entries") {
			fmt.Println(s.Text())
		}
	}
	// Output:
	// vxswitch_fdb_entries{vni="100"} 0
	// vxswitch_vtep_peer_mtu_bytes{number="1",peer="192.0.2.2:4789",vtep="vtep"} 1464
	// vxswitch_vtep_peer_receive_bytes_total{number="1",peer="192.0.2.2:4789",vtep="vtep"} 0
	// vxswitch_vtep_peer_receive_frames_total{number="1",peer="192.0.2.2:4789",vtep="vtep"} 0
	// vxswitch_vtep_peer_transmit_bytes_total{number="1",peer="192.0.2.2:4789",vtep="vtep"} 0
	// vxswitch_vtep_peer_transmit_frames_total{number="1",peer="192.0.2.2:4789",vtep="vtep"} 0
	// vxswitch_vtep_peers{origin="learned",vtep="vtep"} 0
	// vxswitch_vtep_peers{origin="listed",vtep="vtep"} 1
}
