package node

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
)

// Whatever step of a change fails, a tunnel and a gateway with one address are as before: hosts
// ping the address and through the tunnel. And it does not matter which of the two comes first.
func TestShareChanges(t *testing.T) {
	l := newLab(t)
	const (
		tunnel  = `{"name": "t", "local": "192.0.2.101", "underlay": "packet", "bind": "eth0", "prefix": "192.0.2.0/24"}`
		guests  = `{"vni": 100, "tunnel": "t", "flood": ["192.0.2.3"], "members": [{"port": "lan0"}]}`
		gateway = `{"vni": 7, "members": [{"port": "eth0"}], "gateway": {"vrf": "v", "mac": "%s", "addresses": ["192.0.2.101/24"]}}`
		eth0    = `{"name": "eth0", "type": "packet"}`
		lan0    = `{"name": "lan0", "mtu": 1400}`
		mac     = "02:00:00:00:00:01"
	)
	config := func(tunnels, ports, segments string) *Config {
		t.Helper()
		return parse(t, `{"tunnels": [`+tunnels+`], "ports": [`+ports+`], "segments": [`+segments+`], "vrfs": [{"name": "v"}]}`)
	}
	both := config(tunnel, lan0+","+eth0, guests+","+fmt.Sprintf(gateway, mac))
	a := l.start("a", "192.0.2.1", both)
	near := a.guest("lan0", "10.0.0.1/24", "")
	c := l.plug("c", "192.0.2.3")
	c.h.VXLAN("vx0", netns.VXLAN{ID: 100, Local: "192.0.2.3", Remote: "192.0.2.101", Dev: "eth0", Addr: "10.0.0.3/24"})
	works := func(what string) {
		t.Helper()
		c.h.IP("neigh", "flush", "dev", "eth0")
		for _, p := range []struct {
			h  *netns.Host
			to string
		}{{c.h, "192.0.2.101"}, {near, "10.0.0.3"}, {c.h, "10.0.0.1"}} {
			if out, err := p.h.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "3", p.to); err != nil {
				t.Fatalf("%s: %s", what, out)
			}
		}
	}
	works("at first")
	left := map[string][]port.Address{"eth0": {{MAC: frame.MAC{2, 5: 1}, IP: both.Tunnels[0].Local, Port: 4789}}}
	if !reflect.DeepEqual(a.left, left) {
		t.Errorf("left: %v", a.left)
	}

	for name, to := range map[string]*Config{
		"another MAC":    config(tunnel, lan0+","+eth0, guests+","+fmt.Sprintf(gateway, "02:00:00:00:00:02")),
		"no gateway":     config(tunnel, lan0+","+eth0, guests+`, {"vni": 7, "members": [{"port": "eth0"}]}`),
		"no port":        config(tunnel, lan0, guests),
		"another port":   config(tunnel, lan0+","+strings.Replace(eth0, `"type"`, `"queues": 2, "type"`, 1), guests+","+fmt.Sprintf(gateway, mac)),
		"another tunnel": config(strings.Replace(tunnel, `"prefix"`, `"port": 4790, "prefix"`, 1), lan0+","+eth0, guests+","+fmt.Sprintf(gateway, mac)),
	} {
		for k := 0; ; k++ {
			step := 0
			a.fault = func(string) error {
				if step++; step == k+1 {
					return errors.New("fails")
				}
				return nil
			}
			err := a.apply(to)
			a.fault = nil
			if err == nil {
				break
			}
			if !reflect.DeepEqual(a.left, left) {
				t.Errorf("%s, step %d: left %v", name, k, a.left)
			}
			if k%5 == 0 {
				works(fmt.Sprintf("%s, step %d", name, k))
			}
		}
		a.must(both)
		works("back from " + name)
	}

	// The one first, then the other.
	for _, first := range []*Config{
		config(tunnel, lan0, guests),
		config("", lan0+","+eth0, strings.Replace(guests, `"tunnel": "t", "flood": ["192.0.2.3"], `, "", 1)+","+fmt.Sprintf(gateway, mac)),
	} {
		a.must(config("", lan0, ""))
		if len(a.left) != 0 {
			t.Errorf("left: %v", a.left)
		}
		a.must(first)
		a.must(both)
		works("one after the other")
	}
	if got := a.Config().Tunnels; !slices.EqualFunc(got, both.Tunnels, func(x, y Tunnel) bool { return reflect.DeepEqual(x, y) }) {
		t.Errorf("the configuration has changed: %+v", got)
	}
}
