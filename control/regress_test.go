package control_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// host4 and hostMAC are those of host n of many.
func host4(n int) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 0x14000001+uint32(n))))
}
func hostMAC(n int) frame.MAC { return frame.MACFrom(0x0220_0000_0000 + uint64(n)) }

// Of rows for more groups than a tunnel takes, those that were there stay, and the others are refused until there is room.
func TestTooManyGroups(t *testing.T) {
	l := newLeaf(t, control.Config{})
	group := func(i int) control.Flood {
		return control.Flood{VNI: red, VTEP: at(2), MAC: frame.MACFrom(0x0100_5e00_0000 + uint64(i))}
	}
	list := func(from, to int) (list []control.Row) {
		for i := range to - from {
			list = append(list, group(from+i))
		}
		return list
	}
	l.add("one", list(10, 20)...)
	err := l.Program("other", control.Update{Add: list(0, 2*vtep.MaxGroups)})
	if n := len(control.Refused(err)); n != vtep.MaxGroups || !errors.Is(err, vtep.ErrGroups) {
		t.Fatalf("%d refused, want %d: %v", n, vtep.MaxGroups, err)
	}
	if n, of := len(l.vtep.FloodPeers(red)), fmt.Sprint(l.Origin(group(10))); n != vtep.MaxGroups || of != "[one other]" {
		t.Errorf("%d in the flood list, the first of %s", n, of)
	}
	l.must(l.Program("third", control.Update{Loose: true, Add: []control.Row{group(-1)}}))
	l.wantWaiting("third", 1, vtep.ErrGroups)
	l.del("other", group(30))
	l.wantWaiting("third", 0, nil)
}

// Many rows are refused at once, with nothing else there: for their segment, and when they are written.
func TestAllRefused(t *testing.T) {
	l := newLeaf(t, control.Config{})
	for _, vni := range []frame.VNI{7, red} {
		l.vtep.full = vni == red
		var add []control.Row
		for i := range 600 {
			add = append(add, control.MAC{VNI: vni, MAC: hostMAC(i), IP: host4(i), VTEP: at(2)})
		}
		if n := len(control.Refused(l.Program("bgp", control.Update{Add: add}))); n != 600 || !l.Empty() {
			t.Errorf("VNI %d: %d rows were refused", vni, n)
		}
	}
}

// A host that a row gave way to goes with its port.
func TestPortOfHostGoes(t *testing.T) {
	l := newLeaf(t, control.Config{})
	events := l.sw.Events()
	defer events.Close()
	l.speak(2)
	l.add("bgp", control.MAC{VNI: red, MAC: mac(2), VTEP: at(2)})
	l.want(2, fdb.OriginLearned, "pipe")
	l.must(l.local.Detach())
	l.handle(events)
	l.want(2, fdb.OriginControl, "10.0.0.2")
}

// So does its neighbour entry.
func TestPortOfNeighbourGoes(t *testing.T) {
	l := newLeaf(t, control.Config{})
	events := l.sw.Events()
	defer events.Close()
	l.arps[red], _ = arp.NewTable(&arp.TableConfig{VNI: red, Notify: l.sw.Notify})
	resp, err := arp.NewResponder(&arp.Config{Table: l.arps[red]})
	l.must(err)
	_, err = l.sw.VSI(red, &vswitch.VSIConfig{Slots: vswitch.Slots{Neighbour: resp}})
	l.must(err)
	l.arps[red].Learn(&arp.Claim{IP: ip(2), MAC: mac(2), From: l.local.Dest(0)}, 0)
	l.add("bgp", control.MAC{VNI: red, MAC: mac(2), IP: ip(2), VTEP: at(2)})
	l.must(l.local.Detach())
	l.handle(events)
	e, _ := l.arps[red].Lookup(ip(2))
	if e.Origin != arp.Control {
		t.Error("neighbour is not back")
	}
}

// A row whose place cannot be had any longer waits with its neighbour, too.
func TestWaitsAsWhole(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: []string{"first", "second", "third"}})
	l.add("first", control.MAC{VNI: red, MAC: mac(1), VTEP: at(2)})
	l.add("second", control.MAC{VNI: red, MAC: mac(1), IP: ip(1), VTEP: at(3)})
	l.add("third", control.MAC{VNI: red, MAC: mac(3), IP: ip(1), VTEP: at(2)})
	l.vtep.full = true
	l.del("first", control.MAC{VNI: red, MAC: mac(1)})
	l.wantWaiting("second", 1, vtep.ErrFull)
	if got := l.Neighbour(red, ip(1)); got != mac(3) {
		t.Errorf("neighbour %v of a row that waits", got)
	}
}

