package control_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// A segment in two VTEPs: rows name the one they are for, those that name none are for the
// first; a VTEP is told who may send frames of which VNI, as long as any row says so.
func TestTunnels(t *testing.T) {
	l := newLeaf(t, control.Config{})
	u, err := l.net.Listen(netip.MustParseAddrPort("[fd00::1]:4789"), nil)
	l.must(err)
	six, err := vtep.New(&vtep.Config{Name: "six", Peers: vtep.ListedPerVNI}, u)
	l.must(err)
	_, err = l.segment(red).Attach(six, 7100)
	l.must(err)
	four := l.vtep.VTEP
	p4, p6 := netip.MustParseAddrPort("10.0.0.9:4789"), netip.MustParseAddrPort("[fd00::9]:4789")
	want := func(what string, flood4, allowed4, flood6, allowed6 []netip.AddrPort) {
		t.Helper()
		for i, c := range []struct{ got, want []netip.AddrPort }{
			{four.Flood(red), flood4}, {four.Allowed(red), allowed4}, {six.Flood(7100), flood6}, {six.Allowed(7100), allowed6},
		} {
			if !slices.Equal(c.got, c.want) {
				t.Errorf("%s: list %d is %v, want %v", what, i, c.got, c.want)
			}
		}
	}
	program := func(u control.Update) error { return l.Program("bgp", u) }
	one := func(a netip.AddrPort) []netip.AddrPort { return []netip.AddrPort{a} }

	l.must(program(control.Update{Snapshot: true, Add: []control.Row{
		control.Flood{VNI: red, VTEP: p4}, control.Flood{VNI: red, VTEP: p6, Tunnel: "six"},
		control.MAC{VNI: red, MAC: mac(1), VTEP: p4}, control.MAC{VNI: red, MAC: mac(2), VTEP: p6, Tunnel: "six"},
		control.MAC{VNI: red, MAC: mac(3), VTEP: p6, Tunnel: "six"},
	}}))
	want("all", one(p4), one(p4), one(p6), one(p6))
	for m, name := range map[frame.MAC]string{mac(1): p4.String(), mac(2): p6.String(), mac(3): p6.String()} {
		if d, ok := l.segment(red).FDB().Lookup(m); !ok || l.sw.Name(d) != name {
			t.Errorf("%v is at %q, want %s", m, l.sw.Name(d), name)
		}
	}
	l.must(program(control.Update{Del: []control.Row{control.MAC{VNI: red, MAC: mac(2)}, control.Flood{VNI: red, VTEP: p6, Tunnel: "six"}}}))
	want("one MAC less", one(p4), one(p4), nil, one(p6))
	l.must(program(control.Update{Add: []control.Row{control.MAC{VNI: red, MAC: mac(3), VTEP: p4}}}))
	want("a MAC moves to the other VTEP", one(p4), one(p4), nil, nil)
	if d, ok := l.segment(red).FDB().Lookup(mac(3)); !ok || l.sw.Name(d) != p4.String() {
		t.Errorf("it is at %q", l.sw.Name(d))
	}
	// A router behind a VTEP is a MAC there.
	via := control.Via{VNI: red, MAC: mac(0x77), VTEP: p6, Tunnel: "six"}
	l.must(program(control.Update{Add: []control.Row{control.Prefix{VRF: "red", Prefix: netip.MustParsePrefix("172.16.0.0/16"), Via: via}}}))
	want("a router", one(p4), one(p4), nil, one(p6))

	for _, c := range []struct {
		row  control.Row
		want error
	}{
		{control.Flood{VNI: red, VTEP: p6, Tunnel: "seven"}, control.ErrNoVTEP},
		{control.MAC{VNI: blue, MAC: mac(4), VTEP: p6, Tunnel: "six"}, control.ErrNoVTEP},
		{control.MAC{VNI: red, MAC: mac(4), Port: "pipe", Tunnel: "six"}, nil},
		{control.Prefix{VRF: "red", Prefix: netip.MustParsePrefix("172.17.0.0/16"), Via: control.Via{VNI: red, Tunnel: "six", IP: netip.MustParseAddr("192.168.7.1")}}, nil},
		{control.MAC{VNI: red, MAC: mac(4), VTEP: p4, Tunnel: "six"}, nil}, // of the other family
	} {
		if err := program(control.Update{Add: []control.Row{c.row}}); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%v: %v", c.row, err)
		}
	}
	want("after errors", one(p4), one(p4), nil, one(p6))
	l.Forget("bgp")
	want("forgotten", nil, nil, nil, nil)
}

