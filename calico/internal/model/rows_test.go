package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/control"
)

const resourcesKey = "/calico/resources/v3/projectcalico.org/"

// data are resources in short: "ippools/NAME", "nodes/NAME" and others with a spec, "block PREFIX" with a value, "affinity PREFIX" with a state.
type data map[string]string

// onto returns resources with others in their place; "" removes one.
func (d data) onto(others data) data {
	all := data{}
	for _, from := range []data{d, others} {
		for k, v := range from {
			if all[k] = v; v == "" {
				delete(all, k)
			}
		}
	}
	return all
}

func blockKey(p string) string { return resource.Key{Kind: resource.KindBlock, Name: p}.Path("") }

func (d data) store(node string) *Store {
	s := new(Store)
	for k, v := range d {
		kind, p, _ := strings.Cut(k, " ")
		switch kind {
		case "block":
			s.Put(blockKey(p), []byte(v))
		case "affinity":
			s.Put(resource.Key{Kind: resource.KindAffinity, Name: p}.Path(node), []byte(`{"state":"`+v+`"}`))
		default:
			s.Put(resourcesKey+k, []byte(`{"apiVersion":"projectcalico.org/v3","spec":`+v+`}`))
		}
	}
	return s
}

// block is a value as Calico's IPAM writes it: nodes have the first addresses of a block, "" for nobody known, and "-" for a free one.
func block(p, node string, nodes ...string) string {
	var slots, attributes []string
	for i, n := range nodes {
		if n == "-" {
			slots = append(slots, "null")
		} else {
			slots = append(slots, fmt.Sprint(len(attributes)))
			attributes = append(attributes, fmt.Sprintf(`{"handle_id":"h%d","secondary":{"node":%q}}`, i, n))
		}
	}
	affinity := "null"
	if node != "" {
		affinity = `"host:` + node + `"`
	}
	return fmt.Sprintf(`{"cidr":%q,"affinity":%s,"strictAffinity":false,"allocations":[%s],"unallocated":[],"attributes":[%s],"deleted":false}`,
		p, affinity, strings.Join(slots, ","), strings.Join(attributes, ","))
}

// vxlan is a cluster as in felix/calc/states_for_test.go of Calico v3.33, whose names the cases have. Its routes for remote workloads, with
// the VTEPs of their nodes, are what is wanted; our node is localhostname.
var vxlan = data{
	"ippools/pool":         `{"cidr":"10.0.0.0/16","vxlanMode":"Always"}`,
	"nodes/localhostname":  `{"bgp":{"ipv4Address":"192.168.0.1/24"},"ipv4VXLANTunnelAddr":"10.0.0.0"}`,
	"nodes/remotehostname": `{"bgp":{"ipv4Address":"192.168.0.2/24"},"ipv4VXLANTunnelAddr":"10.0.1.0"}`,
	"block 10.0.1.0/29":    block("10.0.1.0/29", "remotehostname"),
}

var (
	borrows = vxlan.onto(data{
		"nodes/remotehostname2": `{"bgp":{"ipv4Address":"192.168.0.3/24"},"ipv4VXLANTunnelAddr":"10.0.2.0"}`,
		"block 10.0.1.0/29":     block("10.0.1.0/29", "remotehostname", "", "remotehostname", "remotehostname2", "-"),
	})
	local = vxlan.onto(data{"block 10.0.1.0/29": "", "block 10.0.0.0/29": block("10.0.0.0/29", "localhostname", "", "localhostname", "remotehostname")})
)

const (
	toRemote  = "vni 4096 mac 66:3e:ca:a4:db:65 vtep 192.168.0.2"
	toRemote2 = "vni 4096 mac 66:40:18:59:1f:16 vtep 192.168.0.3"
)

