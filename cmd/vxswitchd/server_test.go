package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/node"
)

// basic is a node with segments, without devices.
func basic(t *testing.T) string {
	return fmt.Sprintf(`{
  "tunnels": [{"name": "vx", "local": "127.0.0.1", "port": %d}],
  "segments": [
    {"vni": 10, "tunnel": "vx", "flood": ["127.0.0.2"], "fdb": [{"mac": "02:00:00:00:00:09", "remote": "127.0.0.2"}],
     "neighbours": {"mode": "suppress", "static": [{"ip": "10.0.10.9", "mac": "02:00:00:00:00:09"}]},
     "gateway": {"vrf": "red", "addresses": ["10.0.10.1/24"], "mac": "02:00:00:00:ff:10"}, "policy": "p"},
    {"vni": 20}
  ],
  "policies": [{"name": "p", "rules": [{"name": "web", "action": "allow", "protocol": 6}]}],
  "vrfs": [{"name": "red", "routes": [{"prefix": "10.1.0.0/16", "via": [{"segment": 10, "ip": "10.0.10.9"}]}, {"prefix": "10.2.0.0/16"}]}],
  "control": {"socket": "SOCKET"}
}`, freePort(t))
}

// ages are of the moment.
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

// get returns the answer to a request.
func get[T any](r *running, path string) (x T) {
	r.t.Helper()
	_, text := r.ask("GET", path, "")
	must(r.t, json.Unmarshal([]byte(text), &x))
	return x
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
	if status, text := r.ask("GET", "/v1/flood", ""); status != 200 || !strings.Contains(text, `["127.0.0.2"]`) {
		t.Errorf("%d %s", status, text)
	}
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
	if status, text := r.ask("POST", "/v1/fdb", `{"op": "append", "mac": "00:00:00:00:00:00", "dst": "127.0.0.9", "vni": 99}`); status != http.StatusNotFound {
		t.Errorf("a flood list of BFD: %d %s", status, text)
	}
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

// macs is the FDB of VNI 10 without the gateway.
func (r *running) macs() (list []string) {
	for _, e := range get[[]api.FDBEntry](r, "/v1/fdb?vni=10") {
		if e.Dev != "switch" {
			host, _, _ := net.SplitHostPort(e.Dest)
			list = append(list, strings.TrimPrefix(e.MAC, "02:00:00:00:00:")+" "+host+" "+e.Origin)
		}
	}
	return list
}

// Changes behave as those of bridge fdb.
func TestChanges(t *testing.T) {
	r := begin(t, basic(t))
	const zero, group = "00:00:00:00:00:00", "01:00:5e:01:01:01"
	for _, c := range []struct {
		op, mac, dst, dev string
		vni, status       int
		want              string // in the error
	}{
		{"add", "0a", "127.0.0.3", "", 10, 200, ""},
		{"add", "0a", "127.0.0.3", "", 10, 409, "use replace"},
		{"replace", "0a", "127.0.0.4", "", 10, 200, ""},
		{"add", "0c", "127.0.0.3", "", 10, 200, ""},
		{"del", "0c", "127.0.0.3", "", 10, 200, ""},
		{"add", "09", "127.0.0.3", "", 10, 409, "use replace"},
		{"replace", "09", "127.0.0.3", "", 10, 409, "is from the file: change the file"},
		{"del", "09", "", "", 10, 409, "is from the file: change the file"},
		{"del", "0b", "", "", 10, 404, "has no entry in vni 10"},
		{"add", "0b", "127.0.0.3", "", 20, 404, "dst 127.0.0.3: vni 20 has no tunnel"},
		{"add", "0b", "", "tap9", 10, 404, `dev "tap9": no such port`},
		{"add", "0b", "", "vx", 10, 409, `dev "vx": is a tunnel: use dst`},
		{"add", "0b", "127.0.0.3", "", 1 << 24, 400, "vni 16777216: must be 0 to 16777215"},
		{"add", "0b", "127.0.0.1", "", 10, 409, "dst 127.0.0.1: is this node's own address"},
		{"append", zero, "127.0.0.1", "", 10, 409, "dst 127.0.0.1: is this node's own address"},
		{"append", zero, "fd00::1", "", 10, 409, "dst fd00::1: no tunnel of vni 10 has an address of this family"},
		{"del", "0a", "127.0.0.9", "", 10, 404, "02:00:00:00:00:0a has no entry with dst 127.0.0.9 in vni 10"},
		{"del", "0a", "", "tap9", 10, 404, `02:00:00:00:00:0a has no entry with dev "tap9" in vni 10`},
		{"add", "0b", "127.0.0.3", "", 30, 404, "no such segment"},
		{"add", "0b", "127.0.0.3", "tap9", 10, 400, "takes either dst or dev"},
		{"add", "0b", "", "", 10, 400, "requires dst or dev"},
		{"add", "0b", "fd00::1", "", 10, 409, "dst fd00::1: no tunnel of vni 10 has an address of this family"},
		{"add", "0b", "224.0.0.1", "", 10, 400, "address of one host"},
		{"add", "0b", "x", "", 10, 400, "address of one host"},
		{"append", "0b", "127.0.0.3", "", 10, 400, "flood list"},
		{"set", "0b", "127.0.0.3", "", 10, 400, "must be add, append, replace or del"},
		{"append", zero, "127.0.0.3", "", 10, 200, ""},
		{"append", zero, "127.0.0.3", "", 10, 409, "already"},
		{"append", zero, "127.0.0.2", "", 10, 409, "already"},
		{"add", zero, "127.0.0.5", "", 10, 409, "use append"},
		{"replace", zero, "127.0.0.5", "", 10, 400, "use append"},
		{"del", zero, "127.0.0.2", "", 10, 409, "change the file"},
		{"del", zero, "127.0.0.7", "", 10, 404, "not in the flood list"},
		{"append", zero, "", "", 10, 400, "requires dst"},
		{"append", group, "127.0.0.3", "", 10, 200, ""},
		{"append", group, "127.0.0.3", "", 10, 409, "already"},
		{"add", group, "127.0.0.2", "", 10, 409, "use append"},
		{"append", group, "127.0.0.2", "", 10, 200, ""},
		{"del", group, "127.0.0.3", "", 10, 200, ""},
		{"del", group, "127.0.0.3", "", 10, 404, "not in the flood list"},
		{"del", group, "", "", 10, 400, "mac 01:00:5e:01:01:01: the flood list requires dst"},
	} {
		mac := c.mac
		if len(mac) == 2 {
			mac = "02:00:00:00:00:" + mac
		}
		body, _ := json.Marshal(api.FDBChange{Op: c.op, MAC: mac, Dst: c.dst, Dev: c.dev, VNI: frame.VNI(c.vni)})
		status, text := r.ask("POST", "/v1/fdb", string(body))
		var e api.Error
		json.Unmarshal([]byte(text), &e)
		if status != c.status || !strings.Contains(e.Text, c.want) || (status != 200) != (e.Text != "") || strings.Contains(e.Text, "\n") {
			t.Errorf("%s: %d %s, want %d %q", body, status, text, c.status, c.want)
		}
	}
	for body, want := range map[string]string{
		"": "body: empty; must be an object with op", "{": "body:1:2: unexpected end of the file", "[]": "body:1:1: a list: must be an object",
		`{"op":"add","vni":1,"colour":1}`: "colour: unknown key; allowed are dev, dst, mac, op, tunnel, vni",
		`{"op":"add","vni":1}{}`:          "body:1:21: ", `{"op":"add","vni":10,"mac":"02:00:00:00:00:0c","dst":"127.0.0.3"}]`: "body:1:66: ", `{"op":"add"}`: "vni: required",
		`{"op":5,"vni":"10"}`:                           `op: 5: must be a string; vni: \"10\": must be a number`,
		`{"op":"add","vni":-1}`:                         "vni: -1: must be 0 to 16777215",
		`{"op":"add","vni":1.5}`:                        "vni: 1.5: must be 0 to 16777215",
		`{"op":"a","op":"b","vni":1}`:                   "op: duplicate key",
		`{"op":"` + strings.Repeat("x", maxBody) + `"}`: "larger than 65536 bytes",
	} {
		if status, text := r.ask("POST", "/v1/fdb", body); status != 400 && (len(body) < maxBody || status != 413) || !strings.Contains(text, want) {
			t.Errorf("%.40q: %d %s", body, status, text)
		}
	}
	for query, want := range map[string]string{
		"vni=10&vni=20": "/v1/fdb: vni: duplicate parameter", "vni=%zz": "/v1/fdb: query: invalid URL escape", "colour=red": `/v1/fdb: unknown parameter \"colour\"; must be one of vni, dev`,
	} {
		if status, text := r.ask("GET", "/v1/fdb?"+query, ""); status != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", query, status, text)
		}
	}
	want := []string{"09 127.0.0.2 static", "0a 127.0.0.4 control"}
	if got := r.macs(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	flood := func(want int) {
		t.Helper()
		if f := get[[]api.Flood](r, "/v1/flood"); len(f) != 1 || len(f[0].Peers) != want || len(f[0].Members) != want+1 || f[0].Members[want].MAC != group {
			t.Errorf("%+v, want %d peers and one of the group", f, want)
		}
	}
	flood(2)

	// They outlast a reload.
	text, _ := os.ReadFile(r.file)
	r.write(strings.Replace(string(text), `{"vni": 20}`, `{"vni": 20}, {"vni": 30}`, 1))
	if status, text := r.ask("POST", "/v1/reload", ""); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	if got := r.macs(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	flood(2)
	r.ask("POST", "/v1/fdb", `{"op":"del","vni":10,"mac":"02:00:00:00:00:0a"}`)
	r.ask("POST", "/v1/fdb", `{"op":"del","vni":10,"mac":"00:00:00:00:00:00","dst":"127.0.0.3"}`)
	if got := r.macs(); !slices.Equal(got, want[:1]) {
		t.Errorf("%q, want %q", got, want[:1])
	}
	flood(1)
}

// A file that is wrong changes nothing, and every error has its place.
func TestReload(t *testing.T) {
	r := begin(t, basic(t))
	good, _ := os.ReadFile(r.file)
	r.write(strings.Replace(strings.Replace(string(good), `"vni": 20`, `"vni": 10`, 1), `"red", "addresses"`, `"blue", "addresses"`, 1))
	status, text := r.ask("POST", "/v1/reload", "")
	var e api.Error
	json.Unmarshal([]byte(text), &e)
	want := []string{r.file + `:6:25: segments[0].gateway.vrf: "blue": must be the name of a VRF`, r.file + `:7:13: segments[1].vni: 10: duplicate`}
	ok := slices.ContainsFunc(e.Lines, func(l string) bool { return l == want[0] }) && slices.Contains(e.Lines, want[1])
	if status != 422 || !ok {
		t.Errorf("%d %q, want %q", status, e.Lines, want)
	}
	r.write(strings.ReplaceAll(string(good), "127.0.0.", "192.0.2."))
	if status, text := r.ask("POST", "/v1/reload", ""); status != 422 || !strings.Contains(text, `must be an address of this host`) {
		t.Errorf("%d %s", status, text)
	}
	if got := r.macs(); !slices.Equal(got, []string{"09 127.0.0.2 static"}) {
		t.Errorf("%q", got)
	}
	r.write(strings.Replace(string(good), "SOCKET", r.socket, 1))
	if status, text := r.ask("POST", "/v1/reload", ""); status != 200 || strings.Count(r.out.String(), "reloaded\n") != 1 {
		t.Errorf("%d %s", status, text)
	}
}

func TestWrongRequests(t *testing.T) {
	r := begin(t, basic(t))
	for _, c := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/v1/nope", 404, "must be one of /v1/bfd, /v1/bgp, /v1/bgp/peers, /v1/bgp/routes, /v1/calico, /v1/capture, /v1/config"},
		{"DELETE", "/v1/fdb", 405, "must be one of GET, POST"},
		{"GET", "/v1/reload", 405, "must be one of POST"},
		{"POST", "/v1/config/ports/tap0", 405, "must be one of GET, PUT, DELETE"},
		{"POST", "/v1/config/policies/a%2Fb", 405, "must be one of GET, PUT, DELETE"},
		{"GET", "/v1/fdb?colour=red", 400, "must be one of vni, dev"},
		{"GET", "/v1/fdb?vni=16777216", 400, "must be 0 to 16777215"},
		{"GET", "/v1/drops?x=1", 400, "unknown parameter"},
		{"GET", "/v1/monitor?x=1", 400, "unknown parameter"},
		{"POST", "/v1/reload?dry-run", 400, "unknown parameter"},
		{"GET", "/v1/fdb?vni=10;dev=vx", 400, "invalid semicolon"},
		{"GET", "/v1/fdb?vni=5", 404, "no such segment"},
		{"GET", "/v1/fdb?dev=nope", 404, "no such port or tunnel"},
		{"GET", "/v1/neigh?vni=5", 404, "no such segment"},
		{"GET", "/v1/route?vrf=blue", 404, "no such VRF"},
		{"GET", "/v1/trace?vni=999", 404, "no such segment"},
		{"GET", "/v1/trace?every=0", 400, "must be 1 or more"},
		{"GET", "/v1/trace?mac=x", 400, "must be a MAC"},
		{"GET", "/v1/trace?dest=tap9", 404, "no such port, tunnel or peer"},
		{"GET", "/v1/trace?dest=127.0.0.9", 404, "no such port, tunnel or peer"},
		{"GET", "/v1/capture?port=tap9", 404, `port \"tap9\": there is none`},
		{"GET", "/v1/capture?tunnel=tap9", 404, `tunnel \"tap9\": must be one of vx`},
		{"GET", "/v1/capture?vni=999", 404, "no such segment"},
		{"GET", "/v1/capture?vni=x", 400, "must be 0 to 16777215"},
		{"GET", "/v1/capture?vni=10&tunnel=vx", 400, "only one of port, tunnel and vni may be given"},
		{"GET", "/v1/capture?snaplen=0", 400, `snaplen \"0\": must be 1 to 262144`},
		{"GET", "/v1/capture?count=x", 400, `count \"x\": must be 1 to 2147483647`},
		{"GET", "/v1/capture?filter=tcp+prot+80", 400, `filter, column 5: \"prot\": must be \"and\" or \"or\"`},
		{"GET", "/v1/capture?tunnel=vx&filter=vlan+5", 400, `is for Ethernet, and these packets begin with IP`},
		{"GET", "/v1/capture?tunnel=vx&filter=arp", 400, `rejects all packets: they begin with raw IP`},
		{"GET", "/v1/capture?filter=" + strings.Repeat("x", 2049), 400, `filter of 2049 bytes: must have at most 2048`},
	} {
		if status, text := r.ask(c.method, c.path, ""); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, text)
		}
	}
}

