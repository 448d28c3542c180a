package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/ovsdb/internal/store"
)

// fresh returns a server of an empty database in memory.
func fresh(t testing.TB) *Server {
	s := New(store.New(store.VTEP(), store.DefaultLimits), nil)
	t.Cleanup(func() { s.Close() })
	return s
}

// dial lets somebody in by an address.
func (s *Server) dial(from string) net.Conn {
	here, there := net.Pipe()
	go s.Serve(there, from)
	return here
}

// open returns how many sessions there are.
func (s *Server) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

func op(text string) (v any) {
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(err)
	}
	return v
}

const db = "hardware_vtep"

func addLS(name string) any {
	return op(`{"op":"insert","table":"Logical_Switch","row":{"name":"` + name + `"}}`)
}

// want fails unless a reply has words.
func (c *client) want(words string, method string, params ...any) {
	c.t.Helper()
	if _, r := c.ask(method, params...); !strings.Contains(text(r)+fmt.Sprint(r), words) {
		c.t.Errorf("%s %.200v: %.300v, want %s", method, params, r, words)
	}
}

// A lock has one owner, is handed on when it is given back or the owner goes, and can be stolen; assert follows it.
func TestLocks(t *testing.T) {
	s := fresh(t)
	a, b := newClient(t, s.dial("a")), newClient(t, s.dial("b"))
	a.want("locked:true", "lock", "x")
	b.want("locked:false", "lock", "x")
	b.want("not owner", "transact", db, op(`{"op":"assert","lock":"x"}`), addLS("b"))
	a.want(`"error":null`, "transact", db, op(`{"op":"assert","lock":"x"}`), addLS("a"))
	a.want("map[]", "unlock", "x")
	b.hears("locked")
	b.want(`"uuid"`, "transact", db, op(`{"op":"assert","lock":"x"}`), addLS("b"))
	a.want("locked:true", "steal", "x")
	b.hears("stolen")
	b.want("not owner", "transact", db, op(`{"op":"assert","lock":"x"}`))
	a.conn.Close()
	b.hears("locked")
	for i := range maxLocks - 1 {
		b.want("locked:true", "lock", fmt.Sprint("y", i))
	}
	b.want("resources exhausted", "lock", "z")
}

// The reply to monitor has what was there, and what changes later follows it; a lock that is handed on is heard of after the reply that
// it is another's.
func TestReplyFirst(t *testing.T) {
	s := fresh(t)
	writer := newClient(t, s.dial("b"))
	many := []any{db, addLS("one")}
	for i := range 200 {
		many = append(many, addLS(fmt.Sprint(i, strings.Repeat("x", 5000))))
	}
	writer.want("uuid", "transact", many...)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				writer.ask("transact", db, op(fmt.Sprintf(`{"op":"update","table":"Logical_Switch","where":[["name","==","one"]],"row":{"tunnel_key":%d}}`, i)))
				writer.ask("lock", "x")
				writer.ask("unlock", "x")
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for range 15 {
		reader := newClient(t, s.dial("a"))
		for _, params := range [][]any{{"monitor", db, 1, map[string]any{"Logical_Switch": map[string]any{}}}, {"lock", "x"}} {
			if before, _ := reader.ask(params[0].(string), params[1:]...); len(before) > 0 && params[0] == "monitor" {
				t.Fatalf("an update came before the reply to monitor: %.200v", before)
			} else if strings.Contains(fmt.Sprint(before), "locked") {
				t.Fatalf("the lock came before the reply to lock: %.200v", before)
			}
		}
		reader.conn.Close()
	}
}

// hears waits for a notification.
func (c *client) hears(method string) {
	c.t.Helper()
	c.conn.SetDeadline(time.Now().Add(time.Minute))
	for {
		var m map[string]any
		if err := c.d.Decode(&m); err != nil {
			c.t.Fatalf("%s: %v", method, err)
		}
		if m["method"] == method {
			return
		}
	}
}

// A transaction waits for a row, until another client makes it, or its time is over, or it is cancelled; a session has few of them.
func TestWait(t *testing.T) {
	s := fresh(t)
	a, b := newClient(t, s.dial("a")), newClient(t, s.dial("b"))
	until := func(name string, ms int) any {
		return op(fmt.Sprintf(`{"op":"wait","table":"Logical_Switch","where":[["name","==",%q]],"columns":["name"],"until":"==","rows":[{"name":%[1]q}],"timeout":%d}`, name, ms))
	}
	a.want("timed out", "transact", db, until("n", 10))
	send := func(id int, name string) {
		check.OK(t, json.NewEncoder(a.conn).Encode(map[string]any{"id": id, "method": "transact", "params": []any{db, until(name, 3_600_000), addLS(name + "2")}}))
	}
	send(5, "x")
	a.want("map[]", "set_db_change_aware", true) // in order: it waits now
	b.want("uuid", "transact", db, addLS("x"))
	var m map[string]any
	check.OK(t, a.d.Decode(&m))
	if got := text(m); fmt.Sprint(m["id"]) != "5" || strings.Contains(got, `"error":"`) {
		t.Errorf("%s", got)
	}
	b.want("name:x2", "transact", db, op(`{"op":"select","table":"Logical_Switch","where":[["name","==","x2"]]}`))
	for i := range maxPending {
		send(10+i, "never")
	}
	a.want("resources exhausted", "transact", db, until("never", 3_600_000))
	check.OK(t, json.NewEncoder(a.conn).Encode(map[string]any{"id": nil, "method": "cancel", "params": []any{10}}))
	m = nil
	check.OK(t, a.d.Decode(&m))
	if fmt.Sprintf("%v %v", m["id"], m["error"]) != "10 canceled" {
		t.Errorf("%v", m)
	}
	a.conn.Close()
	check.OK(t, s.Close()) // and waits for nothing
	if n := s.used.Load(); n != 0 {
		t.Errorf("%d bytes are in use", n)
	}
}

