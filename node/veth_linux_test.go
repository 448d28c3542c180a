package node

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Guests with ends of veth pairs, one made by the node and moved, one made in the guest's namespace, and one made
// by somebody else, and the kernel's vxlan: configurations change under traffic, devices are deleted and come
// back, and nothing is left.
func TestVethPorts(t *testing.T) {
	l := newLab(t)
	far := l.plug("far", "192.0.2.2").h
	far.VXLAN("vx0", netns.VXLAN{ID: 10, Local: "192.0.2.2", Remote: "192.0.2.1", Dev: "eth0", Addr: "10.0.10.2/24,fd10::2/64", Keep: true})
	moved, made, other := l.n.Host("moved"), l.n.Host("made"), l.n.Host("other")
	s := l.plug("node", "192.0.2.1")
	veth := func() {
		s.h.IP("link", "add", "h5", "type", "veth", "peer", "name", "eth9", "netns", other.NS)
		other.SetMAC("eth9", "02:00:00:00:00:05")
		other.Up("eth9")
		other.Addr("eth9", "10.0.10.5/24")
		other.MTU("eth9", 1450)
	}
	veth()
	text := func(ports, policy string) *Config {
		return parse(t, `{
		  "tunnels": [{"name": "vx", "local": "192.0.2.1"}],
		  "ports": [{"name": "e3", "type": "veth", "mac": "02:00:00:00:00:03"}, {"name": "e4", "type": "veth", "mac": "02:00:00:00:00:04", "namespace": "`+made.NS+`", "queues": 2}, {"name": "h5", "type": "interface"`+ports+`}],
		  "policies": [{"name": "p", "rules": [{"action": "`+policy+`", "protocol": 17}], "default": "allow"}],
		  "segments": [{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.2"], "policy": "p", "members": [{"port": "e3"}, {"port": "e4"}, {"port": "h5"}]}]}`)
	}
	s.run(text("", "allow"))
	place := func(dev string, h *netns.Host, addr string) {
		if h == moved {
			s.h.IP("link", "set", dev, "netns", h.NS)
		}
		h.Up(dev)
		h.Addr(dev, addr)
		h.Ready()
	}
	place("e3", moved, "10.0.10.3/24,fd10::3/64")
	place("e4", made, "10.0.10.4/24,fd10::4/64")
	far.Ready()
	pings := func() {
		t.Helper()
		for _, to := range []string{"10.0.10.3", "10.0.10.4", "10.0.10.5"} {
			far.Until(to+" answers", func() bool {
				_, err := far.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "0.5", to)
				return err == nil
			})
		}
	}
	pings()
	for _, h := range []*netns.Host{moved, made} {
		for dev, out := range map[string]string{"e3": moved.IP("link", "show", "e3"), "e4": made.IP("link", "show", "e4")} {
			if !strings.Contains(out, "mtu 1450") {
				t.Errorf("%s does not fit the tunnel:\n%s", dev, out)
			}
		}
		h.Transfer(far, "10.0.10.2:7000", 4<<20)
		h.Transfer(far, "[fd10::2]:7000", 4<<20)
	}
	if out := s.h.IP("link", "show", "h5"); !strings.Contains(out, "mtu 1500") {
		t.Errorf("the MTU of an interface was changed:\n%s", out)
	}

	// Changes, under traffic between ports that stay.
	stop := moved.Pinging("10.0.10.4")
	for i := range 6 {
		s.must(text(fmt.Sprintf(`, "mtu": %d`, 1440+i%2), []string{"deny", "allow"}[i%2]))
		pings()
	}
	s.must(text("", "allow"))
	pings()
	if sent, answered := stop(); answered < sent {
		t.Errorf("%d of %d pings answered", answered, sent)
	}

	// Devices go and come back.
	moved.IP("link", "del", "e3")
	s.h.Until("e3 is made again", func() bool { return !s.missing("e3") && len(s.Down()) == 0 })
	place("e3", moved, "10.0.10.3/24,fd10::3/64")
	made.IP("link", "del", "e4")
	made.Until("e4 is made again", func() bool {
		_, err := made.Try(t.Context(), "ip", "link", "show", "dev", "e4")
		return err == nil && len(s.Down()) == 0
	})
	place("e4", made, "10.0.10.4/24,fd10::4/64")
	s.h.IP("link", "del", "h5")
	s.h.Until("h5 is down", func() bool {
		list := s.Down()
		return len(list) == 1 && list[0].Name == "h5" && list[0].Type == PortInterface
	})
	veth()
	s.h.Until("h5 is back", func() bool { return len(s.Down()) == 0 })
	pings()
	if entries, err := os.ReadDir("/sys/class/net"); err == nil {
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "vxh") || strings.HasPrefix(e.Name(), "vxt") {
				t.Errorf("%s was made where the test runs", e.Name())
			}
		}
	}

	s.must(parse(t, `{"tunnels": [{"name": "vx", "local": "192.0.2.1"}], "ports": [{"name": "h5", "type": "interface"}], "segments": [{"vni": 10, "tunnel": "vx", "members": [{"port": "h5"}]}]}`))
	for _, h := range []*netns.Host{moved, made} {
		if out := h.IP("-br", "link"); strings.Count(out, "\n") != 1 {
			t.Errorf("left:\n%s", out)
		}
	}
	s.Close()
	if out := s.h.IP("-br", "link"); strings.Contains(out, "vx") || !strings.Contains(out, "h5") {
		t.Errorf("left:\n%s", out)
	}
}

// missing reports whether the node's host has no such device.
func (s *site) missing(dev string) bool {
	_, err := s.h.Try(s.l.t.Context(), "ip", "link", "show", "dev", dev)
	return err != nil
}
