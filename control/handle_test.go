package control_test

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// handle passes the events so far to the Plane, and nothing else is done.
func (l *leaf) handle(events *vswitch.Events) {
	l.t.Helper()
	n := 0
	for ; ; n++ {
		soon, stop := context.WithTimeout(l.t.Context(), 10*time.Millisecond)
		e, err := events.Next(soon)
		if stop(); err != nil {
			break
		}
		l.Handle(e)
	}
	if n == 0 {
		l.t.Error("there was no event")
	}
}

// With the events of the switch a Plane writes by itself what can be written, and has rows wait without a place.
func TestHandle(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: []string{"first", "second"}})
	events := l.sw.Events()
	defer events.Close()
	var err error
	l.arps[red], err = arp.NewTable(&arp.TableConfig{VNI: red, Notify: l.sw.Notify})
	l.must(err)
	onPort := control.MAC{VNI: red, MAC: mac(1), IP: ip(1), Port: "pipe"}
	l.add("first", onPort)
	l.add("second", control.MAC{VNI: red, MAC: mac(1), IP: ip(1), VTEP: at(2)}, control.MAC{VNI: blue, MAC: mac(3), VTEP: at(3)}, control.Flood{VNI: blue, VTEP: at(4)})

	l.must(l.local.Detach())
	l.handle(events)
	l.want(1, fdb.OriginControl, "10.0.0.2")
	l.wantWaiting("first", 1, control.ErrNoPort)
	l.local, err = l.segment(red).Attach(l.pipe, 0)
	l.must(err)
	l.handle(events)
	l.want(1, fdb.OriginControl, "pipe")
	l.wantWaiting("first", 0, nil)

	l.speak(2) // a host that is here, and leaves
	l.arps[red].Learn(&arp.Claim{IP: ip(2), MAC: mac(2), From: l.local.Dest(0)}, 0)
	l.add("second", control.MAC{VNI: red, MAC: mac(2), IP: ip(2), VTEP: at(2)})
	l.want(2, fdb.OriginLearned, "pipe")
	l.segment(red).FDB().Delete(mac(2))
	l.arps[red].Delete(ip(2))
	l.handle(events)
	l.want(2, fdb.OriginControl, "10.0.0.2")
	if e, _ := l.arps[red].Lookup(ip(2)); e.Origin != arp.Control {
		t.Errorf("neighbour %+v", e)
	}
	l.speak(2) // it is back, and flushed
	l.want(2, fdb.OriginLearned, "pipe")
	l.handle(events)
	l.segment(red).Flush()
	l.handle(events)
	l.want(2, fdb.OriginControl, "10.0.0.2")
	l.speak(2)
	l.arps[red].Learn(&arp.Claim{IP: ip(2), MAC: mac(9), From: l.local.Dest(0)}, 0)
	l.handle(events)
	l.segment(red).FDB().Delete(mac(2))
	l.arps[red].Delete(ip(2))
	l.handle(events)
	l.want(2, fdb.OriginControl, "10.0.0.2")
	if got := l.Neighbour(red, ip(2)); got != mac(2) {
		t.Errorf("neighbour %v", got)
	}
	there, _ := l.entry(red, mac(2))
	l.speak(2) // it is back, and leaves for a place behind the tunnel, from where it is heard
	l.arps[red].Learn(&arp.Claim{IP: ip(2), MAC: mac(2), From: l.local.Dest(0)}, 0)
	l.handle(events)
	l.segment(red).FDB().Learn(mac(2), there.Dest, 0)
	l.arps[red].Learn(&arp.Claim{IP: ip(2), MAC: mac(2), From: there.Dest}, 0)
	l.want(2, fdb.OriginLearned, "10.0.0.2")
	l.handle(events)
	l.want(2, fdb.OriginControl, "10.0.0.2")
	if e, _ := l.arps[red].Lookup(ip(2)); e.Origin != arp.Control {
		t.Errorf("neighbour %+v", e)
	}

	l.must(l.segment(blue).Delete())
	l.handle(events)
	l.wantWaiting("second", 2, control.ErrNoSegment)
	l.segment(blue)
	l.handle(events)
	if got := l.MAC(blue, mac(3)); got != "10.0.0.3" || len(l.Flood(blue)) != 1 {
		t.Errorf("at %q, flood list %v", got, l.Flood(blue))
	}
	for _, a := range l.segment(blue).Attachments() { // with the same number, before anybody looks
		l.must(a.Detach())
	}
	l.segment(blue)
	l.handle(events)
	if got := l.MAC(blue, mac(3)); got != "10.0.0.3" || len(l.Flood(blue)) != 1 {
		t.Errorf("at %q, flood list %v", got, l.Flood(blue))
	}
	l.check()
}

