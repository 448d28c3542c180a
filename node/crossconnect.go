package node

import (
	"fmt"
	"slices"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/vtep"
)

// setCrossConnect connects the port and the peer of a segment with a cross-connect. The rows must be set, for the number of the peer.
func (n *Node) setCrossConnect(s *segment, c *Segment) error {
	if s == nil || !c.CrossConnect.IsValid() || s.crossConnect != nil || len(s.members) == 0 || len(s.tunnels) == 0 {
		return nil
	}
	cfg := l3.CrossConnectConfig{Send: s.vsi.Send}
	for _, a := range s.members {
		cfg.Near = a.Dest(0)
	}
	for name, a := range s.tunnels {
		v := n.tunnels[name].v
		peers := v.Stats().Peers
		i := slices.IndexFunc(peers, func(p vtep.PeerStats) bool {
			a := p.Addr.Addr()
			return a == c.CrossConnect || a.WithZone("") == c.CrossConnect // the zone is the tunnel's
		})
		if i < 0 {
			return nil // its row waits, as logged
		}
		cfg.Far, cfg.Tunnel = a.Dest(peers[i].Peer), v
	}
	w, err := l3.NewCrossConnect(&cfg)
	if err != nil {
		return err
	}
	s.crossConnect = w
	return s.configure(c.vsi(n.slots(s, c)))
}

// crossConnect checks a segment with a cross-connect.
func (k *checker) crossConnect(key string, g *Segment) {
	in := g.in()
	switch {
	case len(in) != 1:
		k.Fail(key+".crossConnect", nil, "requires one tunnel of type gpe, ipip or fou")
	case len(in[0].Flood) > 0 || len(g.FDB) > 0 || g.Neighbours != nil || g.Gateway != nil:
		k.Fail(key+".crossConnect", nil, "excludes flood, fdb, neighbours and gateway")
	default:
		t := k.tunnels[in[0].Tunnel]
		if t != nil && t.Type == encap.TypeVXLAN && t.Own == nil {
			k.Fail(key+".crossConnect", nil, "tunnel %q carries Ethernet; use type gpe, ipip or fou", t.Name)
		}
		k.remote(key+".crossConnect", t, g.CrossConnect)
	}
	for i, m := range g.Members {
		if p := k.ports[m.Port]; p != nil && !p.bare() {
			k.Fail(fmt.Sprintf("%s.members[%d].port", key, i), m.Port, "a cross-connect requires an IP port")
		}
	}
}
