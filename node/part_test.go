package node

import (
	"strings"
	"testing"
)

// An element is replaced or added, and refused in the words of a file at its own places; what refers to it stays right.
func TestParts(t *testing.T) {
	c, err := Parse([]byte(`{"tunnels": [{"name": "vx", "local": "127.0.0.1"}], "ports": [{"name": "a"}, {"name": "b"}],
		"segments": [{"vni": 10, "tunnel": "vx", "members": [{"port": "a"}]}], "vrfs": [{"name": "red"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	was := configText(t, c)
	for _, x := range []struct{ list, name, text, want string }{
		{"ports", "a", `{"name": "a", "mtu": 1400}`, `"ports":[{"name":"a","mtu":1400},{"name":"b"}]`},
		{"ports", "c", `{"name": "c", /* new */ }`, `"ports":[{"name":"a"},{"name":"b"},{"name":"c"}]`},
		{"segments", "20", `{"vni": 20, "members": [{"port": "b"}]}`, `{"vni":20,"members":[{"port":"b"}]}]`},
		{"policies", "p", `{"name": "p"}`, `"policies":[{"name":"p"}]`},
	} {
		next, err := c.With(x.list, x.name, []byte(x.text))
		if err != nil {
			t.Errorf("%s: %v", x.text, err)
		} else if got := configText(t, next); !strings.Contains(got, x.want) {
			t.Errorf("%s: %s", x.text, got)
		}
	}
	for _, x := range []struct{ list, name, text, want string }{
		{"ports", "a", "{\n \"name\": \"a\", \"mtu\": 1}", "2:22: mtu: 1: must be"},
		{"ports", "a", `{"name": "a", "mtv": 1}`, "1:15: mtv: unknown key"},
		{"ports", "a", `{"name": "b"}`, `1:10: name: "b": must be a, as the element is called`},
		{"ports", "a", `{}`, `name`},
		{"ports", "a", `{"name": "a"}, {"name": "d"}`, "1:14: "},
		{"ports", "a", `[]`, "1:1: "},
		{"segments", "10", `{"vni": 10, "tunnel": "vy"}`, `1:23: tunnel: "vy"`},
		{"segments", "30", `{"vni": 30, "members": [{"port": "a"}]}`, `1:34: members[0]`},
		{"segments", "ten", `{"vni": 10}`, `segments: "ten": must be a VNI, 0 to 16777215`},
		{"colours", "a", `{}`, `"colours": must be one of tunnels, ports, policies, segments, vrfs`},
	} {
		if _, err := c.With(x.list, x.name, []byte(x.text)); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", x.text, err, x.want)
		}
	}
	if next, err := c.Without("ports", "b"); err != nil || strings.Contains(configText(t, next), `"b"`) {
		t.Error(err)
	}
	for _, x := range []struct{ list, name, want string }{
		{"ports", "a", `ports[a]: is in use: segments[vni 10].members[0].port`}, {"tunnels", "vx", `tunnels[vx]: is in use: segments[vni 10].tunnel`}, {"ports", "z", `there is no "z"`},
	} {
		if _, err := c.Without(x.list, x.name); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", x.name, err, x.want)
		}
	}
	if configText(t, c) != was {
		t.Error("the old one has changed")
	}
}

func configText(t *testing.T, c *Config) string {
	t.Helper()
	text, err := c.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
