package ovsdb

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/ovsdb/internal/rpc"
	"github.com/vxswitch/vxswitch/ovsdb/internal/table"
)

// A fakeNode refuses segments, and keeps what it was given.
type fakeNode struct {
	Node
	cfg     node.Config
	refuse  map[frame.VNI]bool
	members map[frame.VNI]int  // of the segments that are provided
	gone    map[frame.VNI]bool // segments that were taken away
	rows    []control.Row
	rowErr  error

	sessions []node.BFDSession
}

func (n *fakeNode) Config() *node.Config     { return &n.cfg }
func (n *fakeNode) PortsUp() map[string]bool { return map[string]bool{"p1": true} }

func (n *fakeNode) BFD() []node.BFDSession { return n.sessions }

func (n *fakeNode) Provide(owner string, parts *node.Config) error {
	members := map[frame.VNI]int{}
	if parts == nil {
		parts = new(node.Config)
	}
	for _, s := range parts.Segments {
		if n.refuse[s.VNI] {
			return errors.New("refused")
		}
		members[s.VNI] = len(s.Members)
	}
	for vni := range n.members {
		if _, ok := members[vni]; !ok {
			n.gone[vni] = true
		}
	}
	n.members = members
	return nil
}

func (n *fakeNode) Program(owner string, u control.Update) error {
	n.rows = u.Add
	return n.rowErr
}

func segment(vni frame.VNI, members ...table.Member) table.Segment {
	return table.Segment{VNI: vni, Name: vni.String(), ID: vni.String(), Members: members}
}

// Segments that work stay while another one is refused, tried again, and taken.
func TestRefusedAlone(t *testing.T) {
	n := &fakeNode{refuse: map[frame.VNI]bool{2: true}}
	s := check.Must(New(n, good()))(t)
	provide := func(what string, want []frame.VNI, segments ...table.Segment) {
		t.Helper()
		refused := map[string]error{}
		n.gone = map[frame.VNI]bool{}
		s.provide(&table.Plan{Segments: segments}, refused)
		if got := slices.Sorted(maps.Keys(n.members)); !slices.Equal(got, want) || len(refused) != len(segments)-len(want) || len(s.provided) != len(want) {
			t.Errorf("%s: segments %v, want %v; refused %v", what, got, want, refused)
		}
		for _, vni := range want {
			if n.gone[vni] {
				t.Errorf("%s: segment %v was away", what, vni)
			}
		}
	}
	provide("at first", []frame.VNI{1, 3}, segment(1), segment(2), segment(3))
	provide("again", []frame.VNI{1, 3}, segment(1), segment(2), segment(3))
	provide("another member", []frame.VNI{1, 3}, segment(1, table.Member{Port: "p1"}), segment(2), segment(3))
	if n.members[1] != 1 {
		t.Error("the other member is missing")
	}
	n.refuse[1] = true
	provide("a change is refused, too", []frame.VNI{3}, segment(1), segment(2), segment(3))
	n.refuse = nil
	provide("all are taken", []frame.VNI{1, 2, 3}, segment(1), segment(2), segment(3))
	provide("none", nil)
}

// bound is a Switch with the lock of its name, whose database has port p1 in networks 5000 and 5001, each with a MAC and a flood list.
func bound(t *testing.T, n *fakeNode) *Switch {
	t.Helper()
	s := check.Must(New(n, good()))(t)
	ref := func(id string) []any { return []any{"uuid", id} }
	s.db.Set(table.PhysicalSwitch, "s", table.Row{"name": "us", "ports": ref("p")})
	s.db.Set(table.PhysicalPort, "p", table.Row{"name": "p1", "vlan_bindings": []any{"map", []any{[]any{0.0, ref("a")}, []any{1.0, ref("b")}}}})
	s.db.Set(table.Locator, "l", table.Row{"dst_ip": "192.0.2.2", "encapsulation_type": "vxlan_over_ipv4"})
	s.db.Set(table.LocatorSet, "ls", table.Row{"locators": ref("l")})
	for id, key := range map[string]float64{"a": 5000, "b": 5001} {
		s.db.Set(table.LogicalSwitch, id, table.Row{"name": id, "tunnel_key": key})
		s.db.Set(table.UcastRemote, "u"+id, table.Row{"MAC": "02:00:00:00:00:01", "logical_switch": ref(id), "locator": ref("l")})
		s.db.Set(table.McastRemote, "m"+id, table.Row{"MAC": table.UnknownDst, "logical_switch": ref(id), "locator_set": ref("ls")})
	}
	s.ours, s.dirty = true, true
	return s
}

