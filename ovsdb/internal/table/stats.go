package table

import (
	"fmt"
	"math"
)

// Counts are the packets and bytes of a binding.
type Counts struct{ PacketsIn, BytesIn, PacketsOut, BytesOut uint64 }

// row returns a row of Logical_Binding_Stats. "From local" is what the Physical_Switch has sent, and "to local" what it has received,
// as the documentation of the schema says.
func (c Counts) row() Op {
	n := func(u uint64) int64 { return int64(min(u, math.MaxInt64)) }
	return Op{"packets_from_local": n(c.PacketsOut), "bytes_from_local": n(c.BytesOut), "packets_to_local": n(c.PacketsIn), "bytes_to_local": n(c.BytesIn)}
}

// WriteStats returns the operations after which the database has the counts of bindings, each in a row of Logical_Binding_Stats that
// vlan_stats of its Physical_Port refers to. Rows that are there have what was told before. Bindings without counts have no row.
func (d *Database) WriteStats(sw *Switch, counts, told map[Member]Counts) []Op {
	w := &writer{Database: d, sw: sw}
	ports := d.ports(sw)
	for _, name := range sw.Ports {
		if id := ports[name]; id != "" {
			w.stats(name, id, counts, told)
		}
	}
	return w.ops
}

// stats writes the counts of the bindings of a port.
func (w *writer) stats(name, id string, counts, told map[Member]Counts) {
	have := map[int]string{}
	w.Row(PhysicalPort, id).pairs("vlan_stats", func(k, v any) {
		if vlan, ok := integer(k); ok {
			have[vlan] = uuid(v)
		}
	})
	fresh, gone := [][]any{}, []int{}
	for vlan := range 4096 {
		m := Member{name, vlan}
		c, counted := counts[m]
		switch row, there := have[vlan]; {
		case counted && !there:
			n := fmt.Sprint("stats", len(w.ops))
			w.op(Op{"op": "insert", "table": BindingStats, "uuid-name": n, "row": c.row()})
			fresh = append(fresh, []any{vlan, named(n)})
		case counted && told[m] != c:
			w.op(Op{"op": "update", "table": BindingStats, "where": byID(row), "row": c.row()})
		case there && !counted:
			gone = append(gone, vlan)
		}
	}
	if len(gone) > 0 {
		w.mutate(PhysicalPort, id, "vlan_stats", "delete", set(gone))
	}
	if len(fresh) > 0 {
		w.mutate(PhysicalPort, id, "vlan_stats", "insert", []any{"map", fresh})
	}
}
