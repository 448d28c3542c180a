package node

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vxswitch/vxswitch/port"
)

// Another local address of a tunnel is taken in place: the tunnel, what it has learned and
// its members stay, and so do pings, of which it may cost what is under way. When something
// else of the same Apply cannot be had, it is where it was.
func TestApplyMovesTunnel(t *testing.T) {
	l := newLab(t)
	s := l.start("one", "192.0.2.1", parse(t, `{
	  "tunnels": [{"name": "vx0", "local": "192.0.2.1"}, {"name": "ip0", "type": "ipip", "local": "192.0.2.1"}],
	  "ports": [{"name": "vm1", "mtu": 1450}],
	  "segments": [
	    {"vni": 10, "tunnel": "vx0", "flood": ["192.0.2.2"], "members": [{"port": "vm1"}]},
	    {"vni": 50, "tunnel": "ip0", "gateway": {"vrf": "red"}}],
	  "vrfs": [{"name": "red"}]}`))
	s.h.Addr("eth0", "192.0.2.11/24")
	far := l.start("two", "192.0.2.2", parse(t, `{
	  "tunnels": [{"name": "vx0", "local": "192.0.2.2"}], "ports": [{"name": "vm1", "mtu": 1450}],
	  "segments": [{"vni": 10, "tunnel": "vx0", "flood": ["192.0.2.1", "192.0.2.11"], "members": [{"port": "vm1"}]}]}`))
	a := s.guest("vm1", "10.0.10.1/24", "")
	far.guest("vm1", "10.0.10.2/24", "")
	wantTTL(t, a, "10.0.10.2", 64)
	vx := s.Tunnels()["vx0"]
	bind := func() string { return s.h.Run("ss", "-Hanuw") }

	drops := func() (n uint64) {
		for _, x := range l.sites {
			for _, p := range x.Switch().Stats().Ports {
				n += p.RxDrops.Total() + p.TxDrops.Total()
			}
		}
		return n
	}
	dropped := drops()
	stop := a.Pinging("10.0.10.2")
	for i := range 6 { // ends where it began
		to := netip.MustParseAddr([]string{"192.0.2.11", "192.0.2.1"}[i%2])
		cfg := changed(t, s.Config(), func(c *Config) { c.Tunnels[0].Local, c.Tunnels[1].Local = to, to })
		must(t, s.apply(cfg))
		if out := bind(); strings.Count(out, to.String()+":4789") != 1 || strings.Count(out, ":4789") != 1 {
			t.Errorf("not bound to %v:\n%s", to, out)
		}
		wantTTL(t, a, "10.0.10.2", 64)
	}
	before := bind()
	taken := netip.MustParseAddr("192.0.2.11")
	for name, change := range map[string]func(c *Config){
		"the second tunnel": func(c *Config) {
			c.Tunnels[0].Local, c.Tunnels[1].Local = taken, netip.MustParseAddr("192.0.2.77")
		},
		"a port": func(c *Config) {
			c.Tunnels[0].Local = taken
			c.Ports = append(c.Ports, Port{Name: "vm9", DeviceConfig: port.DeviceConfig{Namespace: "vxs-nowhere"}})
		},
		"a setting of the second tunnel": func(c *Config) { // found when the first has moved
			c.Tunnels[0].Local, c.Tunnels[1].Device = taken, "nope0"
		},
	} {
		old := dump(s.Node)
		err := s.apply(changed(t, s.Config(), change))
		if err == nil || strings.Contains(err.Error(), "restoring") {
			t.Errorf("%s: %v", name, err)
		}
		if name == "the second tunnel" && (!errors.Is(err, syscall.EADDRNOTAVAIL) || !strings.HasPrefix(err.Error(), `tunnel "ip0"`)) {
			t.Error(err)
		}
		if got := dump(s.Node); !slices.Equal(got, old) {
			t.Errorf("%s:\n%s\nbefore:\n%s", name, strings.Join(got, "\n"), strings.Join(old, "\n"))
		}
		if out := bind(); strings.Count(out, ":4789") != 1 || strings.Count(out, "192.0.2.1:4789") != 1 {
			t.Errorf("%s: bound to\n%s\nbefore:\n%s", name, out, before)
		}
	}
	if s.Tunnels()["vx0"] != vx {
		t.Error("the tunnel was made anew")
	}
	if sent, answered := stop(); drops() != dropped { // answers to an address that has moved are lost on the wire, however many are under way
		t.Errorf("%d frames dropped; %d of %d pings answered", drops()-dropped, answered, sent)
	}
}

// Tunnels that change places cannot keep their sockets.
func TestApplySwapsLocals(t *testing.T) {
	l := newLab(t)
	text := `{"tunnels": [{"name": "vx0", "local": "192.0.2.1"}, {"name": "vx1", "local": "192.0.2.11"}]}`
	s := l.plug("one", "192.0.2.1")
	s.h.Addr("eth0", "192.0.2.11/24")
	s.run(parse(t, text))
	for range 2 {
		must(t, s.apply(changed(t, s.Config(), func(c *Config) {
			c.Tunnels[0].Local, c.Tunnels[1].Local = c.Tunnels[1].Local, c.Tunnels[0].Local
		})))
	}
}
