package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/snoop"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// listOf sends what is shown of each element of a list.
func listOf[S, T any](w http.ResponseWriter, all []S, shown func(S) T) error {
	return list(w, func(yield func(T) bool) {
		for _, x := range all {
			if !yield(shown(x)) {
				return
			}
		}
	})
}

// list sends a list without keeping it in memory.
func list[T any](w http.ResponseWriter, all iter.Seq[T]) error {
	w.Header().Set("Content-Type", "application/json")
	buf := bufio.NewWriterSize(w, 32<<10)
	sep := "["
	for x := range all {
		text, _ := json.Marshal(x) // of plain numbers and strings: cannot fail
		buf.WriteString(sep)
		if _, err := buf.Write(text); err != nil {
			return nil // the client has disconnected
		}
		sep = ",\n"
	}
	if sep == "[" {
		buf.WriteString(sep)
	}
	buf.WriteString("]\n")
	buf.Flush()
	return nil
}

func (s *server) getFDB(w http.ResponseWriter, r *http.Request) error {
	q := query(r)
	vsis, err := s.only(q, s.n.Switch().VSIs())
	if err != nil {
		return err
	}
	if dev, ok := q["dev"]; ok && !s.hasDev(dev) {
		return wrong(http.StatusNotFound, "dev %q: no such port or tunnel", dev)
	}
	return list(w, entries(s.n, vsis, q["dev"]))
}

// only returns the VSIs of a list that a query is about: one, or without a VNI all.
func (s *server) only(q api.Query, list []*vswitch.VSI) ([]*vswitch.VSI, error) {
	text, ok := q["vni"]
	if !ok {
		return list, nil
	}
	vni, err := s.vni(text)
	return slices.DeleteFunc(list, func(v *vswitch.VSI) bool { return v.VNI() != vni }), err
}

// hasDev reports whether there is a port or a tunnel with a name, or one of several members of a port, such as eth0.20.
func (s *server) hasDev(dev string) bool {
	sw := s.n.Switch()
	if slices.ContainsFunc(sw.Stats().Ports, func(p vswitch.PortStats) bool { return p.Name == dev }) {
		return true
	}
	return slices.ContainsFunc(sw.VSIs(), func(v *vswitch.VSI) bool { return len(v.Named(dev)) > 0 })
}

// placesOf returns the function that names the Dests of a segment in the words that changes take: one of several members of a port by
// its tag.
func placesOf(sw *vswitch.Switch, v *vswitch.VSI) func(frame.Dest) string {
	members := map[string][]*vswitch.Attachment{}
	for _, a := range v.Attachments() {
		members[a.PortName()] = append(members[a.PortName()], a)
	}
	names := map[uint16]string{}
	for port, list := range members {
		for _, a := range list {
			if len(list) > 1 {
				names[a.Dest(0).Port()] = vswitch.AttachmentName(port, a.Tag())
			}
		}
	}
	return func(d frame.Dest) string {
		if name, ok := names[d.Port()]; ok && d != frame.Filter {
			return name
		}
		return sw.Name(d)
	}
}

// entries returns the FDB entries in the order of VNI and MAC, for dev only the entries of a port, of one of its members or of a tunnel.
func entries(n *node.Node, vsis []*vswitch.VSI, dev string) iter.Seq[api.FDBEntry] {
	return func(yield func(api.FDBEntry) bool) {
		sw := n.Switch()
		now := sw.Tick()
		for _, v := range vsis {
			vlans, is := map[uint16]uint32{}, map[uint16]bool{}
			for _, a := range v.Named(dev) {
				is[a.Dest(0).Port()] = true
			}
			for _, a := range v.Attachments() {
				if _, tunnel := a.Port().(*vtep.VTEP); !tunnel {
					vlans[a.Dest(0).Port()] = a.Tag()
				}
			}
			name := placesOf(sw, v)
			list := slices.SortedFunc(v.FDB().All(), func(a, b fdb.Entry) int { return cmp.Compare(a.MAC.Uint64(), b.MAC.Uint64()) })
			for _, e := range list {
				vlan := vlans[e.Dest.Port()]
				x := api.FDBEntry{
					VNI: v.VNI(), MAC: e.MAC.String(), Dest: name(e.Dest), Dev: name(frame.NewDest(e.Dest.Port(), 0)),
					VLAN: vlan &^ frame.ServiceTag, Service: vlan&frame.ServiceTag != 0,
					Origin: e.Origin.String(), Age: float64(e.Age(now)), Flags: flags(e),
				}
				if e.Dest == frame.Filter {
					x.Dev = "" // nowhere
				}
				if e.Origin != fdb.OriginLearned {
					x.Proto = proto(n, control.MAC{VNI: v.VNI(), MAC: e.MAC})
				}
				if (dev == "" || x.Dev == dev || is[e.Dest.Port()]) && !yield(x) {
					return
				}
			}
		}
	}
}

// proto returns the owner of what a table has for a key, "" if it is not that of a row.
func proto(n *node.Node, key control.Row) string {
	return strings.Join(n.Plane().Origin(key), ",")
}

