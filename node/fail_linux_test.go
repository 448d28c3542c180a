package node

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/vtep"
)

const inPair = `{
  "tunnels": [{"name": "vx0", "local": "192.0.2.1"}],
  "ports": [{"name": "vm1", "mtu": 1450}, {"name": "vm2"}],
  "policies": [{"name": "all"}],
  "segments": [
    {"vni": 10, "tunnel": "vx0", "flood": ["192.0.2.2"], "members": [{"port": "vm1"}], "policy": "all"},
    {"vni": 20, "members": [{"port": "vm2"}],
     "gateway": {"vrf": "red", "addresses": ["10.0.20.1/24"], "mac": "02:00:00:ff:00:20"}},
    {"vni": 30, "tunnel": "vx0", "fdb": [{"mac": "02:00:00:00:00:09", "remote": "192.0.2.2"}]}
  ],
  "vrfs": [{"name": "red", "routes": [{"prefix": "10.9.0.0/16", "via": [{"segment": 20, "ip": "10.0.20.9"}]}]}]
}`

// What the system does not give is one error that says which part it is, and nothing of the
// new configuration is there: neither has anything that was there before been touched, what
// was learned included, nor do pings stop.
func TestApplyFailsUnderTraffic(t *testing.T) {
	l := newLab(t)
	s := l.quiet("one", "192.0.2.1", parse(t, inPair))
	far := l.start("two", "192.0.2.2", parse(t, `{
	  "tunnels": [{"name": "vx0", "local": "192.0.2.2"}], "ports": [{"name": "vm1", "mtu": 1450}],
	  "segments": [{"vni": 10, "tunnel": "vx0", "flood": ["192.0.2.1"], "members": [{"port": "vm1"}]}]}`))
	a := s.guest("vm1", "10.0.10.1/24", "")
	far.guest("vm1", "10.0.10.2/24", "")
	wantTTL(t, a, "10.0.10.2", 64)

	busy := netns.Open(t, s.h, func() (*port.Device, error) { return port.OpenTAP("busy0", nil) })
	taken := netns.Open(t, s.h, func() (net.PacketConn, error) { return net.ListenPacket("udp4", "192.0.2.1:5789") })

	// Beside what fails, everything else would change too.
	other := func(c *Config) {
		c.Segments = slices.Delete(c.Segments, 2, 3)
		c.Segments[0].NoLearn = true
		c.Segments[0].Flood = nil
		c.Segments[1].Gateway.Addresses = []netip.Prefix{netip.MustParsePrefix("10.0.21.1/24")}
		c.VRFs[0].Routes = nil
		c.Policies[0].Default = 1
		c.Ports[0].MTU = 1400
		c.MaxMACs, c.Injected, c.TooBig.Total, c.Gateway.Waiting, c.Capture.SnapLen = 1, 2, 3, 4, 5
	}
	before, tunnel, device := dump(s.Node), s.Tunnels()["vx0"], s.ports["vm1"].port
	stop := a.Pinging("10.0.10.2")
	for _, c := range []struct {
		name   string
		change func(c *Config)
		want   string
		is     error
	}{
		{"another tunnel on an address that is not local", func(c *Config) {
			c.Tunnels = append(c.Tunnels, Tunnel{Config: vtep.Config{Name: "vx9"}, Local: netip.MustParseAddr("192.0.2.77")})
		}, `tunnel "vx9"`, syscall.EADDRNOTAVAIL},
		{"the tunnel on an address that is not local", func(c *Config) {
			c.Tunnels[0].Local = netip.MustParseAddr("192.0.2.77")
		}, `tunnel "vx0"`, syscall.EADDRNOTAVAIL},
		{"a UDP port that is taken", func(c *Config) {
			c.Tunnels = append(c.Tunnels, Tunnel{Config: vtep.Config{Name: "vx9", Port: 5789}, Local: netip.MustParseAddr("192.0.2.1")})
		}, `tunnel "vx9"`, syscall.EADDRINUSE},
		{"a device that is busy", func(c *Config) {
			c.Ports = append(c.Ports, Port{Name: "busy0"})
		}, `port "busy0"`, syscall.EBUSY},
		{"an interface that is not there", func(c *Config) {
			c.Ports = append(c.Ports, Port{Name: "nope0", Type: PortPacket})
		}, `port "nope0"`, nil},
		{"a namespace that is not there", func(c *Config) {
			c.Ports = append(c.Ports, Port{Name: "vm9", DeviceConfig: port.DeviceConfig{Namespace: "vxs-nowhere"}})
		}, `port "vm9"`, syscall.ENOENT},
		{"a port for a namespace that is not there", func(c *Config) {
			c.Ports[0].Namespace = "vxs-nowhere"
		}, `port "vm1"`, syscall.ENOENT},
	} {
		for _, more := range []bool{false, true} {
			err := s.apply(changed(t, s.Config(), func(x *Config) {
				if c.change(x); more {
					other(x)
				}
			}))
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%s: %v", c.name, err)
			}
			if got := dump(s.Node); !slices.Equal(got, before) {
				t.Errorf("%s:\n%s\nbefore:\n%s", c.name, strings.Join(got, "\n"), strings.Join(before, "\n"))
			}
			if s.Tunnels()["vx0"] != tunnel || len(s.Tunnels()) != 1 || s.ports["vm1"].port != device || len(s.ports) != 2 {
				t.Errorf("%s: something was made anew", c.name)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	if sent, answered := stop(); sent < 20 || answered < sent {
		t.Errorf("%d of %d pings answered", answered, sent)
	}
	// No socket or device is left of them.
	if out := s.h.Run("ss", "-Hlun"); strings.Contains(out, "192.0.2.77") {
		t.Error(out)
	}
	busy.Close()
	taken.Close()
	if err := s.apply(changed(t, s.Config(), func(c *Config) {
		c.Ports = append(c.Ports, Port{Name: "busy0"})
		c.Tunnels = append(c.Tunnels, Tunnel{Config: vtep.Config{Name: "vx9", Port: 5789}, Local: netip.MustParseAddr("192.0.2.1")})
	})); err != nil {
		t.Errorf("now they can be had: %v", err)
	}
}

// What is found to be impossible only once the old one is closed is put back: another setting
// of a tunnel that keeps its address.
func TestApplyPutsBack(t *testing.T) {
	l := newLab(t)
	s := l.quiet("one", "192.0.2.1", parse(t, inPair))
	before := dump(s.Node)
	err := s.apply(changed(t, s.Config(), func(c *Config) {
		c.Tunnels[0].Device = "nope0"
		c.Segments = c.Segments[:1]
		c.VRFs = nil
		c.MaxMACs, c.Injected, c.TooBig.Total, c.Gateway.Waiting, c.Capture.SnapLen = 1, 2, 3, 4, 5
	}))
	if err == nil || !strings.Contains(err.Error(), `tunnel "vx0"`) || strings.Contains(err.Error(), "restoring") {
		t.Error(err)
	}
	if got := dump(s.Node); !slices.Equal(got, before) {
		t.Errorf("\n%s\nbefore:\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
	}
	vsi, _ := s.Switch().VSI(20, nil)
	at := vsi.Attachments()[0].Dest(0)
	for i := range 3 {
		mac := frame.MAC{2, 0, 0, 0, 1, byte(i)}
		if vsi.FDB().Learn(mac, at, s.Switch().Tick()); s.dest(20, mac.String()) != "vm2" {
			t.Errorf("MAC %d is not learned: the limit of the other configuration holds", i)
		}
	}
	s.must(parse(t, inPair))
}

// Parts that change places in one Apply: names of tunnels, ports between segments, addresses
// between gateways.
func TestApplySwaps(t *testing.T) {
	l := newLab(t)
	text := `{
	  "tunnels": [{"name": "vx0", "local": "192.0.2.1"}, {"name": "ip0", "type": "ipip", "local": "192.0.2.1"}],
	  "ports": [{"name": "vm1"}, {"name": "vm2"}, {"name": "tun1", "type": "tun"}, {"name": "tun2", "type": "tun"}],
	  "segments": [
	    {"vni": 10, "tunnel": "vx0", "members": [{"port": "vm1"}, {"port": "vm2", "vlan": 5}],
	     "gateway": {"vrf": "red", "addresses": ["10.0.10.1/24"], "mac": "02:00:00:ff:00:10"}},
	    {"vni": 20, "members": [{"port": "vm2"}],
	     "gateway": {"vrf": "red", "addresses": ["10.0.20.1/24"], "mac": "02:00:00:ff:00:20"}},
	    {"vni": 30, "members": [{"port": "tun1"}], "gateway": {"vrf": "red", "addresses": ["10.0.30.1/32"]}},
	    {"vni": 40, "members": [{"port": "tun2"}], "gateway": {"vrf": "red", "addresses": ["10.0.40.1/32"]}},
	    {"vni": 50, "tunnel": "ip0", "gateway": {"vrf": "red"}}
	  ],
	  "vrfs": [{"name": "red"}]
	}`
	s := l.quiet("one", "192.0.2.1", parse(t, text))
	for _, c := range []struct {
		name     string
		old, new []string
	}{
		{"another name of a tunnel", []string{`"vx0"`}, []string{`"vx1"`}},
		{"ports", []string{`{"port": "vm1"}, {"port": "vm2", "vlan": 5}`, `[{"port": "vm2"}]`, "X"}, []string{"X", `[{"port": "vm1"}, {"port": "vm2", "vlan": 5}]`, `{"port": "vm2"}`}},
		{"VLANs", []string{`"vlan": 5`, `[{"port": "vm2"}]`}, []string{`"vlan": 0`, `[{"port": "vm2", "vlan": 5}]`}},
		{"a port, to a segment before its own", []string{`[{"port": "vm2"}]`, `, {"port": "vm2", "vlan": 5}`}, []string{`[]`, `, {"port": "vm2"}`}},
		{"gateways", []string{"10.0.10.1", "10.0.20.1", "X"}, []string{"X", "10.0.10.1", "10.0.20.1"}},
		{"IP ports", []string{`[{"port": "tun1"}]`, `[{"port": "tun2"}]`, "tunX"}, []string{`[{"port": "tunX"}]`, `[{"port": "tun1"}]`, "tun2"}},
		{"the segment of a tunnel for IP", []string{`"vni": 50`}, []string{`"vni": 5`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			with := text
			for i := range c.old {
				with = strings.ReplaceAll(with, c.old[i], c.new[i])
			}
			before := dump(s.Node)
			cfg := parse(t, with)
			must(t, s.apply(cfg))
			fresh := dump(newLab(t).quiet("one", "192.0.2.1", cfg).Node)
			if got := dump(s.Node); !slices.Equal(got, fresh) {
				t.Errorf("\n%s\nof a new node:\n%s", strings.Join(got, "\n"), strings.Join(fresh, "\n"))
			}
			must(t, s.apply(parse(t, text)))
			if got := dump(s.Node); !slices.Equal(got, before) {
				t.Errorf("and back\n%s\nbefore:\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
			}
		})
	}
}
