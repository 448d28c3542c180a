package table

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/policy"
)

// Table ACL_entry: each column is a condition. What a rule cannot have makes a deny wider, and a permit go.
func TestACLEntry(t *testing.T) {
	const deny, permit = `"direction": "ingress", "action": "deny"`, `"direction": "egress", "action": "permit"`
	for name, c := range map[string]struct {
		entry string // columns
		want  string // the rule as a file has it, "" = none
		wide  bool
	}{
		"everything":       {deny, `ingress deny`, false},
		"permit":           {permit, `egress allow`, false},
		"MACs":             {deny + `, "source_mac": "02:00:00:00:00:01", "dest_mac": "02:00:00:00:00:02"`, `ingress deny SrcMACs=[02:00:00:00:00:01] DstMACs=[02:00:00:00:00:02]`, false},
		"a bad MAC":        {deny + `, "source_mac": "x"`, `ingress deny`, true},
		"ethertype":        {deny + `, "ethertype": "0x86DD"`, `ingress deny EtherTypes=[34525]`, false},
		"a bad ethertype":  {deny + `, "ethertype": "0x05dc"`, `ingress deny`, true},
		"addresses":        {permit + `, "source_ip": "10.0.0.1", "dest_ip": "10.1.2.3", "dest_mask": "255.255.0.0"`, `egress allow Src=[10.0.0.1/32] Dst=[10.1.0.0/16]`, false},
		"IPv6":             {deny + `, "source_ip": "2001:db8::1", "source_mask": "ffff:ffff::"`, `ingress deny Src=[2001:db8::/32]`, false},
		"IPv4 in IPv6":     {deny + `, "source_ip": "::ffff:10.0.0.1"`, `ingress deny`, true},
		"a mask with hole": {deny + `, "source_ip": "10.0.0.1", "source_mask": "255.0.255.0"`, `ingress deny`, true},
		"a mask of IPv6":   {deny + `, "source_ip": "10.0.0.1", "source_mask": "ffff::"`, `ingress deny`, true},
		"a mask alone":     {deny + `, "source_mask": "255.0.0.0"`, `ingress deny`, true},
		"permit with hole": {permit + `, "source_ip": "10.0.0.1", "source_mask": "255.0.255.0"`, ``, true},
		"ports": {deny + `, "protocol": 6, "source_port_min": 1024, "dest_port_min": 80, "dest_port_max": 90`,
			`ingress deny Protocol=6 SrcPorts=[1024-65535] DstPorts=[80-90]`, false},
		"up to a port":        {deny + `, "protocol": 17, "dest_port_max": 90`, `ingress deny Protocol=17 DstPorts=[0-90]`, false},
		"ports, descending":   {deny + `, "protocol": 6, "dest_port_min": 9, "dest_port_max": 8`, `ingress deny Protocol=6`, true},
		"ports of no such":    {deny + `, "protocol": 1, "dest_port_min": 9`, `ingress deny Protocol=1`, true},
		"a port too high":     {deny + `, "protocol": 6, "dest_port_max": 70000`, `ingress deny Protocol=6`, true},
		"protocol 0":          {deny + `, "protocol": 0`, `ingress deny`, true},
		"protocol 256":        {deny + `, "protocol": 256`, `ingress deny`, true},
		"ICMP":                {deny + `, "protocol": 1, "icmp_type": 8`, `ingress deny Protocol=1 ICMP=[8]`, false},
		"ICMP, code":          {deny + `, "protocol": 58, "icmp_type": 1, "icmp_code": 4`, `ingress deny Protocol=58 ICMP=[1/4]`, false},
		"ICMP without a type": {deny + `, "protocol": 1, "icmp_code": 4`, `ingress deny Protocol=1`, true},
		"ICMP of TCP":         {deny + `, "protocol": 6, "icmp_type": 4`, `ingress deny Protocol=6`, true},
		"TCP flags":           {deny + `, "protocol": 6, "tcp_flags": 2, "tcp_flags_mask": 2`, `ingress deny Protocol=6`, true},
		"permit, TCP flags":   {permit + `, "protocol": 6, "tcp_flags": 16`, ``, true},
		"empty sets":          {deny + `, "source_ip": ["set", []], "protocol": ["set", []], "tcp_flags": ["set", []], "icmp_code": ["set", []]`, `ingress deny`, false},
	} {
		var d Database
		fill(t, &d, base+`ACL c {"acl_name": "c", "acl_entries": ["uuid", "e"]}
ACL_entry e {"sequence": 1, `+c.entry+`}
Physical_Port p1 {"name": "p1", "vlan_bindings": ["map", [[0, ["uuid", "a"]]]], "acl_bindings": ["map", [[0, ["uuid", "c"]]]]}`)
		res := d.Read(us)
		acl := res.ACLs["c"]
		if acl == nil || !acl.Stateless || acl.Default != policy.Allow || acl.Check() != nil {
			t.Errorf("%s: %+v", name, acl)
			continue
		}
		got := ""
		for _, r := range acl.Rules {
			got += written(&r)
		}
		if wide := res.Counts[BadEntry] == 1; got != c.want || wide != c.wide || res.Faulty["p1"] != c.wide {
			t.Errorf("%s: %q, wide %v, fault %v, want %q, %v", name, got, wide, res.Faulty, c.want, c.wide)
		}
	}
}

