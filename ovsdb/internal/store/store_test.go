package store

import (
	"encoding/json"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// do carries out operations, and returns the reply.
func do(db *Database, ops ...string) string {
	var raw []json.RawMessage
	for _, o := range ops {
		raw = append(raw, json.RawMessage(o))
	}
	return string(db.Transact(raw, func(string) bool { return false }, time.Now()).Reply)
}

func ls(name string) string {
	return `{"op":"insert","table":"Logical_Switch","row":{"name":"` + name + `"}}`
}

// A database that would be too large, a transaction that is too much work, and results that are too long are refused, and change nothing.
func TestLimits(t *testing.T) {
	db := New(VTEP(), Limits{Rows: 2, Bytes: 10_000, Work: 100, Reply: 600})
	for _, x := range []struct {
		ops     []string
		refused string
	}{
		{[]string{ls("a")}, ""},
		{[]string{ls("b"), ls("c")}, "would have 3 rows"},
		{[]string{ls("b"), ls("c"), ls("d")}, "inserts more than 2"},
		{[]string{ls(strings.Repeat("b", 10_000))}, "would take"},
		{[]string{strings.Repeat(" ", 1) + `{"op":"select","table":"Logical_Switch","where":[["name","==","x"],["name","!=","y"]]}`}, ""},
		{append(make([]string, 0), strings.Split(strings.Repeat(`{"op":"select","table":"Logical_Switch","where":[["name","==","x"]]}#`, 60), "#")[:60]...), "too many rows"},
		{[]string{`{"op":"select","table":"Logical_Switch","where":[]}`, `{"op":"select","table":"Logical_Switch","where":[]}`, `{"op":"select","table":"Logical_Switch","where":[]}`}, "results have more"},
		{[]string{`{"op":"mutate","table":"Logical_Switch","where":[],"mutations":[["other_config","delete",["set",[` + strings.Repeat(`"x",`, maxElements) + `"x"]]]]}`}, "too many elements"},
		{[]string{ls("b")}, ""},
		{[]string{ls("c")}, "would have 3 rows"},
		{[]string{`{"op":"delete","table":"Logical_Switch","where":[]}`}, ""},
	} {
		got := do(db, x.ops...)
		if !json.Valid([]byte(got)) || x.refused == "" && strings.Contains(got, "error") || !strings.Contains(got, x.refused) {
			t.Errorf("%.200s: %.300s, want %q", x.ops, got, x.refused)
		}
	}
	if rows, bytes := db.Size(); rows != 0 || bytes != 0 {
		t.Errorf("%d rows, %d bytes are left", rows, bytes)
	}
	for _, tab := range db.order {
		if len(tab.rows)+len(tab.refs) > 0 {
			t.Errorf("%s has rows or references", tab.name)
		}
		for _, index := range tab.indexes {
			if len(index) > 0 {
				t.Errorf("%s has an index", tab.name)
			}
		}
	}
}

// Whatever the last transaction that was written, and wherever its record was torn, the database has all before it.
func TestTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	db, _, err := Open(path, VTEP(), DefaultLimits)
	check.OK(t, err)
	do(db, ls("a"), ls("b"))
	whole := db.file.size
	do(db, ls("c"))
	end := db.file.size
	check.OK(t, db.Close())
	text := check.Must(os.ReadFile(path))(t)
	for _, size := range []int64{whole, whole + 1, whole + 20, end - 1, end} {
		check.OK(t, os.WriteFile(path, text[:size], 0o600))
		db, torn, err := Open(path, VTEP(), DefaultLimits)
		check.OK(t, err)
		want, lost := 2, size-whole
		if size == end {
			want, lost = 3, 0
		}
		if rows, _ := db.Size(); rows != want || torn != lost {
			t.Errorf("of %d bytes: %d rows, %d bytes torn", size, rows, torn)
		}
		do(db, ls("d"))
		check.OK(t, db.Close())
		db, torn, err = Open(path, VTEP(), DefaultLimits)
		check.OK(t, err)
		if rows, _ := db.Size(); rows != want+1 || torn != 0 {
			t.Errorf("of %d bytes, and one more: %d rows, %d bytes torn", size, rows, torn)
		}
		db.Close()
	}
	for _, bad := range []string{"", "OVSDB CLUSTER 3 x\n", "OVSDB JSON 99999999999 da39a3ee5e6b4b0d3255bfef95601890afd80709\n"} {
		check.OK(t, os.WriteFile(path, []byte(bad), 0o600))
		if _, _, err := Open(path, VTEP(), DefaultLimits); err == nil {
			t.Errorf("%q is a database", bad)
		}
	}
}