// Events arrive, one reader has a trace or a capture, and the end ends all of them.
func TestStreams(t *testing.T) {
	r := begin(t, basic(t))
	monitor := r.open("/v1/monitor")
	r.open("/v1/trace?dest=127.0.0.2")
	capture := r.open("/v1/capture")
	for path, want := range map[string]string{"/v1/trace": "end it first", "/v1/capture": "too many captures are running: end one"} {
		if status, text := r.ask("GET", path, ""); status != 409 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	// A duplicate neighbour or a port that comes is an event: here a tunnel made anew.
	text, _ := os.ReadFile(r.file)
	r.write(strings.Replace(string(text), `"name": "vx"`, `"name": "vx", "ttl": 9`, 1))
	if status, text := r.ask("POST", "/v1/reload", ""); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	lines := bufio.NewScanner(monitor.Body)
	next := func() (e api.Event, ok bool) { // those of peers left out
		for lines.Scan() {
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Event != "peer-up" {
				return e, err == nil
			}
			e = api.Event{}
		}
		return e, false
	}
	for _, want := range []string{"detached", "port-down", "port-up", "attached"} {
		if e, ok := next(); !ok || e.Event != want || e.Dest != "vx" || time.Since(e.Time) > time.Minute {
			t.Errorf("%s, want %s", lines.Text(), want)
		}
	}
	capture.Body.Close()
	fake.Until(t, "the capture to be over", func() bool {
		again := r.open("/v1/capture")
		return again.StatusCode == 200
	})
	begun := time.Now()
	if code := r.stop(); code != 0 || time.Since(begun) > 3*time.Second {
		t.Errorf("status %d after %v: %s", code, time.Since(begun), r.errs.String())
	}
	if _, ok := next(); ok {
		t.Errorf("%s", lines.Text())
	}
}

// A client that reads nothing of a table is disconnected after 5 s, as one of a stream is, and does not keep its place.
func TestStalledTable(t *testing.T) {
	t.Parallel()
	var entries []string
	for i := range 8000 {
		entries = append(entries, fmt.Sprintf(`{"mac": "02:00:00:01:%02x:%02x", "remote": "127.0.0.2"}`, i>>8, i&255))
	}
	r := begin(t, strings.Replace(basic(t), `"fdb": [`, `"fdb": [`+strings.Join(entries, ", ")+", ", 1))
	c, err := net.Dial("unix", r.socket)
	must(t, err)
	defer c.Close()
	fmt.Fprint(c, "GET /v1/stats HTTP/1.1\r\nHost: node\r\n\r\n")
	in := bufio.NewReader(c)
	_, err = in.Peek(1) // the node has begun
	must(t, err)
	time.Sleep(stalled + stalled/2)
	resp, err := http.ReadResponse(in, nil)
	must(t, err)
	if text, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("all of %d bytes came", len(text))
	}
}

