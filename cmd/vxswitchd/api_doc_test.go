package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// report says by IGMPv2 that a host in VNI 10 listens to 239.1.2.3.
const report = "\x08\x00\x00\x00\x00\x00\x0a\x00\x01\x00\x5e\x01\x02\x03\x02\x00\x00\x02\x00\x01\x08\x00\x45\x00\x00\x1c\x00\x00\x00\x00\x01\x02\xb4\x79\x0a\x00\x0a\x63\xef\x01\x02\x03\x16\x00\xf8\xfa\xef\x01\x02\x03"

// TestDocumentedRequests sends each of api.Requests, with each of its parameters, and reads the answer as its type. Each table has
// rows, and each stream says something.
func TestDocumentedRequests(t *testing.T) {
	values := api.Query{"vni": "10", "dev": "vx", "vrf": "red", "proto": "vxsctl", "dry-run": "true", "every": "2", "mac": "02:00:00:00:00:09",
		"dest": "vx", "port": "switch", "tunnel": "vx", "snaplen": "100", "count": "1", "filter": "udp", "type": "3", "peer": "127.0.0.9"}
	keys := filepath.Join(t.TempDir(), "keys")
	must(t, os.WriteFile(keys, []byte("1 sixteen bytes, or more\n"), 0o600))
	free, err := net.ListenPacket("udp4", "127.0.0.1:0")
	must(t, err)
	_, port, _ := net.SplitHostPort(free.LocalAddr().String())
	free.Close()
	r := begin(t, strings.NewReplacer(`{"vni": 20}`, `{"vni": 20}, {"vni": 40}`, `"control"`, `"flannel": {"pods": 40, "iface": ["none0"]}, "evpn": {"as": 65000, "routerID": "127.0.0.1", "peers": [{"address": "127.0.0.9", "as": 65000}]}, "bgp": {`+quietBGP+`}, "calico": {"node": "a", "vrf": "red", "noBGP": true, "etcd": {"endpoints": ["http://127.0.0.1:9"]}}, "discovery": {"tunnel": "vx", "local": "127.0.0.1", "neighbours": ["127.0.0.9"], "keyFile": "`+keys+`", "port": `+port+`}, "ovsdb": {"target": "unix:/nowhere", "name": "us", "tunnel": "vx"}, "control"`, `"name": "vx"`, `"name": "vx", "peers": "listed", "bfd": {}`, `"name": "p"`, `"name": "p", "default": "allow"`, `{"vni": 10,`, `{"vni": 10, "multicast": {},`).Replace(basic(t)))
	_, config := r.ask("GET", "/v1/config", "")
	bodies := map[string]any{
		"POST /v1/fdb":                 api.FDBChange{Op: api.Add, VNI: 10, MAC: "02:00:00:00:00:0a", Dst: "127.0.0.2"},
		"POST /v1/neigh":               api.NeighbourChange{Op: api.Add, VNI: 10, IP: "10.0.10.7", MAC: "02:00:00:00:00:0b", Dst: "127.0.0.2"},
		"POST /v1/route":               api.RouteChange{Op: api.Add, Prefix: "10.9.0.0/16", Via: "10.0.10.7"},
		"POST /v1/port":                api.PortChange{Op: api.Add, Name: "tap7"},
		"POST /v1/evpn":                api.EVPNChange{Op: api.Clear, VNI: 10, MAC: "02:00:00:00:00:0a"},
		"PUT /v1/config":               json.RawMessage(config),
		"PUT /v1/config/{list}/{name}": json.RawMessage(`{"vni": 20}`),
	}
	empty := []string{"/v1/flannel/leases", "/v1/evpn/duplicates", "/v1/evpn/es", "/v1/evpn/routes?peer=127.0.0.9", "/v1/bgp/routes?peer=127.0.0.9", "/v1/ovsdb/leftout"} // there is no etcd, and nobody who speaks BGP or OVSDB, and no port
	for _, x := range [][3]string{                                                                                                                                        // a row that waits
		{"PUT", "/v1/config/segments/30", `{"vni": 30, "tunnel": "vx"}`},
		{"POST", "/v1/fdb", `{"op": "add", "vni": 30, "mac": "02:00:00:00:00:0c", "dst": "127.0.0.2"}`},
		{"DELETE", "/v1/config/segments/30", ""},
	} {
		r.gets(200, x[0], x[1], x[2])
	}
	c, err := (&net.Dialer{LocalAddr: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}}).Dial("udp4", get[[]api.VTEP](r, "/v1/vtep")[0].Local)
	must(t, err)
	defer c.Close()
	go func() { // drops, and MACs to learn
		for i := 0; ; i++ {
			c.Write(make([]byte, 60))
			c.Write([]byte(report))
			if _, err := c.Write(append([]byte{8, 0, 0, 0, 0, 0, 10, 0, 2, 0, 0, 0, 0, 9, 2, 0, 0, 1, byte(i >> 8), byte(i), 0x88, 0xb5}, make([]byte, 46)...)); errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	fake.Until(t, "a drop and a session", func() bool { return len(get[[]api.Drop](r, "/v1/drops")) > 0 && len(get[[]api.BFD](r, "/v1/bfd")) > 0 })
	has := map[string][]string{} // methods by path
	for _, x := range api.Requests {
		pattern, body := x.Method+" "+x.Path, ""
		has[x.Path] = append(has[x.Path], x.Method)
		if sent := bodies[pattern]; sent != nil {
			text, err := json.Marshal(sent)
			must(t, err)
			body = string(text)
		}
		if x.Body != nil && reflect.TypeOf(bodies[pattern]) != reflect.TypeOf(x.Body) {
			t.Errorf("%s: the test sends a %T, want a %T", pattern, bodies[pattern], x.Body)
		}
		tries := []string{""}
		for _, p := range x.Params {
			if values[p] == "" {
				t.Errorf("%s: the test has no value of %s", pattern, p)
			}
			tries = append(tries, "?"+p+"="+values[p])
		}
		if pattern == "POST /v1/port" {
			tries = tries[1:] // the node may have no right to make a device
		}
		slices.Reverse(tries) // dry runs first
		for _, q := range tries {
			target := strings.NewReplacer("{list}", "segments", "{name}", "20", "?port=switch", "?vni=10").Replace(x.Path + q) // it has no ports
			var text []byte
			if x.Stream {
				text = r.begins(target)
				if x.Answer == nil && string(text) == "\n\r\r\n" {
					continue // pcapng
				}
			} else {
				status, all := r.ask(x.Method, target, body)
				if text = []byte(all); pattern == "POST /v1/evpn" && status == 404 {
					continue // TestEVPNDuplicate has a MAC to clear
				}
				if status != 200 {
					t.Errorf("%s %s: %d %s", target, body, status, text)
				}
			}
			answer := reflect.New(reflect.TypeFor[map[string]any]())
			if x.Answer != nil {
				answer = reflect.New(reflect.TypeOf(x.Answer))
			}
			d := json.NewDecoder(bytes.NewReader(text))
			d.DisallowUnknownFields()
			if err := d.Decode(answer.Interface()); err != nil || answer.Elem().Kind() == reflect.Slice && answer.Elem().Len() == 0 && !slices.Contains(empty, target) {
				t.Errorf("%s %s: %v, %s", target, body, err, text)
			}
		}
	}
	if n := len(newServer(nil, silent, nil, nil).handlers()); n != len(api.Requests) {
		t.Errorf("the node has %d requests, want %d", n, len(api.Requests))
	}

	// Other pages mention requests of that list alone.
	mention := regexp.MustCompile(`(?:(GET|PUT|POST|DELETE)(?:, (?:GET|PUT|POST|DELETE))*(?: and (?:GET|PUT|POST|DELETE))? )?` + "`?" + `(/v1/[\w/]+)`)
	n := 0
	must(t, filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".md") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, m := range mention.FindAllStringSubmatch(string(text), -1) {
			n++
			route := strings.Replace(m[2], "LIST/NAME", "{list}/{name}", 1)
			if methods := has[route]; methods == nil || m[1] != "" && !slices.Contains(methods, m[1]) {
				t.Errorf("%s: %s: no such request", name, m[0])
			}
		}
		return err
	}))
	if n < 5 {
		t.Errorf("%d requests are mentioned", n)
	}
}

