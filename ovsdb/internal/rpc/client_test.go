package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/ovsdb/internal/ovslab"
)

const db = "hardware_vtep"

func dial(t *testing.T, s *ovslab.Server) *Client {
	t.Helper()
	conn := check.Must(net.Dial("unix", s.Sock))(t)
	c := New(conn)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return c
}

// With ovsdb-server: what is there comes first, then what transactions change, each at once; a refused one says why.
func TestServer(t *testing.T) {
	s := ovslab.New(t)
	s.Ctl("add-ls", "first")
	c := dial(t, s)
	got := make(chan Tables, 10)
	check.OK(t, c.Monitor(t.Context(), db, map[string][]string{"Logical_Switch": {"name"}}, func(x Tables) { got <- x }))
	names := func() (out []string) {
		select {
		case x := <-got:
			for _, r := range x["Logical_Switch"] {
				if r == nil {
					out = append(out, "deleted")
					continue
				}
				out = append(out, r["name"].(string))
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no update")
		}
		return out
	}
	if n := names(); len(n) != 1 || n[0] != "first" {
		t.Fatalf("to begin with: %v", n)
	}
	ids, err := c.Transact(t.Context(), db, Op{"op": "insert", "table": "Logical_Switch", "row": map[string]any{"name": "second"}},
		Op{"op": "insert", "table": "Logical_Switch", "row": map[string]any{"name": "third"}})
	if err != nil || len(ids[0]) != 36 || len(ids[1]) != 36 {
		t.Fatalf("%v, %v", ids, err)
	}
	if n := names(); len(n) != 2 {
		t.Errorf("a transaction with two rows came as %v", n)
	}
	s.Ctl("del-ls", "first")
	if n := names(); len(n) != 1 || n[0] != "deleted" {
		t.Errorf("after a deletion: %v", n)
	}
	for name, x := range map[string]struct {
		ops  []Op
		want string
	}{
		"an index":   {[]Op{{"op": "insert", "table": "Logical_Switch", "row": map[string]any{"name": "second"}}}, "the transaction is refused: constraint violation"},
		"an unknown": {[]Op{{"op": "insert", "table": "None", "row": map[string]any{}}, {"op": "comment", "comment": "x"}}, "insert of None is refused"},
	} {
		if _, err := c.Transact(t.Context(), db, x.ops...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Transact(t.Context(), "none"); err == nil || !strings.Contains(err.Error(), "the server says") {
		t.Errorf("no such database: %v", err)
	}
	s.Stop()
	if _, err := c.Transact(t.Context(), db); err == nil {
		t.Error("a call without a server succeeded")
	}
}

// echoes answers probes, and nothing else.
func echoes(conn net.Conn) {
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if strings.Contains(line, `"method":"echo"`) {
			io.WriteString(conn, `{"id":"echo","result":[],"error":null}`)
		}
	}
}

// The connection ends with a transaction whose reply does not come, though the server answers probes: it may be carried out later.
func TestNoReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		c := New(ours)
		done := make(chan error, 1)
		go func() { done <- c.Run(t.Context()) }()
		go echoes(theirs)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.Transact(ctx, db, Op{"op": "comment", "comment": "x"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		synctest.Wait()
		select {
		case <-done:
		default:
			t.Error("the connection goes on")
			theirs.Close()
			<-done
		}
	})
}

// A monitor is asked for in the notation of RFC 7047, section 4.1.5: a list of requests for each table.
func TestMonitorRequest(t *testing.T) {
	ours, theirs := net.Pipe()
	c := New(ours)
	go c.Run(t.Context())
	go c.Monitor(t.Context(), db, map[string][]string{"Logical_Switch": {"name"}}, func(Tables) {})
	line, err := bufio.NewReader(theirs).ReadString('\n')
	if want := `"params":["hardware_vtep",null,{"Logical_Switch":[{"columns":["name"]}]}]`; err != nil || !strings.Contains(line, want) {
		t.Errorf("%s, %v, want %s", line, err, want)
	}
	theirs.Close()
}

// A server that answers probes may be silent for as long as it likes; another one is given up after three. Its probes are answered.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		c := New(ours)
		done := make(chan error, 1)
		go func() { done <- c.Run(t.Context()) }()
		in := bufio.NewReader(theirs)
		for range 10 {
			line, err := in.ReadString('\n')
			if err != nil || !strings.Contains(line, `"method":"echo"`) {
				t.Fatalf("%q, %v", line, err)
			}
			io.WriteString(theirs, `{"id":"echo","result":[],"error":null}`)
		}
		io.WriteString(theirs, `{"id":"theirs","method":"echo","params":["x"]}`)
		line, _ := in.ReadString('\n')
		var m message
		if json.Unmarshal([]byte(line), &m); string(m.ID) != `"theirs"` || string(m.Result) != `["x"]` {
			t.Errorf("an echo is answered by %s", line)
		}
		go io.Copy(io.Discard, in)
		if err := <-done; !errors.Is(err, ErrSilent) {
			t.Errorf("a silent server: %v", err)
		}
	})
}

