package node

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// told is an underlay that is told of ICMP errors by the test.
type told struct {
	*memory.Underlay
	unreachable func(to frame.Endpoint, quoted []byte)
}

func (u *told) Unreachable(f func(to frame.Endpoint, quoted []byte)) { u.unreachable = f }

// downs returns the next hops of a VRF that are down.
func downs(v *l3.VRF) (list []string) {
	for h, down := range v.NextHops() {
		if down {
			list = append(list, h.String())
		}
	}
	return list
}

// sets reports what a session with a peer of a tunnel has found.
func (n *Node) sets(t *tunnel, peer string, down bool) {
	n.prober.mu.Lock()
	defer n.prober.mu.Unlock()
	n.prober.set(bfd.Peer{Remote: netip.MustParseAddr(peer)}, effect{tunnel: t}, down)
}

// A dead peer stays dead when the ICMP error about it is forgotten.
func TestBFDAfterUnreachable(t *testing.T) {
	wire := memory.NewNetwork(nil)
	defer wire.Close()
	var u *told
	n := check.Must(New(&Options{Listen: func(c *Tunnel) (vtep.Underlay, error) {
		m, err := wire.ListenIP(c.Local, nil)
		u = &told{Underlay: m}
		return u, err
	}}))(t)
	defer n.Close()
	check.OK(t, n.Apply(parse(t, `{
	  "tunnels": [{"name": "ip0", "type": "ipip", "local": "192.0.2.1"}],
	  "segments": [{"vni": 50, "tunnel": "ip0", "gateway": {"vrf": "red", "addresses": ["10.0.50.1/32"]}}],
	  "vrfs": [{"name": "red", "routes": [{"prefix": "172.16.0.0/12", "via": [{"segment": 50, "remote": "192.0.2.2"}, {"segment": 50, "remote": "192.0.2.3"}]}]}]}`)))
	tun, i, red := n.tunnels["ip0"], n.segments[50].iface, n.gateway.VRF("red")
	n.prober.probed[tun] = &probedTunnel{t: tun}

	packet := append([]byte{0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0xc4, 0xc7}, 10, 0, 0, 1, 172, 16, 0, 1)
	send := func(tick frame.Tick) {
		f := frame.Make(append([]byte{}, packet...))
		f.Kind = frame.IPv4
		if v := i.Process(&f, frame.At{Tick: tick}); v.Action() != frame.ActForward {
			t.Fatalf("%v", v)
		}
	}
	for _, peer := range []string{"192.0.2.2:0", "192.0.2.3:0"} {
		u.unreachable(check.Must(frame.EndpointFrom(netip.MustParseAddrPort(peer)))(t), nil)
	}
	send(1)
	hit := downs(red)
	check.Equal(t, "next hops after an ICMP error", len(hit), 1)
	for h, down := range red.NextHops() {
		if down {
			n.sets(tun, tun.v.PeerName(h.Peer), true)
		}
	}
	i.Housekeep(100)
	check.Equal(t, "next hops when the error is forgotten", len(downs(red)), 1)
}

// What a dead peer had down is up once it is not behind the peer any more: its MAC is elsewhere, its route is gone, or the
// tunnel is not probed.
func TestBFDNoLongerBehind(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"the MAC is elsewhere":  func(c *Config) {},
		"the route is gone":     func(c *Config) { c.VRFs[0].Routes = nil },
		"the tunnel has no BFD": func(c *Config) { c.Tunnels[0].BFD = nil },
		"neither is there":      func(c *Config) { c.Tunnels[0].BFD, c.VRFs[0].Routes = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			n, _, _ := inMemory(t)
			cfg := parse(t, `{
			  "tunnels": [{"name": "vx0", "local": "192.0.2.1", "bfd": {}}],
			  "segments": [{"vni": 50, "tunnel": "vx0", "gateway": {"vrf": "red", "mac": "02:00:00:00:00:01"}}],
			  "vrfs": [{"name": "red", "routes": [{"prefix": "172.16.0.0/12", "via": [
			    {"segment": 50, "mac": "02:00:00:00:00:02", "remote": "192.0.2.2"}, {"segment": 50, "mac": "02:00:00:00:00:03", "remote": "192.0.2.3"}]}]}]}`)
			check.OK(t, n.Apply(cfg))
			n.prober.update()
			red := n.gateway.VRF("red")
			var late func() // what a session has found is told again
			dead := func() {
				n.prober.mu.Lock()
				all := maps.Clone(n.prober.sessions)
				n.prober.mu.Unlock()
				check.Equal(t, "sessions", len(all), 2)
				for p, x := range all {
					if p.Remote.String() == "192.0.2.2" {
						late = func() { n.prober.changed(x, bfd.Change{Peer: p, Status: bfd.Dead}) }
						late()
					}
				}
				check.Equal(t, "dead next hops", len(downs(red)), 1)
			}
			dead()
			hop := l3.NextHop{Interface: n.segments[50].iface, MAC: frame.MAC{2, 0, 0, 0, 0, 2}}
			routes := cfg.VRFs[0].Routes
			check.OK(t, n.Apply(changed(t, cfg, func(c *Config) { change(c) })))
			if name == "the MAC is elsewhere" {
				n.segments[50].vsi.FDB().Delete(hop.MAC)
			}
			n.prober.update()
			check.OK(t, red.Add(l3.Route{Prefix: routes[0].Prefix, Via: []l3.NextHop{hop}})) // as it was
			check.Equal(t, "next hops left down", len(downs(red)), 0)
			if name == "the tunnel has no BFD" {
				check.OK(t, n.Apply(cfg))
				n.prober.update()
				late()
				check.Equal(t, "next hops down by a session that is over", len(downs(red)), 0)
			}
		})
	}
}

