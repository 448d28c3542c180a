package node

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// bench is a node whose tunnels and ports are in memory. Whatever it asks for is a step that
// can be refused.
type bench struct {
	*Node
	t      *testing.T
	refuse func(step string) error

	mu        sync.Mutex
	net       *memory.Network
	underlays map[*benchUnderlay]bool // that are open
	ports     map[*benchPort]bool
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return benchOf(t, running(t))
}

// benchOf is a bench with a node that has nothing yet.
func benchOf(t *testing.T, n *Node) *bench {
	net := memory.NewNetwork(nil)
	b := &bench{
		t: t, Node: n, refuse: func(string) error { return nil }, net: net,
		underlays: map[*benchUnderlay]bool{}, ports: map[*benchPort]bool{},
	}
	b.fault = func(step string) error { return b.refuse(step) }
	b.Node.open = openers{
		underlay: func(c *Tunnel) (vtep.Underlay, error) {
			open := func() (*memory.Underlay, error) {
				return net.Listen(c.AddrPort(), &memory.Config{Queues: c.Queues})
			}
			if c.Type == encap.TypeIPIP {
				open = func() (*memory.Underlay, error) {
					return net.ListenIP(c.Local, &memory.Config{Queues: c.Queues})
				}
			}
			u, err := open()
			if err != nil {
				return nil, err
			}
			x := &benchUnderlay{Underlay: u, b: b, groups: map[netip.Addr]int{}}
			b.locked(func() { b.underlays[x] = true })
			return x, nil
		},
		device: func(c *Port) (vswitch.Port, error) {
			p := &benchPort{Pipe: port.NewPipe(&port.PipeConfig{Name: c.Name, MTU: c.MTU}), b: b}
			b.locked(func() { b.ports[p] = true })
			return p, nil
		},
	}
	return b
}

func (b *bench) locked(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

type benchUnderlay struct {
	*memory.Underlay
	b      *bench
	groups map[netip.Addr]int // under b.mu
}

func (u *benchUnderlay) Join(group netip.Addr) error {
	if err := u.b.refuse("join"); err != nil {
		return err
	}
	u.b.locked(func() { u.groups[group]++ })
	return u.Underlay.Join(group)
}

func (u *benchUnderlay) Leave(group netip.Addr) error {
	u.b.locked(func() {
		if u.groups[group]--; u.groups[group] == 0 {
			delete(u.groups, group)
		}
	})
	return u.Underlay.Leave(group)
}

func (u *benchUnderlay) Close() error {
	u.b.locked(func() { delete(u.b.underlays, u) })
	return u.Underlay.Close()
}

type benchPort struct {
	*port.Pipe
	b *bench
}

func (p *benchPort) Close() error {
	p.b.locked(func() { delete(p.b.ports, p) })
	return p.Pipe.Close()
}

// state is all that a configuration makes of a node, a line each.
func (b *bench) state() []string {
	n := b.Node
	list := parts(n)
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	b.locked(func() {
		for u := range b.underlays {
			add("underlay %v: groups %v", u.LocalAddr(), u.groups)
		}
		for p := range b.ports {
			add("device %s", p.Name())
		}
	})
	for name, t := range n.tunnels {
		add("tunnel %s: %+v", name, t.cfg)
	}
	for name, d := range n.ports {
		add("port %s: %+v, mtu %d", name, d.cfg, d.port.MTU(0))
	}
	for name, p := range n.policies {
		add("policy %s: %d flows, %v", name, p.maxFlows, p.Set("hosts"))
		for r := range p.Stats().Rules {
			add("policy %s: rule %s", name, r)
		}
	}
	for _, v := range n.gateway.VRFs() {
		add("vrf %s", v.Name())
		for _, r := range v.Routes() {
			add("vrf %s: %v via %v", v.Name(), r.Prefix, r.Via)
		}
	}
	for _, vsi := range n.sw.VSIs() {
		for _, a := range vsi.Attachments() {
			x := reflect.ValueOf(a).Elem().FieldByName("cfg")
			add("attachment %d %s: %s", vsi.VNI(), n.sw.Name(a.Dest(0)), settings(x))
		}
		add("vsi %d: %s", vsi.VNI(), settings(reflect.ValueOf(vsi).Elem().FieldByName("cfg")))
	}
	for vni, s := range n.segments {
		add("segment %d: made of %+v", vni, s.made.show())
		if s.table != nil {
			add("segment %d: table %s", vni, settings(reflect.ValueOf(s.table).Elem().FieldByName("cfg")))
		}
		if s.responder != nil {
			add("segment %d: responder %s", vni, settings(reflect.ValueOf(s.responder).Elem().FieldByName("cfg")))
		}
		if s.crossConnect != nil {
			add("segment %d: a wire", vni)
		}
		if s.iface != nil {
			add("segment %d: interface %v of %s", vni, s.iface.MAC(), s.iface.VRF().Name())
		}
	}
	add("switch %s", settings(reflect.ValueOf(n.sw.Config())))
	add("gateway %+v", n.gateway.Config())
	add("capture %+v", n.capture.Config())
	slices.Sort(list)
	return list
}

func (m neighbourhood) show() string {
	s := fmt.Sprintf("responder %+v, table %+v", m.responder, m.table)
	if m.gateway != nil {
		s += fmt.Sprintf(", gateway %+v", *m.gateway)
	}
	return s
}

// settings shows a struct of settings; of stages only which they are.
func settings(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Struct:
		var list []string
		for i := range v.NumField() {
			list = append(list, v.Type().Field(i).Name+":"+settings(v.Field(i)))
		}
		return "{" + strings.Join(list, " ") + "}"
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return "none"
		}
		return v.Elem().Type().String()
	case reflect.Func:
		return fmt.Sprint(!v.IsNil())
	case reflect.Slice:
		var list []string
		for i := range v.Len() {
			list = append(list, settings(v.Index(i)))
		}
		return fmt.Sprint(list)
	}
	return fmt.Sprint(v)
}