// The file is written anew when it has grown, with what there is, and no other file is left.
func TestCompact(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "db")
	db, _, err := Open(path, VTEP(), DefaultLimits)
	check.OK(t, err)
	long := strings.Repeat("x", 1000)
	for range 2500 {
		do(db, ls("a"), ls(long))
		do(db, `{"op":"delete","table":"Logical_Switch","where":[["name","==","`+long+`"]]}`, `{"op":"delete","table":"Logical_Switch","where":[]}`)
	}
	do(db, ls("last"))
	if db.file.size > 2<<20 {
		t.Errorf("the file has %d bytes", db.file.size)
	}
	check.OK(t, db.Close())
	hasOne(t, path)
	for _, f := range check.Must(os.ReadDir(dir))(t) {
		if name := filepath.Join(dir, f.Name()); name != path && name != lockPath(path) {
			t.Errorf("%s is left", name)
		}
	}
}

// hasOne fails unless a file has one row, and whole transactions.
func hasOne(t *testing.T, path string) {
	t.Helper()
	db, torn, err := Open(path, VTEP(), DefaultLimits)
	check.OK(t, err)
	if rows, _ := db.Size(); rows != 1 || torn != 0 {
		t.Errorf("%d rows, %d bytes torn", rows, torn)
	}
	check.OK(t, db.Close())
}

// A transaction that cannot be written does not happen.
func TestFull(t *testing.T) {
	db, _, err := Open(filepath.Join(t.TempDir(), "db"), VTEP(), DefaultLimits)
	check.OK(t, err)
	do(db, ls("a"))
	check.OK(t, db.Close())
	if got := do(db, ls("b")); !strings.Contains(got, "I/O error") {
		t.Error(got)
	}
	if rows, _ := db.Size(); rows != 1 {
		t.Errorf("%d rows", rows)
	}
}

