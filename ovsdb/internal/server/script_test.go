package server

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/ovsdb/internal/store"
)

// A script is random transactions. Rows have UUIDs of their own, so that two servers have the same.
type script struct {
	*rand.Rand
	schema map[string]any
	tables []string
	faulty bool // the operation has a fault; of two, servers may name either
}

// wrong reports whether to put a fault here, the only one of the operation.
func (g *script) wrong(percent int) bool {
	if g.faulty || !g.chance(percent) {
		return false
	}
	g.faulty = true
	return true
}

func newScript(seed int) *script {
	var s struct{ Tables map[string]any }
	json.Unmarshal(store.VTEP().Text, &s)
	g := &script{Rand: rand.New(rand.NewPCG(uint64(seed), 26)), schema: s.Tables}
	for name := range s.Tables {
		g.tables = append(g.tables, name)
	}
	slices.Sort(g.tables)
	return g
}

func (g *script) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *script, l []T) T { return l[g.IntN(len(l))] }

func (g *script) table() string {
	if g.chance(60) {
		return pick(g, []string{"Global", "Physical_Switch", "Physical_Port", "Logical_Switch", "Ucast_Macs_Remote", "Mcast_Macs_Remote", "Physical_Locator", "Physical_Locator_Set", "Manager"})
	}
	return pick(g, g.tables)
}

// id returns one of a few UUIDs of a table.
func (g *script) id(table string) string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", slices.Index(g.tables, table), g.IntN(5))
}

func (g *script) columns(table string) map[string]any {
	return g.schema[table].(map[string]any)["columns"].(map[string]any)
}

func (g *script) column(table string) string {
	if g.wrong(3) {
		return pick(g, []string{"_uuid", "_version", "nothing"})
	}
	var names []string
	for n := range g.columns(table) {
		names = append(names, n)
	}
	slices.Sort(names)
	return pick(g, names)
}

func (g *script) atom(base any) any {
	if g.wrong(1) {
		return pick(g, []any{1.5, "x", true, nil, []any{}, map[string]any{}, []any{"uuid", "x"}, []any{"set", []any{}}})
	}
	kind, ref := base, ""
	if m, ok := base.(map[string]any); ok {
		kind = m["type"]
		ref, _ = m["refTable"].(string)
		if e, ok := m["enum"].([]any); ok && !g.wrong(5) {
			return pick(g, e[1].([]any))
		}
		if n, ok := m["minInteger"].(float64); ok && !g.wrong(5) {
			return int(n) + g.IntN(4)
		}
	}
	switch kind {
	case "integer":
		return pick(g, []any{0, 1, 2, -1, 5, 4096, int64(1) << 30})
	case "boolean":
		return g.chance(50)
	case "uuid":
		if ref == "" || g.chance(3) {
			return []any{"uuid", "ffffffff-0000-4000-8000-000000000000"}
		}
		if g.chance(5) {
			return []any{"named-uuid", pick(g, []string{"a", "b"})}
		}
		return []any{"uuid", g.id(ref)}
	}
	return pick(g, []string{"", "a", "b", "c\u00e9\n\"<", "tcp:127.0.0.1:1"})
}

// value returns one for a column, or for a mutation or condition of it.
func (g *script) value(table, column string) any {
	def, ok := g.columns(table)[column].(map[string]any)
	if !ok {
		return []any{"uuid", g.id(table)}
	}
	kind, ok := def["type"].(map[string]any)
	if !ok {
		return g.atom(def["type"])
	}
	n := g.IntN(4)
	if kind["max"] != "unlimited" {
		if n = g.IntN(2); g.wrong(3) {
			n = 2
		}
		if kind["min"] == nil && !g.wrong(3) {
			return g.atom(kind["key"])
		}
	}
	list := []any{}
	for range n {
		k := g.atom(kind["key"])
		same := func(x any) bool {
			if p, ok := x.([]any); ok && kind["value"] != nil {
				x = p[0]
			}
			return fmt.Sprint(x) == fmt.Sprint(k)
		}
		if slices.ContainsFunc(list, same) && !g.wrong(30) {
			continue
		}
		if v := kind["value"]; v != nil && !g.wrong(2) {
			list = append(list, []any{k, g.atom(v)})
		} else {
			list = append(list, k)
		}
	}
	if kind["value"] != nil && !g.wrong(2) {
		return []any{"map", list}
	}
	if min, ok := kind["min"].(float64); (kind["min"] == nil || ok && min == 1) && len(list) == 0 && !g.wrong(30) {
		return g.atom(kind["key"])
	}
	if len(list) == 1 && g.chance(50) {
		return list[0]
	}
	return []any{"set", list}
}

