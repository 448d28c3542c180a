package node

import (
	"fmt"
	"slices"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/vtep"
)

// setWire joins the port and the peer of a segment that has a wire, once both are there: the
// rows have given the peer its number.
func (n *Node) setWire(s *segment, c *Segment) error {
	if s == nil || !c.Wire.IsValid() || s.wire != nil || len(s.members) == 0 || len(s.far) == 0 {
		return nil
	}
	cfg := l3.WireConfig{Send: s.vsi.Send}
	for _, a := range s.members {
		cfg.Near = a.Dest(0)
	}
	for name, a := range s.far {
		v := n.tunnels[name].v
		peers := v.Stats().Peers
		i := slices.IndexFunc(peers, func(p vtep.PeerStats) bool {
			a := p.Addr.Addr()
			return a == c.Wire || a.WithZone("") == c.Wire // the zone is the tunnel's
		})
		if i < 0 {
			return nil // its row waits, which has been told
		}
		cfg.Far, cfg.Tunnel = a.Dest(peers[i].Peer), v
	}
	w, err := l3.NewWire(cfg)
	if err != nil {
		return err
	}
	s.wire = w
	return s.configure(c.vsi(n.slots(s, c)))
}

// wire checks a segment that is a wire.
func (k *checker) wire(key string, g *Segment) {
	in := g.in()
	switch {
	case len(in) != 1:
		k.Fail(key+".wire", nil, "requires one tunnel of type gpe or ipip")
	case len(in[0].Flood) > 0 || len(g.FDB) > 0 || g.Neighbours != nil || g.Gateway != nil:
		k.Fail(key+".wire", nil, "excludes flood, fdb, neighbours and gateway")
	default:
		t := k.tunnels[in[0].Tunnel]
		if t != nil && t.Type == encap.TypeVXLAN {
			k.Fail(key+".wire", nil, "tunnel %q carries Ethernet; use type gpe or ipip", t.Name)
		}
		k.remote(key+".wire", t, g.Wire)
	}
	for i, m := range g.Members {
		if p := k.ports[m.Port]; p != nil && !p.bare() {
			k.Fail(fmt.Sprintf("%s.members[%d].port", key, i), m.Port, "a wire requires an IP port")
		}
	}
}
