package main

import (
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// Sessions of BFD with peers are listed beside those of the node.
func TestPeersBFD(t *testing.T) {
	with := strings.NewReplacer(`"address": "127.0.0.9"`, `"address": "127.0.0.9", "local": "127.0.0.1", "bfd": {}`)
	r := begin(t, strings.Replace(basic(t), `"control"`, with.Replace(`"evpn": {"as": 65000, "routerID": "127.0.0.1", "peers": [{"address": "127.0.0.9", "as": 65000}]}, "control"`), 1))
	fake.Until(t, "a session", func() bool {
		_, text := r.ask("GET", "/v1/bfd", "")
		return strings.Contains(text, `"proto":"evpn","local":"127.0.0.1","peer":"127.0.0.9","status":"unknown"`)
	})
}

func TestEVPNPasswordFile(t *testing.T) {
	testPasswordFile(t, "evpn", `"as": 65000, "routerID": "127.0.0.1", "peers": [{"address": "127.0.0.9", "as": 65000}]`)
}
