// Package table says what a database with the schema hardware_vtep means for one switch: which segments it has, with which
// members, and which rows of package control. It has no I/O.
//
//	tables of the database  --Set-->  Database  --Read-->  Result: Segments, Rows, Left
//
// Read derives everything anew each time, so the result depends on the rows there are, and never on the order in which they came.
package table

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"unicode"
)

// The tables of the schema that are handled: Read reads those without Local, and Write writes those with it and what the switch is.
const (
	Global         = "Global"
	PhysicalSwitch = "Physical_Switch"
	PhysicalPort   = "Physical_Port"
	LogicalSwitch  = "Logical_Switch"
	Locator        = "Physical_Locator"
	LocatorSet     = "Physical_Locator_Set"
	UcastRemote    = "Ucast_Macs_Remote"
	McastRemote    = "Mcast_Macs_Remote"
	UcastLocal     = "Ucast_Macs_Local"
	McastLocal     = "Mcast_Macs_Local"
	LogicalRouter  = "Logical_Router"
	ACL            = "ACL"
	ACLEntry       = "ACL_entry"
	ArpLocal       = "Arp_Sources_Local"
	ArpRemote      = "Arp_Sources_Remote"
	Tunnels        = "Tunnel"
	BindingStats   = "Logical_Binding_Stats" // written and not monitored: nobody else writes them
)

// Columns are the tables and columns to monitor.
var Columns = map[string][]string{
	Global:         {"switches"},
	PhysicalSwitch: {"name", "ports", "tunnels", "tunnel_ips", "switch_fault_status"},
	Tunnels:        {"local", "remote", "bfd_config_local", "bfd_config_remote", "bfd_params", "bfd_status"},
	PhysicalPort:   {"name", "vlan_bindings", "acl_bindings", "vlan_stats", "port_fault_status"},
	LogicalSwitch:  {"name", "tunnel_key", "replication_mode"},
	Locator:        {"dst_ip", "encapsulation_type", "tunnel_key"},
	LocatorSet:     {"locators"},
	UcastRemote:    {"MAC", "ipaddr", "logical_switch", "locator"},
	McastRemote:    {"MAC", "logical_switch", "locator_set"},
	LogicalRouter:  {"name", "switch_binding", "static_routes", "acl_binding"},
	ACL:            {"acl_name", "acl_entries"},
	ACLEntry: {"sequence", "source_mac", "dest_mac", "ethertype", "source_ip", "source_mask", "dest_ip", "dest_mask", "protocol", "source_port_min", "source_port_max",
		"dest_port_min", "dest_port_max", "tcp_flags", "icmp_type", "icmp_code", "direction", "action"},
	ArpLocal:   {"src_mac", "locator"},
	ArpRemote:  {"src_mac", "locator"},
	UcastLocal: {"MAC", "ipaddr", "logical_switch", "locator"},
	McastLocal: {"MAC", "logical_switch", "locator_set"},
}

// Written reports whether a table is one that Read does not look at.
func Written(table string) bool {
	return table == UcastLocal || table == McastLocal || table == Tunnels || table == ArpLocal
}

// A Row is a row of the database: values by column, as package json decodes the notation of RFC 7047, section 5.1.
type Row map[string]any

// A Database is a copy of tables. The zero value is empty.
type Database struct {
	tables map[string]map[string]Row // by UUID
}

// Set replaces a row of a table, nil to remove it.
func (d *Database) Set(table, uuid string, r Row) {
	if d.tables == nil {
		d.tables = map[string]map[string]Row{}
	}
	if r == nil {
		delete(d.tables[table], uuid)
		return
	}
	if d.tables[table] == nil {
		d.tables[table] = map[string]Row{}
	}
	d.tables[table][uuid] = r
}

// Find returns the first UUID, in order, of a row of a table whose column is a string; "" if there is none.
func (d *Database) Find(table, column, value string) (found string) {
	for id, r := range d.tables[table] {
		if r.text(column) == value && (found == "" || id < found) {
			found = id
		}
	}
	return found
}

// title returns the name of a row, its UUID if the name is not printable, or is or may be that of another one.
func (d *Database) title(table, column, id string) string {
	name := d.Row(table, id).text(column)
	if name == "" || strings.HasSuffix(name, ofRouted) || d.Row(table, name) != nil || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsGraphic(c) }) || d.Find(table, column, name) != id {
		return id
	}
	return name
}

// byName returns the UUIDs of rows of a table in the order of the names, and of one name in theirs.
func (d *Database) byName(table string, ids iter.Seq[string]) []string {
	return slices.SortedFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(d.Row(table, a).text("name"), d.Row(table, b).text("name")), cmp.Compare(a, b))
	})
}

// Row returns a row, nil if it does not exist.
func (d *Database) Row(table, uuid string) Row { return d.tables[table][uuid] }

// atoms returns the elements of a set; an atom is a set of one (RFC 7047, section 5.1).
func atoms(v any) []any {
	if v == nil {
		return nil
	}
	if l, ok := v.([]any); ok && len(l) == 2 && l[0] == "set" {
		all, _ := l[1].([]any)
		return all
	}
	return []any{v}
}

// atom returns the only element of a set, nil if there is not one.
func (r Row) atom(column string) any {
	v := r[column]
	if l, ok := v.([]any); !ok || len(l) != 2 || l[0] != "set" {
		return v
	}
	if a := atoms(v); len(a) == 1 {
		return a[0]
	}
	return nil
}

// text returns a string, "" if the column has none.
func (r Row) text(column string) string {
	s, _ := r.atom(column).(string)
	return s
}

// number returns an integer; ok is false if the column has none.
func (r Row) number(column string) (n int, ok bool) { return integer(r.atom(column)) }

// integer returns a number that has no fraction and is at most 32 bits.
func integer(v any) (int, bool) {
	f, ok := v.(float64)
	if !ok || f < 0 || f > 1<<32-1 || f != float64(int64(f)) {
		return 0, false
	}
	return int(f), true
}

// uuid returns what ["uuid", x] refers to, else "".
func uuid(v any) string {
	if l, ok := v.([]any); ok && len(l) == 2 && l[0] == "uuid" {
		s, _ := l[1].(string)
		return s
	}
	return ""
}

// Refs returns the references in a column.
func (r Row) Refs(column string) (ids []string) {
	for _, a := range atoms(r[column]) {
		if id := uuid(a); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// ref returns the only reference in a column, "" if there is not one.
func (r Row) ref(column string) string { return uuid(r.atom(column)) }

// pairs calls f for the pairs of a map.
func (r Row) pairs(column string, f func(k, v any)) {
	l, ok := r[column].([]any)
	if !ok || len(l) != 2 || l[0] != "map" {
		return
	}
	all, _ := l[1].([]any)
	for _, p := range all {
		if kv, ok := p.([]any); ok && len(kv) == 2 {
			f(kv[0], kv[1])
		}
	}
}