// A VNI that BFD leaves is free for a segment of the same configuration.
func TestBFDLeavesVNI(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"without BFD": func(c *Config) { c.Tunnels[0].BFD = nil },
		"another VNI": func(c *Config) { c.Tunnels[0].BFD.VNI = 2 },
		"another tunnel": func(c *Config) {
			c.Tunnels[0].Name, c.Tunnels[0].Local, c.Tunnels[0].BFD = "vx9", netip.MustParseAddr("192.0.2.9"), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, _, _ := inMemory(t)
			cfg := parse(t, `{"tunnels": [{"name": "vx0", "local": "192.0.2.1", "bfd": {}}]}`)
			check.OK(t, n.Apply(cfg))
			n.prober.update()
			check.OK(t, n.Apply(changed(t, cfg, func(c *Config) {
				change(c)
				c.Segments = []Segment{{VNI: 1, Tunnel: c.Tunnels[0].Name, Flood: []netip.Addr{netip.MustParseAddr("192.0.2.2")}}, {VNI: 3}}
			})))
			n.prober.update()
			v := n.sw.VSIs()
			check.True(t, slices.ContainsFunc(v, func(v *vswitch.VSI) bool { return v.VNI() == 1 && len(v.Attachments()) == 1 }), "segment 1 is not there")
			check.True(t, n.segments[1].vsi.Config().NoFlood == 0, "segment 1 has the settings for BFD")
		})
	}
}

// When BFD's sockets cannot be had on another address, they are where they were.
func TestBFDMovesBack(t *testing.T) {
	l := newLab(t)
	s := l.start("one", "192.0.2.1", parse(t, `{
	  "tunnels": [{"name": "ip0", "type": "ipip", "local": "192.0.2.1", "bfd": {}}],
	  "segments": [{"vni": 50, "tunnel": "ip0", "gateway": {"vrf": "red"}}], "vrfs": [{"name": "red"}]}`))
	s.h.Addr("eth0", "192.0.2.11/24")
	bound := func() string { return s.h.Run("ss", "-Hanu", "sport", "=", "3784") }
	at := func(what string) {
		t.Helper()
		if out := bound(); strings.Count(out, "192.0.2.1:3784") != 1 {
			t.Errorf("%s: not bound to 192.0.2.1:\n%s", what, out)
		}
	}
	at("at first")
	other := func(more func(c *Config)) error {
		return s.apply(changed(t, s.Config(), func(c *Config) { c.Tunnels[0].Local = netip.MustParseAddr("192.0.2.11"); more(c) }))
	}
	taken := netns.Open(t, s.h, func() (net.PacketConn, error) { return net.ListenPacket("udp4", "192.0.2.11:3784") })
	check.ErrorHas(t, other(func(*Config) {}), "tunnel", "3784")
	at("the port is taken")
	check.OK(t, taken.Close())
	s.fault = func(step string) error {
		if step == "address of a tunnel" {
			s.fault = nil
			return errors.New("no")
		}
		return nil
	}
	check.ErrorHas(t, other(func(*Config) {}), "tunnel", "no")
	at("the tunnel stays")
	check.OK(t, other(func(*Config) {}))
	if out := bound(); strings.Count(out, "192.0.2.11:3784") != 1 || strings.Count(out, ":3784") != 1 {
		t.Errorf("not bound to 192.0.2.11:\n%s", out)
	}
}
