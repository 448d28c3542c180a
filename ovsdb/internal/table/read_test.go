package table

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/vtep"
)

// us is the switch of the tests.
var us = &Switch{Name: "us", Ports: []string{"p1", "p2"}, Local: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}

// base is a database with network 5000 on p1 and p2, and locators l1 (192.0.2.1, here), l2 and l3.
const base = `
Physical_Switch s {"name": "us", "ports": ["set", [["uuid", "p1"], ["uuid", "p2"]]]}
Physical_Port p1 {"name": "p1", "vlan_bindings": ["map", [[0, ["uuid", "a"]]]]}
Physical_Port p2 {"name": "p2", "vlan_bindings": ["map", [[7, ["uuid", "a"]]]]}
Logical_Switch a {"name": "a", "tunnel_key": 5000, "replication_mode": "source_node"}
Physical_Locator l1 {"dst_ip": "192.0.2.1", "encapsulation_type": "vxlan_over_ipv4"}
Physical_Locator l2 {"dst_ip": "192.0.2.2", "encapsulation_type": "vxlan_over_ipv4", "tunnel_key": ["set", []]}
Physical_Locator l3 {"dst_ip": "192.0.2.3", "encapsulation_type": "vxlan_over_ipv4", "tunnel_key": 77}
Physical_Locator bad {"dst_ip": "192.0.2.4", "encapsulation_type": "gre"}
Physical_Locator_Set both {"locators": ["set", [["uuid", "l2"], ["uuid", "l4"], ["uuid", "l1"]]]}
Physical_Locator l4 {"dst_ip": "192.0.2.4", "encapsulation_type": "vxlan_over_ipv4", "tunnel_key": 5000}
Physical_Locator_Set other {"locators": ["uuid", "l3"]}
Physical_Locator_Set here {"locators": ["uuid", "l1"]}
Physical_Locator_Set four {"locators": ["uuid", "l4"]}
`

// fill sets the rows of a text: table, UUID, and columns. A row "null" is removed.
func fill(t testing.TB, d *Database, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(f) < 3 {
			continue
		}
		var r Row
		if err := json.Unmarshal([]byte(f[2]), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		d.Set(f[0], f[1], r)
	}
}

func ucast(id, mac, ip, locator string) string {
	return fmt.Sprintf(`Ucast_Macs_Remote %s {"MAC": %q, "ipaddr": %q, "logical_switch": ["uuid", "a"], "locator": ["uuid", %q]}`+"\n", id, mac, ip, locator)
}

func mcast(id, mac, set string) string {
	return fmt.Sprintf(`Mcast_Macs_Remote %s {"MAC": %q, "logical_switch": ["uuid", "a"], "locator_set": ["uuid", %q]}`+"\n", id, mac, set)
}

func arpSource(id, mac, locator string) string {
	return fmt.Sprintf(`Arp_Sources_Remote %s {"src_mac": %q, "locator": ["uuid", %q]}`+"\n", id, mac, locator)
}

// router is a Logical_Router with network 5000.
const router = `Logical_Router r {"name": "r", "switch_binding": ["map", [["10.0.0.1/24", ["uuid", "a"]]]]}` + "\n"

// acl1 is an ACL that denies frames from one MAC.
const acl1 = `ACL c {"acl_name": "web", "acl_entries": ["uuid", "e1"]}
ACL_entry e1 {"sequence": 1, "direction": "ingress", "action": "deny", "source_mac": "02:00:00:00:00:05"}
`

const (
	m1      = "02:00:00:00:00:01"
	m2      = "02:00:00:00:00:02"
	g1      = "01:00:5e:00:00:01"
	members = "5000 a p1/0 p2/7"
	routed  = members + " r 10.0.0.1/24"
)

