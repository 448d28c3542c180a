package node

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

func (m maker) try() *Config {
	c := &Config{
		Config:  vswitch.Config{MaxMACs: m.IntN(2) * 1000, Injected: m.IntN(2) * 100, TooBig: vswitch.TooBigConfig{Total: m.IntN(2) * 10}},
		Gateway: l3.GatewayConfig{Total: m.IntN(2) * 10, Queued: m.IntN(2) * 1000}, Capture: capture.Config{SnapLen: m.IntN(2) * 100},
	}
	for _, name := range []string{"vx0", "vx1", "vx2"} {
		if m.some(4) {
			continue
		}
		t := Tunnel{
			Local: m.addr("192.0.2.1", "192.0.2.2", "192.0.2.3"),
			Config: vtep.Config{
				Name: name, Port: uint16(4789 + m.IntN(2)), Header: vtep.Header{TTL: vtep.Value(7 * m.IntN(2))},
				Peers: pick[vtep.PeerPolicy](m, 0, 0, 1, 2), GBP: m.some(4),
			},
		}
		if m.some(5) {
			t.Type, t.GBP = encap.TypeGPE, false
		}
		if m.some(3) {
			t.Local6 = m.addr("2001:db8::1", "2001:db8::2", "2001:db8::3")
		}
		t.PeerSettings = m.peerSettings(&t)
		c.Tunnels = append(c.Tunnels, t)
	}
	if m.some(2) {
		t := Tunnel{Config: vtep.Config{Name: "ip0", Type: encap.TypeIPIP}, Local: m.addr("192.0.2.1", "192.0.2.2")}
		if m.some(3) {
			t.Local6 = m.addr("2001:db8::1", "2001:db8::2")
		}
		t.PeerSettings = m.peerSettings(&t)
		c.Tunnels = append(c.Tunnels, t)
	}
	for _, name := range []string{"t1", "t2", "t3", "u1", "u2"} {
		p := Port{Name: name, DeviceConfig: port.DeviceConfig{MTU: 1400 + 50*m.IntN(2)}}
		if name[0] == 'u' {
			p.Type = PortTUN
		}
		if !m.some(4) {
			c.Ports = append(c.Ports, p)
		}
	}
	for _, name := range []string{"p1", "p2", "p3"} {
		if m.some(2) {
			c.Policies = append(c.Policies, m.policy(name))
		}
	}
	for _, name := range []string{"red", "blue"} {
		if !m.some(4) {
			c.VRFs = append(c.VRFs, VRF{Name: name})
		}
	}
	var bare []Segment // that are in a tunnel for IP, or on a port for IP
	var tunnels, taps []string
	for _, t := range c.Tunnels {
		if t.Type == encap.TypeIPIP {
			bare = append(bare, Segment{Tunnel: t.Name})
		} else {
			tunnels = append(tunnels, t.Name)
		}
	}
	for _, p := range c.Ports {
		if i := len(bare) - 1; p.Type == PortTUN && i >= 0 && bare[i].Tunnel != "" && len(bare[i].Members) == 0 && m.some(2) {
			bare[i].Members, bare[i].CrossConnect = []Member{{Port: p.Name}}, m.addr("192.0.2.7", "192.0.2.8")
		} else if p.Type == PortTUN {
			bare = append(bare, Segment{Members: []Member{{Port: p.Name}}})
		} else {
			taps = append(taps, p.Name)
		}
	}
	for _, vni := range []frame.VNI{10, 20, 30, 40} {
		if !m.some(4) {
			c.Segments = append(c.Segments, m.segment(c, vni, tunnels, taps))
		}
	}
	for i, s := range bare {
		if s.CrossConnect.IsValid() {
			s.VNI = frame.VNI(50 + i)
			c.Segments = append(c.Segments, s)
		} else if len(c.VRFs) > 0 && m.some(2) {
			s.VNI = frame.VNI(50 + i)
			s.Gateway = &SegmentGateway{VRF: pick(m, c.VRFs...).Name, Gateway: Gateway{Addresses: []netip.Prefix{netip.MustParsePrefix(pick(m, "10.5.0.1/32", "10.5.0.2/32"))}}}
			c.Segments = append(c.Segments, s)
		}
	}
	for i := range c.VRFs {
		m.routes(c, &c.VRFs[i])
	}
	return c
}

