package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

var must = check.OK

func addSegment(t testing.TB, n *Node, vni frame.VNI, s *Segment) *VSI {
	t.Helper()
	v, err := n.Segment(vni, s)
	must(t, err)
	return v
}

func addTunnel(t testing.TB, n *Node, name string, c Tunnel) *vtep.VTEP {
	t.Helper()
	v, err := n.Tunnel(name, c)
	must(t, err)
	return v
}

// Ports of the program: two hosts in two segments talk through a gateway made by two calls.
func TestOwnPorts(t *testing.T) {
	n := running(t)
	a, b := port.NewPipe(&port.PipeConfig{Name: "a"}), port.NewPipe(&port.PipeConfig{Name: "b"})
	one := addSegment(t, n, 1, nil)
	must(t, one.Add(a, nil))
	must(t, one.Add(b, nil))
	f := frame.MAC{2, 0, 0, 0, 0, 1}
	must(t, a.Send(append(append(frame.Broadcast[:], f[:]...), make([]byte, 50)...)))
	ctx, cancel := context.WithTimeout(context.Background(), 5e9)
	defer cancel()
	if _, err := b.Recv(ctx); err != nil {
		t.Fatal(err)
	}

	// A port in two segments is open until it has left both.
	two := addSegment(t, n, 2, nil)
	must(t, two.Add(b, &Member{VLAN: 7}))
	must(t, one.Remove(b))
	must(t, b.Send(make([]byte, 60)))
	must(t, two.Remove(b))
	if err := b.Send(make([]byte, 60)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("out of its last segment: %v", err)
	}
	if got := n.Config().Ports; len(got) != 1 || got[0].Name != "a" {
		t.Errorf("%+v", got)
	}
	if got, err := two.Switch(); err != nil || len(got.Attachments()) != 0 || two.VNI() != 2 {
		t.Error(got, err)
	}
	must(t, n.Update(func(c *Config) error { c.Segments = c.Segments[:1]; return nil }))
	if got, err := two.Switch(); !errors.Is(err, net.ErrClosed) || len(n.Switch().VSIs()) != 1 {
		t.Errorf("a segment that is gone: %v, %v", got, err)
	}
}

// What a configuration says of a port of the program's is another thing: the port is the same.
func TestOwnPortIsSaidToCarryIP(t *testing.T) {
	n := running(t)
	seg := addSegment(t, n, 1, nil)
	a := port.NewPipe(&port.PipeConfig{Name: "a"})
	must(t, seg.Add(a, nil))
	was, err := seg.Switch()
	must(t, err)
	at := was.Attachments()
	must(t, n.Update(func(c *Config) error { c.Ports[0].IP = true; return nil }))
	must(t, seg.Gateway("v", Gateway{}))
	must(t, a.Send(make([]byte, 60)))
	if is := was.Attachments(); len(is) != 1 || is[0] != at[0] || len(n.Interfaces()) != 1 {
		t.Errorf("%v, was %v, and %d interfaces", is, at, len(n.Interfaces()))
	}
}

// fitted is a port that is told what fits.
type fitted struct {
	*port.Pipe
	mtu int
}

func (f *fitted) Fit(mtu int) error { f.mtu = mtu; return nil }

// A port in several segments gets what fits all of them, with room for a tag where one passes,
// whichever comes first.
func TestFitsAllSegments(t *testing.T) {
	for _, modes := range [][]vswitch.VLANMode{{vswitch.VLANPass, vswitch.VLANDiscard}, {vswitch.VLANDiscard, vswitch.VLANPass}} {
		n, _, _ := inMemory(t)
		v := addTunnel(t, n, "vx", Tunnel{Local: netip.MustParseAddr("192.0.2.1")})
		p := &fitted{Pipe: port.NewPipe(&port.PipeConfig{Name: "p"})}
		for i, mode := range modes {
			seg := addSegment(t, n, frame.VNI(i), &Segment{VSIConfig: vswitch.VSIConfig{InnerVLAN: mode}})
			must(t, seg.Join(v))
			must(t, seg.Add(p, &Member{VLAN: i}))
		}
		if want := v.MTU(0) - 4; p.mtu != want {
			t.Errorf("%v: %d fits, want %d", modes, p.mtu, want)
		}
	}
}

// A port that was refused before it was attached is still the program's, and can be added again.
func TestOwnPortThatIsRefused(t *testing.T) {
	for step, open := range map[string]bool{"port": true, "release": true, "segment settings": true, "member": true, "rows": false} {
		n := running(t)
		seg := addSegment(t, n, 1, nil)
		a := port.NewPipe(&port.PipeConfig{Name: "a"})
		hit := false
		n.fault = func(s string) error {
			if s == step && !hit {
				hit = true
				return errors.New("refused")
			}
			return nil
		}
		if err := seg.Add(a, nil); err == nil {
			t.Errorf("%s: no error", step)
		}
		if err := a.Send(make([]byte, 60)); (err == nil) != open {
			t.Errorf("%s: %v", step, err)
		}
		if open {
			must(t, seg.Add(a, nil))
			must(t, seg.Remove(a))
		}
	}
}