// Or with its route.
func TestRouteWaitsAsWhole(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: []string{"first", "second", "third"}})
	l.add("first", control.MAC{VNI: l3vni, MAC: mac(9), VTEP: at(2)})
	l.add("second", control.Prefix{VRF: "red", Prefix: pfx("10.1.0.0/16"), Via: control.Via{VNI: l3vni, MAC: mac(9), VTEP: at(3)}})
	l.add("third", control.Prefix{VRF: "red", Prefix: pfx("10.1.0.0/16")})
	l.vtep.full = true
	l.del("first", control.MAC{VNI: l3vni, MAC: mac(9)})
	l.wantWaiting("second", 1, vtep.ErrFull)
	if r, _ := l.gw.VRF("red").Route(pfx("10.1.0.0/16")); len(r.Via) != 0 {
		t.Errorf("route of a row that waits: %v", r)
	}
}

// A row that can be written does not wait, though another owner's is.
func TestShadowedNoMore(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: []string{"first", "second"}})
	p := control.Prefix{VRF: "red", Prefix: pfx("192.168.7.0/24"), Via: control.Via{VNI: l3vni, MAC: mac(9), VTEP: at(5)}}
	l.add("second", p)
	l.add("first", p)
	l.must(l.gw.VRF("red").Interface(red).Close())
	l.Reapply()
	l.wantWaiting("first", 0, nil)
	l.wantWaiting("second", 0, nil)
}

// A row says which port its VTEP has, also if it had to wait.
func TestPortByReapply(t *testing.T) {
	l := newLeaf(t, control.Config{})
	l.add("bgp", control.MAC{VNI: red, MAC: mac(1), VTEP: at(2)})
	l.program("bgp", control.Update{Loose: true, Add: rows(control.MAC{VNI: 300, MAC: mac(2), VTEP: netip.AddrPortFrom(at(2).Addr(), 5000)})})
	l.segment(300)
	l.Reapply()
	e, _ := l.entry(300, mac(2))
	if got := l.sw.Name(e.Dest); got != "10.0.0.2:5000" {
		t.Error(got)
	}
}

// An address with a zone is not that without.
func TestZone(t *testing.T) {
	l := newLeaf(t, control.Config{})
	a := netip.MustParseAddr("fe80::1")
	bad := control.MAC{VNI: red, MAC: mac(1), IP: a.WithZone("eth0"), VTEP: at(2)}
	l.add("bgp", control.MAC{VNI: red, MAC: mac(1), IP: a, VTEP: at(2)})
	if err := l.Program("bgp", control.Update{Add: rows(bad)}); err == nil {
		t.Error("taken")
	}
}

// Not even a static owner takes a MAC of the switch itself.
func TestOwnMACStays(t *testing.T) {
	l := newLeaf(t, control.Config{Static: []string{"file"}})
	l.program("file", control.Update{Loose: true, Add: rows(control.MAC{VNI: 300, MAC: mac(0xee), VTEP: at(2)})})
	l.must(l.segment(300).FDB().Set(mac(0xee), 0, fdb.Static))
	l.Reapply()
	e, _ := l.entry(300, mac(0xee))
	if e.Dest != 0 {
		t.Errorf("the switch's own MAC is at %v", l.MAC(300, mac(0xee)))
	}
}

