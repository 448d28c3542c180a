package node

import (
	"strings"
	"testing"
)

// A port does not take the interface that a tunnel has its address on, when the port is new and when the tunnel is.
func TestPortTakesUnderlay(t *testing.T) {
	l := newLab(t)
	s := l.plug("node", "192.0.2.1")
	s.run(new(Config))
	text := func(local, name, typ, more string) *Config {
		return parse(t, `{"tunnels": [{"name": "vx", "local": "`+local+`"`+more+`}], "ports": [{"name": "`+name+`", "type": "`+typ+`"}]}`)
	}
	for _, c := range []struct{ port, typ, says string }{
		{"eth0", "interface", `port "eth0": interface "eth0" has 192.0.2.1, the local address of tunnel "vx", `},
		{"eth0", "veth", `port "eth0": interface "eth0" has 192.0.2.1, the local address of tunnel "vx", `},
		{"eth0", "packet", ""},
		{"e1", "veth", ""},
	} {
		err := s.apply(text("192.0.2.1", c.port, c.typ, ""))
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s of type %s: %v", c.port, c.typ, err)
		}
	}
	s.h.IP("addr", "add", "192.0.2.9/32", "dev", "e1")
	s.must(text("192.0.2.9", "e1", "veth", "")) // the guest's end of a pair that the node has made
	s.h.IP("link", "add", "e2", "type", "veth", "peer", "name", "e3")
	s.h.IP("addr", "add", "192.0.2.8/32", "dev", "e2")
	s.must(text("192.0.2.1", "e2", "interface", ""))
	if err := s.apply(text("192.0.2.8", "e2", "interface", "")); err == nil || !strings.Contains(err.Error(), `port "e2": interface "e2" has 192.0.2.8`) {
		t.Errorf("a tunnel that moves to the address of an interface: %v", err)
	}
}
