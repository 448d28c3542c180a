package table

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/policy"
)

// UnknownDst is the MAC of Mcast_Macs_Remote that stands for broadcast, multicast and unknown unicast.
const UnknownDst = "unknown-dst"

// Reasons for which rows are left out.
const (
	NoKey          = "no-tunnel-key"      // a bound Logical_Switch has no tunnel_key, as with one that the controller is still making
	BadKey         = "bad-tunnel-key"     // it is not 1 to 16777215
	SameKey        = "same-tunnel-key"    // two bound Logical_Switches have it: the first name counts, and of one name the first UUID
	NoSwitch       = "no-logical-switch"  // vlan_bindings refers to a Logical_Switch that does not exist
	BadVLAN        = "bad-vlan"           // VLAN 4095
	UnknownPort    = "unknown-port"       // a Physical_Port of the switch that it was not told
	SamePort       = "same-port"          // two Physical_Ports have one name: the first UUID counts
	SameBinding    = "same-binding"       // a port is in a network twice: the lowest VLAN counts
	BadMAC         = "bad-mac"            // not a MAC, one of a group among unicast MACs, or one of a host among multicast ones
	BadIP          = "bad-ip"             // of a host; its MAC counts
	SameIP         = "same-ip"            // two MACs of a network have it: the lowest counts; the other MAC has no address
	BadLocator     = "bad-locator"        // missing, no address of a host, not vxlan_over_ipv4, or its tunnel_key is none
	OwnLocator     = "own-locator"        // a remote MAC is said to be here
	TwoLocators    = "two-locators"       // a MAC has several: the lowest address counts
	LocatorKey     = "locator-tunnel-key" // what is flooded has the tunnel_key of the Logical_Switch, and the locator another one
	TooManyGroups  = "too-many-groups"    // a network has more than 4096 groups in Mcast_Macs_Remote: the lowest MACs count
	SameRouter     = "same-router"        // two Logical_Routers have a network: the first name counts
	BadAddress     = "bad-address"        // switch_binding has one that is no address of a host with a prefix length
	BadRoute       = "bad-route"          // of static_routes: no prefix that is routed, a network of the router itself, or the next hop is no host in a network of the router that is routed
	RouterACL      = "router-acl"         // acl_binding has several ACLs for the addresses of a network, or one address without: the network is not routed
	NoACL          = "no-acl"             // acl_bindings refers to an ACL that does not exist: nothing passes
	LongACL        = "long-acl"           // an ACL has more than 16000 entries: nothing passes
	BadEntry       = "bad-acl-entry"      // a condition that no rule can have: a deny goes without it, and a permit has no effect
	BadReplication = "bad-replication"    // neither source_node nor service_node; counts as service_node
)

// Values of Logical_Switch.replication_mode.
const (
	SourceNode  = "source_node"  // a copy for each locator
	ServiceNode = "service_node" // one copy, for the first locator; the default
)

const (
	vxlanOverIPv4 = "vxlan_over_ipv4" // Physical_Locator.encapsulation_type
	mostLeft      = 64                // rows of Result.Left; all are counted
)

// A Result is what a Database means for a switch.
type Result struct {
	Plan
	Rows     []control.Row   // Floods, then MACs, by VNI and address, each once
	Bindings map[string]int  // of ports, by name, also those without effect
	Faulty   map[string]bool // ports with an ACL that denies more than it says
	Wrong    []string        // faults of the switch
	Left     []Left          // the first 64, in a fixed order
	Counts   map[string]int  // how many were left out, by reason
}

// A Plan is what the node gets beside rows.
type Plan struct {
	Segments []Segment // by VNI
	Routers  []Router
	ACLs     map[string]*policy.Config // those of members, by name
}

// A Segment is a Logical_Switch that a port of the switch is bound to, or a router that has such a one too.
type Segment struct {
	VNI     frame.VNI
	Name    string // of the Logical_Switch
	ID      string // its UUID
	Members []Member
	ACLs    map[Member]string // names of those that members have

	Router    string         // UUID of its Logical_Router, "" = none
	Addresses []netip.Prefix // of that
	RouterACL string         // name of the ACL of what is routed, "" = none
}

// A Member is an entry of vlan_bindings.
type Member struct {
	Port string
	VLAN int // 0 = untagged
}

// Left is a row that has no effect, or not all of it.
type Left struct{ Table, ID, Reason string }

// String returns the row and the reason in one line.
func (l Left) String() string { return fmt.Sprintf("%s %s: %s", l.Table, l.ID, l.Reason) }

// A Switch is the one that Read reads for.
type Switch struct {
	Name  string
	Ports []string     // names
	Local []netip.Addr // tunnel_ips
}

