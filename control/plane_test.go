package control_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

func TestConfig(t *testing.T) {
	sw, err := vswitch.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sw.Close()
	for _, c := range []struct {
		cfg  *control.Config
		want string
	}{
		{nil, "control: Config.Switch"},
		{&control.Config{}, "control: Config.Switch"},
		{&control.Config{Switch: sw, Owners: []string{"a", "b", "a"}}, "control: Config.Owners"},
		{&control.Config{Switch: sw, Owners: []string{"a", ""}}, "control: Config.Owners[1]: a name is required"},
		{&control.Config{Switch: sw, Static: []string{"a\n"}}, `control: Config.Static[0]: "a\n": must be printable`},
		{&control.Config{Switch: sw}, ""},
	} {
		if _, err := control.New(c.cfg); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
	}
	p, _ := control.New(&control.Config{Switch: sw})
	if _, err := sw.VSI(red, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		row  control.Row
		want error
	}{
		{control.Prefix{VRF: "red", Prefix: pfx("10.0.0.0/8")}, control.ErrNoVRF}, // there is no gateway
		{control.Flood{VNI: red, VTEP: at(2)}, control.ErrNoVTEP},
		{control.MAC{VNI: red, MAC: mac(1), VTEP: at(2)}, control.ErrNoVTEP},
		{control.MAC{VNI: red, MAC: mac(1), Port: "x"}, control.ErrNoPort},
	} {
		if err := p.Program("bgp", control.Update{Add: rows(c.row)}); !errors.Is(err, c.want) {
			t.Errorf("%v: %v", c.row, err)
		}
	}
}

