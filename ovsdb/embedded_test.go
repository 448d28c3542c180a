package ovsdb

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/ovsdb/internal/rpc"
)

// empty returns a node with nothing.
func empty(t *testing.T) *node.Node {
	t.Helper()
	n := check.Must(node.New(&node.Options{Owners: []string{DefaultOwner}}))(t)
	t.Cleanup(func() { n.Close() })
	return n
}

// client is a client of the database by a Unix socket, until the test ends.
func client(t *testing.T, socket string) *rpc.Client {
	t.Helper()
	c := rpc.New(check.Must(net.Dial("unix", socket))(t))
	go c.Run(t.Context())
	return c
}

var until = fake.Until

// A controller connects by TLS with a certificate that caFile has signed, and with no other one or none. The address is free at the end.
func TestListenTLS(t *testing.T) {
	dir := t.TempDir()
	c := good()
	c.Cert, c.Key = certificate(t, dir, "ours")
	c.CA = c.Cert
	other, otherKey := certificate(t, dir, "other")
	free := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	c.Target, c.Listen = "", []string{"pssl:" + port + ":127.0.0.1"}
	s := check.Must(New(empty(t), c))(t)
	stop := check.Run(t, s.Run)
	until(t, "connected", func() bool { return s.Status().State == Connected })
	ask := func(cert, key string) error {
		with := &tls.Config{InsecureSkipVerify: true}
		if cert != "" {
			with.Certificates = []tls.Certificate{check.Must(tls.LoadX509KeyPair(cert, key))(t)}
		}
		conn, err := tls.Dial("tcp", "127.0.0.1:"+port, with)
		if err != nil {
			return err
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(time.Minute))
		conn.Write([]byte(`{"id":1,"method":"list_dbs","params":[]}`))
		var m map[string]any
		return json.NewDecoder(conn).Decode(&m)
	}
	check.OK(t, ask(c.Cert, c.Key))
	for _, x := range [][2]string{{other, otherKey}, {}} {
		if err := ask(x[0], x[1]); err == nil {
			t.Errorf("a controller with certificate %q is let in", x[0])
		}
	}
	stop()
	l := check.Must(net.Listen("tcp", "127.0.0.1:"+port))(t)
	l.Close()
}

// At the end a Switch is connected with nobody, and has nothing; it does not run again.
func TestEnd(t *testing.T) {
	c := good()
	c.Target, c.Listen = "", []string{"punix:" + filepath.Join(t.TempDir(), "s")}
	s := check.Must(New(empty(t), c))(t)
	stop := check.Run(t, s.Run)
	until(t, "connected", func() bool { return s.Status().State == Connected && s.Status().Transactions > 0 })
	began := s.Status().Since
	stop()
	st := s.Status()
	check.Equal(t, "state", st.State, Stopped)
	check.True(t, st.Since.After(began) && !st.Stale && st.Err == nil, "%+v", st)
	check.ErrorHas(t, s.Run(t.Context()), "ovsdb: Switch.Run: it was called before; make a new Switch")
}

// What a controller wrote into the file is there for the next Switch; a file that is no database is said so, and left alone.
func TestDatabaseFile(t *testing.T) {
	dir := t.TempDir()
	c := good()
	c.Target, c.Database = "", filepath.Join(dir, "db")
	c.Listen = []string{"punix:" + filepath.Join(dir, "s")}
	for round := range 3 {
		s := check.Must(New(empty(t), c))(t)
		stop := check.Run(t, s.Run)
		until(t, "connected", func() bool { return s.Status().State == Connected })
		x := client(t, filepath.Join(dir, "s"))
		n := make(chan int, 100)
		check.OK(t, x.Monitor(t.Context(), database, map[string][]string{"Logical_Switch": {"name"}}, func(all rpc.Tables) { n <- len(all["Logical_Switch"]) }))
		if got := <-n; got != round {
			t.Errorf("%d Logical_Switches in round %d", got, round)
		}
		check.Must(x.Transact(t.Context(), database, rpc.Op{"op": "insert", "table": "Logical_Switch", "row": rpc.Op{"name": strings.Repeat("x", round+1)}}))(t)
		stop()
	}
	c.Database = c.Listen[0][len("punix:"):] + "x"
	check.OK(t, os.WriteFile(c.Database, []byte("no database"), 0o600))
	s := check.Must(New(empty(t), c))(t)
	check.Run(t, s.Run)
	until(t, "an error", func() bool { err := s.Status().Err; return err != nil && strings.Contains(err.Error(), "no schema") })
}
