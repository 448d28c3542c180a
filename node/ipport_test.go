package node_test

import (
	"net"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	lab "github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/underlay/memory"
)

// A route of the configuration over an IP port that has failed waits for the port, and nothing else does.
func TestRouteWaitsForPort(t *testing.T) {
	f := &fabric{t, memory.NewNetwork(nil)}
	t.Cleanup(func() { f.net.Close() })
	n, _ := f.start(&node.Config{VRFs: []node.VRF{{Name: "red"}}})
	seg := lab.Must(n.Segment(100, nil))(t)
	tun := func() (*port.ReadWriteCloser, net.Conn) {
		near, far := net.Pipe()
		t.Cleanup(func() { far.Close() })
		return port.FromReadWriteCloser(near, &port.ReadWriteCloserConfig{Name: "tun", IP: true}), far
	}
	p, far := tun()
	lab.OK(t, seg.Add(p, nil))
	lab.OK(t, seg.Gateway("red", node.Gateway{Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.1.1/32")}}))
	lan := lab.Must(n.Segment(200, nil))(t)
	pipe := port.NewPipe(&port.PipeConfig{Name: "lan"})
	lab.OK(t, lan.Add(pipe, nil))
	host := frame.MAC{2, 0, 0, 0, 0, 9}
	dst := netip.MustParsePrefix("10.9.0.0/16")
	lab.OK(t, n.Update(func(c *node.Config) error {
		c.VRFs[0].Routes = []node.Route{{Prefix: dst, Via: []node.Hop{{Segment: 100}}}}
		c.Segments[1].FDB = []node.FDB{{MAC: host, Port: "lan"}}
		return nil
	}))
	waiting := func() (rows []string) {
		for r, err := range n.Plane().Waiting(node.Owner) {
			rows = append(rows, r.String()+": "+err.Error())
		}
		return rows
	}
	lab.Equal(t, "rows that wait", len(waiting()), 0)

	lab.OK(t, far.Close())
	lab.OK(t, pipe.Close())
	attached := func(s *node.VSI) int { return len(lab.Must(s.Switch())(t).Attachments()) }
	until(t, "both ports have failed", func() bool { return attached(seg)+attached(lan) == 0 })
	lab.OK(t, n.Update(func(c *node.Config) error { c.VRFs = append(c.VRFs, node.VRF{Name: "blue"}); return nil }))
	if w := waiting(); len(w) != 2 || !strings.HasPrefix(w[0], "mac 02:00:00:00:00:09 vni 200 port lan: ") ||
		w[1] != "prefix 10.9.0.0/16 vrf red via vni 100: Prefix.Via.VNI: "+control.ErrNoInterface.Error() {
		t.Errorf("%q wait", w)
	}
	lab.Equal(t, "VRFs of the gateway", len(n.Gateway().VRFs()), 2)
	lab.Equal(t, "routes", len(n.Gateway().VRF("red").Routes()), 0)

	// What is wrong is an error even now, and changes nothing.
	before := n.Config()
	for want, edit := range map[string]func(*node.Config){
		"via[0].segment: 300": func(c *node.Config) { c.VRFs[0].Routes[0].Via[0].Segment = 300 },
		"via[0].segment: 200": func(c *node.Config) { c.VRFs[0].Routes[0].Via[0].Segment = 200 },
		"fdb[0].port":         func(c *node.Config) { c.Segments[1].FDB[0].Port = "tun" },
	} {
		if err := n.Update(func(c *node.Config) error { edit(c); return nil }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		lab.True(t, reflect.DeepEqual(n.Config(), before), "the configuration is %+v", n.Config())
	}
	lab.Equal(t, "rows that wait", len(waiting()), 2)

	p, _ = tun()
	lab.OK(t, seg.Add(p, nil))
	lab.OK(t, lan.Add(port.NewPipe(&port.PipeConfig{Name: "lan"}), &node.Member{VLAN: 7}))
	lab.Equal(t, "rows that wait", len(waiting()), 0)
	if _, ok := n.Gateway().VRF("red").Route(dst); !ok {
		t.Error("the route has not come up")
	}
	if m := n.Config().Segments[1].Members; len(m) != 1 || m[0].VLAN != 7 {
		t.Errorf("members %+v", m)
	}
}

// A port in place of one that has failed is a member of all its segments. There can be one, and none beside a port that runs.
func TestAddInPlaceOfFailed(t *testing.T) {
	f := &fabric{t, memory.NewNetwork(nil)}
	t.Cleanup(func() { f.net.Close() })
	n, _ := f.start(new(node.Config))
	one, two := lab.Must(n.Segment(1, nil))(t), lab.Must(n.Segment(2, nil))(t)
	p := port.NewPipe(&port.PipeConfig{Name: "p"})
	lab.OK(t, one.Add(p, &node.Member{VLAN: 1}))
	lab.OK(t, two.Add(p, &node.Member{VLAN: 2}))
	attached := func(s *node.VSI) int { return len(lab.Must(s.Switch())(t).Attachments()) }
	if err := one.Add(port.NewPipe(&port.PipeConfig{Name: "p"}), nil); err == nil || !strings.Contains(err.Error(), "Name must be unique") {
		t.Errorf("in place of a port that runs: %v", err)
	}
	lab.OK(t, p.Close())
	until(t, "the port has failed", func() bool { return attached(one)+attached(two) == 0 })
	lab.OK(t, one.Add(port.NewPipe(&port.PipeConfig{Name: "p"}), nil))
	lab.Equal(t, "attachments", [2]int{attached(one), attached(two)}, [2]int{1, 1})
	if err := one.Add(port.NewPipe(&port.PipeConfig{Name: "p"}), nil); err == nil || !strings.Contains(err.Error(), "Name must be unique") {
		t.Errorf("a second one: %v", err)
	}
}