// begins returns the first line of a stream, of a capture the type of its first block. The stream before may still end.
func (r *running) begins(target string) (text []byte) {
	r.t.Helper()
	fake.Until(r.t, target, func() bool {
		resp, err := r.client.Get("http://node" + target)
		must(r.t, err)
		defer resp.Body.Close()
		in := bufio.NewReader(resp.Body)
		if resp.Header.Get("Content-Type") == "application/x-pcapng" {
			text = make([]byte, 4)
			_, err = io.ReadFull(in, text)
		} else {
			text, err = in.ReadBytes('\n')
		}
		must(r.t, err)
		return resp.StatusCode != http.StatusConflict
	})
	return text
}

// The command lines with curl are run.
func TestCurl(t *testing.T) {
	r := begin(t, basic(t))
	text, err := os.ReadFile("README.md")
	must(t, err)
	lines := regexp.MustCompile("`(curl [^`]+)`").FindAllSubmatch(text, -1)
	for _, m := range lines {
		line := strings.ReplaceAll(string(m[1]), api.DefaultSocket, r.socket)
		c := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(line, "curl", "curl -sS --fail", 1))
		out, err := c.Output()
		if err != nil || !json.Valid(bytes.TrimSpace(out)) {
			t.Errorf("%s: %v %q", line, err, out)
		}
	}
	if len(lines) == 0 {
		t.Error("there are none")
	}
}