func (g *script) row(table string, share int) map[string]any {
	row := map[string]any{}
	for n := range g.columns(table) {
		row[n] = nil
	}
	var names []string
	for n := range row {
		names = append(names, n)
	}
	slices.Sort(names)
	row = map[string]any{}
	for _, n := range names {
		if g.chance(share) {
			row[n] = g.value(table, n)
		}
	}
	if g.wrong(1) {
		row["nothing"] = 1
	}
	return row
}

func (g *script) where(table string) []any {
	w := []any{}
	if g.chance(60) {
		return append(w, []any{"_uuid", "==", []any{"uuid", g.id(table)}})
	}
	for range g.IntN(3) {
		if g.chance(10) {
			w = append(w, g.chance(70))
			continue
		}
		c := g.column(table)
		how := pick(g, []string{"==", "==", "!=", "includes", "excludes"})
		if c == "tunnel_key" && g.chance(50) {
			w = append(w, []any{c, pick(g, []string{"<", "<=", ">=", ">"}), g.IntN(6)})
			continue
		}
		if g.wrong(4) {
			how = pick(g, []string{"<", "~"})
		}
		w = append(w, []any{c, how, g.value(table, c)})
	}
	return w
}

func (g *script) mutation(t string) []any {
	c := g.column(t)
	def, _ := g.columns(t)[c].(map[string]any)
	kind, many := def["type"].(map[string]any)
	if kind["key"] == "integer" || def["type"] == "integer" {
		return []any{c, pick(g, []string{"+=", "-=", "*=", "/=", "%="}), pick(g, []any{0, 1, -1, 7, int64(1) << 30})}
	}
	if many && (kind["min"] != nil || kind["max"] != nil) || g.wrong(20) {
		v := g.value(t, c)
		if key := kind["key"]; key == "string" && kind["max"] == "unlimited" && g.chance(20) {
			return []any{c, "delete", []any{"set", []any{"a", "b"}}}
		}
		return []any{c, pick(g, []string{"insert", "insert", "delete", "delete"}), v}
	}
	g.faulty = true
	return []any{c, pick(g, []string{"+=", "~"}), 1}
}

func (g *script) op() map[string]any {
	t := g.table()
	g.faulty = false
	op := map[string]any{"op": "insert", "table": t}
	switch n := g.IntN(100); {
	case n < 45:
		op["row"], op["uuid"] = g.row(t, 75), g.id(t)
		row, _ := json.Marshal(op["row"])
		name := pick(g, []string{"a", "b"})
		if g.chance(20) && !strings.Contains(string(row), `"named-uuid","`+name) { // ovsdb-server ignores references to oneself, in any table
			op["uuid-name"] = name
		}
		return op
	case n < 55:
		op["op"], op["row"] = "update", g.row(t, 40)
	case n < 72:
		op["op"] = "mutate"
		list := []any{}
		for range 1 + g.IntN(2) {
			list = append(list, g.mutation(t))
		}
		op["mutations"] = list
	case n < 82:
		op["op"] = "delete"
	case n < 90:
		op["op"] = "select"
		if g.chance(50) {
			op["columns"] = []any{g.column(t), "_uuid"}
		}
	case n < 95:
		c := g.column(t)
		op["op"], op["columns"], op["timeout"], op["until"] = "wait", []any{c}, 0, pick(g, []string{"==", "!=", "!="})
		rows := []any{}
		for range g.IntN(3) {
			rows = append(rows, map[string]any{c: g.value(t, c)})
		}
		op["rows"] = rows
	default:
		return pick(g, []map[string]any{
			{"op": "comment", "comment": "x"}, {"op": "commit", "durable": false}, {"op": "abort"}, {"op": "assert", "lock": "mine"}, {"op": "assert", "lock": "x"},
			{"op": "nothing"}, {"op": "commit"}, {"op": "comment", "comment": "x", "y": 1}, {"op": "insert", "table": "Nothing", "row": map[string]any{}},
		})
	}
	op["where"] = g.where(t)
	return op
}

// everything is a transaction that selects all rows, without their versions.
func (g *script) everything() []any {
	ops := []any{"hardware_vtep"}
	for _, t := range g.tables {
		ops = append(ops, map[string]any{"op": "select", "table": t, "where": []any{}})
	}
	return ops
}

// monitors are requests for all tables.
func (g *script) monitors() map[string]any {
	all := map[string]any{}
	for _, t := range g.tables {
		all[t] = []any{map[string]any{}}
	}
	return all
}
