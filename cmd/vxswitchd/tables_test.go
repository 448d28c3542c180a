package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/node"
)

// noAges leaves out ages: they are of the moment.
func noAges(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "age")
		for _, x := range v {
			noAges(x)
		}
	case []any:
		for _, x := range v {
			noAges(x)
		}
	}
}

func TestTables(t *testing.T) {
	r := begin(t, strings.Replace(basic(t), `"local"`, `"local6": "::1", "local"`, 1))
	peer := get[[]api.Flood](r, "/v1/flood")[0].Peers[0]
	for path, want := range map[string]string{
		"/v1/fdb?vni=10&dev=vx": `[{"vni":10,"mac":"02:00:00:00:00:09","dest":"PEER","dev":"vx","origin":"static","proto":"config"}]`,
		"/v1/fdb": `[{"vni":10,"mac":"02:00:00:00:00:09","dest":"PEER","dev":"vx","origin":"static","proto":"config"},
			{"vni":10,"mac":"02:00:00:00:ff:10","dest":"switch","dev":"switch","origin":"static"}]`,
		"/v1/fdb?vni=20": `[]`,
		"/v1/neigh":      `[{"vni":10,"ip":"10.0.10.9","mac":"02:00:00:00:00:09","origin":"static","proto":"config","state":"permanent"}]`,
		"/v1/route": `[{"vrf":"red","prefix":"10.0.10.0/24","kind":"connected","proto":"config","via":["vni 10"]},
			{"vrf":"red","prefix":"10.1.0.0/16","kind":"via","proto":"config","via":["vni 10 via 10.0.10.9"]},
			{"vrf":"red","prefix":"10.2.0.0/16","kind":"blackhole","proto":"config","via":[]}]`,
		"/v1/flood":   `[{"vni":10,"tunnel":"vx","peers":["PEER"],"members":[{"peer":"PEER","proto":["config"]}]}]`,
		"/v1/waiting": `[]`,
		"/v1/drops":   `[]`,
	} {
		status, text := r.ask("GET", path, "")
		var got, wanted any
		json.Unmarshal([]byte(text), &got)
		must(t, json.Unmarshal([]byte(strings.ReplaceAll(want, "PEER", peer)), &wanted))
		if noAges(got); status != 200 || !reflect.DeepEqual(got, wanted) {
			t.Errorf("%s: %d\ngot  %v\nwant %v", path, status, got, wanted)
		}
	}
	ports, vteps := get[[]api.Port](r, "/v1/port"), get[[]api.VTEP](r, "/v1/vtep")
	policies, stats := get[[]api.Policy](r, "/v1/policy"), get[api.Stats](r, "/v1/stats")
	if len(ports) != 2 || ports[1].Name != "vx" || ports[1].Type != "vxlan" || !slices.Equal(ports[1].Members, []api.Member{{VNI: 10, Tag: 10}}) {
		t.Errorf("%+v", ports)
	}
	if len(vteps) != 1 || len(vteps[0].Peers) != 1 || vteps[0].Peers[0].Addr != peer || !vteps[0].Peers[0].Listed ||
		!strings.HasPrefix(vteps[0].Local, "127.0.0.1:") || !strings.HasPrefix(vteps[0].Local6, "[::1]:") {
		t.Errorf("%+v", vteps)
	}
	if len(policies) != 1 || !strings.Contains(string(policies[0].Stats), `"web"`) {
		t.Errorf("%+v", policies)
	}
	if len(stats.FDB) != 2 || len(stats.Neigh) != 1 || len(stats.Peers) != 1 || stats.Drops == nil {
		t.Errorf("%+v", stats)
	}
	// What the node says it does is a file that it reads.
	if _, text := r.ask("GET", "/v1/config", ""); !strings.Contains(text, `"ageing": "5m0s"`) {
		t.Errorf("%s", text)
	}
}

// A tunnel or port that is in no segment is listed, too.
func TestUnused(t *testing.T) {
	r := begin(t, fmt.Sprintf(`{"tunnels": [{"name": "vx", "local": "127.0.0.1", "port": %d}], "segments": [{"vni": 10}], "control": {"socket": "SOCKET"}}`, freePort(t)))
	vx := func() api.Port {
		ports := get[[]api.Port](r, "/v1/port")
		return ports[len(ports)-1]
	}
	if p := vx(); p.Port != -1 || p.Name != "vx" || p.Type != "vxlan" || p.State != "unused" || p.Members == nil || p.RxDrops == nil || p.TxDrops == nil {
		t.Errorf("%+v", p)
	}
	r.ask("PUT", "/v1/config/segments/10", `{"vni": 10, "tunnel": "vx"}`)
	if p := vx(); p.Port < 1 || p.Name != "vx" || p.State != "up" || len(p.Members) != 1 {
		t.Errorf("%+v", p)
	}
}

// A peer of IP-in-IP has no port.
func TestFloodWithoutPorts(t *testing.T) {
	r := begin(t, `{"tunnels": [{"name": "ip", "type": "ipip", "local": "127.0.0.1"}], "control": {"socket": "SOCKET"},
  "segments": [{"vni": 30, "tunnel": "ip", "flood": ["127.0.0.2"], "gateway": {"vrf": "red", "addresses": ["10.9.0.1/32"]}}], "vrfs": [{"name": "red"}]}`)
	r.gets(200, "GET", "/v1/flood", "", `["127.0.0.2"]`)
}