// What two segments are called in a VTEP is exchanged, in turn, or each goes to the other's VTEP:
// every list follows its segment, whoever wrote it.
func TestFloodFollowsTag(t *testing.T) {
	l := newLeaf(t, control.Config{})
	u, err := l.net.Listen(netip.MustParseAddrPort("10.0.0.2:4789"), nil)
	l.must(err)
	v, err := vtep.New(&vtep.Config{Name: "other"}, u)
	l.must(err)
	vteps := map[string]vswitch.Port{"first": l.vtep, "other": v}
	type place struct {
		vtep string
		tag  uint32
	}
	vnis := []frame.VNI{red, blue, l3vni}
	var rows []control.Row
	for i, vni := range vnis {
		l.add("bgp", control.Flood{VNI: vni, VTEP: at(byte(10 + i))})
		l.add("file", control.Flood{VNI: vni, VTEP: at(byte(20 + i))})
		rows = append(rows, control.Flood{VNI: vni, VTEP: at(byte(10 + i))})
	}
	apply := map[string]func() error{
		"Reapply": func() error { l.Reapply(); return nil },
		"rows of one, again": func() error { // the others' have to follow as well
			if err := l.Program("bgp", control.Update{Snapshot: true}); err != nil {
				return err
			}
			err := l.Program("bgp", control.Update{Snapshot: true, Add: rows})
			l.Reapply()
			return err
		},
	}
	for name, apply := range apply {
		for step, places := range [][]place{
			{{"first", 1}, {"first", 2}, {"first", 3}},
			{{"first", 2}, {"first", 1}, {"first", 3}},
			{{"first", 3}, {"first", 2}, {"first", 1}},
			{{"first", 1}, {"first", 3}, {"first", 2}},
			{{"other", 1}, {"first", 3}, {"first", 2}},
			{{"first", 3}, {"other", 1}, {"first", 2}},
			{{"other", 2}, {"other", 1}, {"first", 2}},
			{{"first", 2}, {"other", 2}, {"other", 1}},
		} {
			for _, vni := range vnis {
				vsi, err := l.sw.VSI(vni, nil)
				l.must(err)
				for _, a := range vsi.Attachments() {
					if a != l.local {
						l.must(a.Detach())
					}
				}
			}
			for i, vni := range vnis {
				vsi, err := l.sw.VSI(vni, nil)
				l.must(err)
				_, err = vsi.AttachWith(vteps[places[i].vtep], places[i].tag, &vswitch.AttachConfig{KeepOpen: true})
				l.must(err)
			}
			l.must(apply())
			for i, p := range places {
				var got []netip.Addr
				for _, a := range vteps[p.vtep].(interface {
					Flood(frame.VNI) []netip.AddrPort
				}).Flood(frame.VNI(p.tag)) {
					got = append(got, a.Addr())
				}
				if want := []netip.Addr{at(byte(10 + i)).Addr(), at(byte(20 + i)).Addr()}; !slices.Equal(got, want) {
					t.Errorf("%s, step %d: segment %d is tag %d of %s: %v, want %v", name, step, vnis[i], p.tag, p.vtep, got, want)
				}
			}
		}
	}
}

// Rows that name a VTEP and rows that name none are one list where they mean one VTEP, whatever
// is attached when, and each goes alone.
func TestFloodNamedAndNot(t *testing.T) {
	l := newLeaf(t, control.Config{First: func(vni frame.VNI) string {
		if vni == red {
			return "main"
		}
		return ""
	}})
	var vteps []*vtep.VTEP
	for i, name := range []string{"main", "second"} {
		u, err := l.net.Listen(netip.AddrPortFrom(at(byte(3+i)).Addr(), 4789), nil)
		l.must(err)
		v, err := vtep.New(&vtep.Config{Name: name}, u)
		l.must(err)
		vteps = append(vteps, v)
	}
	l.must(l.segment(red).Attachments()[0].Detach()) // the pipe
	for _, a := range l.segment(red).Attachments() {
		l.must(a.Detach())
	}
	vsi, err := l.sw.VSI(red, nil)
	l.must(err)
	first, err := vsi.AttachWith(vteps[0], 7, &vswitch.AttachConfig{KeepOpen: true})
	l.must(err)
	want := func(what string, main, second []byte) {
		t.Helper()
		for i, hosts := range [][]byte{main, second} {
			var got, want []netip.Addr
			for _, a := range vteps[i].Flood(7) {
				got = append(got, a.Addr())
			}
			for _, h := range hosts {
				want = append(want, at(h).Addr())
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: VTEP %d floods to %v, want %v", what, i, got, want)
			}
		}
	}
	flood := func(h byte, tunnel string) control.Row {
		return control.Flood{VNI: red, VTEP: at(h), Tunnel: tunnel}
	}
	l.add("file", flood(10, ""))
	l.add("hand", flood(11, ""))
	want("one VTEP", []byte{10, 11}, nil)
	_, err = vsi.AttachWith(vteps[1], 7, &vswitch.AttachConfig{KeepOpen: true})
	l.must(err)
	l.program("file", control.Update{Snapshot: true, Add: rows(flood(10, "main"), flood(12, "second"))})
	want("a second VTEP", []byte{10, 11}, []byte{12})
	l.Reapply()
	want("and again", []byte{10, 11}, []byte{12})
	l.add("hand", flood(10, ""))
	l.del("file", flood(10, "main"))
	want("named by one of two", []byte{10, 11}, []byte{12})
	l.del("hand", flood(10, ""))
	want("and by none", []byte{11}, []byte{12})
	l.del("hand", flood(11, ""))
	want("empty", nil, []byte{12})
	l.add("hand", flood(11, ""))

	// The order of attachments says nothing where First does.
	l.must(first.Detach())
	l.Reapply()
	l.wantWaiting("hand", 1, control.ErrNoVTEP)
	want("the first VTEP has gone", nil, []byte{12})
	_, err = vsi.AttachWith(vteps[0], 7, &vswitch.AttachConfig{KeepOpen: true})
	l.must(err)
	l.Reapply()
	want("and is back", []byte{11}, []byte{12})

	// A list that cannot be written is its owner's matter.
	if err := l.Program("hand", control.Update{Add: rows(flood(13, "second"), control.Flood{VNI: red, VTEP: netip.MustParseAddrPort("[fd00::1]:0")})}); err == nil {
		t.Error("a peer of another family was taken")
	}
	want("after an error", []byte{11}, []byte{12, 13})
	l.Forget("hand")
	l.Forget("file")
	want("forgotten", nil, nil)
	if !l.Empty() {
		t.Error("something is left")
	}
	for _, v := range vteps {
		l.must(v.Close())
	}
}
