package ovsdb

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/ovsdb/internal/rpc"
)

// 100,000 MACs come, and go again; 10,000 with ovsdb-server, which takes long for each, and under the race detector.
func TestManyMACs(t *testing.T) { servers(t, testManyMACs) }

func testManyMACs(t *testing.T, l *lab) {
	l.bind()
	const chunk = 10_000
	n := chunk
	if l.own && !fake.Race {
		n = 10 * chunk
	}
	c := client(t, l.db.Sock)
	at := []any{"uuid", l.db.Ctl("--bare", "--columns=_uuid", "find", "Physical_Locator", `dst_ip="192.0.2.2"`)}
	ls := []any{"uuid", l.db.Ctl("get", "Logical_Switch", "ls0", "_uuid")}
	var ops []rpc.Op // vtep-ctl would take minutes
	for i := range n {
		ops = append(ops, rpc.Op{"op": "insert", "table": "Ucast_Macs_Remote", "row": rpc.Op{"MAC": fmt.Sprintf("02:00:00:%02x:%02x:%02x", i>>16, i>>8&255, i&255), "ipaddr": "", "logical_switch": ls, "locator": at}})
	}
	for some := range slices.Chunk(ops, chunk) {
		check.Must(c.Transact(t.Context(), database, some...))(t)
	}
	l.until("all MACs", func() bool { return l.sw.Status().Rows == n+1 })
	l.guest.Ping("10.0.0.2", 1)
	all := func(table string) rpc.Op { return rpc.Op{"op": "delete", "table": table, "where": []any{}} }
	check.Must(c.Transact(t.Context(), database, all("Ucast_Macs_Remote"), all("Mcast_Macs_Remote")))(t)
	l.until("no MACs", func() bool { return l.sw.Status().Rows == 0 && l.rows() == "" })
}