// A server that answers probes, and neither monitor nor lock, is given up after a while, by name.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		c := New(ours)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		go echoes(theirs)
		for name, call := range map[string]func() error{
			"monitor": func() error { return c.Monitor(ctx, db, nil, func(Tables) { t.Error("an update") }) },
			"lock":    func() error { return c.Lock(ctx, "x", func(bool) { t.Error("a lock") }) },
		} {
			began := time.Now()
			if err := call(); !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), name) || time.Since(began) != Answer {
				t.Errorf("%s, after %v: %v", name, time.Since(began), err)
			}
		}
		cancel()
		<-done
		theirs.Close()
	})
}

// replies returns a client of a server whose replies all have a result.
func replies(t *testing.T, result string) *Client {
	ours, theirs := net.Pipe()
	c := New(ours)
	go func() {
		d := json.NewDecoder(theirs)
		for {
			var m message
			if d.Decode(&m) != nil {
				return
			}
			fmt.Fprintf(theirs, `{"id":%s,"result":%s,"error":null}`+"\n", m.ID, result)
		}
	}()
	go c.Run(t.Context())
	t.Cleanup(func() { theirs.Close() })
	return c
}

// null is not an empty database, and not another's lock. An empty one has no tables.
func TestNull(t *testing.T) {
	for result, ok := range map[string]bool{"null": false, "7": false, "{}": true} {
		told := 0
		err := replies(t, result).Monitor(t.Context(), db, nil, func(Tables) { told++ })
		if (err == nil) != ok || (told == 1) != ok {
			t.Errorf("monitor, %s: %v, %d updates", result, err, told)
		}
	}
	for result, ok := range map[string]bool{"null": false, "{}": false, `{"locked":null}`: false, `{"locked":false}`: true} {
		told := 0
		err := replies(t, result).Lock(t.Context(), "x", func(bool) { told++ })
		if (err == nil) != ok || (told == 1) != ok {
			t.Errorf("lock, %s: %v, told %d times", result, err, told)
		}
	}
}

// What a server sends does no harm.
func TestMalformed(t *testing.T) {
	for _, text := range []string{`x`, `[]`, `{"method":"update","params":7}`, `{"method":"update","params":[null,{"T":7}]}`, `{"method":"update","params":[1]}`, `{"method":"update","params":[null,null]}`} {
		ours, theirs := net.Pipe()
		c := New(ours)
		go func() {
			io.WriteString(theirs, text+"\n")
			io.Copy(io.Discard, theirs)
		}()
		if err := c.Run(t.Context()); err == nil {
			t.Errorf("%s: no error", text)
		}
		theirs.Close()
	}
}

// A lock has one owner: another client waits, and gets it when the first has gone.
func TestLock(t *testing.T) {
	s := ovslab.New(t)
	told := [2]chan bool{make(chan bool, 4), make(chan bool, 4)}
	var all [2]*Client
	for i := range all {
		all[i] = dial(t, s)
		check.OK(t, all[i].Lock(t.Context(), "x", func(ours bool) { told[i] <- ours }))
		if got := <-told[i]; got != (i == 0) {
			t.Fatalf("client %d: told %v", i, got)
		}
	}
	if _, err := all[1].Transact(t.Context(), db, Op{"op": "assert", "lock": "x"}); err == nil || !strings.Contains(err.Error(), "not owner") {
		t.Errorf("an assertion of another's lock: %v", err)
	}
	all[0].conn.Close()
	if !<-told[1] {
		t.Error("the lock did not pass on")
	}
}