func (m maker) policy(name string) Policy {
	p := Policy{Name: name, Config: policy.Config{Default: policy.Action(m.IntN(2)), Stateless: true, MaxFlows: 10 * m.IntN(3)}}
	for i := range m.IntN(3) {
		p.Rules = append(p.Rules, policy.Rule{
			Name: fmt.Sprint("rule", i), Action: policy.Action(m.IntN(2)), Protocol: pick[uint8](m, 6, 17), Direction: policy.Direction(m.IntN(2)),
			Dst: []netip.Prefix{netip.MustParsePrefix(pick(m, "10.0.10.0/24", "10.0.20.0/24"))},
		})
	}
	return p
}

func (m maker) segment(c *Config, vni frame.VNI, tunnels, taps []string) Segment {
	s := Segment{
		VNI: vni,
		VSIConfig: vswitch.VSIConfig{
			Refuse: m.some(4), NoLearn: m.some(4), Ageing: time.Duration(m.IntN(2)) * 60e9, MaxMACs: m.IntN(2) * 100,
			Freeze: uint8(m.IntN(2) * 5), InnerVLAN: vswitch.VLANMode(m.IntN(3)),
		},
	}
	if m.some(3) {
		s.NoFlood, s.Storm.Broadcast.Packets = vswitch.Class(1<<m.IntN(3)), uint64(m.IntN(2)*1000)
	}
	if len(c.Policies) > 0 && m.some(2) {
		s.Policy = pick(m, c.Policies...).Name
	}
	var in []SegmentTunnel
	for _, name := range tunnels {
		if !m.some(3) {
			continue
		}
		x := SegmentTunnel{Tunnel: name, VNI: pick[frame.VNI](m, 0, 0, 10, 20, 30, 40), AttachConfig: vswitch.AttachConfig{Hub: m.some(4)}}
		if !x.Hub {
			x.Group = uint8(m.IntN(4))
		}
		for range m.IntN(3) {
			x.Flood = append(x.Flood, m.peerOf(index(c).tunnels[name]))
		}
		in = append(in, x)
	}
	if len(in) == 1 && m.some(2) {
		s.Tunnel, s.Flood, s.Hub = in[0].Tunnel, in[0].Flood, in[0].Hub
	} else {
		s.Tunnels = in
	}
	for range m.IntN(3) * len(in) {
		name := pick(m, in...).Tunnel
		peer := func() netip.Addr { return m.peerOf(index(c).tunnels[name]) }
		f := FDB{MAC: m.mac(), Remote: peer(), VNI: pick[frame.VNI](m, 0, 0, 10, 7001)}
		switch m.IntN(6) {
		case 0, 1:
			if f.Remote, f.Remotes = (netip.Addr{}), []netip.Addr{peer(), peer()}; m.some(2) {
				f.Remotes = append(f.Remotes, peer())
			}
		case 2:
			f.MAC = frame.MAC{1, 0, 0x5e, 0, 0, byte(m.IntN(2))}
		}
		if len(in) > 1 {
			f.Tunnel = name
		}
		s.FDB = append(s.FDB, f)
	}
	for _, p := range taps {
		if !m.some(2) {
			continue
		}
		x := Member{
			Port: p, VLAN: m.IntN(3), Isolated: m.some(3),
			AttachConfig: vswitch.AttachConfig{NoLearn: m.some(4), MaxMACs: m.IntN(2) * 10, Locked: m.some(4), GBP: uint16(m.IntN(2))},
		}
		if m.some(3) {
			x.Guard = &policy.GuardConfig{Tunnels: m.some(2), MACs: []frame.MAC{m.mac()}}
		}
		if m.some(4) {
			x.NoFlood = vswitch.Class(1 << m.IntN(3))
		}
		s.Members = append(s.Members, x)
		if m.some(3) {
			s.FDB = append(s.FDB, FDB{MAC: m.mac(), Port: p, Sticky: m.some(2)})
		}
	}
	if m.some(3) {
		s.FDB = append(s.FDB, FDB{MAC: m.mac(), Filter: true})
	}
	if m.some(2) {
		s.Neighbours = &Neighbours{Config: arp.Config{Mode: arp.Mode(m.IntN(3))}, TableConfig: arp.TableConfig{Limit: 100 * m.IntN(2)}}
		for range m.IntN(3) {
			s.Neighbours.Static = append(s.Neighbours.Static, Neighbour{m.addr("10.0.10.7", "10.0.10.8"), m.mac()})
		}
	}
	if len(c.VRFs) > 0 && !m.some(3) {
		g := &SegmentGateway{VRF: pick(m, c.VRFs...).Name, Gateway: Gateway{MAC: frame.MAC{2, 0, 0, 0xff, 0, byte(m.IntN(2))}}}
		if !m.some(3) {
			g.Addresses = []netip.Prefix{netip.MustParsePrefix(pick(m, "10.0.10.1/24", "10.0.20.1/24", "10.0.30.1/24", "10.0.30.2/24"))}
		}
		if m.some(3) {
			g.VTEPMAC, g.Anycast = frame.MAC{2, 0, 0, 0xee, 0, byte(m.IntN(2))}, m.some(2)
		}
		if s.Gateway = g; s.Neighbours != nil && m.some(3) {
			s.Neighbours.Mode = arp.Access
		}
	}
	for i := range s.Members {
		if (s.Neighbours != nil || s.Gateway != nil) && m.some(3) {
			s.Members[i].NeighbourMode = pointer(arp.Mode(m.IntN(4)))
		}
	}
	return s
}

