package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// carry carries out operations as a server does, with the names of new rows as their UUIDs.
func carry(t *testing.T, d *Database, ops []Op) {
	t.Helper()
	text := check.Must(json.Marshal(ops))(t)
	for _, op := range ops {
		name, _ := op["uuid-name"].(string)
		fresh := name
		for name != "" && d.Row(op["table"].(string), fresh) != nil { // a name is of one transaction
			fresh += "x"
		}
		text = bytes.ReplaceAll(text, []byte(`"`+name+`"`), []byte(`"`+fresh+`"`))
	}
	var list []struct {
		Op, Table, Name string
		UUID            string `json:"uuid-name"`
		Row             Row
		Where           [][]any
		Mutations       [][]any
	}
	check.OK(t, json.Unmarshal([]byte(strings.ReplaceAll(string(text), "named-uuid", "uuid")), &list))
	for i, op := range list {
		id := op.UUID
		if len(op.Where) > 0 {
			id = uuid(op.Where[0][2])
		}
		switch op.Op {
		case "insert":
			if id == "" {
				id = fmt.Sprint("new", i, len(d.tables[op.Table]))
			}
			d.Set(op.Table, id, op.Row)
		case "update":
			for k, v := range op.Row {
				d.Row(op.Table, id)[k] = v
			}
		case "mutate":
			m := op.Mutations[0]
			mutate(d.Row(op.Table, id), m[0].(string), m[1].(string), m[2])
		case "delete":
			d.Set(op.Table, id, nil)
		}
	}
}

// mutate carries out a mutation of a set, or of a map.
func mutate(r Row, column, how string, value any) {
	was := atoms(r[column])
	kind := "set"
	if l, ok := r[column].([]any); ok && l[0] == "map" || how == "insert" && value.([]any)[0] == "map" {
		kind, was = "map", nil
		r.pairs(column, func(k, v any) { was = append(was, []any{k, v}) })
	}
	key := func(v any) any {
		if kind == "map" {
			if p, ok := v.([]any); ok && p[0] != "uuid" {
				return fmt.Sprint(p[0])
			}
		}
		return fmt.Sprint(v)
	}
	elements, _ := value.([]any)[1].([]any)
	if value.([]any)[0] == "uuid" {
		elements = []any{value}
	}
	for _, e := range elements {
		was = slices.DeleteFunc(was, func(x any) bool { return key(x) == key(e) })
		if how == "insert" {
			was = append(was, e)
		}
	}
	r[column] = []any{kind, was}
}

// What Write writes is what is to be: a second Write has nothing to do. Rows of other switches stay.
func TestWrite(t *testing.T) {
	var d Database
	fill(t, &d, `
Global g {"switches": ["uuid", "x"]}
Physical_Switch x {"name": "other", "ports": ["set", []]}
Logical_Switch a {"name": "a", "tunnel_key": 5000}
Physical_Locator l {"dst_ip": "192.0.2.9", "encapsulation_type": "vxlan_over_ipv4"}
Ucast_Macs_Local u {"MAC": "02:00:00:00:00:09", "ipaddr": "", "logical_switch": ["uuid", "a"], "locator": ["uuid", "l"]}
`)
	ip := netip.MustParseAddr("10.0.0.1")
	segments := []Segment{{VNI: 5000, Name: "a", ID: "a"}}
	for step, x := range []struct {
		faults   map[string][]string
		segments []Segment
		hosts    map[Host]bool
		groups   map[Group]bool
		ucast    int
		mcast    int
	}{
		{nil, nil, nil, nil, 1, 0},
		{map[string][]string{"p1": {Unspecified}}, segments, map[Host]bool{{"a", m1, ip}: true, {"a", m2, netip.Addr{}}: true}, nil, 3, 1},
		{nil, segments, map[Host]bool{{"a", m1, netip.Addr{}}: true}, map[Group]bool{{"a", g1}: true, {"a", "33:33:00:00:00:01"}: true}, 2, 3},
		{nil, segments, map[Host]bool{{"a", m1, netip.Addr{}}: true}, map[Group]bool{{"a", g1}: true}, 2, 2},
		{nil, nil, nil, nil, 1, 0},
	} {
		st := &State{Faults: x.faults, Segments: x.segments, Hosts: x.hosts, Groups: x.groups}
		ops := d.Write(us, st)
		if len(ops) == 0 {
			t.Errorf("step %d: nothing to do", step)
		}
		carry(t, &d, ops)
		if again := d.Write(us, st); len(again) > 0 {
			t.Errorf("step %d: again %v", step, again)
		}
		if u, m := len(d.tables[UcastLocal]), len(d.tables[McastLocal]); u != x.ucast || m != x.mcast {
			t.Errorf("step %d: %d unicast MACs, %d multicast ones", step, u, m)
		}
		if d.Row(UcastLocal, "u") == nil {
			t.Errorf("step %d: another switch's row has gone", step)
		}
		if got := d.Row(PhysicalPort, "port0").texts("port_fault_status"); len(got) != len(x.faults["p1"]) {
			t.Errorf("step %d: faults %v", step, got)
		}
	}
	if n := len(d.Row("Global", "g").Refs("switches")); n != 2 {
		t.Errorf("Global has %d switches", n)
	}
}

