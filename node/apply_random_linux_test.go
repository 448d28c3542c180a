package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// Whatever was applied before, a configuration leaves what it leaves on a new node.
func TestApplyAnyAfterAny(t *testing.T) {
	n := netns.New(t)
	hosts := [2]*netns.Host{n.Host("old"), n.Host("new")}
	for _, h := range hosts {
		h.Quiet()
		for _, a := range []string{"192.0.2.1/32", "192.0.2.2/32", "192.0.2.3/32"} {
			h.IP("addr", "add", a, "dev", "lo")
		}
		h.Sysctl("net.ipv6.conf.lo.disable_ipv6", "0")
		for _, a := range []string{"2001:db8::1/128", "2001:db8::2/128"} {
			h.IP("addr", "add", a, "dev", "lo", "nodad")
		}
	}
	const seed, steps = uint64(2), 110
	r := rand.New(rand.NewPCG(seed, 0))
	old := running(t)
	text := "{}"
	for i := range steps {
		cfg := anyConfig(r)
		before := text
		b, err := json.Marshal(cfg)
		must(t, err)
		text = string(b)
		failed := func(format string, args ...any) {
			t.Helper()
			t.Logf("seed %d, step %d\nfrom\n%s\nto\n%s", seed, i, before, text)
			t.Fatalf(format, args...)
		}
		hosts[0].Do(func() { err = old.Apply(cfg) })
		if err != nil {
			failed("%v", err)
		}
		fresh, err := New(nil)
		must(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		hosts[1].Do(func() { err = fresh.Apply(cfg) })
		if err != nil {
			fresh.Run(ctx)
			failed("on a new node: %v", err)
		}
		got, want := parts(old), parts(fresh)
		fresh.Run(ctx) // closes it
		if !slices.Equal(got, want) {
			failed("\n%s\non a new node\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// parts is a dump, and what the parts are made of.
func parts(n *Node) []string {
	list := dump(n)
	for _, name := range slices.Sorted(maps.Keys(n.tunnels)) {
		list = append(list, "tunnel "+name)
		for _, p := range n.tunnels[name].v.Stats().Peers {
			if !p.Listed { // deleted, and forgotten within a second
				continue
			}
			list = append(list, fmt.Sprintf("peer of %s: %v", name, p.Addr))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.ports)) {
		list = append(list, "port "+name)
	}
	for name := range n.Policies() {
		list = append(list, "policy "+name)
	}
	for _, i := range n.Interfaces() {
		list = append(list, fmt.Sprintf("interface %d of %s", i.VNI(), i.VRF().Name()))
	}
	for _, vni := range slices.Sorted(maps.Keys(n.segments)) {
		s := n.segments[vni]
		list = append(list, fmt.Sprintf("segment %d: table %v, responder %v, of one another %v, guards %v", vni,
			s.table != nil, s.responder != nil, s.responder == nil || s.responder.Table() == s.table, slices.Sorted(maps.Keys(s.guards))))
		for key, m := range s.members {
			list = append(list, fmt.Sprintf("member %q of %d takes %v", key, vni, m.Config().Match))
		}
		for e := range s.vsi.FDB().All() {
			list = append(list, fmt.Sprintf("fdb %d %v flags %v", vni, e.MAC, e.Flags))
		}
	}
	slices.Sort(list)
	return list
}

// anyConfig returns a configuration of few names and addresses, which is right.
func anyConfig(r *rand.Rand) *Config {
	for {
		if c := tryConfig(r); c.Check() == nil {
			return c
		}
	}
}

func tryConfig(r *rand.Rand) *Config {
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	some := func() bool { return r.IntN(3) == 0 }
	addr := netip.MustParseAddr
	c := &Config{Config: vswitch.Config{MaxMACs: r.IntN(2) * 1000, Events: r.IntN(2) * 100}, Gateway: l3.GatewayConfig{Waiting: r.IntN(2) * 10}}
	for _, name := range []string{"vx0", "vx1"} {
		if !some() {
			c.Tunnels = append(c.Tunnels, Tunnel{Local: addr(one("192.0.2.1", "192.0.2.2", "192.0.2.3")), Config: vtep.Config{Name: name, Header: vtep.Header{TTL: vtep.Value(7 * r.IntN(2))}, Port: uint16(4789 + r.IntN(2))}})
		}
	}
	for i := range c.Tunnels {
		t := &c.Tunnels[i]
		if some() {
			t.Local6 = addr(one("2001:db8::1", "2001:db8::2"))
		}
		t.PeerSettings = maker{r}.peerSettings(t)
	}
	if some() {
		c.Tunnels = append(c.Tunnels, Tunnel{Config: vtep.Config{Name: "ip0", Type: encap.TypeIPIP}, Local: addr(one("192.0.2.1", "192.0.2.2"))})
	}
	r.Shuffle(len(c.Tunnels), func(i, j int) { c.Tunnels[i], c.Tunnels[j] = c.Tunnels[j], c.Tunnels[i] })
	for _, name := range []string{"t1", "t2", "u1", "u2"} {
		p := Port{Name: name, DeviceConfig: port.DeviceConfig{MTU: 1400 + 50*r.IntN(2)}}
		if name[0] == 'u' {
			p.Type = PortTUN
		}
		if !some() {
			c.Ports = append(c.Ports, p)
		}
	}
	for _, name := range []string{"p1", "p2"} {
		if some() {
			c.Policies = append(c.Policies, Policy{Name: name, Config: policy.Config{Default: policy.Action(r.IntN(2))}})
		}
	}
	r.Shuffle(len(c.Ports), func(i, j int) { c.Ports[i], c.Ports[j] = c.Ports[j], c.Ports[i] })
	tunnels, taps, tuns := []string{""}, []string(nil), []string(nil)
	ipip := false
	for _, x := range c.Tunnels {
		if x.Type == 0 {
			tunnels = append(tunnels, x.Name)
		} else {
			ipip = true
		}
	}
	for _, p := range c.Ports {
		if p.Type == PortTAP {
			taps = append(taps, p.Name)
		} else {
			tuns = append(tuns, p.Name)
		}
	}
	for _, vni := range []frame.VNI{10, 20, 30, 50, 51} {
		if r.IntN(5) == 0 || vni >= 50 && !ipip && len(tuns) == 0 {
			continue
		}
		s := Segment{VNI: vni, VSIConfig: vswitch.VSIConfig{Refuse: some(), NoLearn: some()}}
		if len(c.Policies) > 0 && some() {
			s.Policy = c.Policies[r.IntN(len(c.Policies))].Name
		}
		if vni >= 50 {
			if ipip {
				s.Tunnel, ipip = "ip0", false
			} else {
				s.Members = []Member{{Port: tuns[0]}}
				tuns = tuns[1:]
			}
			s.Gateway = &SegmentGateway{VRF: one("red", "blue"), Gateway: Gateway{Addresses: []netip.Prefix{netip.MustParsePrefix(one("10.5.0.1/32", "10.5.0.2/32"))}}}
			c.Segments = append(c.Segments, s)
			continue
		}
		if s.Tunnel = one(tunnels...); s.Tunnel != "" && !some() {
			s.Flood = []netip.Addr{addr(one("192.0.2.7", "192.0.2.8")), addr("192.0.2.9")}
			if index(c).tunnels[s.Tunnel].Local6.IsValid() {
				s.Flood = append(s.Flood, addr(one("2001:db8::7", "2001:db8::8")))
			}
			s.FDB = append(s.FDB, FDB{MAC: frame.MAC{2, 0, 0, 0, 0, byte(r.IntN(3))}, Remote: addr(one("192.0.2.7", "192.0.2.9", "192.0.2.10"))})
		}
		for _, p := range taps {
			if some() {
				m := Member{Port: p, VLAN: r.IntN(4), Isolated: some()}
				if some() {
					m.Guard = &policy.GuardConfig{Tunnels: some()}
				}
				if some() {
					m.Match = &policy.Match{EtherTypes: []uint16{2048 + uint16(r.IntN(2))}}
				}
				s.Members = append(s.Members, m)
				if some() {
					s.FDB = append(s.FDB, FDB{MAC: frame.MAC{2, 0, 0, 0, 1, byte(r.IntN(3))}, Port: p, Sticky: some()})
				}
			}
		}
		if some() {
			s.Neighbours = &Neighbours{Config: arp.Config{Mode: arp.Mode(r.IntN(2)) * arp.Suppress}, TableConfig: arp.TableConfig{Limit: 100 * r.IntN(2)}}
			if some() {
				s.Neighbours.Static = []Neighbour{{addr(one("10.0.10.7", "10.0.10.8")), frame.MAC{2, 0, 0, 0, 0, byte(r.IntN(3))}}}
			}
		}
		if !some() {
			s.Gateway = &SegmentGateway{VRF: one("red", "blue"), Gateway: Gateway{MAC: frame.MAC{2, 0, 0, 0xff, 0, byte(r.IntN(2))}}}
			if !some() {
				s.Gateway.Addresses = []netip.Prefix{netip.MustParsePrefix(one("10.0.10.1/24", "10.0.20.1/24", "10.0.30.1/24", "10.0.30.2/24"))}
			}
			if some() {
				s.Gateway.VTEPMAC, s.Gateway.Anycast = frame.MAC{2, 0, 0, 0xee, 0, byte(r.IntN(2))}, some()
			}
		}
		c.Segments = append(c.Segments, s)
	}
	r.Shuffle(len(c.Segments), func(i, j int) { c.Segments[i], c.Segments[j] = c.Segments[j], c.Segments[i] })
	for _, name := range []string{"red", "blue"} {
		v := VRF{Name: name}
		for _, p := range []string{"172.16.0.0/16", "172.17.0.0/16", "10.0.10.0/24"} {
			if some() {
				continue
			}
			x := Route{Prefix: netip.MustParsePrefix(p)}
			for i := range c.Segments {
				s := &c.Segments[i]
				if s.Gateway == nil || s.Gateway.VRF != name || !some() {
					continue
				}
				h := Hop{Segment: s.VNI}
				switch {
				case s.Tunnel == "ip0":
					h.Remote = addr(one("192.0.2.7", "192.0.2.8"))
				case s.VNI >= 50:
				case s.Tunnel != "" && some():
					h.MAC, h.Remote = frame.MAC{2, 0, 0, 0xdd, 0, byte(r.IntN(2))}, addr(one("192.0.2.7", "192.0.2.8"))
				default:
					h.IP = addr(one("10.0.10.7", "10.0.20.7"))
				}
				x.Via = append(x.Via, h)
			}
			v.Routes = append(v.Routes, x)
		}
		c.VRFs = append(c.VRFs, v)
	}
	return c
}

// A route to what a gateway has for itself is a contradiction, as is a gateway in another's
// network.
func TestCheckOwnPrefixes(t *testing.T) {
	for prefix, wrong := range map[string]bool{
		"10.0.10.0/24": true, "10.0.10.1/32": true, "10.0.10.0/32": true, "10.0.10.255/32": true,
		"10.0.10.0/25": false, "10.0.10.2/32": false, "10.0.0.0/16": false,
	} {
		text := fmt.Sprintf(`{"segments": [{"vni": 1, "gateway": {"vrf": "red", "addresses": ["10.0.10.1/24"], "mac": "02:00:00:00:00:01"}}],
		  "vrfs": [{"name": "red", "routes": [{"prefix": %q}]}, {"name": "blue", "routes": [{"prefix": "10.0.10.0/24"}]}]}`, prefix)
		c, err := Parse([]byte(text))
		if wrong != (err != nil) || wrong && !strings.HasPrefix(err.Error(), "2:52: vrfs[0].routes[0].prefix: "+prefix+": is the gateway's network in VNI 1") {
			t.Errorf("%s: %v", prefix, err)
			continue
		}
		if !wrong {
			if err := running(t).Apply(c); err != nil {
				t.Errorf("%s: %v", prefix, err)
			}
		}
	}
	for second, wrong := range map[string]string{
		"10.0.10.0/32": "", "10.0.10.255/32": "", "10.0.10.7/32": "", "10.0.10.5/25": "",
		"10.0.10.1/32": "10.0.10.1/32: is already in VNI 1", "10.0.10.1/25": "10.0.10.1/32: is already in VNI 1",
		"10.0.10.9/24": "10.0.10.0/24: is already in VNI 1",
	} {
		c, err := Parse([]byte(fmt.Sprintf(`{"vrfs": [{"name": "red"}], "segments": [
		  {"vni": 1, "gateway": {"vrf": "red", "addresses": ["10.0.10.1/24"], "mac": "02:00:00:00:00:01"}},
		  {"vni": 2, "gateway": {"vrf": "red", "addresses": [%q], "mac": "02:00:00:00:00:01"}}]}`, second)))
		if wrong != "" && (err == nil || !strings.Contains(err.Error(), "segments[1].gateway.addresses[0]: "+wrong)) || wrong == "" && err != nil {
			t.Errorf("%s: %v", second, err)
		} else if wrong == "" {
			must(t, running(t).Apply(c))
		}
	}
}