func flags(e fdb.Entry) (list []string) {
	for _, f := range []struct {
		set  bool
		name string
	}{{e.Flags&fdb.Sticky != 0, "sticky"}, {e.Flags&fdb.Filter != 0, "filter"}, {e.Flags&fdb.Anycast != 0, "anycast"}, {e.Frozen, "frozen"}} {
		if f.set {
			list = append(list, f.name)
		}
	}
	return list
}

func (s *server) getNeigh(w http.ResponseWriter, r *http.Request) error {
	q := query(r)
	vsis, err := s.only(q, s.n.Switch().VSIs())
	if err != nil {
		return err
	}
	return list(w, neighbours(s.n, vsis))
}

func neighbours(n *node.Node, vsis []*vswitch.VSI) iter.Seq[api.Neighbour] {
	return func(yield func(api.Neighbour) bool) {
		now := n.Switch().Tick()
		for _, v := range vsis {
			r := n.Neighbours(v.VNI())
			if r == nil {
				continue
			}
			for e := range r.Table().All() {
				x := api.Neighbour{
					VNI: v.VNI(), IP: e.IP.String(), MAC: e.MAC.String(), Origin: e.Origin.String(),
					State: e.State.String(), Age: float64(e.Age(now)),
				}
				if e.Origin != arp.Snooped {
					x.Proto = proto(n, control.MAC{VNI: v.VNI(), IP: e.IP})
				}
				if e.Origin == arp.Static {
					x.Proto = cmp.Or(x.Proto, node.Owner) // of neighbours.static, which has no rows
				}
				if !yield(x) {
					return
				}
			}
		}
	}
}

func (s *server) getMDB(w http.ResponseWriter, r *http.Request) error {
	vsis, err := s.only(query(r), s.n.Switch().VSIs())
	if err != nil {
		return err
	}
	return list(w, listeners(s.n, vsis))
}

func listeners(n *node.Node, vsis []*vswitch.VSI) iter.Seq[api.Listener] {
	return func(yield func(api.Listener) bool) {
		sw := n.Switch()
		now := sw.Tick()
		for _, v := range vsis {
			m := n.Snooper(v.VNI())
			if m == nil {
				continue
			}
			name := placesOf(sw, v)
			for e := range m.All() {
				x := api.Listener{VNI: v.VNI(), Dest: name(e.Dest), Dev: name(frame.NewDest(e.Dest.Port(), 0)), Left: float64(max(e.Until, now) - now), Permanent: e.Permanent}
				switch {
				case e.Group.IsValid():
					x.Group = e.Group.String()
				case e.Router == snoop.Router{}:
					x.Why = []string{"full"}
				default:
					for _, r := range []struct {
						is   bool
						name string
					}{{e.IPv4, "router4"}, {e.IPv6, "router6"}} {
						if r.is {
							x.Why = append(x.Why, r.name)
						}
					}
				}
				if !yield(x) {
					return
				}
			}
		}
	}
}

func (s *server) getRoute(w http.ResponseWriter, r *http.Request) error {
	q := query(r)
	if q["vrf"] != "" {
		if _, err := s.vrf(q["vrf"]); err != nil {
			return err
		}
	}
	routes := []api.Route{}
	owners := map[frame.VNI]string{}
	for _, g := range s.n.Config().Segments {
		if g.Gateway != nil { // else it is a control plane's
			owners[g.VNI] = node.Owner
		}
	}
	for _, g := range s.n.Running().Segments {
		if g.Gateway == nil {
			continue
		}
		for _, p := range g.Gateway.Addresses {
			routes = append(routes, api.Route{VRF: g.Gateway.VRF, Prefix: p.Masked().String(), Kind: "connected", Proto: owners[g.VNI], Via: []string{"vni " + g.VNI.String()}})
		}
	}
	vsis := map[frame.VNI]*vswitch.VSI{}
	for _, v := range s.n.Switch().VSIs() {
		vsis[v.VNI()] = v
	}
	for _, v := range s.n.Gateway().VRFs() {
		down := v.NextHops()
		for _, x := range v.Routes() {
			to := api.Route{VRF: v.Name(), Prefix: x.Prefix.String(), Kind: "blackhole", Via: []string{}, Proto: proto(s.n, control.Prefix{VRF: v.Name(), Prefix: x.Prefix})}
			for _, h := range x.Via {
				to.Kind, to.Via = "via", append(to.Via, hop(s.n.Switch(), vsis, h, down))
			}
			routes = append(routes, to)
		}
	}
	routes = slices.DeleteFunc(routes, func(x api.Route) bool { return q["vrf"] != "" && x.VRF != q["vrf"] })
	slices.SortStableFunc(routes, func(a, b api.Route) int { return cmp.Compare(a.VRF, b.VRF) })
	return list(w, slices.Values(routes))
}

