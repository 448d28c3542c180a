package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

const quietBGP = `"as": 64512, "routerID": "127.0.0.1", "vrf": "red", "addresses": ["192.0.2.1"], "announce": ["10.65.1.0/26"], "peers": [{"address": "127.0.0.9", "as": 64512}]`

func TestBGPPasswordFile(t *testing.T) { testPasswordFile(t, "bgp", quietBGP) }

// A file whose password cannot be read ends no section that runs: the change is refused, by the key. At the start it does not stop the node.
// The section has one peer, 127.0.0.9.
func testPasswordFile(t *testing.T, name, section string) {
	plain := strings.Replace(basic(t), `"control"`, `"`+name+`": {`+section+`}, "control"`, 1)
	with := strings.Replace(plain, `"127.0.0.9",`, `"127.0.0.9", "passwordFile": "nowhere",`, 1)
	want := name + `.peers[0].passwordFile: \"nowhere\": no such file or directory`

	r := begin(t, plain)
	state := func() string {
		_, text := r.ask("GET", "/v1/"+name, "")
		return text
	}
	fake.Until(t, "it runs", func() bool { return strings.Contains(state(), `"peers":1`) })
	r.write(with)
	if status, text := r.ask("POST", "/v1/reload", ""); status == http.StatusOK || !strings.Contains(text, want) {
		t.Error(status, text)
	}
	if status, text := r.ask("PUT", "/v1/config", strings.ReplaceAll(with, "SOCKET", r.socket)); status == http.StatusOK || !strings.Contains(text, want) {
		t.Error(status, text)
	}
	if e := state(); !strings.Contains(e, `"state":"running"`) || !strings.Contains(e, `"peers":1`) {
		t.Error(e)
	}
	reload := func(text string, want string) {
		t.Helper()
		r.write(text)
		if _, got := r.ask("POST", "/v1/reload", ""); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	reload(plain, "")

	// A reload reads a file again that the section still names, and a change of something else does not.
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("one\n"), 0o600))
	named := strings.Replace(with, "nowhere", secret, 1)
	reload(named, "reloaded")
	must(t, os.WriteFile(secret, []byte(strings.Repeat("x", 81)), 0o600))
	r.gets(200, "PUT", "/v1/config/segments/77", `{"vni": 77}`)
	reload(named, "must have 1 to 80")
	must(t, os.WriteFile(secret, []byte("two\n"), 0o600))
	reload(named, "reloaded")

	r.stop()
	r = begin(t, with)
	fake.Until(t, "it says why", func() bool { return strings.Contains(state(), want) })
}

// A section with links: a block has a next hop in each.
func TestBGPLinks(t *testing.T) {
	section := strings.Replace(quietBGP, `"addresses": ["192.0.2.1"]`, `"links": [{"segment": 10, "addresses": ["10.0.10.1"]}, {"segment": 20, "addresses": ["10.0.20.1"], "routers": []}]`, 1)
	text := strings.NewReplacer(`"control"`, `"bgp": {`+section+`}, "control"`,
		`{"vni": 20}`, `{"vni": 20, "gateway": {"vrf": "red", "addresses": ["10.0.20.1/24"], "mac": "02:00:00:00:ff:20"}}`).Replace(basic(t))
	r := begin(t, text)
	fake.Until(t, "the block is announced", func() bool {
		_, text := r.ask("GET", "/v1/bgp/routes", "")
		return strings.Contains(text, `[{"prefix":"10.65.1.0/26","nextHop":"10.0.10.1"},`+"\n"+`{"prefix":"10.65.1.0/26","nextHop":"10.0.20.1"}]`)
	})
}

// The section in the API, metrics and health, with a peer that does not answer, and one that cannot run.
func TestBGPQuiet(t *testing.T) {
	text := strings.Replace(basic(t), `"control"`, `"bgp": {`+quietBGP+`}, "control"`, 1)
	r, addr := withMetricsOf(t, text, "127.0.0.1:0")
	fake.Until(t, "the block is announced", func() bool {
		_, text := r.ask("GET", "/v1/bgp/routes", "")
		return strings.Contains(text, `[{"prefix":"10.65.1.0/26","nextHop":"192.0.2.1"}]`)
	})
	for path, want := range map[string]string{
		"/v1/bgp":                         `"as":64512,"routerID":"127.0.0.1","vrf":"red","peers":1,"established":0,"announced":["10.65.1.0/26"],"received":0,"accepted":0,"refused":{}}`,
		"/v1/bgp/peers":                   `"routes":0,"accepted":0,"refused":{},`,
		"/v1/bgp/routes?peer=127.0.0.9":   "[]",
		"/v1/bgp/routes?peer=the%20other": `peer \"the other\": must be the address of a peer`,
	} {
		if _, text := r.ask("GET", path, ""); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", path, text, want)
		}
	}
	_, metrics := getMetrics(t, addr, "/metrics")
	for _, want := range []string{"bgp_up 1", `bgp_peer_up{peer="127.0.0.9"} 0`, `bgp_peer_routes{peer="127.0.0.9"} 0`, `bgp_peer_accepted_routes{peer="127.0.0.9"} 0`,
		`bgp_peer_received_messages_total{peer="127.0.0.9"} 0`, `bgp_peer_sent_messages_total{peer="127.0.0.9"} 0`, "bgp_announced_routes 1", "bgp_left_out_routes_total 0"} {
		if !strings.Contains(metrics, "\nvxswitch_"+want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if problems, err := promlint.New(strings.NewReader(metrics)).Lint(); len(problems) > 0 || err != nil {
		t.Errorf("%v %v", problems, err)
	}

	r.write(strings.Replace(text, `"announce"`, `"listen": ["192.0.2.99"], "announce"`, 1)) // not an address of this host
	r.gets(200, "POST", "/v1/reload", "")
	fake.Until(t, "it cannot run", func() bool {
		_, text := r.ask("GET", "/v1/bgp", "")
		return strings.Contains(text, `"state":"failed"`) && strings.Contains(text, "192.0.2.99")
	})
	if status, text := getMetrics(t, addr, "/healthz"); status != 503 || !strings.HasPrefix(text, "bgp is failed since ") {
		t.Errorf("%d %s", status, text)
	}
	if _, metrics := getMetrics(t, addr, "/metrics"); !strings.Contains(metrics, "\nvxswitch_bgp_up 0\n") {
		t.Error("the metrics say that it runs")
	}
}