const stepsOld = `{
  "tunnels": [
    {"name": "stays", "local": "192.0.2.1"},
    {"name": "moves", "local": "192.0.2.2", "port": 5000},
    {"name": "moves2", "local": "192.0.2.3", "port": 5000},
    {"name": "differs", "local": "192.0.2.4", "ttl": 7},
    {"name": "goes", "local": "192.0.2.5"},
    {"name": "swaps1", "local": "192.0.2.6"},
    {"name": "swaps2", "local": "192.0.2.7"},
    {"name": "ip", "type": "ipip", "local": "192.0.2.1"}
  ],
  "ports": [{"name": "p1"}, {"name": "p2", "mtu": 1400}, {"name": "p3"}, {"name": "p4"}, {"name": "u1", "type": "tun"}, {"name": "u2", "type": "tun"}],
  "policies": [
    {"name": "one", "rules": [{"name": "a", "action": "deny", "protocol": 6, "srcSet": "hosts"}], "sets": {"hosts": ["10.0.0.0/8"]}},
    {"name": "two", "maxFlows": 10}, {"name": "three"}],
  "segments": [
    {"vni": 10, "tunnel": "stays", "flood": ["192.0.2.100", "239.1.1.1"], "policy": "one", "maxMACs": 100,
     "members": [{"port": "p1", "guard": {"macs": ["02:00:00:00:00:01"]}}, {"port": "p2", "vlan": 5}],
     "neighbours": {"mode": "suppress", "limit": 10, "static": [{"ip": "10.0.10.9", "mac": "02:00:00:00:00:09"}]},
     "gateway": {"vrf": "red", "addresses": ["10.0.10.1/24"], "mac": "02:00:00:00:ff:10"},
     "fdb": [{"mac": "02:00:00:00:00:09", "remote": "192.0.2.100"}, {"mac": "02:00:00:00:00:08", "port": "p1"}]},
    {"vni": 20, "tunnels": [{"tunnel": "moves", "vni": 21, "group": 1, "flood": ["192.0.2.100"]}, {"tunnel": "moves2", "group": 2, "flood": ["192.0.2.101"]}],
     "members": [{"port": "p2"}], "policy": "two",
     "gateway": {"vrf": "red", "addresses": ["10.0.20.1/24"], "mac": "02:00:00:00:ff:20", "vtepMAC": "02:00:00:00:ee:20", "anycast": true}},
    {"vni": 30, "tunnel": "differs", "flood": ["192.0.2.100", "239.1.1.3"], "members": [{"port": "p3"}], "policy": "three"},
    {"vni": 40, "tunnel": "goes", "flood": ["239.1.1.2"], "neighbours": {"mode": "access"},
     "gateway": {"vrf": "blue", "addresses": ["10.0.40.1/24"], "mac": "02:00:00:00:ff:40"}},
    {"vni": 50, "tunnel": "ip", "gateway": {"vrf": "red", "addresses": ["10.5.0.1/32"]}},
    {"vni": 60, "members": [{"port": "u1"}], "gateway": {"vrf": "red", "addresses": ["10.6.0.1/32"]}},
    {"vni": 70, "tunnels": [{"tunnel": "swaps1"}, {"tunnel": "swaps2", "group": 2}]}
  ],
  "vrfs": [
    {"name": "red", "routes": [
      {"prefix": "10.1.0.0/16", "via": [{"segment": 10, "ip": "10.0.10.9"}]}, {"prefix": "10.2.0.0/16"},
      {"prefix": "10.3.0.0/16", "via": [{"segment": 50, "remote": "192.0.2.100"}]}]},
    {"name": "blue", "routes": [{"prefix": "10.1.0.0/16", "via": [{"segment": 40, "ip": "10.0.40.9"}]}]}],
  "maxMACs": 1000
}`