// When a place can be had again, all its rows are written, not only the one that asks.
func TestRoomAgain(t *testing.T) {
	l := newLeaf(t, control.Config{})
	row := func(n byte) control.MAC { return control.MAC{VNI: red, MAC: mac(n), IP: ip(n), VTEP: at(2)} }
	l.vtep.full = true
	l.program("bgp", control.Update{Loose: true, Add: rows(row(1), row(2))})
	l.wantWaiting("bgp", 2, vtep.ErrFull)
	l.vtep.full = false
	l.add("bgp", row(3))
	l.wantWaiting("bgp", 0, nil)
	for n := byte(1); n <= 3; n++ {
		l.want(n, fdb.OriginControl, "10.0.0.2")
	}
}

// A prefix that an interface has waits for it to go, and is no error.
func TestConnectedPrefix(t *testing.T) {
	l := newLeaf(t, control.Config{})
	p := control.Prefix{VRF: "red", Prefix: pfx("192.168.7.0/24"), Via: control.Via{VNI: l3vni, MAC: mac(9), VTEP: at(5)}}
	host := p
	host.Prefix = pfx("192.168.7.254/32")
	l.add("bgp", p, host, control.Prefix{VRF: "red", Prefix: pfx("10.1.0.0/16")})
	l.wantWaiting("bgp", 2, l3.ErrBuiltIn)
	if n := len(l.gw.VRF("red").Routes()); n != 1 {
		t.Errorf("%d routes", n)
	}
	l.must(l.gw.VRF("red").Interface(red).Close())
	l.Reapply()
	l.wantWaiting("bgp", 0, nil)
	if n := len(l.gw.VRF("red").Routes()); n != 3 {
		t.Errorf("%d routes", n)
	}
}

// What is never right is refused even if it may wait.
func TestMistakes(t *testing.T) {
	l := newLeaf(t, control.Config{})
	l.must(l.segment(red).FDB().Set(mac(0xfe), 0, fdb.Static)) // of the interface
	loopback := netip.MustParseAddrPort("127.0.0.1:0")
	for _, r := range rows(
		control.MAC{VNI: red, MAC: mac(1), VTEP: loopback}, control.MAC{VNI: red, MAC: mac(1), VTEP: at(1)},
		control.MAC{VNI: red, MAC: mac(0xfe), VTEP: at(2)}, control.Group{VNI: red, Name: "a", VTEP: loopback},
		control.MAC{VNI: red, MAC: mac(1), VTEP: netip.MustParseAddrPort("224.0.0.5:0")},
		control.Prefix{VRF: "red", Prefix: pfx("10.1.0.0/16"), Via: control.Via{VNI: l3vni, MAC: mac(0xfd), VTEP: at(5)}},
		control.Prefix{VRF: "red", Prefix: pfx("10.1.0.0/16"), Via: control.Via{VNI: l3vni, MAC: mac(9), VTEP: loopback}},
	) {
		err := l.Program("bgp", control.Update{Loose: true, Add: rows(r, control.Flood{VNI: red, VTEP: at(2)})})
		if list := control.Refused(err); len(list) != 1 || list[0].Row != r {
			t.Errorf("%v: %v", r, err)
		}
	}
	l.wantWaiting("bgp", 0, nil)
}

// Whoever watches has the rows of all owners at any time.
func TestWatch(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: owners()})
	d := &draw{r: rand.New(rand.NewPCG(1, 1))}
	names := []string{"bgp", "first name", "other"}
	l.add("bgp", control.Flood{VNI: red, VTEP: at(2)})
	has := map[string]map[control.Row]bool{}
	stop := l.Watch(func(owner string, add, del []control.Row) {
		if has[owner] == nil {
			has[owner] = map[control.Row]bool{}
		}
		for _, r := range del {
			if !has[owner][r] {
				t.Errorf("%v was removed and not there", r)
			}
			delete(has[owner], r)
		}
		for _, r := range add {
			if has[owner][r] {
				t.Errorf("%v was added twice", r)
			}
			has[owner][r] = true
		}
	})
	for range 500 {
		owner := names[d.n(len(names))]
		l.Program(owner, d.update())
		for _, o := range names {
			rows := slices.Collect(l.Rows(o))
			missing := func(r control.Row) bool { return !has[o][r] }
			if len(rows) != len(has[o]) || slices.ContainsFunc(rows, missing) {
				t.Fatalf("%s has %v, and was told %v", o, rows, has[o])
			}
		}
	}
	stop()
	has = nil
	l.Forget("bgp")
}

// Who watches hears of every route, by whom it was added and by whom it was removed.
func TestWatchRoutes(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: owners()})
	route := control.Prefix{VRF: "red", Prefix: pfx("10.7.0.0/16"), Via: control.Via{VNI: red, IP: ip(9)}}
	l.add("bgp", route)
	var told []string
	defer l.Watch(func(owner string, add, del []control.Row) {
		for _, r := range add {
			told = append(told, owner+" adds "+r.String())
		}
		for _, r := range del {
			told = append(told, owner+" removes "+r.String())
		}
	})()
	l.add("other", route)
	l.del("bgp", route)
	l.Forget("other")
	want := []string{"bgp adds ", "other adds ", "bgp removes ", "other removes "}
	for i := range want {
		want[i] += "prefix 10.7.0.0/16 vrf red via vni 100 ip " + ip(9).String()
	}
	if !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
}