// A row for a MAC that becomes the switch's own waits, as a whole, and comes back when the gateway has another one.
func TestOwnMACLater(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: []string{"first", "second"}, Static: []string{"first"}})
	router := control.Prefix{VRF: "red", Prefix: pfx("10.1.0.0/16"), Via: control.Via{VNI: l3vni, MAC: mac(0xed), VTEP: at(3)}}
	host := control.MAC{VNI: red, MAC: mac(0xee), IP: ip(1), VTEP: at(2)}
	other := control.MAC{VNI: red, MAC: mac(0xee), IP: ip(1), VTEP: at(4)}
	l.add("first", host, router)
	l.add("second", other)
	own := func(vni frame.VNI, m frame.MAC, is bool) {
		t.Helper()
		kind := frame.EventGatewayDown
		if l.segment(vni).FDB().Delete(m); is {
			kind = frame.EventGatewayUp
			l.must(l.segment(vni).FDB().Set(m, 0, fdb.Static))
		}
		l.Handle(frame.Event{Kind: kind, VNI: vni})
	}
	want := func(what string, waits ...string) {
		t.Helper()
		var got []string
		for _, o := range l.Owners() {
			for r, err := range l.Waiting(o) {
				got = append(got, fmt.Sprintf("%s %v: %v", o, r, err))
			}
		}
		if !slices.Equal(got, waits) {
			t.Errorf("%s: %q wait, want %q", what, got, waits)
		}
	}
	const first, second, third = "first mac 02:00:00:00:01:ee vni 100 ip 192.168.7.1 vtep 10.0.0.2:0: MAC.MAC: 02:00:00:00:01:ee: is a MAC of the switch itself",
		"first prefix 10.1.0.0/16 vrf red via vni 900 mac 02:00:00:00:01:ed vtep 10.0.0.3:0: Prefix.Via.MAC: 02:00:00:00:01:ed: is a MAC of the switch itself",
		"second mac 02:00:00:00:01:ee vni 100 ip 192.168.7.1 vtep 10.0.0.4:0: MAC.MAC: 02:00:00:00:01:ee: is a MAC of the switch itself"
	want("at first")
	own(red, mac(0xee), true)
	want("a host's MAC is our own", first, third)
	own(l3vni, mac(0xed), true)
	want("a router's, too", first, second, third)
	for vni, m := range map[frame.VNI]frame.MAC{red: mac(0xee), l3vni: mac(0xed)} {
		if e, ok := l.entry(vni, m); !ok || e.Dest != 0 {
			t.Errorf("%v: %+v", m, e)
		}
	}
	if got := l.Neighbour(red, ip(1)); !got.IsZero() {
		t.Errorf("%v is the neighbour of a row that waits", got)
	}
	if n := len(l.gw.VRF("red").Routes()); n != 0 {
		t.Errorf("%d routes", n)
	}
	l.Reapply()
	want("still", first, second, third)
	l.add("second", control.Flood{VNI: red, VTEP: at(5)})
	want("with other rows", first, second, third)
	own(red, mac(0xee), false)
	want("the host's is its again", second)
	own(l3vni, mac(0xed), false)
	want("at last")
	if a, b := l.MAC(red, mac(0xee)), l.MAC(l3vni, mac(0xed)); a != "10.0.0.2" || b != "10.0.0.3" || l.Neighbour(red, ip(1)) != mac(0xee) || len(l.gw.VRF("red").Routes()) != 1 {
		t.Errorf("at %q and %q, neighbour %v", a, b, l.Neighbour(red, ip(1)))
	}
	l.check()
}

// No owner may say that one is a router's.
func TestOwnMACOfRouter(t *testing.T) {
	l := newLeaf(t, control.Config{Static: []string{"file"}})
	l.must(l.segment(l3vni).FDB().Set(mac(0xec), 0, fdb.Static)) // such as a VTEPMAC
	row := control.Prefix{VRF: "red", Prefix: pfx("10.1.0.0/16"), Via: control.Via{VNI: l3vni, MAC: mac(0xec), VTEP: at(3)}}
	for _, owner := range []string{"file", "bgp"} {
		err := l.Program(owner, control.Update{Loose: true, Add: rows(row)})
		if e, _ := l.entry(l3vni, mac(0xec)); e.Dest != 0 || len(control.Refused(err)) != 1 {
			t.Errorf("%s: at %v, %v", owner, l.MAC(l3vni, mac(0xec)), err)
		}
	}
}

// A new row gives way to a host, though it is given twice.
func TestTwiceInUpdate(t *testing.T) {
	l := newLeaf(t, control.Config{})
	l.speak(2)
	l.add("bgp", control.MAC{VNI: red, MAC: mac(2), VTEP: at(2)}, control.MAC{VNI: red, MAC: mac(2), VTEP: at(3)})
	l.want(2, fdb.OriginLearned, "pipe")
}

// A row that is tried again is tried as a whole.
func TestHalfWritten(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: []string{"first", "second"}})
	l.vtep.wrong = true
	l.program("first", control.Update{Loose: true, Add: rows(control.MAC{VNI: red, MAC: mac(1), IP: ip(1), VTEP: at(2)})})
	l.vtep.wrong = false
	l.wantWaiting("first", 1, fdb.ErrNoDest)
	l.add("second", control.MAC{VNI: red, MAC: mac(3), IP: ip(1), VTEP: at(3)})
	n := 0
	for range l.Waiting("first") {
		n++
	}
	if got := l.MAC(red, mac(1)); n == 0 && got == "" {
		t.Errorf("at %q, neighbour %v, and does not wait", got, l.Neighbour(red, ip(1)))
	}
}