// Each wait of a transaction has its own timeout, of which the shorter one may come later.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(store.New(store.VTEP(), store.DefaultLimits), nil)
		wait := func(name, timeout string) any {
			return op(`{"op":"wait","table":"Logical_Switch","where":[["name","==","` + name + `"]],"columns":["name"],"until":"==","rows":[{"name":"` + name + `"}]` + timeout + `}`)
		}
		for _, first := range []string{"", `,"timeout":1000`, `,"timeout":60000`} {
			a, b := newClient(t, s.dial("a")), newClient(t, s.dial("b"))
			began, added := time.Now(), make(chan bool)
			time.AfterFunc(900*time.Millisecond, func() {
				b.ask("transact", db, addLS("x"))
				close(added)
			})
			a.want("timed out", "transact", db, wait("x", first), wait("never", `,"timeout":5000`))
			if took := time.Since(began); took < 5*time.Second || took > 6*time.Second {
				t.Errorf("%q: a wait of 5 s took %v", first, took)
			}
			<-added
			b.want("count", "transact", db, op(`{"op":"delete","table":"Logical_Switch","where":[]}`))
			a.conn.Close()
			b.conn.Close()
		}
		check.OK(t, s.Close())
	})
}

// One address has a part of the sessions, and what is too long, or does not end, ends a session. Nothing stays in use.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(store.New(store.VTEP(), store.DefaultLimits), nil)
		closed := func(what string, conn net.Conn) {
			t.Helper()
			conn.SetReadDeadline(time.Now().Add(time.Hour))
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			conn.Close()
			synctest.Wait()
		}
		closed("nothing", s.dial("a"))
		half := s.dial("a")
		go func() {
			for {
				if _, err := half.Write([]byte("[")); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		began := time.Now()
		closed("a request that does not end", half)
		if d := time.Since(began); d > 2*messageTime {
			t.Errorf("after %v", d)
		}
		long := s.dial("a")
		go func() {
			b := []byte(`"` + strings.Repeat("x", 1<<20))
			for {
				if _, err := long.Write(b); err != nil {
					return
				}
				b = b[1:]
			}
		}()
		closed("a request that is too long", long)
		closed("no JSON", say(s.dial("a"), "}"))
		closed("no params", say(s.dial("a"), `{"id":1,"method":"echo","params":5}`))
		var many []net.Conn
		for i := range MaxAddr + 1 {
			c := s.dial("b")
			if synctest.Wait(); i == MaxAddr {
				closed("too many", c)
				break
			}
			many = append(many, c)
		}
		if n := s.open(); n != MaxAddr {
			t.Errorf("%d sessions", n)
		}
		time.Sleep(time.Second) // the first stranger has noticed
		for _, c := range many {
			c.Close()
		}
		check.OK(t, s.Close())
		if n := s.used.Load(); n != 0 {
			t.Errorf("%d bytes are in use", n)
		}
	})
}

func say(conn net.Conn, text string) net.Conn {
	go io.WriteString(conn, text)
	return conn
}

// A client that says nothing for long, and answers probes, stays, also after a large request, and space after it.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(store.New(store.VTEP(), store.DefaultLimits), nil)
		c := newClient(t, s.dial("a"))
		c.want("uuid", "transact", db, addLS(strings.Repeat("x", 2*ownBytes)))
		for range 20 {
			c.want("timed out", "transact", db, op(`{"op":"wait","timeout":10000,"table":"Logical_Switch","where":[],"columns":["name"],"until":"==","rows":[]}`))
		}
		c.conn.Close()
		check.OK(t, s.Close())
	})
}

// Requests of a client that monitors and does not read end its session, not others.
func TestNoReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(store.New(store.VTEP(), store.DefaultLimits), nil)
		deaf := s.dial("a")
		io.WriteString(deaf, `{"id":1,"method":"monitor","params":["hardware_vtep",1,{"Logical_Switch":{}}]}`)
		synctest.Wait()
		b := newClient(t, s.dial("b"))
		long := strings.Repeat("x", 1<<20)
		for i := range 30 {
			b.want("uuid", "transact", db, addLS(fmt.Sprint(i, long)))
		}
		synctest.Wait()
		if n := s.open(); n != 1 {
			t.Errorf("%d sessions", n)
		}
		b.conn.Close()
		deaf.Close()
		check.OK(t, s.Close())
		if n := s.used.Load(); n != 0 {
			t.Errorf("%d bytes are in use", n)
		}
	})
}

