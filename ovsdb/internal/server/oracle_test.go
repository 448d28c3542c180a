package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/ovsdb/internal/ovslab"
	"github.com/vxswitch/vxswitch/ovsdb/internal/store"
)

var seeds = flag.Int("seeds", 12, "how many random scripts TestOracle has")

// A client sends requests and reads what comes.
type client struct {
	t    *testing.T
	conn net.Conn
	d    *json.Decoder
}

func newClient(t *testing.T, conn net.Conn) *client {
	t.Cleanup(func() { conn.Close() })
	d := json.NewDecoder(conn)
	d.UseNumber()
	return &client{t, conn, d}
}

// ask returns the notifications before a reply, and the reply.
func (c *client) ask(method string, params ...any) (before []any, reply map[string]any) {
	c.t.Helper()
	text := check.Must(json.Marshal(map[string]any{"id": 1, "method": method, "params": append([]any{}, params...)}))(c.t)
	c.conn.SetDeadline(time.Now().Add(time.Minute))
	go c.conn.Write(append(text, '\n'))
	for {
		var m map[string]any
		if err := c.d.Decode(&m); err != nil {
			c.t.Fatalf("%s: %v", text, err)
		}
		switch {
		case m["method"] == "echo":
			go fmt.Fprint(c.conn, `{"id":"echo","result":[],"error":null}`)
		case m["method"] != nil:
			before = append(before, m)
		default:
			return before, m
		}
	}
}

// plain returns a value without what two servers may say in other words: details, versions, and the order of rows and updates.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		code, failed := v["error"].(string)
		for k, x := range v {
			if k != "_version" && !(failed && (k == "details" || k == "syntax")) && !(k == "result" && x == nil) {
				out[k] = plain(x)
			}
		}
		if failed {
			out["error"] = code
		}
		return out
	case []any:
		var out []any
		for _, x := range v {
			out = append(out, plain(x))
		}
		return out
	case string: // the UUID of a row that there is not, by a name
		if len(v) == 36 && v[8] == '-' && v[13] == '-' && !strings.Contains(v, "-0000-") {
			return "anything"
		}
	}
	return v
}

// text is a value whose sets and rows are in order.
func text(v any) string {
	v = plain(v)
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				v[k] = walk(x)
				if l, ok := v[k].([]any); ok && k == "rows" {
					inOrder(l)
				}
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
			if len(v) == 2 && (v[0] == "set" || v[0] == "map") {
				l, _ := v[1].([]any)
				inOrder(l)
			}
		}
		return v
	}
	b, _ := json.Marshal(walk(v))
	return string(b)
}

func inOrder(l []any) {
	sort.Slice(l, func(i, j int) bool {
		a, _ := json.Marshal(l[i])
		b, _ := json.Marshal(l[j])
		return bytes.Compare(a, b) < 0
	})
}

// Debian's ovsdb-server and ours answer random transactions alike, tell three kinds of monitors the same, and have the same rows at the
// end, and after a restart. Our file is one that ovsdb-server reads, and its file one that we read.
func TestOracle(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { compare(t, seed) })
	}
}

func open(t *testing.T, path string) *Server {
	t.Helper()
	db, torn, err := store.Open(path, store.VTEP(), store.DefaultLimits)
	if err != nil || torn != 0 {
		t.Fatal(torn, err)
	}
	s := New(db, nil)
	t.Cleanup(func() { s.Close() })
	return s
}

func compare(t *testing.T, seed int) {
	theirs := ovslab.New(t)
	path := filepath.Join(t.TempDir(), "db")
	ours := open(t, path)
	dial := func() []*client {
		return []*client{newClient(t, check.Must(net.Dial("unix", theirs.Sock))(t)), newClient(t, ours.Pipe())}
	}
	both := dial()
	g := newScript(seed)
	ok := 0
	ask := func(method string, params ...any) {
		t.Helper()
		var said [2]string
		for i, c := range both {
			before, reply := c.ask(method, params...)
			said[i] = text(reply)
			for _, b := range before {
				said[i] += "\n" + text(b)
			}
			lines := strings.Split(said[i], "\n")
			slices.Sort(lines[1:])
			said[i] = strings.Join(lines, "\n")
		}
		if said[0] != said[1] {
			sent, _ := json.Marshal(params)
			t.Fatalf("%s\nsent   %s\ntheirs %s\nours   %s", method, sent, said[0], said[1])
		}
		if method == "transact" && !strings.Contains(said[0], `"error":"`) {
			ok++
		}
	}
	ask("lock", "mine")
	ask("monitor", "hardware_vtep", "m1", g.monitors())
	ask("monitor_cond", "hardware_vtep", "m2", g.monitors())
	ask("monitor_cond_since", "hardware_vtep", "m3", map[string]any{"Logical_Switch": map[string]any{"columns": []any{"name", "tunnel_key"}, "where": []any{[]any{"name", "==", "a"}, []any{"tunnel_key", "==", 1}}, "select": map[string]any{"delete": false}}}, "00000000-0000-0000-0000-000000000000")
	for i := range 400 {
		ops := []any{"hardware_vtep"}
		for range 1 + g.IntN(4) {
			ops = append(ops, g.op())
		}
		ask("transact", ops...)
		if i%100 == 99 {
			ask("transact", g.everything()...)
			ask("monitor_cond_change", "m3", "m3", map[string]any{"Logical_Switch": []any{map[string]any{"where": []any{[]any{"name", "==", pick(g, []string{"", "a", "b"})}}}}})
		}
	}
	if ok < 40 {
		t.Errorf("of 400 transactions %d did something", ok)
	}
	theirs.Stop()
	check.OK(t, ours.Close())
	ours = open(t, path)
	theirs.Start()
	both = dial()
	ask("transact", g.everything()...)

	check.OK(t, ours.Close()) // and with the files exchanged
	theirs.Stop()
	theirs.Swap(path)
	ours = open(t, path)
	theirs.Start()
	both = dial()
	ask("transact", g.everything()...)
}