func TestRows(t *testing.T) {
	for _, c := range []struct {
		name string
		data
		rows     []string
		announce string
		problem  string
	}{
		{"VXLAN", vxlan, []string{"10.0.1.0/29 " + toRemote}, "", ""},
		{"VXLAN MAC", vxlan.onto(data{"nodes/remotehostname": `{"bgp":{"ipv4Address":"192.168.0.2/24"},"ipv4VXLANTunnelAddr":"10.0.1.0","vxlanTunnelMACAddr":"66:74:c5:72:3f:01"}`}),
			[]string{"10.0.1.0/29 vni 4096 mac 66:74:c5:72:3f:01 vtep 192.168.0.2"}, "", ""},
		{"VXLAN borrow", borrows, []string{"10.0.1.0/29 " + toRemote, "10.0.1.2/32 " + toRemote2}, "", ""},
		{"VXLAN owner switch", borrows.onto(data{"block 10.0.1.0/29": block("10.0.1.0/29", "remotehostname2", "", "remotehostname2", "remotehostname")}),
			[]string{"10.0.1.0/29 " + toRemote2, "10.0.1.2/32 " + toRemote}, "", ""},
		{"VXLAN borrow missing VTEP", borrows.onto(data{"nodes/remotehostname": `{"bgp":{"ipv4Address":"192.168.0.2/24"}}`}),
			[]string{"10.0.1.2/32 " + toRemote2}, "", "nodes/remotehostname: has no device for VXLAN"},
		{"VXLAN local with borrows", local, []string{"10.0.0.2/32 " + toRemote}, "10.0.0.0/29", ""},
		{"VXLAN local with borrows cross subnet (node resources)", local.onto(data{"ippools/pool": `{"cidr":"10.0.0.0/16","vxlanMode":"CrossSubnet"}`}),
			[]string{"10.0.0.2/32 vni 200 ip 192.168.0.2"}, "10.0.0.0/29", ""},
		{"VXLAN cross subnet different subnet (node resources)", local.onto(data{"ippools/pool": `{"cidr":"10.0.0.0/16","vxlanMode":"CrossSubnet"}`,
			"nodes/localhostname": `{"bgp":{"ipv4Address":"192.168.0.1/32"},"ipv4VXLANTunnelAddr":"10.0.0.0"}`}),
			[]string{"10.0.0.2/32 " + toRemote}, "10.0.0.0/29", ""},
		{"VXLAN switched to IPIP", vxlan.onto(data{"ippools/pool": `{"cidr":"10.0.0.0/16","ipipMode":"Always"}`}),
			[]string{"10.0.1.0/29 vni 100 vtep 192.168.0.2"}, "", ""},
		{"VXLAN block removed", vxlan.onto(data{"block 10.0.1.0/29": ""}), nil, "", ""},
		{"VXLAN host IP removed", vxlan.onto(data{"nodes/remotehostname": ""}), nil, "", "nodes/remotehostname: the datastore has no such node"},
		{"VXLAN tunnel IP removed", vxlan.onto(data{"nodes/remotehostname": `{"bgp":{"ipv4Address":"192.168.0.2/24"}}`}), nil, "", "has no device for VXLAN"},
		{"VXLAN /32", vxlan.onto(data{"block 10.0.1.0/29": "", "block 10.0.0.9/32": block("10.0.0.9/32", "remotehostname", "remotehostname")}),
			[]string{"10.0.0.9/32 " + toRemote}, "", ""},

		// beyond Felix's cases
		{"no node", vxlan.onto(data{"nodes/localhostname": ""}), nil, "", "nodes/localhostname: the datastore has no such node"},
		{"addresses without BGP", vxlan.onto(data{"nodes/remotehostname": `{"addresses":[{"address":"198.51.100.2","type":"ExternalIP"},{"address":"192.168.0.2/24","type":"InternalIP"}],"ipv4VXLANTunnelAddr":"10.0.1.0"}`}),
			[]string{"10.0.1.0/29 " + toRemote}, "", ""},
		{"IPIP cross-subnet", vxlan.onto(data{"ippools/pool": `{"cidr":"10.0.0.0/16","ipipMode":"CrossSubnet"}`}),
			[]string{"10.0.1.0/29 vni 200 ip 192.168.0.2"}, "", ""},
		{"IPIP by BIRD", vxlan.onto(data{"ippools/pool": `{"cidr":"10.0.0.0/16","ipipMode":"Always"}`, "bgpconfigurations/default": `{"programClusterRoutes":"Enabled"}`}), nil, "", ""},
		{"no tunnel", vxlan.onto(data{"ippools/pool": `{"cidr":"10.0.0.0/16"}`}), nil, "", ""},
		{"no tunnel, by Felix", vxlan.onto(data{"ippools/pool": `{"cidr":"10.0.0.0/16"}`, "bgpconfigurations/default": `{"programClusterRoutes":"Disabled"}`}),
			[]string{"10.0.1.0/29 vni 200 ip 192.168.0.2"}, "", ""},
		{"no tunnel, as a newer release says it", vxlan.onto(data{"ippools/pool": `{"cidr":"10.0.0.0/16"}`, "bgpconfigurations/default": `{"programClusterRoutes":"EnabledLater"}`}),
			nil, "", "spec.programClusterRoutes \"EnabledLater\" is not carried"},
		{"communities of the node", vxlan.onto(data{"bgpconfigurations/node.localhostname": `{"prefixAdvertisements":[{"cidr":"10.0.0.0/16","communities":["1:2"]}]}`}),
			[]string{"10.0.1.0/29 " + toRemote}, "", "bgpconfigurations/node.localhostname: spec.prefixAdvertisements is not carried"},
		{"no tunnel, off our network", vxlan.onto(data{"ippools/pool": `{"cidr":"10.0.0.0/16"}`, "bgpconfigurations/default": `{"programClusterRoutes":"Disabled"}`,
			"nodes/remotehostname": `{"bgp":{"ipv4Address":"192.168.9.2/24"}}`}), []string{"10.0.1.0/29 vni 200 ip 10.192.255.254"}, "", ""},
		{"we borrow", vxlan.onto(data{"block 10.0.1.0/29": block("10.0.1.0/29", "remotehostname", "-", "localhostname")}),
			[]string{"10.0.1.0/29 " + toRemote}, "10.0.1.1/32", ""},
		{"nobody's block", vxlan.onto(data{"block 10.0.1.0/29": block("10.0.1.0/29", "", "-", "localhostname", "remotehostname")}),
			[]string{"10.0.1.2/32 " + toRemote}, "10.0.1.1/32", ""},
		{"not exported", local.onto(data{"ippools/pool": `{"cidr":"10.0.0.0/16","vxlanMode":"Always","disableBGPExport":true}`}),
			[]string{"10.0.0.0/29 blackhole", "10.0.0.2/32 " + toRemote}, "", ""},
		{"pending", local.onto(data{"affinity 10.0.0.0/29": "pending"}), []string{"10.0.0.2/32 " + toRemote}, "", ""},
		{"confirmed", local.onto(data{"affinity 10.0.0.0/29": "confirmed"}), []string{"10.0.0.2/32 " + toRemote}, "10.0.0.0/29", ""},
		{"deleted", vxlan.onto(data{"block 10.0.1.0/29": strings.Replace(block("10.0.1.0/29", "remotehostname"), `"deleted":false`, `"deleted":true`, 1)}), nil, "", ""},
		{"disabled", vxlan.onto(data{"ippools/pool": `{"cidr":"10.0.0.0/16","vxlanMode":"Always","disabled":true}`}), []string{"10.0.1.0/29 " + toRemote}, "", ""},
		{"services", vxlan.onto(data{"ippools/pool": `{"cidr":"10.0.0.0/16","vxlanMode":"Always","allowedUses":["LoadBalancer"]}`}), nil, "", ""},
		{"no pool", vxlan.onto(data{"ippools/pool": ""}), nil, "", "blocks: 1 in no pool"},
		{"pools overlap", vxlan.onto(data{"ippools/z": `{"cidr":"10.0.1.0/24"}`}), []string{"10.0.1.0/29 " + toRemote}, "", "ippools/z: is left out: spec.cidr 10.0.1.0/24 is also that of ippools/pool"},
		{"our address", vxlan.onto(data{"nodes/remotehostname": `{"bgp":{"ipv4Address":"192.168.0.1/24"},"ipv4VXLANTunnelAddr":"10.0.1.0"}`}), nil, "", "192.168.0.1 is our address"},
		{"address in a pool", vxlan.onto(data{"nodes/remotehostname": `{"bgp":{"ipv4Address":"10.0.7.7/24"},"ipv4VXLANTunnelAddr":"10.0.1.0"}`}), nil, "", "10.0.7.7 is in ippools/pool"},
		{"MAC of another", borrows.onto(data{"nodes/remotehostname2": `{"bgp":{"ipv4Address":"192.168.0.3/24"},"ipv4VXLANTunnelAddr":"10.0.2.0","vxlanTunnelMACAddr":"66:3e:ca:a4:db:65"}`}),
			[]string{"10.0.1.0/29 " + toRemote}, "", "spec.vxlanTunnelMACAddr 66:3e:ca:a4:db:65 is that of nodes/remotehostname"},
		{"IPv6", vxlan.onto(data{"ippools/six": `{"cidr":"fd00::/48","vxlanMode":"Always"}`, "block fd00::/122": block("fd00::/122", "remotehostname"),
			"nodes/localhostname":  `{"bgp":{"ipv4Address":"192.168.0.1/24","ipv6Address":"2001:db8::1/64"},"ipv4VXLANTunnelAddr":"10.0.0.0","ipv6VXLANTunnelAddr":"fd00::40"}`,
			"nodes/remotehostname": `{"bgp":{"ipv4Address":"192.168.0.2/24","ipv6Address":"2001:db8::2/64"},"ipv4VXLANTunnelAddr":"10.0.1.0","ipv6VXLANTunnelAddr":"fd00::1","vxlanTunnelMACAddrV6":"02:00:00:00:00:02"}`}),
			[]string{"10.0.1.0/29 " + toRemote, "fd00::/122 vni 4096 mac 02:00:00:00:00:02 vtep 2001:db8::2 tunnel six"}, "", ""},
		{"no device here", vxlan.onto(data{"nodes/localhostname": `{"bgp":{"ipv4Address":"192.168.0.1/24"}}`}), []string{"10.0.1.0/29 " + toRemote}, "",
			"nodes/localhostname: has no spec.ipv4VXLANTunnelAddr, which ippools/pool needs"},
		{"no IPv6 device here", vxlan.onto(data{"ippools/six": `{"cidr":"fd00::/48","vxlanMode":"Always"}`}), []string{"10.0.1.0/29 " + toRemote}, "",
			"nodes/localhostname: has no spec.ipv6VXLANTunnelAddr, which ippools/six needs"},
		{"a peer of another family", vxlan.onto(data{"bgppeers/tor": `{"peerIP":"2001:db8::9","asNumber":65001}`}), []string{"10.0.1.0/29 " + toRemote}, "",
			"bgppeers/tor: is left out: 2001:db8::9 needs spec.bgp.ipv6Address of nodes/localhostname"},
		{"a wrong block", vxlan.onto(data{"block 10.0.1.0/29": block("10.0.2.0/29", "remotehostname")}), nil, "", `blocks/10.0.1.0/29: cidr "10.0.2.0/29": must be that of the key`},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := Compile(settings("localhostname"), c.store("localhostname"))
			rows := shown(plan)
			if !slices.Equal(rows, c.rows) {
				t.Errorf("rows\n%s\nwant\n%s\nproblems %v", strings.Join(rows, "\n"), strings.Join(c.rows, "\n"), plan.Problems)
			}
			if plan.BGP != nil {
				if got := strings.Trim(fmt.Sprint(plan.BGP.Announce), "[]"); got != c.announce {
					t.Errorf("announced %s, want %s", got, c.announce)
				}
				if err := plan.BGP.Check(); err != nil {
					t.Error(err)
				}
			}
			switch {
			case c.problem == "" && len(plan.Problems) > 0:
				t.Errorf("problems %v", plan.Problems)
			case !slices.ContainsFunc(plan.Problems, func(p Problem) bool { return strings.Contains(p.String(), c.problem) }) && c.problem != "":
				t.Errorf("problems %v, want %s", plan.Problems, c.problem)
			}
		})
	}
}