// A reader reads a Database once.
type reader struct {
	*Database
	sw       *Switch
	left     []Left
	places   map[string]place // of locators that were read, by UUID
	bindings map[string]int   // of ports

	rules   map[string]*policy.Config // of ACLs, by name
	inexact map[string]bool           // of these
	faulty  map[string]bool           // ports
}

// Read returns what the Database means for a switch. It has no segments while no Physical_Switch has its name.
func (d *Database) Read(sw *Switch) *Result {
	r := &reader{Database: d, sw: sw, places: map[string]place{}, bindings: map[string]int{}, rules: map[string]*policy.Config{},
		inexact: map[string]bool{}, faulty: map[string]bool{}}
	res := &Result{Bindings: r.bindings, Faulty: r.faulty, Counts: map[string]int{}}
	res.Segments, res.Routers = r.segments()
	res.ACLs = r.rules
	at := map[string]frame.VNI{}
	for _, s := range res.Segments {
		at[s.ID] = s.VNI
	}
	r.routes(res.Routers, res.Segments)
	res.Rows = r.rows(at, routedVNIs(res.Segments))
	slices.SortFunc(r.left, func(a, b Left) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Reason, b.Reason))
	})
	for _, l := range r.left {
		res.Counts[l.Reason]++
	}
	if n := res.Counts; n[SameRouter]+n[BadAddress]+n[BadRoute]+n[RouterACL] > 0 {
		res.Wrong = []string{NoRouter}
	}
	res.Left = r.left[:min(len(r.left), mostLeft)]
	return res
}

func (r *reader) leave(table, id, reason string) { r.left = append(r.left, Left{table, id, reason}) }

// segments returns the networks that ports are bound to, by VNI, and those that are routed to there.
func (r *reader) segments() (all []Segment, routers []Router) {
	bound, acls := r.bound()
	routers, in := r.routed(bound)
	taken := map[int]bool{}
	for _, id := range r.byName(LogicalSwitch, maps.Keys(bound)) {
		row := r.Row(LogicalSwitch, id)
		key, ok := row.number("tunnel_key")
		switch {
		case !ok:
			r.leave(LogicalSwitch, id, NoKey)
			continue
		case key < 1 || key > int(frame.MaxVNI):
			r.leave(LogicalSwitch, id, BadKey)
			continue
		case taken[key]:
			r.leave(LogicalSwitch, id, SameKey)
			continue
		}
		taken[key] = true
		s := Segment{VNI: frame.VNI(key), Name: row.text("name"), ID: id, Router: in[id].router, Addresses: in[id].addresses, RouterACL: r.acl(in[id].acl, true)}
		for _, p := range slices.Sorted(maps.Keys(bound[id])) {
			s.Members = append(s.Members, Member{Port: p, VLAN: bound[id][p]})
		}
		r.bind(&s, acls)
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Segment) int { return cmp.Compare(a.VNI, b.VNI) })
	return all, routers
}

// bound returns the VLANs of ports by Logical_Switch, and their ACLs by VLAN.
func (r *reader) bound() (bound map[string]map[string]int, acls map[string]map[int]string) {
	bound, acls = map[string]map[string]int{}, map[string]map[int]string{}
	var ports []string
	for _, id := range slices.Sorted(slices.Values(r.Row(PhysicalSwitch, r.Find(PhysicalSwitch, "name", r.sw.Name)).Refs("ports"))) {
		p := r.Row(PhysicalPort, id)
		name := p.text("name")
		p.pairs("vlan_bindings", func(_, _ any) { r.bindings[name]++ })
		switch {
		case p == nil:
			continue
		case !slices.Contains(r.sw.Ports, name):
			r.leave(PhysicalPort, id, UnknownPort)
			continue
		case slices.Contains(ports, name):
			r.leave(PhysicalPort, id, SamePort)
			continue
		}
		ports = append(ports, name)
		acls[name] = p.acls()
		p.pairs("vlan_bindings", func(k, v any) {
			vlan, ok := integer(k)
			network := uuid(v)
			switch {
			case !ok || vlan > 4094:
				r.leave(PhysicalPort, id, BadVLAN)
				return
			case r.Row(LogicalSwitch, network) == nil:
				r.leave(PhysicalPort, id, NoSwitch)
				return
			case bound[network] == nil:
				bound[network] = map[string]int{}
			}
			if was, twice := bound[network][name]; twice {
				r.leave(PhysicalPort, id, SameBinding)
				vlan = min(vlan, was)
			}
			bound[network][name] = vlan
		})
	}
	return bound, acls
}