// A route to a router says behind which peer that is, and the VNI of BFD is no segment with a flood list.
func TestRouteAndFloodTables(t *testing.T) {
	port := freePort(t)
	r := begin(t, fmt.Sprintf(`{"tunnels": [{"name": "vx", "local": "127.0.0.1", "port": %d, "peers": "listed", "bfd": {"vni": 99}}],
  "segments": [{"vni": 10, "tunnel": "vx", "flood": ["127.0.0.2"]},
    {"vni": 50, "tunnel": "vx", "gateway": {"vrf": "red", "mac": "02:00:00:00:ff:50"}}],
  "vrfs": [{"name": "red", "routes": [{"prefix": "10.1.0.0/16", "via": [
    {"segment": 50, "mac": "02:00:00:00:00:02", "remote": "127.0.0.2", "weight": 3}, {"segment": 50, "mac": "02:00:00:00:00:03", "remote": "127.0.0.3", "vni": 77}]}]}],
  "control": {"socket": "SOCKET"}}`, port))
	want := []string{fmt.Sprintf("vni 50 mac 02:00:00:00:00:02 peer 127.0.0.2:%d weight 3", port),
		fmt.Sprintf("vni 50 mac 02:00:00:00:00:03 peer 127.0.0.3:%d vni 77", port)}
	if routes := get[[]api.Route](r, "/v1/route"); len(routes) != 1 || !slices.Equal(routes[0].Via, want) {
		t.Errorf("%+v, want via %q", routes, want)
	}
	fake.Until(t, "BFD has its VNI", func() bool {
		return strings.Contains(fmt.Sprint(get[[]api.Port](r, "/v1/port")), "{99 99 false}")
	})
	var floods []frame.VNI
	for _, f := range get[[]api.Flood](r, "/v1/flood") {
		floods = append(floods, f.VNI)
	}
	if !slices.Equal(floods, []frame.VNI{10, 50}) {
		t.Errorf("flood lists of %v", floods)
	}
	r.gets(404, "POST", "/v1/fdb", `{"op": "append", "mac": "00:00:00:00:00:00", "dst": "127.0.0.9", "vni": 99}`)
}

// Entries of every kind can be read.
func TestEntryTable(t *testing.T) {
	text := strings.Replace(basic(t), `{"vni": 20}`, `{"vni": 20, "tunnel": "vx", "fdb": [
      {"mac": "01:00:5e:00:00:01", "remote": "127.0.0.2"},
      {"mac": "02:00:00:00:00:01", "filter": true},
      {"mac": "02:00:00:00:00:02", "remote": "127.0.0.2", "vni": 7001},
      {"mac": "02:00:00:00:00:03", "remotes": ["127.0.0.3", "127.0.0.2"]},
      {"mac": "02:00:00:00:00:04", "remotes": ["127.0.0.2", "127.0.0.3"], "vni": 7001}]}`, 1)
	r := begin(t, text)
	port := regexp.MustCompile(`(127\.0\.0\.\d):\d+`)
	var got []string
	for _, e := range get[[]api.FDBEntry](r, "/v1/fdb?vni=20") {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s; %s %s %s", e.MAC, port.ReplaceAllString(e.Dest, "$1"), e.Dev, e.Origin, strings.Join(e.Flags, ","))))
	}
	if want := []string{
		"01:00:5e:00:00:01 127.0.0.2; vx static",
		"02:00:00:00:00:01 filter;  static filter",
		"02:00:00:00:00:02 127.0.0.2 vni 7001; vx static",
		"02:00:00:00:00:03 group of 127.0.0.2, 127.0.0.3; vx static",
		"02:00:00:00:00:04 group of 127.0.0.2 vni 7001, 127.0.0.3 vni 7001; vx static",
	}; !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What a control plane has said and is in no table can be read, with the reason.
func TestWaiting(t *testing.T) {
	n, err := node.New(nil)
	must(t, err)
	defer n.Close()
	s := newServer(n, silent, nil, nil)
	defer s.close()
	read := func(path string) (list []api.Row) {
		answer := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		must(t, json.Unmarshal(answer.Body.Bytes(), &list))
		return list
	}
	waits := control.Flood{VNI: 77, VTEP: netip.MustParseAddrPort("127.0.0.9:0")}
	must(t, n.Program("evpn", control.Update{Loose: true, Add: []control.Row{waits}}))
	if err := n.Program("bgp", control.Update{Add: []control.Row{waits}}); err == nil {
		t.Error("a row without a segment was accepted")
	}
	list := read("/v1/waiting")
	if len(list) != 2 || list[0].State != "refused" || list[0].Proto != "bgp" || list[0].Time == nil || list[1].State != "waiting" ||
		list[1].Proto != "evpn" || list[1].Row != waits.String() || !strings.Contains(list[1].Why, "no such segment") {
		t.Errorf("%+v", list)
	}
	if list = read("/v1/waiting?proto=bgp"); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}