// show returns a result as lines: segments, rows, what is left.
func show(res *Result) (out []string) {
	for _, s := range res.Segments {
		line := fmt.Sprintf("%d %s", s.VNI, s.Name)
		for _, m := range s.Members {
			line += fmt.Sprintf(" %s/%d", m.Port, m.VLAN)
			if acl, ok := s.ACLs[m]; ok {
				line += " " + acl
			}
		}
		if s.Router != "" {
			line += fmt.Sprint(" ", s.Router, s.Addresses)
			line = strings.NewReplacer("[", " ", "]", "").Replace(line)
		}
		if s.RouterACL != "" {
			line += " " + s.RouterACL
		}
		out = append(out, line)
	}
	for _, r := range res.Routers {
		for _, x := range r.Routes {
			out = append(out, fmt.Sprintf("%s: %v by %v in %v", r.Name, x.Prefix, x.Via, x.VNI))
		}
	}
	for _, r := range res.Rows {
		switch r := r.(type) {
		case control.Flood:
			if r.MAC.IsZero() {
				out = append(out, fmt.Sprintf("flood %v %v", r.VTEP.Addr(), map[bool]string{true: "quiet", false: "all"}[r.NoBroadcast && r.NoUnknown]))
			} else {
				out = append(out, fmt.Sprintf("%v to %v %v", r.MAC, r.VTEP.Addr(), map[bool]string{true: "quiet", false: "all"}[r.NoBroadcast]))
			}
		case control.MAC:
			line := fmt.Sprintf("mac %v at %v", r.MAC, r.VTEP.Addr())
			if r.IP.IsValid() {
				line += " ip " + r.IP.String()
			}
			if r.FarVNI != 0 {
				line += fmt.Sprintf(" far %d", r.FarVNI)
			}
			out = append(out, line)
		}
	}
	for _, l := range res.Left {
		out = append(out, l.String())
	}
	return out
}

