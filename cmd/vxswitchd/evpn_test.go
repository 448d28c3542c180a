package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// A file whose password cannot be read ends no section that runs: the change is refused, by the key. At the start it does not stop the node.
func TestEVPNPasswordFile(t *testing.T) {
	const section = `"evpn": {"as": 65000, "routerID": "127.0.0.1", "peers": [{"address": "127.0.0.9", "as": 65000}]}, "control"`
	plain := strings.Replace(basic(t), `"control"`, section, 1)
	with := strings.Replace(plain, `"127.0.0.9",`, `"127.0.0.9", "passwordFile": "nowhere",`, 1)
	const want = `evpn.peers[0].passwordFile: \"nowhere\": no such file or directory`

	r := begin(t, plain)
	state := func() string {
		_, text := r.ask("GET", "/v1/evpn", "")
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
	r.write(plain)
	if status, text := r.ask("POST", "/v1/reload", ""); status != http.StatusOK {
		t.Error(status, text)
	}

	r.stop()
	r = begin(t, with)
	fake.Until(t, "it says why", func() bool { return strings.Contains(state(), want) })
}
