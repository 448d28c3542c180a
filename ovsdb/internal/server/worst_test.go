package server

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
	"github.com/vxswitch/vxswitch/ovsdb/internal/store"
)

// attacks are what a client does its worst with.
var attacks = []string{
	"", "[", `{"id":1,"method":"transact","params":["hardware_vtep"` + strings.Repeat(" ", 1<<20),
	`{"id":1,"method":"monitor","params":["hardware_vtep",1,{"Logical_Switch":{}}]}`,
	`{"id":1,"method":"lock","params":["x"]}{"id":2,"method":"steal","params":["good"]}`,
	`{"id":1,"method":"transact","params":["hardware_vtep",{"op":"insert","table":"Logical_Switch","row":{"name":"` + strings.Repeat("x", 1<<16) + `"}}]}`,
	strings.Repeat(`{"id":1,"method":"transact","params":["hardware_vtep",{"op":"wait","table":"Logical_Switch","where":[],"columns":["name"],"until":"==","rows":[]}]}`, 9),
	strings.Repeat(`{"id":1,"method":"transact","params":["hardware_vtep",{"op":"select","table":"Logical_Switch","where":[]}]}`, 99),
}

// One address opens sessions all the time, which send half requests, monitor and do not read, wait for what never comes and select all:
// each transaction of another address is still carried out, within a second.
func TestWorstSessions(t *testing.T) {
	alone, beside := served(t, false), served(t, true)
	worst.Kept(t, "clients of the node's OVSDB server", alone, beside)
}

// served returns how many transactions of a client were carried out in ten minutes, in one under the race detector.
func served(t *testing.T, attacked bool) (n int) {
	synctest.Test(t, func(t *testing.T) {
		s := New(store.New(store.VTEP(), store.DefaultLimits), nil)
		c := newClient(t, s.dial("good"))
		var strangers []net.Conn
		seconds := 600
		if fake.Race {
			seconds = 60
		}
		for i := range seconds {
			for k := 0; attacked && k < len(attacks); k++ {
				conn := s.dial("bad")
				strangers = append(strangers, conn)
				go io.WriteString(conn, attacks[k])
			}
			synctest.Wait()
			began := time.Now()
			_, r := c.ask("transact", db, addLS(fmt.Sprint(i)), op(`{"op":"delete","table":"Logical_Switch","where":[["name","==","`+fmt.Sprint(i)+`"]]}`))
			if !strings.Contains(text(r), `"error":"`) && time.Since(began) < time.Second {
				n++
			}
			time.Sleep(time.Second)
			if len(strangers) > 64 {
				strangers[0].Close()
				strangers = strangers[1:]
			}
			if open := s.open(); open > MaxAddr+1 {
				t.Fatalf("%d sessions", open)
			}
		}
		for _, conn := range strangers {
			conn.Close()
		}
		c.conn.Close()
		check.OK(t, s.Close())
		if left := s.used.Load(); left != 0 {
			t.Errorf("%d bytes are in use", left)
		}
	})
	return n
}

// Clients that are one too many are logged once a minute, however many there are.
func TestLoggedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := New(store.New(store.VTEP(), store.DefaultLimits), slog.New(slog.NewTextHandler(&log, nil)))
		var in []net.Conn
		for range MaxAddr {
			in = append(in, s.dial("a"))
		}
		synctest.Wait()
		for range 600 {
			s.dial("a").Close()
			synctest.Wait()
			time.Sleep(200 * time.Millisecond)
			for _, c := range in { // which are alive
				go c.Write([]byte(`{"id":"echo","result":[],"error":null}`))
			}
			synctest.Wait()
		}
		for _, c := range in {
			c.Close()
		}
		check.OK(t, s.Close())
		if n := strings.Count(log.String(), "too many clients"); n != 2 {
			t.Errorf("logged %d times in two minutes", n)
		}
	})
}