// FuzzTransact has transactions from strangers: whatever they are, replies are JSON with a result for each operation, and counts of rows,
// references and indexes are as counted anew.
func FuzzTransact(f *testing.F) {
	f.Add([]byte(`[` + ls("a") + `]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		db := New(VTEP(), Limits{Rows: 50, Bytes: 1 << 20, Work: 100_000, Reply: 1 << 20})
		do(db, `{"op":"insert","table":"Physical_Locator","uuid-name":"l","row":{"dst_ip":"1.1.1.1","encapsulation_type":"vxlan_over_ipv4"}}`,
			`{"op":"insert","table":"Logical_Switch","uuid-name":"s","uuid":"00000000-0000-4000-8000-000000000001","row":{"name":"s"}}`,
			`{"op":"insert","table":"Ucast_Macs_Remote","row":{"MAC":"m","logical_switch":["named-uuid","s"],"locator":["named-uuid","l"]}}`)
		var ops []json.RawMessage
		if json.Unmarshal(text, &ops) != nil {
			return
		}
		out := db.Transact(ops, func(string) bool { return true }, time.Now())
		var results []any
		if !out.Blocked && (json.Unmarshal(out.Reply, &results) != nil || len(results) < min(1, len(ops))) {
			t.Fatalf("%s", out.Reply)
		}
		recount(t, db)
	})
}

// recount compares what a database has counted with what its rows say.
func recount(t *testing.T, db *Database) {
	t.Helper()
	rows, bytes, refs := 0, 0, map[place]int{}
	for _, tab := range db.order {
		rows += len(tab.rows)
		for i, index := range tab.tableSchema.indexes {
			if len(tab.indexes[i]) != len(tab.rows) {
				t.Errorf("%s: %d rows, %d in index %d", tab.name, len(tab.rows), len(tab.indexes[i]), i)
			}
			for _, r := range tab.rows {
				if tab.indexes[i][r.key(index)] != r.id {
					t.Errorf("%s: row %v is not in index %d", tab.name, r.id, i)
				}
			}
		}
		for _, r := range tab.rows {
			bytes += r.size
			db.refer(tab, r, func(_ *column, to *table, id UUID) { refs[place{to, id}]++ })
		}
	}
	if rows != db.rows || bytes != db.bytes {
		t.Errorf("%d rows, %d bytes; counted %d, %d", rows, bytes, db.rows, db.bytes)
	}
	for _, tab := range db.order {
		for id, n := range tab.refs {
			if refs[place{tab, id}] != n || tab.rows[id] == nil {
				t.Errorf("%s %v has %d references, counted %d", tab.name, id, refs[place{tab, id}], n)
			}
			delete(refs, place{tab, id})
		}
		for id := range tab.rows {
			if !tab.root && tab.refs[id] == 0 {
				t.Errorf("%s %v: nothing refers to it", tab.name, id)
			}
		}
	}
	if len(refs) > 0 {
		t.Errorf("references are not counted: %v", refs)
	}
}

// Sums and products that do not fit are refused; the others are those of package math/big.
func TestCalculate(t *testing.T) {
	edges := []int64{math.MinInt64, math.MinInt64 + 1, -1 << 62, -7, -2, -1, 0, 1, 2, 7, 1 << 62, math.MaxInt64 - 1, math.MaxInt64}
	for _, x := range edges {
		for _, y := range edges {
			for op, f := range map[string]func(z, x, y *big.Int) *big.Int{"+=": (*big.Int).Add, "-=": (*big.Int).Sub, "*=": (*big.Int).Mul, "/=": (*big.Int).Quo, "%=": (*big.Int).Rem} {
				got, e := calculate(op, x, y)
				if y == 0 && (op == "/=" || op == "%=") {
					if e == nil || e.Code != domainError {
						t.Errorf("%d %s 0: %v", x, op, e)
					}
					continue
				}
				want := f(new(big.Int), big.NewInt(x), big.NewInt(y))
				if want.IsInt64() != (e == nil) || e == nil && got != want.Int64() {
					t.Errorf("%d %s %d: %d %v, want %v", x, op, y, got, e, want)
				}
			}
		}
	}
}

// A string with a null byte, which ovsdb-server, ovsdb-tool and its clients do not read, is in no database.
func TestNull(t *testing.T) {
	db := New(VTEP(), DefaultLimits)
	for _, op := range []string{ls(`a\u0000b`), `{"op":"insert","table":"Logical_Switch","row":{"name":"c","other_config":["map",[["k","\u0000"]]]}}`} {
		if got := do(db, op); !strings.Contains(got, "null bytes") {
			t.Errorf("%s: %s", op, got)
		}
	}
	if rows, _ := db.Size(); rows != 0 {
		t.Errorf("%d rows", rows)
	}
}

// Conditions of a monitor, which stay, and with which each row is compared, are bounded when it begins and when they change.
func TestConditions(t *testing.T) {
	db := New(VTEP(), DefaultLimits)
	requests := func(clauses int, name string) json.RawMessage {
		where := strings.Repeat(`["name","==","`+name+`"],`, clauses)
		return json.RawMessage(`{"Logical_Switch":{"where":[` + where[:len(where)-1] + `]},"Logical_Router":{"where":[["name","==","r"]]}}`)
	}
	for _, x := range []struct {
		clauses int
		name    string
		ok      bool
	}{{500, "x", true}, {5000, "x", false}, {1, strings.Repeat("x", 1000), true}, {1, strings.Repeat("x", 1<<20), false}} {
		m, e := db.NewMonitor(Update2, requests(1, "x"))
		if e != nil {
			t.Fatal(e)
		}
		_, began := db.NewMonitor(Update2, requests(x.clauses, x.name))
		_, changed := m.Change(requests(x.clauses, x.name))
		for _, e := range []*Error{began, changed} {
			if (e == nil) != x.ok || e != nil && e.Code != exhausted {
				t.Errorf("%d clauses with %d bytes: %v", x.clauses, len(x.name), e)
			}
		}
		if n := len(m.tables[db.tables["Logical_Switch"]].where); !x.ok && n != 1 {
			t.Errorf("%d clauses after a refusal", n)
		}
	}
}

// A transaction that is refused because it is not on disk is not in the file either: nothing is written while it cannot be taken out.
func TestNotDurable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	db, _, err := Open(path, VTEP(), DefaultLimits)
	check.OK(t, err)
	good := db.file.f
	r, w, err := os.Pipe() // which takes bytes, and is on no disk
	check.OK(t, err)
	defer r.Close()
	db.file.f = w
	if got := do(db, ls("a"), `{"op":"commit","durable":true}`); !strings.Contains(got, "I/O error") {
		t.Error(got)
	}
	if got := do(db, ls("b")); !strings.Contains(got, "I/O error") {
		t.Errorf("behind what cannot be taken out: %s", got)
	}
	w.Close()
	db.file.f = good
	if got := do(db, ls("c")); strings.Contains(got, "error") {
		t.Errorf("when it can: %s", got)
	}
	check.OK(t, db.Close())
	hasOne(t, path)
}
