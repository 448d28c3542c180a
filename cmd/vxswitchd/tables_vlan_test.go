package main

import (
	"fmt"
	"testing"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
)

// The tables say in which VLAN a port is, in each of its segments, and whether that is one of service tags.
func TestVLANsInTables(t *testing.T) {
	n, err := node.New(nil)
	must(t, err)
	defer n.Close()
	p := port.NewPipe(&port.PipeConfig{Name: "p"})
	for i, m := range []node.Member{{}, {VLAN: 5}, {VLAN: 5, Service: true}, {VLAN: 4094, Service: true}} {
		v, err := n.Segment(frame.VNI(i), nil)
		must(t, err)
		must(t, v.Add(p, &m))
		vsi := n.Segments()[i]
		must(t, vsi.FDB().Set(frame.MAC{2, 0, 0, 0, 0, 1}, vsi.Attachments()[0].Dest(0), fdb.Static))
	}
	var got []string
	for e := range entries(n, n.Segments(), "") {
		got = append(got, fmt.Sprint(e.VNI, " ", e.VLAN, " ", e.Service))
	}
	for s := range tallied(n, n.Segments()) {
		got = append(got, fmt.Sprint(s.VNI, " ", s.Members[0].VLAN, " ", s.Members[0].Service))
	}
	once := []string{"0 0 false", "1 5 false", "2 5 true", "3 4094 true"}
	if want := append(once, once...); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
	if m := memberOf(7, frame.ServiceTag|5); m.VNI != 7 || m.Tag != 5 || !m.Service {
		t.Errorf("%+v", m)
	}
}