// A client that reads for a while what monitor found, because it is a lot, hears of what changes meanwhile.
func TestLargeReply(t *testing.T) {
	s := fresh(t)
	b := newClient(t, s.dial("b"))
	long := strings.Repeat("x", 1<<20)
	for i := range 12 {
		b.want("uuid", "transact", db, addLS(fmt.Sprint(i, long)))
	}
	a := newClient(t, s.dial("a"))
	check.Must(io.WriteString(a.conn, `{"id":1,"method":"monitor","params":["hardware_vtep",1,{"Logical_Switch":{}}]}`))(t)
	for monitors := 0; monitors == 0; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		for x := range s.sessions {
			monitors += len(x.monitors)
		}
		s.mu.Unlock()
	}
	for i := range 3 {
		b.want("uuid", "transact", db, addLS(fmt.Sprint("new", i)))
	}
	var m map[string]any
	check.OK(t, a.d.Decode(&m)) // all of it
	for range 3 {
		a.hears("update")
	}
}

// A Unix socket that a program has left is replaced, one of a program that listens is not, nor is a file.
func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	a, ok := ParseListen("punix:" + path)
	if !ok {
		t.Fatal()
	}
	l := check.Must(a.listen())(t)
	if _, err := a.listen(); err == nil {
		t.Error("the socket of another program is taken")
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	l = check.Must(a.listen())(t)
	l.Close()
	check.OK(t, os.WriteFile(path, []byte("x"), 0o600))
	if _, err := a.listen(); err == nil {
		t.Error("a file is replaced")
	}
}

// Addresses are those of ovsdb(7), with IP addresses.
func TestAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"punix:/x": "unix /x false", "ptcp:": "tcp 0.0.0.0:6640 false", "ptcp:1": "tcp 0.0.0.0:1 false", "pssl:1:127.0.0.1": "tcp 127.0.0.1:1 true", "ptcp::::1": "tcp [::1]:6640 false", "pssl:2:[::1]": "tcp [::1]:2 true",
		"punix:": "", "tcp:1": "", "ptcp:70000": "", "ptcp:1:x": "", "": "",
	} {
		a, ok := ParseListen(in)
		if got := fmt.Sprint(a.Network, " ", a.Addr, " ", a.Secure); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %s %v", in, got, ok)
		}
	}
	for in, want := range map[string]string{
		"tcp:127.0.0.1": "tcp 127.0.0.1:6640 false", "ssl:127.0.0.1:7": "tcp 127.0.0.1:7 true", "ssl:[::1]:7": "tcp [::1]:7 true", "ssl:[::1]": "tcp [::1]:6640 true",
		"tcp:": "", "tcp:host:1": "", "ptcp:1:1.1.1.1": "", "tcp:1.1.1.1:x": "", "": "", "unix:/x": "",
	} {
		a, ok := ParseTarget(in)
		if got := fmt.Sprint(a.Network, " ", a.Addr, " ", a.Secure); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %s %v", in, got, ok)
		}
	}
}

// FuzzSession has strangers send what they like: the server ends their session or answers in JSON, and other clients find it as before.
func FuzzSession(f *testing.F) {
	for _, m := range []string{`{"id":1,"method":"lock","params":["x"]}{"id":2,"method":"unlock","params":["x"]}`, `{"id":1,"method":"monitor","params":["hardware_vtep",null,{"Logical_Switch":{"columns":["name"]}}]}`} {
		f.Add([]byte(m))
	}
	defer func(p, m time.Duration) { probe, messageTime = p, m }(probe, messageTime)
	probe, messageTime = 50*time.Millisecond, 100*time.Millisecond // of requests that do not end
	f.Fuzz(func(t *testing.T, text []byte) {
		s := New(store.New(store.VTEP(), store.DefaultLimits), nil)
		conn := s.dial("stranger")
		go func() {
			conn.Write(text)
			io.WriteString(conn, `{"id":"last","method":"echo","params":[]} }`)
		}()
		conn.SetReadDeadline(time.Now().Add(time.Minute))
		said, err := io.ReadAll(conn)
		check.OK(t, err)
		for d := json.NewDecoder(strings.NewReader(string(said))); ; {
			var v map[string]any
			if err := d.Decode(&v); err == io.EOF || err == io.ErrUnexpectedEOF { // the end of the session may cut it
				break
			} else if err != nil {
				t.Fatalf("%v: %s", err, said)
			}
		}
		conn.Close()
		newClient(t, s.dial("a")).want("hardware_vtep", "list_dbs")
		check.OK(t, s.Close())
		if n := s.used.Load(); n != 0 {
			t.Errorf("%d bytes are in use", n)
		}
	})
}