// A segment of the configuration gets no rows of a Logical_Switch with its VNI.
func TestRowsOfRefused(t *testing.T) {
	n := &fakeNode{cfg: node.Config{Segments: []node.Segment{{VNI: 5001}}}}
	s := bound(t, n)
	s.apply()
	if st := s.Status(); st.Segments != 1 || st.Refused["b"] == nil || st.Rows != 2 || len(n.rows) != 2 {
		t.Errorf("%d segments, %d rows, refused %v", st.Segments, st.Rows, st.Refused)
	}
	for _, r := range n.rows {
		if m, ok := r.(control.MAC); ok && m.VNI != 5000 {
			t.Errorf("%v", r)
		}
	}
	n.cfg.Segments = nil
	s.look()
	s.apply()
	if st := s.Status(); st.Segments != 2 || len(n.rows) != 4 {
		t.Errorf("later: %d segments, rows %v, refused %v", st.Segments, n.rows, st.Refused)
	}
}

// What the switch has written itself has nothing read and programmed again.
func TestOwnRows(t *testing.T) {
	s := bound(t, new(fakeNode))
	s.apply()
	for _, x := range []struct {
		db    *table.Database
		table string
		dirty bool
	}{{s.db, table.UcastLocal, false}, {s.db, table.McastLocal, false}, {s.db, table.UcastRemote, true}, {s.db, table.LogicalSwitch, true}, {new(table.Database), table.UcastLocal, true}} {
		s.dirty = false
		s.heard(nil, x.db, rpc.Tables{x.table: {"x": {"MAC": "02:00:00:00:00:01"}}})
		if s.dirty != x.dirty || s.db.Row(x.table, "x") == nil {
			t.Errorf("%s: %v", x.table, s.dirty)
		}
	}
}

// Rows that the node refuses are tried again, without a change of the database.
func TestRowsAgain(t *testing.T) {
	n := &fakeNode{rowErr: errors.New("no room")}
	s := bound(t, n)
	s.apply()
	if err := s.Status().RowErr; err == nil {
		t.Fatal("no error")
	}
	n.rowErr, n.rows = nil, nil
	s.look()
	s.apply()
	if err := s.Status().RowErr; err != nil || len(n.rows) != 4 {
		t.Errorf("%v, rows %v", err, n.rows)
	}
}

// A database that has nothing for the node has been heard as well as another one.
func TestStale(t *testing.T) {
	s := check.Must(New(new(fakeNode), good()))(t)
	if s.Status().Stale {
		t.Error("stale before a connection")
	}
	s.ours, s.dirty = true, true
	s.apply()
	if st := s.Status(); !st.Stale || st.Segments+st.Rows != 0 {
		t.Errorf("%+v", st)
	}
}

// What is refused for hours is logged once, and again when the error is another one.
func TestLoggedOnce(t *testing.T) {
	n := &fakeNode{refuse: map[frame.VNI]bool{5001: true}, gone: map[frame.VNI]bool{}}
	s := bound(t, n)
	var log strings.Builder
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	again := func(want int) {
		t.Helper()
		for range 5 {
			s.look()
			s.apply()
		}
		if got := strings.Count(log.String(), "a Logical_Switch is refused"); got != want {
			t.Errorf("logged %d times, want %d", got, want)
		}
	}
	again(1)
	n.refuse, n.cfg.Segments = nil, []node.Segment{{VNI: 5001}}
	again(2)
	n.cfg.Segments = nil
	again(2)
	n.refuse = map[frame.VNI]bool{5001: true}
	s.res = new(table.Result)
	s.dirty = true
	again(3)
}
