package calico

import (
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/frame"
)

// Status is what a Plane knows and does, in short.
type Status struct {
	// Stale is since when the datastore is away, or not read yet. Everything goes on as it was then. Zero while it is followed.
	Stale     time.Time
	LastError string // of the datastore, "" while it is followed

	Resources map[string]int // how many of each kind: ippools, nodes, bgpconfigurations, bgppeers, bgpfilters, blocks, affinities
	Problems  []Problem      // what the datastore asks for and is not done, sorted by kind
	More      int            // problems that are not in the list

	Addresses []netip.Prefix // of the Node resource, with its networks
	Tunnels   []netip.Addr   // of its devices for IP-in-IP and VXLAN, which hosts may send from
	MAC       frame.MAC      // that other nodes send VXLAN to: that of the gateway of Config.VXLAN; zero before the Node is read
	MACv6     frame.MAC      // likewise by IPv6

	AS       uint32     // of the node; 0 without sessions
	RouterID netip.Addr // likewise

	Rows   int         // routes to blocks and borrowed addresses that BGP has no part in
	RowErr error       // of the last rows that the node refused
	BGP    *bgp.Status // nil without sessions
	BGPErr error       // why it could not begin or change
}

// A Problem is what of the datastore the node does not do, and why.
type Problem struct {
	Resource string // such as ippools/default
	Why      string
}

// String returns it in one line.
func (p Problem) String() string { return model.Problem(p).String() }

// Status returns a snapshot.
func (p *Plane) Status() Status {
	p.mu.Lock()
	st := Status{Stale: p.stale, LastError: p.lastErr, Resources: map[string]int{}, RowErr: p.rowErr, BGPErr: p.bgpErr}
	if p.store != nil {
		for k := range resource.KindTier {
			st.Resources[k.String()] = p.store.Len(k)
		}
	}
	if p.plan != nil {
		st.own(p.cfg.Node, p.plan)
	}
	r := p.run
	p.mu.Unlock()
	if r != nil {
		b := r.Status()
		st.BGP = &b
	}
	return st
}

// Routes returns the best routes of peers, as [bgp.Speaker.Routes] does; none without sessions.
func (p *Plane) Routes() []bgp.Route {
	if r := p.current(); r != nil {
		return r.Routes()
	}
	return nil
}

func (st *Status) own(name string, plan *model.Plan) {
	for _, x := range plan.Problems {
		st.Problems = append(st.Problems, Problem(x))
	}
	st.More, st.Rows = plan.More, len(plan.Rows)
	if b := plan.BGP; b != nil {
		st.AS, st.RouterID = b.AS, b.RouterID
	}
	if plan.Own == nil {
		return
	}
	for _, is4 := range []bool{true, false} {
		e := plan.Own.Of(is4)
		if e.Network.IsValid() {
			st.Addresses = append(st.Addresses, e.Network)
		}
		for _, a := range []netip.Addr{e.IPIP, e.VXLAN} {
			if a.IsValid() {
				st.Tunnels = append(st.Tunnels, a)
			}
		}
	}
	st.MAC, st.MACv6 = plan.Own.MAC(name, true), plan.Own.MAC(name, false)
}