// written returns the fields of a rule that are set.
func written(r *policy.Rule) string {
	s := fmt.Sprint(r.Direction, " ", r.Action)
	v := reflect.ValueOf(*r)
	for i := range v.NumField() {
		if f := v.Type().Field(i).Name; f != "Direction" && f != "Action" && !v.Field(i).IsZero() {
			s += fmt.Sprintf(" %s=%v", f, v.Field(i).Interface())
		}
	}
	return s
}

// Entries are in the order of their numbers, whatever that of their references, and a whole port's ACL is that of all its members.
func TestACLOrder(t *testing.T) {
	var d Database
	fill(t, &d, base+`ACL c {"acl_name": "c", "acl_entries": ["set", [["uuid", "e3"], ["uuid", "e1"], ["uuid", "e2"]]]}
ACL_entry e1 {"sequence": 30, "direction": "ingress", "action": "deny"}
ACL_entry e2 {"sequence": 4, "direction": "ingress", "action": "permit", "protocol": 6}
ACL_entry e3 {"sequence": -1, "direction": "egress", "action": "deny", "protocol": 17}
Physical_Port p1 {"name": "p1", "vlan_bindings": ["map", [[0, ["uuid", "a"]], [9, ["uuid", "b"]]]], "acl_bindings": ["map", [[0, ["uuid", "c"]]]]}
Logical_Switch b {"name": "b", "tunnel_key": 5001}`)
	res := d.Read(us)
	var got []string
	for _, r := range res.ACLs["c"].Rules {
		got = append(got, written(&r))
	}
	if want := "egress deny Protocol=17, ingress allow Protocol=6, ingress deny"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %s", got, want)
	}
	if acls := fmt.Sprint(res.Segments[0].ACLs, res.Segments[1].ACLs); acls != "map[{p1 0}:c] map[{p1 9}:c]" {
		t.Error(acls)
	}
}

// An ACL that is too long denies everything.
func TestACLTooLong(t *testing.T) {
	var d Database
	refs := make([]string, policy.MaxRules+1)
	for i := range refs {
		id := fmt.Sprint("e", i)
		d.Set(ACLEntry, id, Row{"sequence": float64(i), "direction": "ingress", "action": "permit"})
		refs[i] = `["uuid", "` + id + `"]`
	}
	fill(t, &d, base+`ACL c {"acl_name": "c", "acl_entries": ["set", [`+strings.Join(refs, ",")+`]]}
Physical_Port p1 {"name": "p1", "vlan_bindings": ["map", [[0, ["uuid", "a"]]]], "acl_bindings": ["map", [[0, ["uuid", "c"]]]]}`)
	res := d.Read(us)
	if acl := res.ACLs["c"]; acl.Default != policy.Deny || len(acl.Rules) > 0 || !res.Faulty["p1"] || res.Counts[LongACL] != 1 {
		t.Errorf("%d rules, %v, %v", len(acl.Rules), acl.Default, res.Counts)
	}
}

// ACLs keep their own rules whatever their names are.
func TestACLNames(t *testing.T) {
	var d Database
	fill(t, &d, base+router+`ACL c {"acl_name": "web", "acl_entries": ["uuid", "e1"]}
ACL x {"acl_name": "web routed", "acl_entries": ["uuid", "e2"]}
ACL y {"acl_name": "x", "acl_entries": ["uuid", "e3"]}
ACL_entry e1 {"sequence": 1, "direction": "ingress", "action": "deny", "protocol": 6}
ACL_entry e2 {"sequence": 1, "direction": "ingress", "action": "deny", "protocol": 17}
ACL_entry e3 {"sequence": 1, "direction": "ingress", "action": "deny", "protocol": 1}
Physical_Port p1 {"name": "p1", "vlan_bindings": ["map", [[0, ["uuid", "a"]]]], "acl_bindings": ["map", [[0, ["uuid", "x"]]]]}
Physical_Port p2 {"name": "p2", "vlan_bindings": ["map", [[7, ["uuid", "a"]]]], "acl_bindings": ["map", [[0, ["uuid", "y"]]]]}
Logical_Router r {"name": "r", "switch_binding": ["map", [["10.0.0.1/24", ["uuid", "a"]]]], "acl_binding": ["map", [["10.0.0.1", ["uuid", "c"]]]]}`)
	res := d.Read(us)
	s := res.Segments[0]
	for name, protocol := range map[string]uint8{s.RouterACL: 6, s.ACLs[Member{"p1", 0}]: 17, s.ACLs[Member{"p2", 7}]: 1} {
		if acl := res.ACLs[name]; acl == nil || len(acl.Rules) != 1 || acl.Rules[0].Protocol != protocol {
			t.Errorf("%q: %+v, want protocol %d", name, acl, protocol)
		}
	}
}
