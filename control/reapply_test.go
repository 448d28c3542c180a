package control_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// Reapply writes what was lost, and only that.
func TestReapply(t *testing.T) {
	l := newLeaf(t, control.Config{})
	vrf := l.gw.VRF("red")
	all := rows(
		control.MAC{VNI: red, MAC: mac(1), IP: ip(1), VTEP: at(2)}, control.MAC{VNI: red, MAC: mac(2), Port: "pipe"},
		control.MAC{VNI: blue, MAC: mac(3), IP: ip(3), VTEP: at(3)}, control.Flood{VNI: red, VTEP: at(2)},
		control.Flood{VNI: red, VTEP: at(1)}, control.Flood{VNI: blue, VTEP: at(2)},
		control.Prefix{VRF: "red", Prefix: pfx("10.1.0.0/16"), Via: control.Via{VNI: red, IP: ip(1)}},
		control.Prefix{VRF: "red", Prefix: pfx("10.1.0.0/16"), Via: control.Via{VNI: ipip, VTEP: at(2)}},
		control.Prefix{VRF: "red", Prefix: pfx("10.2.0.0/16"), Via: control.Via{VNI: l3vni, MAC: mac(9), VTEP: at(4)}},
		control.Prefix{VRF: "red", Prefix: pfx("10.3.0.0/16")})
	l.add("bgp", all...)
	want := whole(l)
	untouched := func() {
		t.Helper()
		before := l.Stats()
		l.Reapply()
		if now := l.Stats(); now != before {
			t.Errorf("Reapply wrote though nothing was lost: %+v, was %+v", now, before)
		}
		if got := whole(l); got != want {
			t.Errorf("now\n%s\nwant\n%s", got, want)
		}
	}
	untouched()
	for name, lose := range map[string]func() error{ // and what Reapply says before it is there again
		"a port": func() error {
			l.must(l.local.Detach())
			l.Reapply()
			err := l.lost("bgp")
			l.pipe = port.NewPipe(&port.PipeConfig{Name: "pipe"})
			var e error
			l.local, e = l.segment(red).Attach(l.pipe, 0)
			l.must(e)
			return err
		},
		"the VTEP": func() error {
			for _, vni := range []frame.VNI{red, blue, l3vni} {
				for _, a := range l.segment(vni).Attachments() {
					if a.Port() == vswitch.Port(l.vtep) {
						l.must(a.Detach())
					}
				}
			}
			l.Reapply()
			err := l.lost("bgp")
			for _, vni := range []frame.VNI{red, blue, l3vni} {
				l.segment(vni)
			}
			return err
		},
		"a segment": func() error {
			l.must(l.segment(blue).Delete())
			l.Reapply()
			err := l.lost("bgp")
			l.segment(blue)
			return err
		},
		"a flood list": func() error { l.must(l.vtep.VTEP.SetFlood(red, at(9))); return control.ErrNoVTEP },
		"an entry":     func() error { l.segment(red).FDB().Delete(mac(1)); return control.ErrNoPort },
		"neighbours": func() error {
			l.arps[blue].Delete(ip(3))
			l.arps[red].Delete(ip(1))
			return control.ErrNoPort
		},
		"the neighbour table": func() error {
			l.arps[blue], _ = arp.NewTable(nil)
			return control.ErrNoSegment
		},
		"a route": func() error { vrf.Delete(pfx("10.3.0.0/16")); return control.ErrNoVRF },
		"an interface": func() error {
			old := vrf.Interface(l3vni)
			l.must(old.Close())
			l.Reapply()
			err := l.lost("bgp")
			_, e := vrf.NewInterface(&l3.InterfaceConfig{VNI: l3vni, MAC: mac(0xfd), Send: l.segment(l3vni).Send})
			l.must(e)
			return err
		},
		"a next hop": func() error {
			old := vrf.Interface(ipip)
			l.must(old.Close())
			l.Reapply()
			err := l.lost("bgp")
			vsi, _ := l.sw.VSI(ipip, nil)
			_, e := vrf.NewInterface(&l3.InterfaceConfig{VNI: ipip, Port: vsi.Attachments()[0].Dest(0), Tunnel: l.tun, Send: vsi.Send})
			l.must(e)
			return err
		},
	} {
		if err := lose(); err == nil {
			t.Errorf("%s: nothing was said of it", name)
		}
		if whole(l) == want {
			t.Errorf("%s: nothing was lost", name)
		}
		l.Reapply()
		if got := whole(l); got != want {
			t.Errorf("%s: now\n%s\nwant\n%s", name, got, want)
		}
		untouched()
		l.check()
	}
	l.Forget("bgp")
	if !l.Empty() || len(listed(l.vtep)) != 0 || len(listed(l.tun)) != 0 {
		t.Errorf("left: peers %v %v", listed(l.vtep), listed(l.tun))
	}
}