// A port that cannot be paused is closed by what takes it out of all its places, even if it is to
// have another one at once: that is refused.
func TestOwnPortThatCannotPause(t *testing.T) {
	n := running(t)
	one := addSegment(t, n, 1, nil)
	two := addSegment(t, n, 2, nil)
	near, far := net.Pipe()
	defer far.Close()
	p := port.FromReadWriteCloser(near, &port.ReadWriteCloserConfig{Name: "p"})
	must(t, one.Add(p, nil))
	before := n.Config()
	for name, change := range map[string]func(*Config) error{
		"another VLAN":       func(c *Config) error { c.Segments[0].Members[0].VLAN = 7; return nil },
		"a segment anew":     func(c *Config) error { c.Segments[0].Refuse = true; return nil },
		"no segment for now": func(c *Config) error { c.Segments[0].Members = nil; return nil },
		"another segment": func(c *Config) error {
			c.Segments[0].Members, c.Segments[1].Members = nil, c.Segments[0].Members
			return nil
		},
	} {
		if err := n.Update(change); err == nil || !strings.Contains(err.Error(), `port "p": cannot be paused`) {
			t.Errorf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(n.Config(), before) {
			t.Errorf("%s: %s", name, asText(n.Config()))
		}
	}
	must(t, two.Add(p, &Member{VLAN: 7})) // first there, then away
	must(t, one.Remove(p))
	if _, err := far.Write(make([]byte, 60)); err != nil {
		t.Error(err)
	}
	must(t, two.Remove(p))
	if _, err := far.Write([]byte{0}); err == nil {
		t.Error("out of its last segment, it is open")
	}
}

// A port for IP is one that says that it takes nothing else, also behind a decorator.
func TestOwnPortForIP(t *testing.T) {
	for _, wrapped := range []bool{false, true} {
		n := running(t)
		seg := addSegment(t, n, 1, nil)
		near, far := net.Pipe()
		defer far.Close()
		var p vswitch.Port = port.FromReadWriteCloser(near, &port.ReadWriteCloserConfig{Name: "p", IP: true})
		if wrapped {
			b, err := port.NewBuffered(p, nil)
			must(t, err)
			p = b.Port()
		}
		must(t, seg.Add(p, nil))
		must(t, seg.Gateway("v", Gateway{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}}))
		if c := n.Config(); !c.Ports[0].IP || !c.Segments[0].Gateway.MAC.IsZero() {
			t.Errorf("wrapped %v: %s", wrapped, asText(c))
		}
	}
}

// What a program's Listen returns without an error may be none still.
func TestListenOfNothing(t *testing.T) {
	for _, u := range []vtep.Underlay{nil, (*memory.Underlay)(nil)} {
		n, err := New(&Options{Listen: func(*Tunnel) (vtep.Underlay, error) { return u, nil }})
		must(t, err)
		defer n.Close()
		if _, err := n.Tunnel("vx", Tunnel{Local: netip.MustParseAddr("192.0.2.1")}); err == nil || !strings.Contains(err.Error(), `tunnel "vx": the underlay is a `) {
			t.Error(err)
		}
	}
}

// A tunnel is no port of a segment's: who adds it is told to join it, and it goes on.
func TestAddTunnel(t *testing.T) {
	n, _, opened := inMemory(t)
	v := addTunnel(t, n, "vx", Tunnel{Local: netip.MustParseAddr("192.0.2.1")})
	seg := addSegment(t, n, 1, nil)
	if err := seg.Add(v, nil); err == nil || !strings.Contains(err.Error(), "Join") {
		t.Error(err)
	}
	must(t, seg.Join(v))
	if _, err := v.AddPeer(netip.MustParseAddrPort("192.0.2.2:4789")); err != nil || len(*opened) != 1 {
		t.Errorf("it was closed: %v, and %d underlays were opened", err, len(*opened))
	}
}

// unlike is a port that == is not for.
type unlike struct {
	*port.Pipe
	_ []int
}

