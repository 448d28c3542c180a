package server

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// managed returns where a manager listens, and a client of a server that connects to managers until the test ends.
func managed(t *testing.T) (net.Listener, *client) {
	s := fresh(t)
	go s.Managers(t.Context(), nil)
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	return l, newClient(t, s.Pipe())
}

// The server connects to a manager that the database names, and says so there, until the row goes.
func TestManagers(t *testing.T) {
	l, c := managed(t)
	c.want("uuid", "transact", db, op(`{"op":"insert","table":"Manager","uuid-name":"m","row":{"target":"tcp:`+l.Addr().String()+`"}}`),
		op(`{"op":"insert","table":"Manager","uuid-name":"n","row":{"target":"udp:x","max_backoff":1000}}`),
		op(`{"op":"insert","table":"Global","row":{"managers":["set",[["named-uuid","m"],["named-uuid","n"]]]}}`))
	m := newClient(t, check.Must(l.Accept())(t))
	m.want("hardware_vtep", "list_dbs")
	m.want("ACTIVE", "transact", db, op(`{"op":"wait","timeout":60000,"table":"Manager","where":[["target","!=","udp:x"]],"columns":["is_connected"],"until":"==","rows":[{"is_connected":true}]}`), op(`{"op":"select","table":"Manager","where":[]}`))
	m.want("must be tcp", "transact", db, op(`{"op":"wait","timeout":60000,"table":"Manager","where":[["target","==","udp:x"]],"columns":["status"],"until":"!=","rows":[{"status":["map",[]]}]}`), op(`{"op":"select","table":"Manager","where":[]}`))
	c.want("count", "transact", db, op(`{"op":"update","table":"Global","where":[],"row":{"managers":["set",[]]}}`))
	m.conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, m.conn); err != nil {
		t.Error(err)
	}
}

// A manager whose max_backoff changes is connected anew, and said to be connected then.
func TestManagerAnew(t *testing.T) {
	l, c := managed(t)
	c.want("uuid", "transact", db, op(`{"op":"insert","table":"Manager","uuid-name":"m","row":{"target":"tcp:`+l.Addr().String()+`"}}`),
		op(`{"op":"insert","table":"Global","row":{"managers":["named-uuid","m"]}}`))
	for i := range 30 {
		conn := check.Must(l.Accept())(t)
		defer conn.Close()
		connected := `{"op":"wait","table":"Manager","where":[],"columns":["is_connected"],"until":"==","rows":[{"is_connected":true}],"timeout":`
		c.want("[map[]]", "transact", db, op(connected+`10000}`))
		time.Sleep(20 * time.Millisecond) // for the one before to end
		c.want("[map[]]", "transact", db, op(connected+`0}`))
		c.want("count", "transact", db, op(fmt.Sprintf(`{"op":"update","table":"Manager","where":[],"row":{"max_backoff":%d}}`, 1000+i)))
	}
}
