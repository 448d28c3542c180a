package calico

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
)

// fakes are speakers that say what happens to them.
type fakes struct {
	mu     sync.Mutex
	said   []string
	refuse error // of the next one that begins
	fail   chan error
}

func (f *fakes) say(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func (f *fakes) take() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := strings.Join(f.said, ", ")
	f.said = nil
	return s
}

type fake struct {
	*fakes
	as uint32
}

func (f fake) Configure(c *bgp.Config) error {
	f.say("%d configured for %d peers", f.as, len(c.Peers))
	return nil
}

func (f fake) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		f.say("%d ends", f.as)
		return nil
	case err := <-f.fail:
		return err
	}
}

func (f fake) Status() bgp.Status { return bgp.Status{} }

func (f fake) Routes() []bgp.Route { return nil }
func (f fake) BFD() []bfd.Session  { return nil }

func newFaked(t *testing.T) (*Plane, *fakes) {
	n := check.Must(node.New(nil))(t)
	t.Cleanup(func() { n.Close() })
	p := check.Must(New(n, &Config{Node: "a", VRF: "v", VXLAN: Tunnel{Segment: 4096}}))(t)
	f := &fakes{fail: make(chan error)}
	p.start = func(c *bgp.Config) (speaker, error) {
		if f.refuse != nil {
			return nil, f.refuse
		}
		f.say("%d begins", c.AS)
		return fake{f, c.AS}, nil
	}
	p.store = new(model.Store)
	return p, f
}

func (p *Plane) put(key, v string) {
	p.store.Put(v3+key, []byte(v))
	p.routes.Store(true)
}

// A speaker begins once there is an address for BGP, changes with peers, goes on when nothing is different for it, begins anew with another
// AS, and ends with the node.
func TestSpeaker(t *testing.T) {
	p, f := newFaked(t)
	for _, c := range []struct{ key, value, want string }{
		{"nodes/a", value("Node", "a", `{}`), ""},
		{"nodes/a", value("Node", "a", `{"bgp":{"ipv4Address":"192.0.2.1/24"}}`), "64512 begins"},
		{"nodes/b", value("Node", "b", `{"bgp":{"ipv4Address":"192.0.2.2/24"}}`), "64512 configured for 1 peers"},
		{"nodes/b", value("Node", "b", `{"bgp":{"ipv4Address":"192.0.2.2/24"},"ipv4VXLANTunnelAddr":"10.0.0.1"}`), ""},
		{"nodes/a", value("Node", "a", `{"bgp":{"ipv4Address":"192.0.2.1/24","asNumber":65001}}`), "64512 ends, 65001 begins"},
		{"bgpconfigurations/node.a", value("BGPConfiguration", "node.a", `{"listenPort":1790}`), "65001 ends, 65001 begins"},
		{"nodes/a", "junk", "65001 ends"},
	} {
		p.put(c.key, c.value)
		if !p.apply() {
			t.Fatal(p.Status().BGPErr)
		}
		check.Equal(t, c.key+" "+c.value, f.take(), c.want)
	}
}

// A speaker that ends by itself is an error, and another one begins; one that cannot begin is tried again.
func TestSpeakerFails(t *testing.T) {
	p, f := newFaked(t)
	p.put("nodes/a", value("Node", "a", `{"bgp":{"ipv4Address":"192.0.2.1/24"}}`))
	p.apply()
	f.fail <- errors.New("address already in use")
	woken, stop := context.WithCancel(t.Context())
	p.loop.Run(woken, func(bool) bool { stop(); return false }) // it has the plan applied again
	if p.apply() {
		t.Error("no error")
	}
	if err := p.Status().BGPErr; err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("error %v", err)
	}
	f.refuse = errors.New("refused")
	if p.apply() || !errors.Is(p.Status().BGPErr, f.refuse) {
		t.Errorf("error %v", p.Status().BGPErr)
	}
	f.refuse = nil
	if !p.apply() || p.Status().BGPErr != nil {
		t.Errorf("error %v", p.Status().BGPErr)
	}
	check.Equal(t, "speakers", f.take(), "64512 begins, 64512 begins")
	p.stopBGP()
}

func TestCheck(t *testing.T) {
	host := netip.MustParseAddr("192.0.2.1")
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) {}, ""},
		{func(c *Config) { c.Node = "" }, "Node"},
		{func(c *Config) { c.Node = "a/b" }, `Config.Node: "a/b"`},
		{func(c *Config) { c.VRF = "" }, "VRF"},
		{func(c *Config) { c.Segment = 1 << 25 }, "Segment"},
		{func(c *Config) { c.VXLAN.IPv4 = "x" }, "VXLAN.Segment: the segment of the tunnel is required"},
		{func(c *Config) { c.Segment, c.IPIP.Segment = 5, 5 }, "IPIP.Segment"},
		{func(c *Config) { c.RouterID = netip.MustParseAddr("::1") }, "RouterID"},
		{func(c *Config) { c.Listen = []netip.Addr{{}} }, "Listen[0]"},
		{func(c *Config) { c.Local = []netip.Addr{host, host} }, "Local[1]"},
		{func(c *Config) { c.Routers = []netip.Addr{host} }, "requires segment"},
		{func(c *Config) { c.Etcd.Endpoints = []string{"host"} }, "Endpoints"},
		{func(c *Config) { c.Etcd.Timeout = time.Millisecond }, "Timeout"},
		{func(c *Config) { c.Etcd.PasswordFile = "x" }, "Etcd.PasswordFile: \"x\": requires a user name"},
	} {
		x := &Config{Node: "a", VRF: "v"}
		c.change(x)
		err := x.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if _, err := New(nil, &Config{Node: "a", VRF: "v"}); err == nil {
		t.Error("no Node is accepted")
	}
}