// Faults of the switch come and go.
func TestWriteFaults(t *testing.T) {
	var d Database
	fill(t, &d, base)
	for _, wrong := range [][]string{nil, {NoRouter}, {Unspecified, NoRouter}, nil} {
		st := &State{Wrong: wrong}
		carry(t, &d, d.Write(us, st))
		if got := d.Row(PhysicalSwitch, "s").texts("switch_fault_status"); len(got) != len(wrong) || len(d.Write(us, st)) > 0 {
			t.Errorf("%v, want %v", got, wrong)
		}
	}
}

// With another address, the rows of the switch get it, and those of other switches stay. Without an address there are none.
func TestWriteAddress(t *testing.T) {
	var d Database
	fill(t, &d, `
Logical_Switch a {"name": "a", "tunnel_key": 5000}
Physical_Locator l {"dst_ip": "192.0.2.9", "encapsulation_type": "vxlan_over_ipv4"}
Physical_Locator_Set s {"locators": ["uuid", "l"]}
Ucast_Macs_Local u {"MAC": "02:00:00:00:00:09", "ipaddr": "", "logical_switch": ["uuid", "a"], "locator": ["uuid", "l"]}
Mcast_Macs_Local m {"MAC": "unknown-dst", "logical_switch": ["uuid", "a"], "locator_set": ["uuid", "s"]}
`)
	st := &State{Segments: []Segment{{VNI: 5000, Name: "a", ID: "a"}}, Hosts: map[Host]bool{{"a", m1, netip.Addr{}}: true}, Source: m2}
	for _, local := range []string{"192.0.2.1", "192.0.2.7", "", "192.0.2.1"} {
		sw, rows := *us, 2
		if sw.Local = nil; local == "" {
			rows = 1
		} else {
			sw.Local = []netip.Addr{netip.MustParseAddr(local)}
		}
		carry(t, &d, d.Write(&sw, st))
		if again := d.Write(&sw, st); len(again) > 0 {
			t.Errorf("%q: again %v", local, again)
		}
		for table, want := range map[string]int{UcastLocal: rows, McastLocal: rows, ArpLocal: rows - 1} {
			if n := len(d.tables[table]); n != want {
				t.Errorf("%q: %d rows of %s, want %d", local, n, table, want)
			}
			for id, r := range d.tables[table] {
				at := r.ref("locator")
				if table == McastLocal {
					at = d.Row(LocatorSet, r.ref("locator_set")).ref("locators")
				}
				if ip := d.Row(Locator, at).text("dst_ip"); ip != local && id != "u" && id != "m" {
					t.Errorf("%q: a row of %s has %s", local, table, ip)
				}
			}
		}
	}
}