// Every error names the owner, the row and the field, and leaves nothing behind.
func TestRefused(t *testing.T) {
	l := newLeaf(t, control.Config{})
	host, far := netip.MustParseAddr("192.168.7.1"), at(2)
	prefix := func(v control.Via) control.Prefix {
		return control.Prefix{VRF: "red", Prefix: pfx("10.1.0.0/16"), Via: v}
	}
	mapped := control.Prefix{VRF: "red", Prefix: netip.PrefixFrom(netip.MustParseAddr("::ffff:10.0.0.0"), 104)}
	for _, c := range []struct {
		row  control.Row
		want string
	}{
		{&control.Flood{VNI: red, VTEP: far}, "*control.Flood"},
		{control.MAC{VNI: red, MAC: mac(1)}, "MAC.VTEP, Group, Port, Filter"},
		{control.MAC{VNI: red, MAC: mac(1), VTEP: far, IP: netip.MustParseAddr("224.0.0.1")}, "MAC.IP"},
		{control.MAC{VNI: red, MAC: mac(1), VTEP: far, IP: netip.MustParseAddr("fe80::1%eth0")}, "MAC.IP"},
		{control.MAC{VNI: red, MAC: mac(1), VTEP: far, IP: netip.MustParseAddr("255.255.255.255")}, "MAC.IP"},
		{control.MAC{VNI: red, MAC: mac(1), VTEP: netip.MustParseAddrPort("0.0.0.0:4789")}, "VTEP"},
		{control.MAC{VNI: red, MAC: mac(1), Filter: true, Port: "pipe"}, "MAC.VTEP, Group, Port, Filter"},
		{control.MAC{VNI: red, MAC: mac(1), Filter: true, Tunnel: "vtep"}, "MAC.Tunnel"},
		{control.MAC{VNI: red, MAC: mac(1), Filter: true, IP: host}, "MAC.IP"},
		{control.MAC{VNI: red, MAC: frame.Broadcast, VTEP: far, IP: host}, "MAC.MAC"},
		{control.MAC{VNI: red, MAC: frame.Broadcast, Group: "pair"}, "MAC.MAC"},
		{control.MAC{VNI: red, MAC: frame.Broadcast, Filter: true}, "MAC.MAC: ff:ff:ff:ff:ff:ff: must be"},
		{control.MAC{VNI: red, MAC: mac(1), Group: "pair"}, `group "pair"`},
		{control.MAC{VNI: red, MAC: mac(1), Port: "pipe", FarVNI: 7}, "MAC.FarVNI"},
		{control.MAC{VNI: red, MAC: mac(1), VTEP: far, FarVNI: 1 << 24}, "MAC.FarVNI"},
		{control.MAC{VNI: red, MAC: mac(1), VTEP: at(1), FarVNI: 7}, "VTEP"},
		{control.Group{VNI: red, VTEP: far}, "Group.Name"},
		{control.Group{VNI: red, Name: "pair"}, "VTEP"},
		{control.Group{VNI: red, Name: "pair", VTEP: at(1)}, "VTEP"},
		{control.Group{VNI: red, Name: "pair", VTEP: far, Tunnel: "none"}, `VTEP: the segment has no VTEP named "none"`},
		{control.Group{VNI: red, Name: "pair", VTEP: far, FarVNI: 1 << 24}, "Group.FarVNI"},
		{prefix(control.Via{VNI: red, IP: host, FarVNI: 7}), "Prefix.Via.FarVNI"},
		{prefix(control.Via{VNI: ipip, VTEP: far, FarVNI: 7}), "Prefix.Via.FarVNI"},
		{prefix(control.Via{VNI: l3vni, MAC: mac(1), VTEP: far, FarVNI: 1 << 24}), "Prefix.Via.FarVNI"},
		{control.MAC{VNI: ipip, MAC: mac(1), Port: "pipe"}, `port "pipe"`},
		{control.MAC{VNI: red, MAC: mac(1), Port: "vtep"}, `port "vtep"`},
		{control.MAC{VNI: red, MAC: mac(1), VTEP: at(1)}, "VTEP"},
		{control.MAC{VNI: red, MAC: mac(1), VTEP: netip.MustParseAddrPort("[fd00::1]:0")}, "VTEP"},
		{control.Flood{VNI: red}, "VTEP"},
		{control.Flood{VNI: red, VTEP: netip.MustParseAddrPort("127.0.0.1:0")}, "VTEP: 127.0.0.1: must not be a loopback address, because the local VTEP has none"},
		{control.Flood{VNI: red, VTEP: netip.MustParseAddrPort("0.0.0.0:4789")}, "VTEP"},
		{control.Flood{VNI: red, VTEP: far, MAC: mac(1)}, "Flood.MAC: 02:00:00:00:01:01: must be the MAC of a group, or zero"},
		{control.Flood{VNI: red, VTEP: far, MAC: groups[0], NoUnknown: true}, "Flood.NoUnknown: not allowed with MAC"},
		{control.MAC{VNI: red, MAC: mac(1), VTEP: netip.MustParseAddrPort("239.0.0.1:0")}, "VTEP"},
		{mapped, "Prefix.Prefix"},
		{control.Prefix{VRF: "red"}, "Prefix.Prefix"},
		{control.Prefix{VRF: "red", Prefix: pfx("127.0.0.0/8")}, "Prefix.Prefix: 127.0.0.0/8: is in 127.0.0.0/8, which is not routed; must be"},
		{control.Prefix{VRF: "red", Prefix: pfx("127.0.0.1/32")}, "Prefix.Prefix: 127.0.0.1/32: is in 127.0.0.0/8"},
		{control.Prefix{VRF: "red", Prefix: pfx("224.0.0.0/4"), Via: control.Via{VNI: red, IP: host}}, "Prefix.Prefix: 224.0.0.0/4: is in"},
		{control.Prefix{VRF: "red", Prefix: pfx("239.1.0.0/16")}, "Prefix.Prefix: 239.1.0.0/16: is in 224.0.0.0/4"},
		{control.Prefix{VRF: "red", Prefix: pfx("::1/128")}, "Prefix.Prefix: ::1/128: is in"},
		{control.Prefix{VRF: "red", Prefix: pfx("ff02::/16")}, "Prefix.Prefix: ff02::/16: is in ff00::/8"},
		{control.Prefix{Prefix: pfx("10.1.0.0/16")}, `Prefix.VRF: "": must be the name of a VRF`},
		{control.Prefix{VRF: "red\n", Prefix: pfx("10.1.0.0/16")}, `Prefix.VRF: "red\n": must be printable`},
		{prefix(control.Via{VNI: ipip, VTEP: far, Tunnel: "a\tb"}), `Prefix.Via.Tunnel: "a\tb": must be printable`},
		{control.MAC{VNI: red, MAC: mac(1), Port: "pipe\n"}, `MAC.Port: "pipe\n": must be printable`},
		{control.MAC{VNI: red, MAC: mac(1), Group: "\x1b[31m"}, `MAC.Group: "\x1b[31m": must be printable`},
		{control.MAC{VNI: red, MAC: mac(1), VTEP: far, Tunnel: "\x00"}, `MAC.Tunnel: "\x00": must be printable`},
		{control.Group{VNI: red, Name: "a\nb", VTEP: far}, `Group.Name: "a\nb": must be printable`},
		{control.Group{VNI: red, Name: "pair", VTEP: far, Tunnel: "\n"}, `Group.Tunnel: "\n": must be printable`},
		{control.Flood{VNI: red, VTEP: far, Tunnel: "\n"}, `Flood.Tunnel: "\n": must be printable`},
		{prefix(control.Via{VNI: blue, IP: host}), "Prefix.Via.VNI"},
		{prefix(control.Via{VNI: red, IP: netip.MustParseAddr("fd00::1")}), "Prefix.Via.IP"},
		{prefix(control.Via{VNI: red, IP: host, VTEP: far}), "Prefix.Via.IP"},
		{prefix(control.Via{VNI: red, IP: netip.MustParseAddr("127.0.0.1")}), "Prefix.Via.IP: 127.0.0.1: must be"},
		{prefix(control.Via{VNI: l3vni, MAC: frame.Broadcast, VTEP: far}), "Prefix.Via.MAC"},
		{prefix(control.Via{VNI: l3vni, MAC: mac(1)}), "Prefix.Via.VTEP"},
		{prefix(control.Via{VNI: red, VTEP: far}), "prefix"},  // the interface is no tunnel
		{prefix(control.Via{VNI: l3vni}), "prefix"},           // nor an IP port
		{prefix(control.Via{VNI: l3vni, IP: host}), "prefix"}, // and has no neighbours
		{prefix(control.Via{VNI: ipip, VTEP: netip.MustParseAddrPort("10.0.0.2:9")}), "VTEP"},
	} {
		err := l.Program("bgp", control.Update{Snapshot: true, Add: rows(control.Flood{VNI: blue, VTEP: at(3)}, c.row)})
		if len(l.Flood(blue)) != 1 {
			t.Errorf("%v: the other row was not taken", c.row)
		}
		l.del("bgp", control.Flood{VNI: blue, VTEP: at(3)})
		if list := control.Refused(err); len(list) != 1 || list[0].Row != c.row || !strings.HasPrefix(err.Error(), "control: owner bgp: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want an error about %s", c.row, err, c.want)
		}
		if len(l.Owners()) != 0 || !l.Empty() || len(l.Flood(blue)) != 0 || len(listed(l.vtep))+len(listed(l.tun)) != 0 {
			t.Fatalf("%v: left something behind: %v %v", c.row, listed(l.vtep), listed(l.tun))
		}
	}
	for _, owner := range []string{"", "bgp\n", "\x1b[31m"} {
		if err := l.Program(owner, control.Update{}); err == nil || !strings.HasPrefix(err.Error(), "control: Program: owner: ") {
			t.Errorf("owner %q: %v", owner, err)
		}
	}
	// A row that names no VRF does not wait for one, not even for one without a name.
	l.gw.VRF("")
	if err := l.Program("bgp", control.Update{Loose: true, Add: rows(control.Prefix{Prefix: pfx("10.1.0.0/16")})}); len(control.Refused(err)) != 1 {
		t.Errorf("a row without a VRF: %v", err)
	}
	l.gw.DeleteVRF("")
	// What contains those networks, or is beside them, is routed.
	for _, p := range []string{"0.0.0.0/0", "126.0.0.0/7", "128.0.0.0/8", "192.0.0.0/2", "::/0", "::/127", "fe00::/7", "fe80::/10"} {
		if err := l.Program("bgp", control.Update{Add: rows(control.Prefix{VRF: "red", Prefix: pfx(p)})}); err != nil {
			t.Error(err)
		}
	}
	l.Forget("bgp")
	if vrfs := l.gw.VRFs(); len(vrfs) != 1 {
		t.Errorf("%d VRFs: one was made on the way", len(vrfs))
	}
	l.check()
}

