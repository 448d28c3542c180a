package node

import (
	"fmt"
	"strings"
	"testing"
)

// Addresses that are no host's are refused wherever a host's is meant, by a line that says what is
// allowed.
func TestCheckAddresses(t *testing.T) {
	const mac = `"mac": "02:00:00:00:00:01"`
	for key, text := range map[string]string{
		"tunnels[0].local":                    `{"tunnels": [{"name": "t", "local": "%s"}]}`,
		"tunnels[0].gateway":                  `{"tunnels": [{"name": "t", "local": "10.0.0.1", "underlay": "packet", "bind": "eth0", "gateway": "%s"}]}`,
		"segments[0].flood[0]":                `{"tunnels": [{"name": "t", "local": "10.0.0.1"}], "segments": [{"vni": 1, "tunnel": "t", "flood": ["%s"]}]}`,
		"segments[0].fdb[0].remote":           `{"tunnels": [{"name": "t", "local": "10.0.0.1"}], "segments": [{"vni": 1, "tunnel": "t", "fdb": [{` + mac + `, "remote": "%s"}]}]}`,
		"segments[0].gateway.addresses[0]":    `{"vrfs": [{"name": "red"}], "segments": [{"vni": 1, "gateway": {"vrf": "red", "addresses": ["%s/32"], ` + mac + `}}]}`,
		"segments[0].neighbours.static[0].ip": `{"segments": [{"vni": 1, "neighbours": {"mode": "suppress", "static": [{"ip": "%s", ` + mac + `}]}}]}`,
	} {
		for _, a := range []string{"255.255.255.255", "0.0.0.1"} {
			_, err := Parse(fmt.Appendf(nil, text, a))
			if err == nil || !strings.Contains(err.Error(), ": "+key+": "+a) || !strings.Contains(err.Error(), "must be the address of one host") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %s: %v", key, a, err)
			}
		}
		if _, err := Parse(fmt.Appendf(nil, text, "10.0.0.2")); err != nil {
			t.Errorf("%s: 10.0.0.2: %v", key, err)
		}
	}
	// Of a network that is known, its own address and that for broadcasts.
	for key, text := range map[string]string{
		"tunnels[0].prefix":                   `{"tunnels": [{"name": "t", "local": "%s", "underlay": "packet", "bind": "eth0", "prefix": "10.0.0.0/24"}]}`,
		"tunnels[0].gateway":                  `{"tunnels": [{"name": "t", "local": "10.0.0.1", "underlay": "packet", "bind": "eth0", "prefix": "10.0.0.0/24", "gateway": "%s"}]}`,
		"segments[0].gateway.addresses[0]":    `{"vrfs": [{"name": "red"}], "segments": [{"vni": 1, "gateway": {"vrf": "red", "addresses": ["%s/24"], ` + mac + `}}]}`,
		"segments[0].neighbours.static[0].ip": `{"vrfs": [{"name": "red"}], "segments": [{"vni": 1, "gateway": {"vrf": "red", "addresses": ["10.0.0.1/24"], ` + mac + `}, "neighbours": {"mode": "suppress", "static": [{"ip": "%s", ` + mac + `}]}}]}`,
	} {
		for _, a := range []string{"10.0.0.0", "10.0.0.255"} {
			_, err := Parse(fmt.Appendf(nil, text, a))
			if err == nil || !strings.Contains(err.Error(), ": "+key+": ") || !strings.Contains(err.Error(), a) || !strings.Contains(err.Error(), "must be the address of one host") {
				t.Errorf("%s: %s: %v", key, a, err)
			}
		}
		if _, err := Parse(fmt.Appendf(nil, text, "10.0.0.2")); err != nil {
			t.Errorf("%s: 10.0.0.2: %v", key, err)
		}
	}
}

// Networks that are not routed are no prefixes of routes and blocks.
func TestCheckPrefixes(t *testing.T) {
	for key, text := range map[string]string{
		"vrfs[0].routes[0].prefix":          `{"vrfs": [{"name": "red", "routes": [{"prefix": "%s"}]}]}`,
		"vrfs[0].pools[0].blocks[0].prefix": `{"vrfs": [{"name": "red", "pools": [{"blocks": [{"prefix": "%s"}]}]}]}`,
	} {
		for _, p := range []string{"127.0.0.0/8", "224.0.1.0/24", "::1/128", "ff00::/8"} {
			if _, err := Parse(fmt.Appendf(nil, text, p)); err == nil || !strings.Contains(err.Error(), ": "+key+": "+p+": is in ") {
				t.Errorf("%s: %s: %v", key, p, err)
			}
		}
		if _, err := Parse(fmt.Appendf(nil, text, "0.0.0.0/0")); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// Names are printable, as in rows.
func TestCheckNames(t *testing.T) {
	for key, text := range map[string]string{
		"vrfs[0].name":     `{"vrfs": [{"name": "a\u000ab"}]}`,
		"ports[0].name":    `{"ports": [{"name": "a\u000ab", "type": "tap"}]}`,
		"tunnels[0].name":  `{"tunnels": [{"name": "a\u000ab", "local": "10.0.0.1"}]}`,
		"policies[0].name": `{"policies": [{"name": "a\u000ab"}]}`,
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), key+`: "a\nb": must be printable characters`) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