// Each table means what the schema says, and what contradicts itself is named.
func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		rows string
		want []string
	}{
		"Logical_Switch, Physical_Port": {"", []string{members}},
		"Physical_Switch: none has our name": {
			`Physical_Switch s {"name": "other", "ports": ["uuid", "p1"]}`, nil},
		"Physical_Port: unbound":               {"Physical_Port p1 null\nPhysical_Port p2 null", nil},
		"Logical_Switch: unbound":              {`Logical_Switch b {"name": "b", "tunnel_key": 5000}`, []string{members}},
		"Logical_Switch: no tunnel_key":        {`Logical_Switch a {"name": "a", "tunnel_key": ["set", []]}`, []string{"Logical_Switch a: no-tunnel-key"}},
		"Logical_Switch: tunnel_key too large": {`Logical_Switch a {"name": "a", "tunnel_key": 16777216}`, []string{"Logical_Switch a: bad-tunnel-key"}},
		"Logical_Switch: none":                 {"Logical_Switch a null", []string{"Physical_Port p1: no-logical-switch", "Physical_Port p2: no-logical-switch"}},
		"Logical_Switch: tunnel_key of another": {
			`Logical_Switch b {"name": "b", "tunnel_key": 5000}` + "\n" + `Physical_Port p2 {"name": "p2", "vlan_bindings": ["map", [[7, ["uuid", "b"]]]]}`,
			[]string{"5000 a p1/0", "Logical_Switch b: same-tunnel-key"}},
		"Physical_Port: VLAN 4095": {`Physical_Port p2 {"name": "p2", "vlan_bindings": ["map", [[4095, ["uuid", "a"]]]]}`,
			[]string{"5000 a p1/0", "Physical_Port p2: bad-vlan"}},
		"Physical_Port: not ours": {`Physical_Port p2 {"name": "p9", "vlan_bindings": ["map", [[7, ["uuid", "a"]]]]}`,
			[]string{"5000 a p1/0", "Physical_Port p2: unknown-port"}},
		"Physical_Port: one name": {`Physical_Port p2 {"name": "p1", "vlan_bindings": ["map", [[7, ["uuid", "a"]]]]}`,
			[]string{"5000 a p1/0", "Physical_Port p2: same-port"}},
		"Physical_Port: a network twice": {`Physical_Port p2 {"name": "p2", "vlan_bindings": ["map", [[9, ["uuid", "a"]], [7, ["uuid", "a"]]]]}`,
			[]string{members, "Physical_Port p2: same-binding"}},

		"Ucast_Macs_Remote": {ucast("u", m1, "10.0.0.1", "l2"), []string{members, "flood 192.0.2.2 quiet", "mac " + m1 + " at 192.0.2.2 ip 10.0.0.1"}},
		"Ucast_Macs_Remote: two addresses": {ucast("u", m1, "10.0.0.1", "l2") + ucast("v", m1, "2001:db8::1", "l2"),
			[]string{members, "flood 192.0.2.2 quiet", "mac " + m1 + " at 192.0.2.2 ip 10.0.0.1", "mac " + m1 + " at 192.0.2.2 ip 2001:db8::1"}},
		"Ucast_Macs_Remote: two locators": {ucast("u", m1, "", "l4") + ucast("v", m1, "", "l2"),
			[]string{members, "flood 192.0.2.2 quiet", "mac " + m1 + " at 192.0.2.2", "Ucast_Macs_Remote u: two-locators"}},
		"Ucast_Macs_Remote: one address of two": {ucast("u", m2, "10.0.0.1", "l2") + ucast("v", m1, "10.0.0.1", "l2"),
			[]string{members, "flood 192.0.2.2 quiet", "mac " + m1 + " at 192.0.2.2 ip 10.0.0.1", "mac " + m2 + " at 192.0.2.2", "Ucast_Macs_Remote u: same-ip"}},
		"Ucast_Macs_Remote: a bad MAC":     {ucast("u", "x", "", "l2"), []string{members, "Ucast_Macs_Remote u: bad-mac"}},
		"Ucast_Macs_Remote: a group's MAC": {ucast("u", "01:00:5e:00:00:01", "", "l2"), []string{members, "Ucast_Macs_Remote u: bad-mac"}},
		"Ucast_Macs_Remote: a bad address": {ucast("u", m1, "x", "l2"), []string{members, "flood 192.0.2.2 quiet", "mac " + m1 + " at 192.0.2.2", "Ucast_Macs_Remote u: bad-ip"}},
		"Ucast_Macs_Remote: an address of no host": {ucast("u", m1, "255.255.255.255", "l2") + ucast("v", m2, "127.0.0.1", "l2"),
			[]string{members, "flood 192.0.2.2 quiet", "mac " + m1 + " at 192.0.2.2", "mac " + m2 + " at 192.0.2.2", "Ucast_Macs_Remote u: bad-ip", "Ucast_Macs_Remote v: bad-ip"}},
		"Physical_Locator: of no host": {`Physical_Locator l4 {"dst_ip": "0.0.0.4", "encapsulation_type": "vxlan_over_ipv4"}` + "\n" + `Physical_Locator l3 {"dst_ip": "255.255.255.255", "encapsulation_type": "vxlan_over_ipv4"}` + "\n" +
			`Logical_Switch a {"name": "a", "tunnel_key": 5000, "replication_mode": "service_node"}` + "\n" + mcast("m", UnknownDst, "both") + ucast("u", m1, "", "l3"),
			[]string{members, "flood 192.0.2.2 all", "Mcast_Macs_Remote m: bad-locator", "Ucast_Macs_Remote u: bad-locator"}},
		"Ucast_Macs_Remote: here": {ucast("u", m1, "", "l1"), []string{members, "Ucast_Macs_Remote u: own-locator"}},
		"Ucast_Macs_Remote: of another network": {
			strings.Replace(ucast("u", m1, "", "l2"), `"a"`, `"b"`, 1), []string{members}},
		"Physical_Locator: its tunnel_key": {ucast("u", m1, "", "l3"), []string{members, "flood 192.0.2.3 quiet", "mac " + m1 + " at 192.0.2.3 far 77"}},
		"Physical_Locator: the same key":   {ucast("u", m1, "", "l4"), []string{members, "flood 192.0.2.4 quiet", "mac " + m1 + " at 192.0.2.4"}},
		"Physical_Locator: gre":            {ucast("u", m1, "", "bad"), []string{members, "Ucast_Macs_Remote u: bad-locator"}},
		"Physical_Locator: none":           {ucast("u", m1, "", "none"), []string{members, "Ucast_Macs_Remote u: bad-locator"}},

		"Mcast_Macs_Remote, Physical_Locator_Set": {mcast("m", UnknownDst, "both"), []string{members, "flood 192.0.2.2 all", "flood 192.0.2.4 all"}},
		"Mcast_Macs_Remote: a host's VTEP besides": {mcast("m", UnknownDst, "both") + ucast("u", m1, "", "l3"),
			[]string{members, "flood 192.0.2.2 all", "flood 192.0.2.3 quiet", "flood 192.0.2.4 all", "mac " + m1 + " at 192.0.2.3 far 77"}},
		"Mcast_Macs_Remote: another key": {mcast("m", UnknownDst, "other"), []string{members, "Mcast_Macs_Remote m: locator-tunnel-key"}},
		"Mcast_Macs_Remote: a group": {mcast("m", g1, "both") + mcast("n", UnknownDst, "both"),
			[]string{members, "flood 192.0.2.2 all", "flood 192.0.2.4 all", g1 + " to 192.0.2.2 all", g1 + " to 192.0.2.4 all"}},
		"Mcast_Macs_Remote: a group in two rows": {mcast("m", g1, "both") + mcast("n", strings.ToUpper(g1), "four"),
			[]string{members, g1 + " to 192.0.2.2 all", g1 + " to 192.0.2.4 all"}},
		"Mcast_Macs_Remote: a group here alone":    {mcast("m", g1, "here"), []string{members, g1 + " to 192.0.2.1 quiet"}},
		"Mcast_Macs_Remote: a group, another key":  {mcast("m", g1, "other"), []string{members, "Mcast_Macs_Remote m: locator-tunnel-key"}},
		"Mcast_Macs_Remote: a host's MAC, or none": {mcast("m", m1, "both") + mcast("n", "x", "both"), []string{members, "Mcast_Macs_Remote m: bad-mac", "Mcast_Macs_Remote n: bad-mac"}},
		"replication_mode service_node, a group": {`Logical_Switch a {"name": "a", "tunnel_key": 5000, "replication_mode": "service_node"}` + "\n" + mcast("m", g1, "both"),
			[]string{members, g1 + " to 192.0.2.2 all", g1 + " to 192.0.2.4 quiet"}},
		"replication_mode service_node": {`Logical_Switch a {"name": "a", "tunnel_key": 5000, "replication_mode": "service_node"}` + "\n" + mcast("m", UnknownDst, "both"),
			[]string{members, "flood 192.0.2.2 all", "flood 192.0.2.4 quiet"}},
		"replication_mode: none": {`Logical_Switch a {"name": "a", "tunnel_key": 5000}` + "\n" + mcast("m", UnknownDst, "both"),
			[]string{members, "flood 192.0.2.2 all", "flood 192.0.2.4 quiet"}},
		"replication_mode: unknown": {`Logical_Switch a {"name": "a", "tunnel_key": 5000, "replication_mode": "x"}` + "\n" + mcast("m", UnknownDst, "both"),
			[]string{members, "flood 192.0.2.2 all", "flood 192.0.2.4 quiet", "Logical_Switch a: bad-replication"}},

		"Logical_Router: of another network": {`Logical_Switch b {"name": "b", "tunnel_key": 5001}` + "\n" + `Logical_Router r {"name": "r", "switch_binding": ["map", [["10.0.0.1/24", ["uuid", "b"]]]], "static_routes": ["map", [["0.0.0.0/0", "10.0.0.2"]]]}`, []string{members}},
		"Logical_Router": {`Logical_Switch b {"name": "b", "tunnel_key": 5001}` + "\n" +
			`Logical_Router r {"name": "r", "switch_binding": ["map", [["10.0.0.1/24", ["uuid", "a"]], ["10.0.1.1/24", ["uuid", "b"]], ["2001:db8::1/64", ["uuid", "b"]]]], "static_routes": ["map", [["0.0.0.0/0", "10.0.1.2"]]]}`,
			[]string{routed, "5001 b r 10.0.1.1/24 2001:db8::1/64", "r: 0.0.0.0/0 by 10.0.1.2 in 5001"}},
		"Logical_Router: two of a network": {router + `Logical_Router q {"name": "q", "switch_binding": ["map", [["10.0.9.1/24", ["uuid", "a"]]]]}`,
			[]string{members + " q 10.0.9.1/24", "Logical_Router r: same-router"}},
		"Logical_Router: bad bindings": {`Logical_Router r {"name": "r", "switch_binding": ["map", [["10.0.0.1/24", ["uuid", "a"]], ["10.0.0.1", ["uuid", "a"]], ["10.0.5.1/24", ["uuid", "x"]]]]}`,
			[]string{routed, "Logical_Router r: bad-address", "Logical_Router r: no-logical-switch"}},
		"Logical_Router: bad routes": {`Logical_Router r {"name": "r", "switch_binding": ["map", [["10.0.0.1/24", ["uuid", "a"]]]], "static_routes": ["map", [["10.9.0.0/16", "10.0.0.2"], ["10.8.0.0/16", "10.0.7.2"], ["10.7.0.0/16", "10.0.0.1"], ["10.6.0.1/16", "10.0.0.2"], ["::/0", "10.0.0.2"], ["x", "y"]]]}`,
			[]string{routed, "r: 10.9.0.0/16 by 10.0.0.2 in 5000", "Logical_Router r: bad-route", "Logical_Router r: bad-route", "Logical_Router r: bad-route", "Logical_Router r: bad-route", "Logical_Router r: bad-route"}},
		"Logical_Router: addresses of no host": {`Logical_Router r {"name": "r", "switch_binding": ["map", [["10.0.0.1/24", ["uuid", "a"]], ["10.0.2.0/24", ["uuid", "a"]], ["10.0.2.255/24", ["uuid", "a"]], ["224.0.0.1/24", ["uuid", "a"]], ["127.0.0.1/8", ["uuid", "a"]], ["::ffff:10.0.0.1/120", ["uuid", "a"]]]]}`,
			[]string{routed, "Logical_Router r: bad-address", "Logical_Router r: bad-address", "Logical_Router r: bad-address", "Logical_Router r: bad-address", "Logical_Router r: bad-address"}},
		"Logical_Router: routes that no router has": {`Logical_Router r {"name": "r", "switch_binding": ["map", [["10.0.0.1/24", ["uuid", "a"]], ["2001:db8::1/64", ["uuid", "a"]]]], "static_routes": ["map", [["10.0.0.0/24", "10.0.0.2"], ["10.0.0.255/32", "10.0.0.2"], ["10.0.0.9/32", "10.0.0.2"], ["127.0.0.0/8", "10.0.0.2"], ["224.0.0.0/4", "10.0.0.2"], ["2001:db8:1::/48", "2001:db8::2"], ["2001:0db8:1::/48", "2001:db8::3"], ["10.9.0.0/16", "10.0.0.255"]]]}`,
			[]string{routed + " 2001:db8::1/64", "r: 10.0.0.9/32 by 10.0.0.2 in 5000", "r: 2001:db8:1::/48 by 2001:db8::2 in 5000",
				"Logical_Router r: bad-route", "Logical_Router r: bad-route", "Logical_Router r: bad-route", "Logical_Router r: bad-route", "Logical_Router r: bad-route", "Logical_Router r: bad-route"}},
		"Logical_Router: acl_binding": {acl1 + `Logical_Router r {"name": "r", "switch_binding": ["map", [["10.0.0.1/24", ["uuid", "a"]]]], "acl_binding": ["map", [["10.0.0.1", ["uuid", "c"]]]]}`,
			[]string{routed + " web routed", "ACL_entry e1: bad-acl-entry"}},
		"Logical_Router: acl_binding of one address of two": {acl1 + `Logical_Router r {"name": "r", "switch_binding": ["map", [["10.0.0.1/24", ["uuid", "a"]], ["10.0.2.1/24", ["uuid", "a"]]]], "acl_binding": ["map", [["10.0.2.1/24", ["uuid", "c"]]]]}`,
			[]string{members, "Logical_Router r: router-acl"}},
		"Physical_Port: acl_bindings, ACL": {acl1 + `Physical_Port p2 {"name": "p2", "vlan_bindings": ["map", [[7, ["uuid", "a"]]]], "acl_bindings": ["map", [[0, ["uuid", "c"]]]]}`,
			[]string{members + " web"}},
		"Physical_Port: acl_bindings of a VLAN": {acl1 + `Physical_Port p2 {"name": "p2", "vlan_bindings": ["map", [[7, ["uuid", "a"]]]], "acl_bindings": ["map", [[0, ["uuid", "c"]], [7, ["uuid", "x"]]]]}`,
			[]string{members + " x", "ACL x: no-acl"}},
		"Physical_Port: acl_bindings of another VLAN": {acl1 + `Physical_Port p2 {"name": "p2", "vlan_bindings": ["map", [[7, ["uuid", "a"]]]], "acl_bindings": ["map", [[8, ["uuid", "c"]]]]}`,
			[]string{members}},
		"Arp_Sources_Remote: without a router": {arpSource("r", m1, "l2"), []string{members}},
		"Arp_Sources_Remote":                   {router + arpSource("r", m1, "l2"), []string{routed, "flood 192.0.2.2 quiet", "mac " + m1 + " at 192.0.2.2"}},
		"Arp_Sources_Remote: a host's MAC": {router + arpSource("r", m1, "l2") + ucast("u", m1, "", "l4"),
			[]string{routed, "flood 192.0.2.4 quiet", "mac " + m1 + " at 192.0.2.4", "Arp_Sources_Remote r: two-locators"}},
		"Arp_Sources_Remote: with a host's VTEP": {router + arpSource("r", m1, "l2") + ucast("u", m1, "10.0.0.1", "l2"),
			[]string{routed, "flood 192.0.2.2 quiet", "mac " + m1 + " at 192.0.2.2 ip 10.0.0.1", "mac " + m1 + " at 192.0.2.2"}},
		"Arp_Sources_Remote: bad": {router + arpSource("r", "x", "l2") + arpSource("s", m1, "none") + arpSource("t", m1, "l1"),
			[]string{routed, "Arp_Sources_Remote r: bad-mac", "Arp_Sources_Remote s: bad-locator", "Arp_Sources_Remote t: own-locator"}},
	} {
		var d Database
		fill(t, &d, base+c.rows)
		res := d.Read(us)
		if got := show(res); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got  %q\n want %q", name, got, c.want)
		}
		router := strings.Contains(strings.Join(c.want, "\n"), "Logical_Router r: ")
		if wrong := slices.Contains(res.Wrong, NoRouter); wrong != router {
			t.Errorf("%s: a fault of the router is %v", name, wrong)
		}
	}
}