func TestRows(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: []string{"z", "y"}})
	mapped := netip.MustParseAddrPort("[::ffff:10.0.0.2]:4789")
	l.add("a", control.Flood{VNI: blue, VTEP: mapped}, control.Prefix{VRF: "red", Prefix: pfx("10.1.0.0/16")},
		control.MAC{VNI: red, MAC: mac(2), VTEP: mapped, IP: netip.MustParseAddr("::ffff:192.168.7.2"), Router: true, Sticky: true},
		control.Flood{VNI: red, VTEP: at(2)}, control.MAC{VNI: red, MAC: mac(1), Port: "pipe"})
	l.add("y", control.Flood{VNI: red, VTEP: at(2)})
	l.add("z", control.Flood{VNI: red, VTEP: at(2)})
	if got := fmt.Sprint(l.Owners()); got != "[z y a]" {
		t.Errorf("owners %v", got)
	}
	var got []string
	for r := range l.Rows("a") {
		got = append(got, r.String())
	}
	want := []string{
		"mac 02:00:00:00:01:01 vni 100 port pipe",
		"mac 02:00:00:00:01:02 vni 100 ip 192.168.7.2 vtep 10.0.0.2:4789 sticky router",
		"flood vni 100 vtep 10.0.0.2:0", "flood vni 200 vtep 10.0.0.2:4789",
		"prefix 10.1.0.0/16 vrf red blackhole",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for range l.Rows("a") {
		l.del("a", control.Flood{VNI: red, VTEP: at(2)}) // the Plane is not locked meanwhile
		break
	}
	l.del("a", control.Flood{VNI: blue, VTEP: netip.MustParseAddrPort("10.0.0.2:4789")}) // the same as what was added
	if n := l.Stats().Rows; n != 5 {
		t.Errorf("%d rows, want 5", n)
	}
}