var stepsNew = strings.NewReplacer(
	`"192.0.2.2", "port": 5000`, `"192.0.2.12", "port": 5000`,
	`"192.0.2.3", "port": 5000`, `"192.0.2.13", "port": 5000`,
	`"ttl": 7`, `"ttl": 8`,
	`{"name": "goes", "local": "192.0.2.5"}`, `{"name": "comes", "local": "192.0.2.15"}`,
	`"swaps1", "local": "192.0.2.6"`, `"swaps1", "local": "192.0.2.7"`,
	`"swaps2", "local": "192.0.2.7"`, `"swaps2", "local": "192.0.2.6"`,
	`{"name": "p1"}`, `{"name": "p1", "mtu": 1300}`,
	`{"name": "p4"}`, `{"name": "p5"}`,
	`"action": "deny"`, `"action": "allow"`, `"10.0.0.0/8"`, `"10.0.0.0/9"`,
	`"maxFlows": 10`, `"maxFlows": 11`, `{"name": "three"}`, `{"name": "four"}`,
	`"policy": "one", "maxMACs": 100`, `"policy": "two", "maxMACs": 101, "ageing": "60s"`,
	`"02:00:00:00:00:01"`, `"02:00:00:00:00:02"`,
	`"limit": 10`, `"limit": 11`, `"10.0.10.9", "mac": "02:00:00:00:00:09"`, `"10.0.10.9", "mac": "02:00:00:00:00:0a"`,
	`02:00:00:00:ff:10`, `02:00:00:00:ff:11`, `10.0.10.1/24`, `10.0.10.2/24`,
	`"02:00:00:00:00:08", "port": "p1"`, `"02:00:00:00:00:08", "remote": "192.0.2.102"`,
	`239.1.1.1`, `239.1.1.11`, `"vni": 21`, `"vni": 22`, `"vtepMAC": "02:00:00:00:ee:20", "anycast": true`, `"vtepMAC": "02:00:00:00:ee:21"`,
	`"policy": "three"`, `"policy": "four"`,
	`{"vni": 40, "tunnel": "goes"`, `{"vni": 41, "tunnel": "comes"`, `"mode": "access"`, `"mode": "proxy"`, `"mode": "suppress"`, `"mode": "access"`, `"segment": 40`, `"segment": 41`,
	`{"port": "u1"}`, `{"port": "u2"}`, `10.5.0.1/32`, `10.5.0.2/32`,
	`"blue"`, `"green"`, `"maxMACs": 1000`, `"maxMACs": 2000`,
	`"prefix": "10.2.0.0/16"`, `"prefix": "10.4.0.0/16"`,
).Replace(stepsOld)

