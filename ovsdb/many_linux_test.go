package ovsdb

import (
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/ovsdb/internal/rpc"
)

// 100,000 MACs come, and go again; 10,000 with ovsdb-server, which takes long for each, and under the race
// detector.
func TestManyMACs(t *testing.T) { servers(t, testManyMACs) }

func testManyMACs(t *testing.T, l *lab) {
	l.bind()
	const chunk = 10_000
	n := chunk
	if l.own && !fake.Race {
		n = 10 * chunk
	}
	conn, err := net.Dial("unix", l.db.Sock)
	if err != nil {
		t.Fatal(err)
	}
	c := rpc.New(conn)
	go c.Run(t.Context())
	at := []any{"uuid", l.db.Ctl("--bare", "--columns=_uuid", "find", "Physical_Locator", `dst_ip="192.0.2.2"`)}
	ls := []any{"uuid", l.db.Ctl("get", "Logical_Switch", "ls0", "_uuid")}
	var ops []rpc.Op // vtep-ctl would take minutes
	for i := range n {
		ops = append(ops, rpc.Op{"op": "insert", "table": "Ucast_Macs_Remote", "row": rpc.Op{"MAC": fmt.Sprintf("02:00:00:%02x:%02x:%02x", i>>16, i>>8&255, i&255), "ipaddr": "", "logical_switch": ls, "locator": at}})
	}
	for some := range slices.Chunk(ops, chunk) {
		if _, err := c.Transact(t.Context(), database, some...); err != nil {
			t.Fatal(err)
		}
	}
	l.until("all MACs", func() bool { return l.sw.Status().Rows == n+1 })
	l.guest.Ping("10.0.0.2", 1)
	if _, err := c.Transact(t.Context(), database, rpc.Op{"op": "delete", "table": "Ucast_Macs_Remote", "where": []any{}}, rpc.Op{"op": "delete", "table": "Mcast_Macs_Remote", "where": []any{}}); err != nil {
		t.Fatal(err)
	}
	l.until("no MACs", func() bool { return l.sw.Status().Rows == 0 && l.rows() == "" })
}
