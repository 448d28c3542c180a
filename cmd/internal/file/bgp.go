package file

import (
	"fmt"
	"slices"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/setting/conf"
)

// routed adds errors for settings of the VRF and of segments that are not there, or that rows of the section cannot use.
func (c *Config) routed(r *conf.Report, b *bgp.Config) {
	if !r.Failed("bgp.vrf") && !slices.ContainsFunc(c.VRFs, func(v node.VRF) bool { return v.Name == b.VRF }) {
		r.Fail("bgp.vrf", b.VRF, "no such VRF")
	}
	if b.Segment != 0 {
		c.gatewayIn(r, "bgp.segment", b.Segment, b.VRF)
	}
	for i, p := range b.Pools {
		at := fmt.Sprintf("bgp.pools[%d].", i)
		if p.Encapsulation == bgp.Never || r.Failed(at+"segment") || r.Failed(at+"encapsulation") {
			continue
		}
		if s := c.gatewayIn(r, at+"segment", p.Segment, b.VRF); s != nil {
			c.carries(r, at, s, &p)
		}
	}
}

// gatewayIn returns the segment with a VNI, and adds an error if there is none, or it has no gateway in a VRF.
func (c *Config) gatewayIn(r *conf.Report, key string, vni frame.VNI, vrf string) *node.Segment {
	i := slices.IndexFunc(c.Segments, func(s node.Segment) bool { return s.VNI == vni })
	switch {
	case r.Failed(key):
	case i < 0:
		r.Fail(key, vni, "no such segment")
	case c.Segments[i].Gateway == nil || c.Segments[i].Gateway.VRF != vrf:
		r.Fail(key, vni, "segments[%d] has no gateway in the VRF %q", i, vrf)
	default:
		return &c.Segments[i]
	}
	return nil
}

// carries adds an error unless the segment of a pool has a tunnel for its encapsulation, and that with the pool's name.
func (c *Config) carries(r *conf.Report, at string, s *node.Segment, p *bgp.Pool) {
	names := []string{s.Tunnel}
	for _, t := range s.Tunnels {
		names = append(names, t.Tunnel)
	}
	if p.Tunnel != "" {
		if !slices.Contains(names, p.Tunnel) {
			r.Want(at+"tunnel", p.Tunnel, "a tunnel of the segment")
			return
		}
		names = []string{p.Tunnel}
	}
	fits := func(t node.Tunnel) bool {
		return slices.Contains(names, t.Name) && t.Type.Bare() == (p.Encapsulation == bgp.IPIP)
	}
	switch {
	case r.Failed("tunnels") || r.Failed("segments") || slices.ContainsFunc(c.Tunnels, fits):
	case p.Encapsulation == bgp.IPIP:
		r.Fail(at+"segment", p.Segment, `the encapsulation is ipip: a tunnel of type "ipip" or "fou" is required there`)
	default:
		r.Fail(at+"segment", p.Segment, `the encapsulation is vxlan: a tunnel of type "vxlan" or "gpe" is required there`)
	}
}
