package node

import (
	"fmt"
	"strings"
	"testing"
)

// Another MTU is set on the devices of ports as they are: guests keep their ends of veth pairs, and the host the addresses of its TAP.
func TestPortMTU(t *testing.T) {
	l := newLab(t)
	s := l.plug("node", "192.0.2.1")
	made, moved := l.n.Host("made"), l.n.Host("moved")
	text := func(more string) *Config {
		return parse(t, fmt.Sprintf(`{"tunnels": [{"name": "vx", "local": "192.0.2.1"}],
		  "ports": [{"name": "e1", "type": "veth", "namespace": "%s"%s}, {"name": "e2", "type": "veth"}, {"name": "t3"%[2]s}],
		  "segments": [{"vni": 10, "tunnel": "vx", "members": [{"port": "e1"}, {"port": "e2"}, {"port": "t3"}]}]}`, made.NS, more))
	}
	s.run(text(""))
	s.h.IP("link", "set", "e2", "netns", moved.NS)
	moved.Up("e2")
	for h, dev := range map[interface{ Addr(dev, cidr string) }]string{made: "e1", moved: "e2", s.h: "t3"} {
		h.Addr(dev, map[string]string{"e1": "10.0.10.1/24", "e2": "10.0.10.2/24", "t3": "10.0.10.3/24"}[dev])
	}
	made.Ready()
	made.Ping("10.0.10.2", 2)
	stop := made.Pinging("10.0.10.2")
	want := func(mtu int) {
		t.Helper()
		for dev, out := range map[string]string{"e1": made.IP("addr", "show", "e1"), "t3": s.h.IP("addr", "show", "t3")} {
			if !strings.Contains(out, fmt.Sprintf("mtu %d ", mtu)) || !strings.Contains(out, "10.0.10.") {
				t.Errorf("%s, want an address and an MTU of %d:\n%s", dev, mtu, out)
			}
		}
	}
	want(1450)
	s.must(text(`, "mtu": 1400`))
	want(1400)
	s.must(text(`, "mtu": 1300`))
	want(1300)
	s.must(text(""))
	want(1450)
	if sent, answered := stop(); answered < sent {
		t.Errorf("%d of %d pings answered", answered, sent)
	}

	// A guest's end that is out of reach stays as it is.
	c := text("")
	c.Ports[1].MTU = 1400
	if err := s.apply(c); err == nil || !strings.Contains(err.Error(), `port "e2": port: veth "e2": MTU 1400: the guest's end was moved to another network namespace: set its MTU there`) {
		t.Errorf("%v", err)
	}
	made.Ping("10.0.10.2", 2)
	moved.MTU("e2", 1400)
	s.must(c)
	made.Ping("10.0.10.2", 2)

	// A change that fails is taken back.
	s.fault = func(step string) error {
		if step == "rows" {
			s.fault = nil
			return fmt.Errorf("no rows")
		}
		return nil
	}
	c = text(`, "mtu": 1200`)
	c.Ports[1].MTU = 1400
	if err := s.apply(c); err == nil || !strings.Contains(err.Error(), "no rows") {
		t.Errorf("%v", err)
	}
	want(1450)
}