// Peers stay, with their numbers, for as long as somebody names them.
func TestPeers(t *testing.T) {
	l := newLeaf(t, control.Config{})
	row := func(n byte) control.MAC { return control.MAC{VNI: red, MAC: mac(n), VTEP: at(2)} }
	l.add("a", row(1))
	e, _ := l.entry(red, mac(1))
	before := l.vtep.peers.Load()
	l.add("b", row(2), row(1))
	l.program("a", control.Update{Snapshot: true, Add: rows(row(3), row(4))})
	l.Forget("b")
	l.del("a", row(3))
	if n := l.vtep.peers.Load() - before; n != 0 {
		t.Errorf("a peer that was there was added or deleted %d times", n)
	}
	if now, _ := l.entry(red, mac(4)); now.Dest != e.Dest {
		t.Errorf("the peer's number has changed: %v, was %v", now.Dest, e.Dest)
	}
	aimed := row(4)
	aimed.VTEP = netip.MustParseAddrPort("10.0.0.2:8472")
	l.add("a", aimed)
	if name := l.vtep.PeerName(e.Dest.Peer()); name != "10.0.0.2:8472" {
		t.Errorf("aimed at %s", name)
	}
	aimed.VTEP = netip.MustParseAddrPort("10.0.0.2:9999")
	third := row(3)
	third.VTEP = netip.MustParseAddrPort("10.0.0.2:7777")
	l.add("a", aimed)
	l.add("b", third) // a host has one port; two rows that differ do not take turns
	before = l.vtep.peers.Load()
	l.Reapply()
	if n := l.vtep.peers.Load() - before; n != 0 {
		t.Errorf("Reapply aimed a peer %d times", n)
	}
	l.Forget("b")
	l.add("a", control.Flood{VNI: red, VTEP: at(2)})
	l.del("a", row(4))
	if got := listed(l.vtep); !slices.Equal(got, []string{"10.0.0.2"}) {
		t.Errorf("peers %v: it is still in a flood list", got)
	}
	l.Forget("a")
	if got := listed(l.vtep); len(got) != 0 {
		t.Errorf("peers %v", got)
	}
	l.check()
}

