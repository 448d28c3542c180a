package calico

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/setting"
)

// Status is what a Plane knows and does, in short.
type Status struct {
	// Stale is since when the datastore is away, or not read yet. Everything goes on as it was then. Zero while it is followed.
	Stale     time.Time
	LastError string // of the datastore, "" while it is followed

	Resources map[string]int // how many of each kind: ippools, nodes, bgpconfigurations, bgppeers, bgpfilters, blocks, affinities, felixconfigurations, and those of policy, if there are workloads
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

	Workloads []Workload // by port
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
		for k := range resource.Kinds {
			if p.filter != nil || !k.OfPolicy() {
				st.Resources[k.String()] = p.store.Len(k)
			}
		}
	}
	if p.plan != nil {
		st.own(p.cfg.Node, p.plan)
		st.notDone(&model.NotDone{Problems: p.otherwise(p.cfg.VXLAN.Segment, p.plan)}) // as tunnels are now
	}
	st.notDone(&p.ruled)
	r := p.run
	p.mu.Unlock()
	if p.filter != nil {
		st.Workloads = p.filter.status()
	}
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

// BFD returns the sessions that probe the paths to peers, as [bgp.Speaker.BFD] does; none without sessions.
func (p *Plane) BFD() []bfd.Session {
	if r := p.current(); r != nil {
		return r.BFD()
	}
	return nil
}

// A Workload is a port that is one of the cluster, or an endpoint of the node whose port is not there.
type Workload struct {
	Port     string
	There    bool   // the node has the port
	Endpoint string // NAMESPACE/NAME of its WorkloadEndpoint, "" while none is known

	Addrs    []netip.Addr // of the endpoint
	Policies []string     // that decide, and profiles behind them, in order, such as globalnetworkpolicies/deny-telnet
	NotDone  []string     // what of these is not done, the first 100 of each
	Closed   string       // why nothing passes; "" if they decide, or what a Plane before this one has left
	Err      error        // why they could not be put into force: nothing passes

	Guard   policy.GuardConfig // what it may send from and as; zero while that is not known, or Workloads.Unguarded
	Dropped policy.GuardStats  // of what it has sent as another, or in tunnels, since the port is there
}

// status lists workloads.
func (f *filter) status() (list []Workload) {
	there := f.node.PortFilters()
	f.mu.Lock()
	defer f.mu.Unlock()
	ports := map[string]bool{}
	for port := range f.by {
		ports[port] = true
	}
	for port := range f.ports {
		ports[port] = ports[port] || there[port].Policy != nil
	}
	for _, port := range slices.Sorted(maps.Keys(ports)) {
		if ports[port] {
			list = append(list, f.workload(port, there[port]))
		}
	}
	return list
}

// workload returns what is known of a port. f.mu is held.
func (f *filter) workload(port string, there policy.Filter) Workload {
	w := Workload{Port: port, There: there.Policy != nil}
	g := f.ports[port]
	if g != nil && w.There {
		w.Err = g.err
	}
	if there.Guard != nil {
		w.Dropped = there.Guard.Stats()
	}
	switch t := f.by[port]; {
	case f.by == nil && g != nil && g.cfg == closed:
		w.Closed = "the datastore has not been read"
	case f.by == nil:
	case t == nil:
		w.Closed = "no WorkloadEndpoint of the node is known"
	case t.why != "":
		w.Closed = t.why
	default:
		w.Endpoint, w.Addrs, w.Policies, w.NotDone, w.Closed = t.Name, slices.Clone(t.Addrs), slices.Clone(t.Policies), slices.Clone(t.NotDone), t.Closed
		if !f.cfg.Unguarded {
			w.Guard = setting.Clone(*t.Guard)
		}
	}
	return w
}

func (st *Status) notDone(n *model.NotDone) {
	for _, x := range n.Problems {
		st.Problems = append(st.Problems, Problem(x))
	}
	st.More += n.More
}

func (st *Status) own(name string, plan *model.Plan) {
	st.notDone(&plan.NotDone)
	st.Rows = len(plan.Rows)
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
