package bgp

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/frame"
)

func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func prefixes(list ...string) (ps []netip.Prefix) {
	for _, s := range list {
		ps = append(ps, prefix(s))
	}
	return ps
}

func pathTo(p, peer string, id uint32, nextHop string) engine.Path {
	return engine.Path{Source: engine.Source{Peer: addr(peer), ID: id}, Prefix: prefix(p), NextHop: addr(nextHop)}
}

var nodeMAC = frame.MAC{2, 0, 0, 0, 0, 9}

// settings are those of a node 10.0.0.1, fd00::1 with pools of all kinds.
func settings() *Config {
	return &Config{
		AS: 64512, RouterID: addr("10.0.0.1"), VRF: "v", Segment: 200, Addresses: []netip.Addr{addr("10.0.0.1"), addr("fd00::1")},
		Routers:  []netip.Addr{addr("10.0.0.254")},
		Announce: prefixes("10.65.1.0/26", "10.65.9.9/32", "fd65:1::/122"),
		Pools: []Pool{
			{Prefix: prefix("10.65.0.0/16")},
			{Prefix: prefix("10.66.0.0/16"), Encapsulation: IPIP, Segment: 100},
			{Prefix: prefix("10.67.0.0/16"), Encapsulation: IPIP, Mode: CrossSubnet, Segment: 100},
			{Prefix: prefix("10.68.0.0/16"), Encapsulation: VXLAN, Segment: 300, Tunnel: "vx"},
			{Prefix: prefix("10.66.128.0/17"), Encapsulation: VXLAN, Mode: CrossSubnet, Segment: 300},
			{Prefix: prefix("fd65::/16")},
		},
		Nodes: []Remote{{addr("10.0.0.2"), nodeMAC}},
		Import: []Rule{
			{Prefix: prefix("10.65.200.0/24"), Min: 28, Action: Reject},
			{Prefix: prefix("192.0.2.0/24"), Max: 26},
		},
		Underlay: prefixes("10.99.0.0/24"),
	}
}

// gateway is the interface of segment 200.
var gateway = prefixes("10.0.0.1/24", "fd00::1/64")