func pointer[T any](x T) *T { return &x }

func (m maker) routes(c *Config, v *VRF) {
	for _, p := range []string{"0.0.0.0/0", "172.16.0.0/16", "172.17.0.0/16", "10.0.10.0/24"} {
		if m.some(3) {
			continue
		}
		x := Route{Prefix: netip.MustParsePrefix(p)}
		for i := range c.Segments {
			if s := &c.Segments[i]; s.Gateway != nil && s.Gateway.VRF == v.Name && m.some(2) {
				x.Via = append(x.Via, m.hop(s))
			}
		}
		v.Routes = append(v.Routes, x)
	}
}

func (m maker) hop(s *Segment) Hop {
	h := Hop{Segment: s.VNI}
	switch in := s.in(); {
	case s.Gateway.MAC.IsZero() && len(in) > 0:
		h.Remote = m.peer()
	case s.Gateway.MAC.IsZero():
	case len(in) > 0 && m.some(2):
		h.MAC, h.Remote = frame.MAC{2, 0, 0, 0xdd, 0, byte(m.IntN(2))}, m.peer()
		h.VNI = pick[frame.VNI](m, 0, 0, 7001)
		if len(in) > 1 {
			h.Tunnel = pick(m, in...).Tunnel
		}
	default:
		h.IP = m.addr("10.0.10.7", "10.0.20.7")
	}
	return h
}

// row returns what another owner may have, be it possible with c or not.
func (m maker) row(c *Config) control.Row {
	vni, vtep := pick[frame.VNI](m, 10, 20, 30, 40, 50, 51), netip.AddrPortFrom(m.peer(), 0)
	tunnel := pick(m, "", "", "vx0", "vx1", "vx2")
	switch m.IntN(5) {
	case 4:
		if m.some(3) {
			return control.Group{VNI: vni, Name: pick(m, "a", "b"), VTEP: vtep, FarVNI: pick[frame.VNI](m, 0, 0, 7001), Tunnel: tunnel}
		}
		return control.MAC{VNI: vni, MAC: m.mac(), Group: pick(m, "a", "b"), Tunnel: tunnel, IP: m.addr("10.0.10.7", "10.0.10.8")}
	case 0:
		return control.Flood{VNI: vni, VTEP: vtep, Tunnel: tunnel}
	case 1:
		if m.some(3) {
			return control.MAC{VNI: vni, MAC: m.mac(), Port: pick(m, "t1", "t2"), IP: m.addr("10.0.10.7", "10.0.10.8")}
		}
		if m.some(3) {
			return control.MAC{VNI: vni, MAC: m.mac(), Filter: true}
		}
		return control.MAC{VNI: vni, MAC: m.mac(), VTEP: vtep, Tunnel: tunnel, Sticky: m.some(2), FarVNI: pick[frame.VNI](m, 0, 0, 7001)}
	case 2:
		return control.MAC{VNI: vni, MAC: m.mac(), VTEP: vtep, Tunnel: tunnel, IP: m.addr("10.0.10.7", "10.0.10.8"), Router: m.some(2)}
	}
	p := control.Prefix{VRF: pick(m, "red", "blue"), Prefix: netip.MustParsePrefix(pick(m, "172.16.0.0/16", "172.18.0.0/16"))}
	switch m.IntN(4) {
	case 0:
	case 1:
		p.Via = control.Via{VNI: vni, IP: m.addr("10.0.10.7", "10.0.20.7")}
	case 2:
		p.Via = control.Via{VNI: vni, MAC: frame.MAC{2, 0, 0, 0xdd, 0, byte(m.IntN(2))}, VTEP: vtep, Tunnel: tunnel}
	case 3:
		p.Via = control.Via{VNI: pick[frame.VNI](m, 50, 51), VTEP: vtep}
	}
	return p
}
