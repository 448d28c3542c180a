package node

import (
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/snoop"
)

// routers returns the names of the places of multicast routers.
func routers(n *Node) string {
	var list []string
	for x := range n.Snooper(1).All() {
		if x.Permanent {
			list = append(list, n.Switch().Name(x.Dest))
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// Multicast routers are where the configuration says, whatever comes, changes and goes.
func TestMulticastRouters(t *testing.T) {
	n := running(t)
	pipe := func(name string) *port.Pipe { return port.NewPipe(&port.PipeConfig{Name: name}) }
	trunk, a := pipe("trunk"), pipe("a")
	s := addSegment(t, n, 1, nil)
	must(t, s.Add(trunk, &Member{VLAN: 10}))
	must(t, s.Add(trunk, &Member{VLAN: 20}))
	must(t, s.Add(a, nil))
	set := func(want string, names ...string) {
		t.Helper()
		must(t, n.Update(func(c *Config) error {
			c.Segments[0].Multicast, c.Segments[0].MulticastRouters = &snoop.Config{}, names
			return nil
		}))
		if got := routers(n); got != want {
			t.Errorf("%q: at %q, want %q", names, got, want)
		}
	}
	set("a trunk.20", "a", "trunk.20")
	set("trunk.20", "trunk.20")
	set("a trunk.20", "trunk.20", "a")
	must(t, n.Update(func(c *Config) error { c.Segments[0].Multicast = &snoop.Config{Flood: true}; return nil }))
	if got := routers(n); got != "a trunk.20" {
		t.Errorf("with other settings of snooping: at %q", got)
	}

	// A port that goes takes its router along, and brings it back. Another that has its number has none.
	a.Close()
	fake.Until(t, "the port is down", func() bool { return len(n.Down()) == 1 })
	if got := routers(n); got != "trunk.20" {
		t.Errorf("with a port down: at %q", got)
	}
	must(t, s.Add(pipe("b"), nil))
	if got := routers(n); got != "trunk.20" {
		t.Errorf("with another port: at %q", got)
	}
	must(t, s.Add(pipe("a"), nil))
	if got := routers(n); got != "a trunk.20" {
		t.Errorf("with the port again: at %q", got)
	}
	set("")
}

// A router behind a tunnel is at all its peers.
func TestMulticastRouterBehindTunnel(t *testing.T) {
	n := running(t)
	must(t, n.Apply(parse(t, `{"tunnels": [{"name": "vx", "local": "127.13.7.1"}], "segments": [{"vni": 1, "tunnel": "vx", "multicast": {}, "multicastRouters": ["vx"]}]}`)))
	if got := routers(n); got != "vx" {
		t.Errorf("at %q", got)
	}
	for x := range n.Snooper(1).All() {
		if x.Dest != frame.NewDest(x.Dest.Port(), 0) {
			t.Errorf("at a peer: %v", x.Dest)
		}
	}
}

func TestMulticastRouterErrors(t *testing.T) {
	for text, want := range map[string]string{
		`"members": [{"port": "t"}], "multicastRouters": ["t"]`:                                              `segments[0].multicastRouters: requires multicast`,
		`"members": [{"port": "t"}], "multicast": {}, "multicastRouters": ["u"]`:                             `segments[0].multicastRouters[0]: "u": must be a member or a tunnel of the segment`,
		`"members": [{"port": "t"}], "multicast": {}, "multicastRouters": ["t", "t"]`:                        `segments[0].multicastRouters[1]: "t": duplicate`,
		`"members": [{"port": "t", "isolated": true}], "multicast": {}, "multicastRouters": ["t"]`:           `segments[0].multicastRouters[0]: "t": a member that is isolated or in a group cannot be a multicast router`,
		`"members": [{"port": "t", "group": 7}], "multicast": {}, "multicastRouters": ["t"]`:                 `segments[0].multicastRouters[0]: "t": a member that is isolated or in a group cannot be a multicast router`,
		`"members": [{"port": "t"}, {"port": "t", "vlan": 5}], "multicast": {}, "multicastRouters": ["t"]`:   `segments[0].multicastRouters[0]: "t": must be one of its members there, by the tag: t.0, t.5`,
		`"members": [{"port": "t"}, {"port": "t", "vlan": 5}], "multicast": {}, "multicastRouters": ["t.6"]`: `segments[0].multicastRouters[0]: "t.6": must be a member or a tunnel of the segment`,
	} {
		if _, err := Parse([]byte(`{"ports": [{"name": "t"}], "segments": [{"vni": 1, ` + text + `}]}`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant\n%s", text, err, want)
		}
	}
}