// Clients that stall or flood are bounded, and others get their answers.
func TestManyClients(t *testing.T) {
	r := begin(t, basic(t))
	for range maxStreams / 4 { // what one process may have
		if resp := r.open("/v1/monitor"); resp.StatusCode != 200 {
			t.Fatal(resp.Status)
		}
	}
	if status, text := r.ask("GET", "/v1/monitor", ""); status != 503 || !strings.Contains(text, "end one") {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := r.ask("GET", "/v1/fdb", ""); status != 200 {
		t.Error(status)
	}
	var idle []net.Conn
	turned := 0
	for range maxConns/4 + 5 {
		c, err := net.Dial("unix", r.socket)
		must(t, err)
		defer c.Close()
		io.WriteString(c, "GET /v1/fdb HTT") // and no more
		idle = append(idle, c)
	}
	for _, c := range idle {
		c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil && resp.StatusCode == 503 {
			turned++
		}
		if turned == 5 {
			break
		}
	}
	if turned < 5 {
		t.Errorf("%d connections were turned away", turned)
	}
	// Those that say nothing are gone after a while, and there is room again.
	time.Sleep(stalled)
	fake.Until(t, "room", func() bool { status, _ := r.ask("GET", "/v1/flood", ""); return status == 200 })

	begun := time.Now()
	const requests = maxBurst + 40
	for range requests {
		r.ask("GET", "/v1/flood", "")
	}
	if took := time.Since(begun); took < 30*perRequest {
		t.Errorf("%d requests in %v", requests, took)
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