// A wrong call says what is wrong, and has changed nothing.
func TestProgramErrors(t *testing.T) {
	n := running(t)
	a := port.NewPipe(&port.PipeConfig{Name: "a"})
	seg := addSegment(t, n, 1, nil)
	must(t, seg.Add(a, nil))
	before := n.Config()
	other, fresh := port.NewPipe(&port.PipeConfig{Name: "a"}), port.NewPipe(&port.PipeConfig{Name: "fresh"})
	for want, f := range map[string]func() error{
		"segment 1: Add: the port is (*port.Pipe)(nil)":         func() error { return seg.Add((*port.Pipe)(nil), nil) },
		"segment 1: Add: the port is <nil>":                     func() error { return seg.Add(nil, nil) },
		"Remove: the port is (*port.Pipe)(nil)":                 func() error { return seg.Remove((*port.Pipe)(nil)) },
		"Remove: the port is <nil>":                             func() error { return seg.Remove(nil) },
		`segment 1: this is not the member "a"`:                 func() error { return seg.Remove(other) },
		"is not comparable; use a pointer":                      func() error { return seg.Add(unlike{other, nil}, nil) },
		`another port has the name "a"; Name must be unique`:    func() error { return seg.Add(other, nil) },
		"a vlan 0 is already in VNI 1":                          func() error { return seg.Add(a, nil) },
		"members[1].vlan: 5000":                                 func() error { return seg.Add(fresh, &Member{VLAN: 5000}) },
		`port "x" is not a member`:                              func() error { return seg.Remove(port.NewPipe(&port.PipeConfig{Name: "x"})) },
		"the tunnel is nil":                                     func() error { return seg.Join(nil) },
		"node: Update: the edit is nil":                         func() error { return n.Update(nil) },
		"segment 1: Update: the edit is nil":                    func() error { return seg.Update(nil) },
		"segment 1 already exists; use Update":                  func() error { _, err := n.Segment(1, &Segment{}); return err },
		"segments[1].vni: 16777216":                             func() error { _, err := n.Segment(1<<24, nil); return err },
		"tunnels[0].local: an address of":                       func() error { _, err := n.Tunnel("t", Tunnel{}); return err },
		"gateway.addresses[0]: an address with a prefix length": func() error { return seg.Gateway("v", Gateway{Addresses: []netip.Prefix{{}}}) },
		`policies[0].name: required`:                            func() error { return n.Policy(Policy{}) },
		"segment 9 does not exist: use of closed":               func() error { return (&VSI{n, 9}).Add(fresh, nil) },
		"stop": func() error { return n.Update(func(c *Config) error { c.Segments = nil; return errors.New("stop") }) },
		`port "none": the program has not added a port`: func() error {
			return n.Update(func(c *Config) error { c.Ports = append(c.Ports, Port{Name: "none", Type: PortOwn}); return nil })
		},
		`port "tap0": the program has not added a port`: func() error { // one of the node's becomes none
			n.cfg.Ports = append(n.cfg.Ports, Port{Name: "tap0"})
			defer func() { n.cfg.Ports = n.cfg.Ports[:1] }()
			return n.Update(func(c *Config) error { c.Ports[1].Type = PortOwn; return nil })
		},
		"ports[0].mtu: a port of type own": func() error { return n.Update(func(c *Config) error { c.Ports[0].MTU = 1400; return nil }) },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if !reflect.DeepEqual(n.Config(), before) {
			t.Fatalf("%s: %+v", want, n.Config())
		}
	}
	must(t, fresh.Send(make([]byte, 60))) // still the program's
	must(t, seg.Add(fresh, nil))
	n.Close()
	if err := n.Program("other", control.Update{Add: []control.Row{control.MAC{VNI: 1, MAC: frame.MAC{2}, Filter: true}}}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Program after Close: %v", err)
	}
	if err := seg.Add(other, nil); !errors.Is(err, net.ErrClosed) && !strings.Contains(fmt.Sprint(err), "another port") {
		t.Error(err)
	}
	if err := n.Update(func(*Config) error { return nil }); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// What callers do with what they have given, and with what Config returned, does not change a node.
func TestNothingShared(t *testing.T) {
	n, _, _ := inMemory(t)
	addr := netip.MustParseAddr
	tunnel := Tunnel{Local: addr("192.0.2.1"), PeerSettings: []PeerSetting{{PeerConfig: vtep.PeerConfig{Address: addr("192.0.2.2"), Port: 7}}}}
	_, err := n.Tunnel("vx", tunnel)
	must(t, err)
	segment := Segment{
		Tunnel: "vx", Flood: []netip.Addr{addr("192.0.2.2")}, FDB: []FDB{{MAC: frame.MAC{2, 1}, Filter: true}},
		Neighbours: &Neighbours{Static: []Neighbour{{IP: addr("10.0.0.1"), MAC: frame.MAC{2, 1}}}},
	}
	seg := addSegment(t, n, 1, &segment)
	mode := arp.Suppress
	member := Member{NeighbourMode: &mode, Guard: &policy.GuardConfig{Addrs: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}}}
	must(t, seg.Add(port.NewPipe(&port.PipeConfig{Name: "a"}), &member))
	gateway := Gateway{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.254/24")}}
	must(t, seg.Gateway("v", gateway))
	rules := Policy{Name: "p", Config: policy.Config{Rules: []policy.Rule{{}}}}
	must(t, n.Policy(rules))

	scribble := func(c *Config) {
		c.Tunnels[0].PeerSettings[0].Port = 8
		s := &c.Segments[0]
		s.Flood[0], s.FDB[0].Filter, s.Neighbours.Static[0].MAC = addr("192.0.2.3"), false, frame.MAC{2, 2}
		if len(s.Members) > 0 {
			*s.Members[0].NeighbourMode, s.Members[0].Guard.Addrs[0] = arp.Access, netip.Prefix{}
			s.Gateway.Addresses[0] = netip.Prefix{}
		}
		c.Policies[0].Rules[0].Protocol = 6
	}
	want := string(asText(n.Config()))
	scribble(&Config{Tunnels: []Tunnel{tunnel}, Segments: []Segment{segment}, Policies: []Policy{rules}})
	mode, member.Guard.Addrs[0], gateway.Addresses[0] = arp.Access, netip.Prefix{}, netip.Prefix{}
	if got := string(asText(n.Config())); got != want {
		t.Errorf("what a caller had given is\n%s\nwas\n%s", got, want)
	}
	scribble(n.Config())
	if got := string(asText(n.Config())); got != want {
		t.Errorf("behind Config there is\n%s\nwas\n%s", got, want)
	}
}

// Callers take turns: nothing that one of them adds is lost.
func TestUpdates(t *testing.T) {
	n := running(t)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := n.Segment(frame.VNI(i), nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := len(n.Config().Segments); got != 20 {
		t.Errorf("%d segments of 20", got)
	}
}

// What two places say, and contradicts itself, is an error; what is there stays the same.
func TestContradictions(t *testing.T) {
	net := memory.NewNetwork(nil)
	listen := func(c *Tunnel) (vtep.Underlay, error) { return net.Listen(netip.AddrPortFrom(c.Local, 4789), nil) }
	n, err := New(&Options{Listen: listen})
	must(t, err)
	other, err := New(&Options{Listen: listen})
	must(t, err)
	defer other.Close()
	peer := netip.MustParseAddr("10.0.0.9")
	vx := addTunnel(t, n, "vx", Tunnel{Local: netip.MustParseAddr("10.0.0.1")})
	theirs := addTunnel(t, other, "vx", Tunnel{Local: netip.MustParseAddr("10.0.0.2")})
	seg := addSegment(t, n, 100, nil)
	must(t, seg.Join(vx, peer))
	must(t, seg.JoinAddrPort(vx, netip.AddrPortFrom(peer, 5000)))
	c := n.Config()
	if p := c.Tunnels[0].PeerSettings; len(c.Segments[0].Tunnels[0].Flood) != 1 || len(p) != 1 || p[0].Port != 5000 {
		t.Errorf("%+v, %+v", c.Segments[0].Tunnels, p)
	}
	must(t, seg.Update(func(s *Segment) error { s.Refuse = true; return nil }))
	if again, err := n.Segment(100, nil); again != seg || err != nil {
		t.Errorf("%p and %p, %v", seg, again, err)
	}
	fails := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	_, err = n.Segment(101, &Segment{VNI: 102})
	fails(err, "segment 101: its VNI is 102")
	_, err = n.Tunnel("vz", Tunnel{Config: vtep.Config{Name: "zz"}, Local: peer})
	fails(err, `tunnel "vz": its Name is "zz"`)
	fails(seg.Join(theirs, peer), `this is not the node's tunnel "vx"`)
	fails(seg.Add(nil, nil), "Add: the port is <nil>")
	must(t, n.Update(func(c *Config) error { c.Segments = nil; return nil }))
	_, err = seg.Switch()
	fails(err, "segment 100 does not exist")
	must(t, n.Close())
	_, err = n.Tunnel("", Tunnel{})
	for _, err := range []error{err, seg.Join(vx), seg.Gateway("", Gateway{}), n.Policy(Policy{}), seg.Update(func(*Segment) error { return nil })} {
		fails(err, "use of closed network connection")
	}
}

// deaf is a port that nobody has made.
type deaf struct{ *port.Pipe }

func (deaf) Name() string            { return "a" }
func (deaf) Readers() []frame.Reader { return nil }

// A port without queues is called by its name.
func TestAddDeaf(t *testing.T) {
	n, err := New(nil)
	must(t, err)
	defer n.Close()
	seg := addSegment(t, n, 1, nil)
	if err := seg.Add(&deaf{port.NewPipe(nil)}, nil); err == nil || !strings.HasPrefix(err.Error(), `segment 1: member "a": `) || !strings.Contains(err.Error(), `Readers returned no receive queue`) {
		t.Error(err)
	}
}
