package main

import (
	"bufio"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
)

// Rows that come and go are events, those of the beginning are not.
func TestMonitorRows(t *testing.T) {
	r := begin(t, basic(t))
	lines := bufio.NewScanner(r.open("/v1/monitor").Body)
	next := func() (e api.Event) { // of those about rows
		for !strings.HasPrefix(e.Event, "row-") {
			if e = (api.Event{}); !lines.Scan() {
				t.Fatal(lines.Err())
			}
			must(t, json.Unmarshal(lines.Bytes(), &e))
		}
		return e
	}
	for _, op := range []string{"append", "del"} {
		r.gets(200, "POST", "/v1/fdb", `{"op": "`+op+`", "mac": "00:00:00:00:00:00", "dst": "127.0.0.9", "vni": 10}`)
		event := map[string]string{"append": "row-added", "del": "row-removed"}[op]
		if e := next(); e.Event != event || e.Proto != "vxsctl" || !strings.HasPrefix(e.Row, "flood vni 10 vtep 127.0.0.9") || e.VNI != nil || e.Time.IsZero() {
			t.Errorf("%s: %+v", op, e)
		}
	}
}

// A client that reads too slowly is told that rows are lost, after those that are not, and of what comes then.
func TestMonitorOverflow(t *testing.T) {
	n, err := node.New(nil)
	must(t, err)
	defer n.Close()
	row := func(i int) control.Row {
		return control.MAC{VNI: 1, MAC: frame.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}, VTEP: netip.MustParseAddrPort("127.0.0.9:0")}
	}
	add := func(from, to int) {
		u := control.Update{Loose: true}
		for i := from; i < to; i++ {
			u.Add = append(u.Add, row(i))
		}
		must(t, n.Program("evpn", u))
	}
	add(0, 1)
	w := watchRows(n.Plane())
	add(1, 2)
	if x := (<-w.list).shown(); x.Event != "row-added" || x.Proto != "evpn" || x.Row != row(1).String() {
		t.Errorf("%+v", x)
	}
	add(2, 2+maxRows)
	if len(w.lost) != 0 || len(w.list) != maxRows {
		t.Errorf("%d of %d", len(w.list), maxRows)
	}
	add(2+maxRows, 4+maxRows)
	<-w.lost
	for range maxRows {
		if e, ok := w.overflow(); ok {
			t.Fatalf("%+v before rows that are not lost", e)
		}
		<-w.list
	}
	if e, ok := w.overflow(); !ok || e.Event != "overflow" {
		t.Errorf("%+v", e)
	}
	if _, ok := w.overflow(); ok {
		t.Error("told twice")
	}
	must(t, n.Program("evpn", control.Update{Del: []control.Row{row(1)}}))
	if x := <-w.list; x.event != "row-removed" || x.row != row(1) {
		t.Errorf("%+v", x)
	}
	w.stop()
	add(1, 2)
	if len(w.list) != 0 {
		t.Error("told after the end")
	}
}

// A client that stays too slow is told, too, and gets no row behind the gap before.
func TestMonitorOverflowUnderLoad(t *testing.T) {
	n, err := node.New(nil)
	must(t, err)
	defer n.Close()
	w := watchRows(n.Plane())
	defer w.stop()
	for i := range 4 * maxRows { // two rows for each that is read
		row := control.Flood{VNI: 1, VTEP: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 0)}
		must(t, n.Program("evpn", control.Update{Loose: true, Snapshot: true, Add: []control.Row{row}}))
		if _, ok := w.overflow(); ok {
			return
		}
		<-w.list
	}
	t.Errorf("not told after %d rows", 8*maxRows)
}