var refusals = []error{syscall.EMFILE, syscall.ENOMEM, syscall.EPERM, syscall.EADDRINUSE, syscall.ENODEV}

// Whichever step of Apply fails, and however: what runs afterwards is the old configuration,
// and the new one can still be had.
func TestApplyFailsAtEveryStep(t *testing.T) {
	old, next := parse(t, stepsOld), parse(t, stepsNew)
	fresh := func(c *Config) []string {
		b := newBench(t)
		must(t, b.Apply(c))
		return b.state()
	}
	for _, way := range []struct {
		name     string
		from, to *Config
	}{{"there", old, next}, {"back", next, old}, {"from nothing", new(Config), old}, {"to nothing", old, new(Config)}} {
		was, is := fresh(way.from), fresh(way.to)
		if slices.Equal(was, is) {
			t.Fatal("the configurations are the same")
		}
		for _, lasting := range []bool{false, true} {
			steps := 0
			for n := 1; ; n++ {
				b := newBench(t)
				must(t, b.Apply(way.from))
				want := refusals[n%len(refusals)]
				i, failed := 0, ""
				b.refuse = func(step string) error {
					if i++; i == n || lasting && i > n {
						if failed == "" {
							failed = step
						}
						return want
					}
					return nil
				}
				err := b.Apply(way.to)
				b.refuse = func(string) error { return nil }
				if failed == "" {
					must(t, err)
					b.want("without a failure", is)
					break
				}
				steps++
				about := fmt.Sprintf("%s, step %d (%s), lasting %v", way.name, n, failed, lasting)
				if err == nil && failed == "join" && !lasting { // the flood list was written in parts
					b.want(about, is)
					continue
				}
				if !errors.Is(err, want) {
					t.Fatalf("%s: %v", about, err)
				}
				if !reflect.DeepEqual(b.Config(), way.from) {
					t.Fatalf("%s: Config is another one", about)
				}
				if put := strings.Contains(err.Error(), "restoring"); !lasting && put {
					t.Errorf("%s: %v", about, err)
				} else if put || lasting { // now it can be
					if err := b.Apply(way.from); err != nil {
						t.Fatalf("%s: %v", about, err)
					}
				}
				b.want(about, was)
				if err := b.Apply(way.to); err != nil {
					t.Fatalf("%s: then: %v", about, err)
				}
				b.want(about+", and then", is)
				if b.Close(); len(b.underlays)+len(b.ports) > 0 {
					t.Fatalf("%s: %d tunnels and %d ports are open still", about, len(b.underlays), len(b.ports))
				}
				if t.Failed() {
					return
				}
			}
			if way.name == "there" && steps < 50 {
				t.Errorf("%s: %d steps", way.name, steps)
			}
			t.Logf("%s: %d steps", way.name, steps)
		}
	}
}

func (b *bench) want(about string, want []string) {
	b.t.Helper()
	got := b.state()
	for _, line := range got {
		if !slices.Contains(want, line) {
			b.t.Errorf("%s: is and should not be: %s", about, line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			b.t.Errorf("%s: should be and is not: %s", about, line)
		}
	}
	if len(got) != len(want) {
		b.t.Errorf("%s: %d lines, want %d", about, len(got), len(want))
	}
}