// Of the addresses of our own blocks, BGP takes those that live elsewhere by the datastore from peers, and no others.
func TestLent(t *testing.T) {
	direct := data{"ippools/pool": `{"cidr":"10.0.0.0/16"}`}
	plan := Compile(settings("localhostname"), local.onto(direct).store("localhostname"))
	if got := fmt.Sprint(plan.BGP.Borrowed, plan.BGP.Lent); got != "true [10.0.0.2/32]" {
		t.Errorf("lent %s", got)
	}
	plan = Compile(settings("localhostname"), vxlan.onto(direct).store("localhostname"))
	if plan.BGP.Lent == nil || len(plan.BGP.Lent) > 0 {
		t.Errorf("lent %v; want none", plan.BGP.Lent)
	}
}

// shown returns the rows of a plan, one line each.
func shown(plan *Plan) (list []string) {
	for _, r := range plan.Rows {
		list = append(list, show(r.(control.Prefix)))
	}
	slices.Sort(list)
	return list
}

// show returns a row in one line.
func show(r control.Prefix) string {
	s := r.Prefix.String()
	v := r.Via
	if v == (control.Via{}) {
		return s + " blackhole"
	}
	s += fmt.Sprintf(" vni %d", v.VNI)
	if v.IP.IsValid() {
		s += " ip " + v.IP.String()
	}
	if !v.MAC.IsZero() {
		s += " mac " + v.MAC.String()
	}
	if v.VTEP.IsValid() {
		s += " vtep " + v.VTEP.Addr().String()
	}
	if v.Tunnel != "" {
		s += " tunnel " + v.Tunnel
	}
	return s
}

