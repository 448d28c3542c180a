package node

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// What may be wrong with a segment's tunnels, and with the new keys of tunnels.
func TestParseTunnelErrors(t *testing.T) {
	const head = `{"tunnels": [{"name": "a", "local": "10.0.0.1"}, {"name": "b", "local": "fd00::1"}, {"name": "ip", "type": "ipip", "local": "10.0.0.1"}],
"ports": [{"name": "p"}], "segments": [`
	for _, c := range []struct{ text, want string }{
		{head + `{"vni": 1, "tunnel": "a", "tunnels": [{"tunnel": "b"}]}]}`, `segments[0].tunnel: the segment has tunnels; add it there`},
		{head + `{"vni": 1, "flood": ["10.0.0.2"], "tunnels": [{"tunnel": "b"}]}]}`, `segments[0].flood: the segment has tunnels; set it there`},
		{head + `{"vni": 1, "hub": true, "tunnels": [{"tunnel": "b"}]}]}`, `segments[0].hub: the segment has tunnels; set it there`},
		{head + `{"vni": 1, "tunnels": [{"tunnel": "c"}]}]}`, `segments[0].tunnels[0].tunnel: "c": must be the name of a tunnel`},
		{head + `{"vni": 1, "tunnels": [{"vni": 7}]}]}`, `segments[0].tunnels[0].tunnel: "": must be the name of a tunnel`},
		{head + `{"vni": 1, "tunnels": [{"tunnel": "a"}, {"tunnel": "a"}]}]}`, `segments[0].tunnels[1].tunnel: "a": duplicate`},
		{head + `{"vni": 1, "tunnels": [{"tunnel": "a"}, {"tunnel": "ip"}]}]}`, `segments[0].tunnels[1].tunnel: "ip": an IP tunnel must be alone in its segment`},
		{head + `{"vni": 1, "tunnels": [{"tunnel": "a", "vni": 16777216}]}]}`, `segments[0].tunnels[0].vni: 16777216: must be 1 to 16777215, or 0 for the VNI of the segment`},
		{head + `{"vni": 1, "tunnels": [{"tunnel": "a", "hub": true, "group": 3}]}]}`, `segments[0].tunnels[0].group: a hub cannot be in a group`},
		{head + `{"vni": 1, "tunnels": [{"tunnel": "a", "group": 256}]}]}`, `segments[0].tunnels[0].group: 256: must be 0 to 255`},
		{head + `{"vni": 1, "tunnels": [{"tunnel": "a", "flood": ["fd00::2"]}]}]}`, `segments[0].tunnels[0].flood[0]: fd00::2: is of another address family than 10.0.0.1, the local address of tunnel "a"`},
		{head + `{"vni": 1, "tunnels": [{"tunnel": "b", "flood": ["fd00::2", "fd00::2"]}]}]}`, `segments[0].tunnels[0].flood[1]: fd00::2: duplicate`},
		{head + `{"vni": 1, "tunnel": "a"}, {"vni": 2, "tunnels": [{"tunnel": "a", "vni": 1}]}]}`, `segments[1].tunnels[0].vni: tunnel "a" already has VNI 1, in segment 1`},
		{head + `{"vni": 1, "tunnels": [{"tunnel": "a"}, {"tunnel": "b"}], "fdb": [{"mac": "02:00:00:00:00:01", "remote": "10.0.0.2"}]}]}`,
			`segments[0].fdb[0].tunnel: required: the segment has several`},
		{head + `{"vni": 1, "tunnels": [{"tunnel": "a"}, {"tunnel": "b"}], "fdb": [{"mac": "02:00:00:00:00:01", "remote": "10.0.0.2", "tunnel": "b"}]}]}`,
			`segments[0].fdb[0].remote: 10.0.0.2: is of another address family than fd00::1, the local address of tunnel "b"`},
		{head + `{"vni": 1, "tunnel": "a", "fdb": [{"mac": "02:00:00:00:00:01", "remote": "10.0.0.2", "tunnel": "b"}]}]}`,
			`segments[0].fdb[0].tunnel: "b": must be a tunnel of the segment`},
		{head + `{"vni": 1, "crossConnect": "10.0.0.2"}]}`, `segments[0].crossConnect: requires one tunnel of type gpe, ipip or fou`},
		{head + `{"vni": 1, "tunnel": "a", "crossConnect": "10.0.0.2"}]}`, `segments[0].crossConnect: tunnel "a" carries Ethernet; use type gpe, ipip or fou`},
		{head + `{"vni": 1, "tunnel": "ip", "crossConnect": "10.0.0.1"}]}`, `segments[0].crossConnect: 10.0.0.1: is this node's own address`},
		{head + `{"vni": 1, "tunnel": "ip", "crossConnect": "10.0.0.2", "flood": ["10.0.0.2"]}]}`, `segments[0].crossConnect: excludes flood, fdb, neighbours and gateway`},
		{head + `{"vni": 1, "tunnel": "ip", "crossConnect": "10.0.0.2", "members": [{"port": "p"}]}]}`, `segments[0].members[0].port: "p": a cross-connect requires an IP port`},
		{head + `{"vni": 1, "members": [{"port": "p", "gbp": 65536}]}]}`, `segments[0].members[0].gbp: 65536: must be 0 to 65535`},
		{`{"tunnels": [{"name": "a", "local": "10.0.0.1", "reserved": "lax"}]}`,
			`tunnels[0].reserved: "lax": must be rfc, strict, or a mask of 64 bits such as 0xf700000000000000`},
		{`{"tunnels": [{"name": "a", "local": "10.0.0.1", "reserved": "0x0800000000000000"}]}`,
			`tunnels[0].reserved: 0x0800000000000000 has bits 0x0800000000000000, which vxlan needs`},
		{`{"tunnels": [{"name": "a", "local": "10.0.0.1", "gbp": true, "reserved": "0x8000000000000000"}]}`,
			`tunnels[0].reserved: 0x8000000000000000 has bits 0x8000000000000000, which vxlan with GBP needs`},
		{`{"tunnels": [{"name": "a", "type": "gpe", "local": "10.0.0.1", "gbp": true}]}`, `tunnels[0].gbp: gpe has no group policy`},
		{`{"tunnels": [{"name": "a", "type": "ipip", "local": "10.0.0.1", "reserved": "strict"}]}`, `tunnels[0].reserved: strict: ipip has no header`},
		{`{"tunnels": [{"name": "a", "local": "10.0.0.1", "peers": "some"}]}`, `tunnels[0].peers: "some": must be one of any, listed, listed-per-vni`},
	} {
		_, err := Parse([]byte(c.text))
		var errs setting.Errors
		if !errors.As(err, &errs) || !slices.ContainsFunc(errs, func(e *setting.Error) bool { return strings.HasSuffix(e.Error(), c.want) }) {
			t.Errorf("%s\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

const two = `{
  "tunnels": [
    {"name": "a", "local": "127.0.0.1", "port": 14789, "reserved": "strict", "gbp": true, "peers": "listed-per-vni"},
    {"name": "b", "type": "gpe", "local": "127.0.0.1", "port": 14790}
  ],
  "segments": [
    {"vni": 10, "tunnels": [
       {"tunnel": "a", "flood": ["127.0.0.2"]}, {"tunnel": "b", "vni": 7010, "flood": ["127.0.0.3"], "group": 2}],
     "fdb": [{"mac": "02:00:00:00:00:09", "remote": "127.0.0.4", "tunnel": "a"}, {"mac": "02:00:00:00:00:0a", "remote": "127.0.0.4", "tunnel": "b"}]},
    {"vni": 20, "tunnel": "a", "flood": ["127.0.0.5"], "gateway": {"vrf": "red", "mac": "02:00:00:00:ff:20"}}
  ],
  "vrfs": [{"name": "red", "routes": [{"prefix": "10.1.0.0/16", "via": [{"segment": 20, "mac": "02:00:00:00:dd:02", "remote": "127.0.0.6"}]}]}]
}`

// tunnelsOf is what a node's segments have in their tunnels, a line each.
func tunnelsOf(n *Node) string {
	var list []string
	for _, s := range n.Switch().VSIs() {
		for _, a := range s.Attachments() {
			v := a.Port().(*vtep.VTEP)
			tag := frame.VNI(a.Tag())
			list = append(list, fmt.Sprintf("%d %s tag %d flood %v allowed %v", s.VNI(), v.Name(), tag, v.Flood(tag), v.Allowed(tag)))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// A segment in two tunnels, one of which gets another VNI and then goes, and at last the
// segment says so in the old way. Peers that entries and routes name are allowed.
func TestApplyTunnels(t *testing.T) {
	n := running(t)
	if c := parse(t, two).Tunnels[0]; c.Reserved != vtep.ReservedStrict || !c.GBP || c.Peers != vtep.ListedPerVNI {
		t.Errorf("%+v", c)
	}
	const (
		a10 = "10 a tag 10 flood [127.0.0.2:14789] allowed [127.0.0.4:14789]\n"
		a20 = "20 a tag 20 flood [127.0.0.5:14789] allowed [127.0.0.6:14789]"
	)
	text := two
	for _, c := range []struct{ name, old, new, want string }{
		{"two", "", "", a10 + "10 b tag 7010 flood [127.0.0.3:14790] allowed [127.0.0.4:14790]\n" + a20},
		{"again", "", "", a10 + "10 b tag 7010 flood [127.0.0.3:14790] allowed [127.0.0.4:14790]\n" + a20},
		{"another VNI", "7010", "7011", a10 + "10 b tag 7011 flood [127.0.0.3:14790] allowed [127.0.0.4:14790]\n" + a20},
		{"another group", `"group": 2`, `"hub": true`, a10 + "10 b tag 7011 flood [127.0.0.3:14790] allowed [127.0.0.4:14790]\n" + a20},
		{"the first tunnel differs", `"gbp": true, `, "", a10 + "10 b tag 7011 flood [127.0.0.3:14790] allowed [127.0.0.4:14790]\n" + a20},
		{"an entry less", `, {"mac": "02:00:00:00:00:0a", "remote": "127.0.0.4", "tunnel": "b"}`, "",
			a10 + "10 b tag 7011 flood [127.0.0.3:14790] allowed []\n" + a20},
		{"one less", `, {"tunnel": "b", "vni": 7011, "flood": ["127.0.0.3"], "hub": true}`, "", a10 + a20},
		{"the old way", `"tunnels": [
       {"tunnel": "a", "flood": ["127.0.0.2"]}]`, `"tunnel": "a", "flood": ["127.0.0.2"]`, a10 + a20},
		{"none", `"tunnel": "a", "flood": ["127.0.0.2"],
     "fdb": [{"mac": "02:00:00:00:00:09", "remote": "127.0.0.4", "tunnel": "a"}]`, `"noLearning": false`, a20},
	} {
		if c.old != "" && !strings.Contains(text, c.old) {
			t.Fatalf("%s: no %s in\n%s", c.name, c.old, text)
		}
		text = strings.Replace(text, c.old, c.new, 1)
		if err := n.Apply(parse(t, text)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := tunnelsOf(n); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	if err := n.Apply(parse(t, two)); err != nil { // back at once
		t.Fatal(err)
	}
	if got, want := tunnelsOf(n), a10+"10 b tag 7010 flood [127.0.0.3:14790] allowed [127.0.0.4:14790]\n"+a20; got != want {
		t.Errorf("back: got\n%s\nwant\n%s", got, want)
	}
}

// A tunnel whose sockets have failed is listed until a change opens others.
func TestTunnelsDown(t *testing.T) {
	net := memory.NewNetwork(nil)
	defer net.Close()
	var under vtep.Underlay
	refuse := error(nil)
	n, err := New(&Options{Listen: func(x *Tunnel) (u vtep.Underlay, err error) {
		if refuse != nil {
			return nil, refuse
		}
		under, err = net.Listen(x.AddrPort(), nil)
		return under, err
	}})
	must(t, err)
	defer n.Close()
	go n.Run(t.Context())
	must(t, n.Apply(&Config{
		Tunnels: []Tunnel{{Config: vtep.Config{Name: "vx"}, Local: netip.MustParseAddr("192.0.2.1")}}, Segments: []Segment{{VNI: 7, Tunnel: "vx"}},
	}))
	if m := n.TunnelsDown(); len(m) != 0 {
		t.Errorf("%v", m)
	}
	must(t, under.Close())
	down := func(want string) func() bool {
		return func() bool {
			err := n.TunnelsDown()["vx"]
			return err != nil && strings.Contains(err.Error(), want)
		}
	}
	fake.Until(t, "it is down", down("closed network connection"))
	refuse = errors.New("no such device")
	if err := n.Apply(n.Config()); err == nil || !strings.Contains(err.Error(), "no such device") {
		t.Error(err)
	}
	fake.Until(t, "it is down still", down("could not be opened again"))
	refuse = nil
	must(t, n.Apply(n.Config()))
	if m := n.TunnelsDown(); len(m) != 0 {
		t.Errorf("%v", m)
	}
}
