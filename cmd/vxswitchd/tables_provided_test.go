package main

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/cmd/internal/pcapfilter"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/vtep"
)

// The tables and captures have the tunnels and gateways that control planes provide, too, such as those of flannel.
func TestProvidedInTables(t *testing.T) {
	n, err := node.New(nil)
	must(t, err)
	defer n.Close()
	s := newServer(n, silent, nil, nil)
	defer s.close()
	port := freePort(t)
	parts, err := node.Parse(fmt.Appendf(nil, `{"tunnels": [{"name": "far", "type": "fou", "local": "127.0.0.1", "port": %d}],
		"segments": [{"vni": 7, "tunnel": "far", "gateway": {"vrf": "pods", "addresses": ["10.0.7.1/32"]}}], "vrfs": [{"name": "pods"}]}`, port))
	must(t, err)
	must(t, n.Provide("flannel", parts))
	read := func(path string, to any) {
		t.Helper()
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		must(t, json.Unmarshal(w.Body.Bytes(), to))
	}
	var vteps []api.VTEP
	if read("/v1/vtep", &vteps); len(vteps) != 1 || vteps[0].Name != "far" || vteps[0].Type != "fou" || vteps[0].Local != fmt.Sprint("127.0.0.1:", port) {
		t.Errorf("%+v", vteps)
	}
	var ports []api.Port
	if read("/v1/port", &ports); len(ports) != 2 || ports[1].Name != "far" || ports[1].Type != "fou" || ports[1].State != "up" {
		t.Errorf("%+v", ports)
	}
	var routes []api.Route
	if read("/v1/route", &routes); len(routes) != 1 || routes[0].Prefix != "10.0.7.1/32" || routes[0].Kind != "connected" || routes[0].Proto != "" {
		t.Errorf("%+v", routes)
	}
	if got := s.tunnelOf(7)(""); got != "far" {
		t.Errorf("the first tunnel of the segment is %q", got)
	}
	if got := s.linkOf(func(v frame.VNI, _ string) bool { return v == 7 }); got != pcapfilter.RawIP {
		t.Errorf("a capture of the segment is of link type %v", got)
	}
}

// A tunnel that is down has the tags that it has when it is up.
func TestTunnelDownTags(t *testing.T) {
	cfg := &node.Config{Segments: []node.Segment{{VNI: 7, Tunnel: "x"}, {VNI: 8, Tunnels: []node.SegmentTunnel{{Tunnel: "x", VNI: 9}}}}}
	for kind, want := range map[encap.Type][]uint32{encap.TypeVXLAN: {7, 9}, encap.TypeIPIP: {0, 0}} {
		c := node.Tunnel{Config: vtep.Config{Name: "x", Type: kind}}
		var got []uint32
		for _, m := range tunnelDown(cfg, &c).Members {
			got = append(got, m.Tag)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: tags %d, want %d", kind, got, want)
		}
	}
}