// Without BGP all routes are of blocks, and our own blocks are unreachable where nobody has an address.
func TestNoBGP(t *testing.T) {
	c := settings("localhostname")
	c.NoBGP = true
	plan := Compile(c, local.onto(data{"ippools/direct": `{"cidr":"10.1.0.0/16"}`, "block 10.1.0.0/26": block("10.1.0.0/26", "remotehostname")}).store(c.Node))
	rows, want := shown(plan), []string{"10.0.0.0/29 blackhole", "10.0.0.2/32 " + toRemote, "10.1.0.0/26 vni 200 ip 192.168.0.2"}
	if !slices.Equal(rows, want) || plan.BGP != nil {
		t.Errorf("rows %q, want %q; BGP %v", rows, want, plan.BGP)
	}
}

// Pools without the segment that they need are named, and have no routes.
func TestSegments(t *testing.T) {
	d := data{
		"nodes/n": `{"bgp":{"ipv4Address":"192.168.0.1/24"}}`, "nodes/m": `{"bgp":{"ipv4Address":"192.168.0.2/24"},"ipv4VXLANTunnelAddr":"10.1.0.1"}`,
		"ippools/v": `{"cidr":"10.1.0.0/16","vxlanMode":"Always"}`, "ippools/i": `{"cidr":"10.2.0.0/16","ipipMode":"CrossSubnet"}`, "ippools/d": `{"cidr":"10.3.0.0/16"}`,
		"block 10.1.0.0/26": block("10.1.0.0/26", "m"), "block 10.2.0.0/26": block("10.2.0.0/26", "m"), "block 10.3.0.0/26": block("10.3.0.0/26", "m"),
	}
	for _, c := range []struct {
		Settings
		rows, left int
	}{
		{Settings{}, 0, 3},
		{Settings{Segment: 1}, 0, 2},
		{Settings{VXLAN: Tunnel{Segment: 1}}, 1, 2},
		{Settings{IPIP: Tunnel{Segment: 1}}, 0, 3},
		{Settings{IPIP: Tunnel{Segment: 1}, Segment: 2}, 1, 1},
		{Settings{IPIP: Tunnel{Segment: 1}, VXLAN: Tunnel{Segment: 3}, Segment: 2}, 2, 0},
	} {
		c.Node, c.VRF = "n", "v"
		plan := Compile(&c.Settings, d.store("n"))
		left := 0
		for _, p := range plan.Problems {
			if strings.Contains(p.Why, "is left out: ") {
				left++
			}
		}
		if len(plan.Rows) != c.rows || left != c.left || plan.BGP == nil || plan.BGP.Check() != nil {
			t.Errorf("%+v: %d rows, want %d; %v", c.Settings, len(plan.Rows), c.rows, plan.Problems)
		}
	}
}