// Bindings are counted, also those that have no effect.
func TestBindings(t *testing.T) {
	var d Database
	fill(t, &d, base+`Physical_Port p1 {"name": "p2", "vlan_bindings": ["map", [[0, ["uuid", "a"]], [4095, ["uuid", "a"]], [8, ["uuid", "none"]]]]}`)
	if got := d.Read(us).Bindings; !maps.Equal(got, map[string]int{"p2": 4}) {
		t.Error(got)
	}
}

// Of what is left out, the first rows are listed and all are counted.
func TestLeftIsBounded(t *testing.T) {
	var d Database
	fill(t, &d, base)
	for i := range 1000 {
		fill(t, &d, ucast(fmt.Sprint("u", i), "x", "", "l2"))
	}
	if res := d.Read(us); len(res.Left) != mostLeft || res.Counts[BadMAC] != 1000 {
		t.Errorf("%d rows listed, %v counted", len(res.Left), res.Counts)
	}
}

// Of too many groups the lowest count, and unknown-dst does.
func TestTooManyGroups(t *testing.T) {
	var d Database
	fill(t, &d, base+mcast("u", UnknownDst, "both"))
	for i := range vtep.MaxGroups + 2 {
		fill(t, &d, mcast(fmt.Sprint("m", i), fmt.Sprintf("01:00:5e:00:%02x:%02x", i>>8, i&255), "four"))
	}
	for _, with := range []int{2, 0} { // flood rows of unknown-dst
		res := d.Read(us)
		check.Equal(t, "rows", len(res.Rows), vtep.MaxGroups+with)
		check.Slice(t, "left out", res.Left, []Left{{McastRemote, "m4096", TooManyGroups}, {McastRemote, "m4097", TooManyGroups}})
		d.Set(McastRemote, "u", nil)
	}
}