// lost returns why rows wait.
func (l *leaf) lost(owner string) (list error) {
	for _, err := range l.Waiting(owner) {
		list = errors.Join(list, err)
	}
	return list
}

// whole is all there is to see.
func whole(l *leaf) string {
	v := view(l)
	p, ok := l.Prefix("red", pfx("10.2.0.0/16"))
	q, has := l.Prefix("red", pfx("10.3.0.0/16"))
	return fmt.Sprint(v, p, ok, q, has, listed(l.vtep), listed(l.tun))
}

// A row whose place is gone is in nobody's way: it can be withdrawn, and so can others.
func TestLost(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: []string{"first"}})
	local, remote := control.MAC{VNI: red, MAC: mac(1), Port: "pipe"}, control.MAC{VNI: red, MAC: mac(1), VTEP: at(2)}
	l.add("second", local)
	l.add("first", remote)
	l.must(l.local.Detach())
	l.del("first", remote) // and second's cannot take its place
	l.want(1, fdb.OriginControl, "")
	l.program("second", control.Update{Snapshot: true, Add: rows(local, control.MAC{VNI: red, MAC: mac(2), VTEP: at(2)})})
	l.Reapply()
	l.wantWaiting("second", 1, control.ErrNoPort)
	l.want(2, fdb.OriginControl, "10.0.0.2")
	l.Forget("second")
	if !l.Empty() {
		t.Error("something is left")
	}
}

// Another VTEP in the place of one that has gone gets all that the old one had.
func TestOtherVTEP(t *testing.T) {
	l := newLeaf(t, control.Config{})
	l.add("bgp", control.MAC{VNI: red, MAC: mac(1), VTEP: at(2)}, control.MAC{VNI: blue, MAC: mac(1), VTEP: at(3)},
		control.Flood{VNI: red, VTEP: at(4)}, control.Flood{VNI: blue, VTEP: at(2)})
	want := whole(l)
	old := l.vtep
	for _, vni := range []frame.VNI{red, blue, l3vni} {
		vsi := l.segment(vni)
		l.must(vsi.Attachments()[0].Detach())
	}
	l.must(old.Close())
	u, err := l.net.Listen(netip.MustParseAddrPort("10.0.0.1:4789"), nil)
	l.must(err)
	v, err := vtep.New(nil, u)
	l.must(err)
	l.vtep = &counted{VTEP: v}
	for _, vni := range []frame.VNI{red, blue, l3vni} {
		l.segment(vni)
	}
	l.Reapply()
	if got := whole(l); got != want {
		t.Errorf("now\n%s\nwant\n%s", got, want)
	}
	if n := len(listed(old)); n != 0 {
		t.Errorf("the old VTEP still has %d peers", n)
	}
	l.Forget("bgp")
	if !l.Empty() || len(listed(l.vtep)) != 0 {
		t.Errorf("left: peers %v", listed(l.vtep))
	}
}

// A row that could not be written when its turn comes does not hold up what makes room for it.
func TestTakeOverFails(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: []string{"first"}})
	prefix := func(s string, v control.Via) control.Prefix {
		return control.Prefix{VRF: "red", Prefix: pfx(s), Via: v}
	}
	good, tun := control.Via{VNI: red, IP: ip(1)}, control.Via{VNI: ipip, VTEP: at(3)}
	l.add("first", control.MAC{VNI: red, MAC: mac(1), VTEP: at(2)}, prefix("10.1.0.0/16", good),
		prefix("10.2.0.0/16", tun), prefix("10.3.0.0/16", good))
	l.add("second", control.MAC{VNI: red, MAC: mac(1), VTEP: six},
		prefix("10.1.0.0/16", control.Via{VNI: l3vni, IP: ip(2)}), // it has no neighbours
		prefix("10.2.0.0/16", control.Via{VNI: ipip, VTEP: six}),
		prefix("10.2.0.0/16", control.Via{VNI: ipip, VTEP: at(5)}),
		prefix("10.3.0.0/16", control.Via{VNI: red, IP: ip(2)}))
	l.Forget("first")
	l.want(1, fdb.OriginControl, "")
	if s := fmt.Sprint(l.lost("second")); strings.Count(s, "family") != 2 || !strings.Contains(s, "Neighbours") {
		t.Errorf("waiting: %s", s)
	}
	if r, ok := l.Prefix("red", pfx("10.2.0.0/16")); !ok || len(r) != 1 || r[0].VTEP != at(5) {
		t.Errorf("the next hop that is right: %v", r)
	}
	if r := l.gw.VRF("red").Routes(); len(r) != 2 || r[1].Prefix != pfx("10.3.0.0/16") || r[1].Via[0].IP != ip(2) {
		t.Errorf("routes %v", r)
	}
	if got := slices.Concat(listed(l.vtep), listed(l.tun)); len(got) != 1 {
		t.Errorf("peers %v are listed", got)
	}
	l.check()
	l.Forget("second")
	if !l.Empty() {
		t.Error("something is left")
	}
	l.check()
}