// Routes set by hand at other prefixes stay.
func TestRoutesByHand(t *testing.T) {
	l := newLeaf(t, control.Config{})
	vrf := l.gw.VRF("red")
	mine := l3.Route{Prefix: pfx("10.1.0.0/16"), Via: []l3.NextHop{{Interface: vrf.Interface(red), IP: ip(9)}}}
	l.must(vrf.Add(mine, l3.Route{Prefix: pfx("10.2.0.0/16")}))
	wrong := control.Prefix{VRF: "red", Prefix: mine.Prefix, Via: control.Via{VNI: l3vni, IP: ip(1)}} // it has no neighbours
	if err := l.Program("bgp", control.Update{Add: rows(wrong)}); len(control.Refused(err)) != 1 {
		t.Fatal(err)
	}
	if r, ok := vrf.Route(mine.Prefix); !ok || !slices.Equal(r.Via, mine.Via) {
		t.Errorf("the route is %v %v, want %v", r, ok, mine)
	}
	l.add("bgp", control.Prefix{VRF: "red", Prefix: pfx("10.3.0.0/16"), Via: control.Via{VNI: red, IP: ip(1)}})
	l.Forget("bgp")
	if n := len(vrf.Routes()); n != 2 {
		t.Errorf("%d routes, want the two set by hand", n)
	}
	l.add("bgp", control.Prefix{VRF: "red", Prefix: pfx("10.3.0.0/16"), Via: control.Via{VNI: red, IP: ip(1)}},
		control.Prefix{VRF: "red", Prefix: pfx("10.4.0.0/16")})
	l.must(vrf.Add(l3.Route{Prefix: pfx("10.3.0.0/16")}, l3.Route{Prefix: pfx("10.4.0.0/16"), Via: mine.Via}))
	l.Forget("bgp") // and finds what somebody has put in their places
	if n := len(vrf.Routes()); n != 4 {
		t.Errorf("%d routes, want the four set by hand", n)
	}
}

// The rows of an owner that is reserved change by what Reserve has returned alone.
func TestReserve(t *testing.T) {
	l := newLeaf(t, control.Config{})
	l.add("config", control.Flood{VNI: red, VTEP: at(2)})
	program, err := l.Reserve("config")
	l.must(err)
	l.must(program(control.Update{Add: rows(control.Flood{VNI: red, VTEP: at(3)})}))
	const want = `owner: "config": is reserved; must be another name`
	if err := l.Program("config", control.Update{Snapshot: true}); err == nil || err.Error() != "control: Program: "+want {
		t.Error(err)
	}
	l.Forget("config")
	if _, err := l.Reserve("config"); err == nil || err.Error() != "control: Reserve: "+want {
		t.Error(err)
	}
	if _, err := l.Reserve(""); err == nil || err.Error() != "control: Reserve: owner: a name is required" {
		t.Error(err)
	}
	if n := len(l.Flood(red)); n != 2 {
		t.Errorf("%d rows", n)
	}
	l.must(program(control.Update{Snapshot: true}))
	if !l.Empty() {
		t.Error("something is left")
	}
}