// Values of any shape do no harm.
func TestAnyShape(t *testing.T) {
	values := []any{nil, "x", 1.5, -1.0, 5000.0, true, []any{}, []any{"set"}, []any{"set", 1.0}, []any{"set", []any{nil}}, []any{"map", "x"},
		[]any{"map", []any{"x", []any{1.0}, []any{7.0, []any{"uuid", "a"}}}}, []any{"uuid"}, []any{"uuid", 1.0}, []any{"uuid", "a"}, map[string]any{}}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var d Database
		fill(t, &d, base+ucast("u", m1, "10.0.0.1", "l2")+mcast("m", UnknownDst, "both")+acl1+arpSource("x", m2, "l2")+
			`Physical_Port p2 {"name": "p2", "vlan_bindings": ["map", [[7, ["uuid", "a"]]]], "acl_bindings": ["map", [[0, ["uuid", "c"]]]]}`+"\n"+
			`Logical_Router r {"name": "r", "switch_binding": ["map", [["10.0.0.1/24", ["uuid", "a"]]]], "static_routes": ["map", [["10.9.0.0/16", "10.0.0.2"]]], "acl_binding": ["map", [["10.0.0.1/24", ["uuid", "c"]]]]}`)
		for range 4 {
			tables := slices.Sorted(maps.Keys(d.tables))
			name := tables[r.IntN(len(tables))]
			ids := slices.Sorted(maps.Keys(d.tables[name]))
			if len(ids) == 0 {
				continue
			}
			row := maps.Clone(d.tables[name][ids[r.IntN(len(ids))]])
			row[Columns[name][r.IntN(len(Columns[name]))]] = values[r.IntN(len(values))]
			d.Set(name, ids[r.IntN(len(ids))], row)
		}
		d.Read(us)
	}
}