// hop returns a next hop as text: that of a router with the peer that its segment has it behind.
func hop(sw *vswitch.Switch, vsis map[frame.VNI]*vswitch.VSI, h l3.NextHop, down map[l3.NextHop]bool) string {
	weight := ""
	if h.Weight > 1 {
		weight = fmt.Sprint(" weight ", h.Weight)
	}
	h.Weight = 0
	text := h.String()
	if v := vsis[h.Interface.VNI()]; v != nil && !h.MAC.IsZero() {
		if to, ok := v.FDB().Lookup(h.MAC); ok && to.Peer() != 0 {
			text += " peer " + sw.Name(to)
		}
	}
	if text += weight; down[h] {
		text += " dead"
	}
	return text
}

func (s *server) getFlood(w http.ResponseWriter, r *http.Request) error {
	floods := []api.Flood{}
	for _, v := range s.n.Segments() {
		for a, peers := range floodsOf(v) {
			x := api.Flood{VNI: v.VNI(), Tunnel: s.n.Switch().Name(a.Dest(0)), Peers: []string{}, Members: []api.FloodMember{}}
			for _, p := range peers {
				m := api.FloodMember{Peer: p.Addr.String(), Proto: s.n.Plane().Origin(control.Flood{VNI: v.VNI(), VTEP: p.Addr, MAC: p.MAC, Tunnel: x.Tunnel})}
				if p.Addr.Port() == 0 { // of IP-in-IP
					m.Peer = p.Addr.Addr().String()
				}
				if p.NoBroadcast {
					m.Flags = append(m.Flags, "no-broadcast")
				}
				if p.NoUnknown {
					m.Flags = append(m.Flags, "no-unknown")
				}
				if p.MAC.IsZero() {
					x.Peers = append(x.Peers, m.Peer)
				} else {
					m.MAC = p.MAC.String()
				}
				x.Members = append(x.Members, m)
			}
			floods = append(floods, x)
		}
	}
	return list(w, slices.Values(floods))
}

// getBFD lists the sessions of BFD: those of the node, and those of control planes with their peers.
func (s *server) getBFD(w http.ResponseWriter, r *http.Request) error {
	sessions := []api.BFD{}
	add := func(of api.BFD, x *bfd.Session) {
		if x.SendError != nil {
			of.SendError = x.SendError.Error()
		}
		of.Local, of.Peer, of.Status, of.State = x.Peer.Local.String(), x.Peer.Remote.String(), x.Status.String(), x.State.String()
		of.Diagnostic, of.RemoteState, of.Since = x.Diag.String(), x.RemoteState.String(), x.Since
		of.Interval, of.Detection, of.Stats = x.Interval.Seconds(), x.Detection.Seconds(), x.Stats
		sessions = append(sessions, of)
	}
	for _, x := range s.n.BFD() {
		add(api.BFD{Tunnel: x.Tunnel, VRF: x.VRF, VNI: x.VNI}, &x.Session)
	}
	peers := func(proto string, list []bfd.Session) {
		for i := range list {
			add(api.BFD{Proto: proto}, &list[i])
		}
	}
	if p, ok := s.evpn.status(); ok && p.plane != nil {
		peers("evpn", p.plane.BFD())
	}
	if p, ok := s.bgp.status(); ok && p.plane != nil {
		peers("bgp", p.plane.BFD())
	}
	if p, ok := s.calico.status(); ok && p.plane != nil {
		peers("calico", p.plane.BFD())
	}
	return list(w, slices.Values(sessions))
}

// getWaiting lists the rows of control planes that wait, and those that were refused last.
func (s *server) getWaiting(w http.ResponseWriter, r *http.Request) error {
	q := query(r)
	p := s.n.Plane()
	owners := append(p.Owners(), p.Refused()...)
	slices.Sort(owners)
	owners = slices.Compact(owners)
	if q["proto"] != "" {
		owners = []string{q["proto"]}
	}
	return list(w, func(yield func(api.Row) bool) {
		for _, o := range owners {
			for row, err := range p.Waiting(o) {
				if !yield(api.Row{Proto: o, State: "waiting", Row: row.String(), Why: err.Error()}) {
					return
				}
			}
			for _, x := range p.Refusals(o) {
				if !yield(api.Row{Proto: o, State: "refused", Time: &x.Time, Row: fmt.Sprint(x.Row), Why: x.Err.Error()}) {
					return
				}
			}
		}
	})
}

func (s *server) getPolicy(w http.ResponseWriter, r *http.Request) error {
	policies := []api.Policy{}
	for name, p := range s.n.Policies() {
		text, _ := json.Marshal(p.Stats())
		policies = append(policies, api.Policy{Name: name, Stats: text})
	}
	for vni, ports := range s.n.Guards() {
		for port, g := range ports {
			text, _ := json.Marshal(g.Stats())
			policies = append(policies, api.Policy{Name: "guard", VNI: vni, Port: port, Stats: text})
		}
	}
	slices.SortFunc(policies, func(a, b api.Policy) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.VNI, b.VNI), cmp.Compare(a.Name, b.Name))
	})
	return list(w, slices.Values(policies))
}

func (s *server) postReload(w http.ResponseWriter, r *http.Request) error {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute))
	return s.change(w, r, "reloaded", func() error {
		if err := s.reload(); err != nil {
			return failure{http.StatusUnprocessableEntity, err}
		}
		return nil
	})
}