// Whatever the order of changes, the result is that of the rows there are; no MAC has two places, and no address two MACs;
// with a service node at most one VTEP gets copies.
func TestModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		var d Database
		fill(t, &d, base)
		rows := map[string]string{}
		for range 60 {
			id := fmt.Sprint(r.IntN(12))
			switch r.IntN(5) {
			case 0:
				delete(rows, "u"+id)
				d.Set(UcastRemote, "u"+id, nil)
				continue
			case 1:
				id := fmt.Sprint("m", r.IntN(3))
				rows[id] = mcast(id, []string{UnknownDst, g1}[r.IntN(2)], []string{"both", "other", "here", "four"}[r.IntN(4)])
			case 2:
				rows["a"] = fmt.Sprintf(`Logical_Switch a {"name": "a", "tunnel_key": %d, "replication_mode": %q}`+"\n", 5000+r.IntN(2), []string{SourceNode, ServiceNode}[r.IntN(2)])
			default:
				rows["u"+id] = ucast("u"+id, fmt.Sprintf("02:00:00:00:00:%02x", r.IntN(4)), []string{"", "10.0.0.1", "10.0.0.2"}[r.IntN(3)], fmt.Sprint("l", 1+r.IntN(4)))
			}
			for _, text := range rows {
				fill(t, &d, text)
			}
		}
		var fresh Database
		fill(t, &fresh, base)
		for _, text := range rows { // in any order
			fill(t, &fresh, text)
		}
		got := d.Read(us)
		if want := fresh.Read(us); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: after changes\n%q, anew\n%q", seed, show(got), show(want))
		}
		at, macs, copies := map[any]any{}, map[netip.Addr]any{}, map[any]int{}
		for _, row := range got.Rows {
			switch row := row.(type) {
			case control.MAC:
				if was, ok := at[row.MAC]; ok && was != row.VTEP {
					t.Fatalf("seed %d: %v is at %v and %v", seed, row.MAC, was, row.VTEP)
				}
				if was, ok := macs[row.IP]; ok && was != row.MAC && row.IP.IsValid() {
					t.Fatalf("seed %d: %v has %v and %v", seed, row.IP, was, row.MAC)
				}
				at[row.MAC], macs[row.IP] = row.VTEP, row.MAC
			case control.Flood:
				if !row.NoBroadcast {
					if copies[row.MAC]++; slices.Contains(us.Local, row.VTEP.Addr()) {
						t.Fatalf("seed %d: a copy to this switch", seed)
					}
				}
			}
		}
		if d.Row(LogicalSwitch, "a").text("replication_mode") == ServiceNode && slices.ContainsFunc(slices.Collect(maps.Values(copies)), func(n int) bool { return n > 1 }) {
			t.Fatalf("seed %d: %v copies with a service node", seed, copies)
		}
	}
}
