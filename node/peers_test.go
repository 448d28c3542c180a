package node

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// What may be wrong with settings of single peers, and with a second address.
func TestParsePeerErrors(t *testing.T) {
	tunnel := func(rest string) string { return `{"tunnels": [{"name": "a", "local": "10.0.0.1", ` + rest + `}]}` }
	peer := func(rest string) string { return tunnel(`"peerSettings": [{"address": "10.0.0.2"}, {` + rest + `}]`) }
	const ipip = `"type": "ipip", `
	var many strings.Builder
	for i := range 32 {
		fmt.Fprintf(&many, `{"address": "10.0.1.%d", "srcPorts": "%d-20000"},`, i+1, i+1)
	}
	for _, c := range []struct{ text, want string }{
		{peer(`"ttl": 5`), `tunnels[0].peerSettings[1].address: an address is required`},
		{peer(`"address": "10.0.0.2"`), `tunnels[0].peerSettings[1].address: 10.0.0.2: duplicate`},
		{peer(`"address": "10.0.0.1"`), `tunnels[0].peerSettings[1].address: 10.0.0.1: is this node's own address`},
		{peer(`"address": "239.1.1.1"`), `tunnels[0].peerSettings[1].address: 239.1.1.1: is a multicast group`},
		{peer(`"address": "fd00::2"`), `tunnels[0].peerSettings[1].address: fd00::2: is of another address family than 10.0.0.1, the local address of tunnel "a"`},
		{peer(`"address": "10.0.0.3", "ttl": 300`), `tunnels[0].peerSettings[1].ttl: 300: must be 1 to 255, 0 for 64, or "inherit"`},
		{peer(`"address": "10.0.0.3", "tos": 3`), `tunnels[0].peerSettings[1].tos: 3: must be a multiple of 4; the two low bits are ECN`},
		{peer(`"address": "10.0.0.3", "df": "no"`), `tunnels[0].peerSettings[1].df: "no": must be one of default, set, unset, inherit`},
		{peer(`"address": "10.0.0.3", "port": 65536`), `tunnels[0].peerSettings[1].port: 65536: must be 0 to 65535`},
		{peer(`"address": "10.0.0.3", "srcPorts": "9-8"`), `tunnels[0].peerSettings[1].srcPorts: 9-8: must be a range of ports from 1 to 65535`},
		{tunnel(ipip + `"peerSettings": [{"address": "10.0.0.3", "port": 7}]`), `tunnels[0].peerSettings[0].port: IP-in-IP has no UDP header`},
		{tunnel(ipip + `"peerSettings": [{"address": "10.0.0.3", "udpChecksum": "on"}]`), `tunnels[0].peerSettings[0].udpChecksum: IP-in-IP has no UDP header`},
		{tunnel(`"peerSettings": [` + many.String() + `]`), `tunnels[0].peerSettings[31]: at most 31 different pairs of srcPorts and udpChecksum are allowed`},
		{tunnel(`"local6": "10.0.0.2"`), `tunnels[0].local6: 10.0.0.2: must be an IPv6 address beside an IPv4 local`},
		{tunnel(`"local6": "::ffff:10.0.0.2"`), `tunnels[0].local6: ::ffff:10.0.0.2: must be an IPv6 address beside an IPv4 local`},
		{tunnel(`"local6": "fe80::1"`), `tunnels[0].local6: fe80::1: requires a zone, such as fe80::1%eth0`},
		{tunnel(`"local6": "ff02::1"`), `tunnels[0].local6: ff02::1: is a multicast group`},
		{tunnel(`"prefix6": "fd00::/64"`), `tunnels[0].prefix6: requires local6`},
		{tunnel(`"gateway6": "fd00::9"`), `tunnels[0].gateway6: requires local6`},
		{tunnel(`"local6": "fd00::1", "prefix6": "fd00::/64", "gateway6": "fd00::9"`), `tunnels[0].prefix6: an underlay of type udp does not have this setting`},
		{tunnel(`"local6": "fd00::1", "underlay": "packet", "bind": "eth0", "prefix": "10.0.0.0/24", "gateway6": "10.0.0.9"`), `tunnels[0].gateway6: 10.0.0.9: is of another address family than fd00::1`},
		{tunnel(`"local6": "fd00::1", "underlay": "packet", "bind": "eth0", "prefix6": "10.0.0.0/8"`), `tunnels[0].prefix6: 10.0.0.0/8: is of another address family than fd00::1`},
		{`{"tunnels": [{"name": "a", "local": "fd00::1", "local6": "fd00::2"}]}`, `tunnels[0].local6: fd00::2: must be an IPv6 address beside an IPv4 local`},
		{`{"tunnels": [{"name": "a", "local": "fd00::1"}, {"name": "b", "local": "10.0.0.1", "local6": "fd00::1"}]}`, `tunnels[1].local6: tunnel "a" already has fd00::1 port 4789`},
		{tunnel(`"local6": "fd00::1", "srcPorts": "9-7"`), `tunnels[0].srcPorts: 9-7: must be a range of ports`},
		{tunnel(`"local6": "fd00::1", "mtu": 60`), `tunnels[0].mtu: 60: must be at least 70 over fd00::1`},
		{`{"tunnels": [{"name": "a", "local": "10.0.0.1", "local6": "fd00::1"}], "segments": [{"vni": 1, "tunnel": "a", "flood": ["10.0.0.2", "fd00::2", "fd00::1"]}]}`,
			`segments[0].flood[2]: fd00::1: is this node's own address`},
	} {
		_, err := Parse([]byte(c.text))
		var errs setting.Errors
		if !errors.As(err, &errs) || !slices.ContainsFunc(errs, func(e *setting.Error) bool { return strings.Contains(e.Error(), c.want) }) || strings.Contains(err.Error(), "tunnels[0]: ") {
			t.Errorf("%s\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

// inMemory is a node over a network in memory, and the underlays that it has opened.
func inMemory(t *testing.T) (n *Node, net *memory.Network, opened *[]*memory.Underlay) {
	net, opened = memory.NewNetwork(nil), new([]*memory.Underlay)
	t.Cleanup(func() { net.Close() })
	n, err := New(&Options{Listen: func(c *Tunnel) (vtep.Underlay, error) {
		if c.Local6.IsValid() {
			t.Errorf("asked for %v and %v at once", c.Local, c.Local6)
		}
		u, err := net.Listen(c.AddrPort(), nil)
		if err == nil {
			*opened = append(*opened, u)
		}
		return u, err
	}})
	must(t, err)
	t.Cleanup(func() { n.Close() })
	return n, net, opened
}

// A port of a peer's own is a setting of the tunnel, for every segment, and given by the call that
// joins the peer.
func TestJoinAddrPort(t *testing.T) {
	n, _, opened := inMemory(t)
	addr := netip.MustParseAddr
	v := addTunnel(t, n, "vx", Tunnel{Local: addr("192.0.2.1"), Local6: addr("2001:db8::1")})
	if len(*opened) != 2 {
		t.Errorf("%d underlays", len(*opened))
	}
	one := addSegment(t, n, 1, nil)
	two := addSegment(t, n, 2, nil)
	must(t, one.JoinAddrPort(v, netip.MustParseAddrPort("192.0.2.2:8472"), netip.MustParseAddrPort("[2001:db8::2]:8473"), netip.MustParseAddrPort("192.0.2.3:4789")))
	must(t, two.Join(v, addr("192.0.2.2")))
	must(t, two.JoinAddrPort(v, netip.MustParseAddrPort("[2001:db8::2]:0")))
	want := []PeerSetting{
		{PeerConfig: vtep.PeerConfig{Address: addr("192.0.2.2"), Port: 8472}},
		{PeerConfig: vtep.PeerConfig{Address: addr("2001:db8::2"), Port: 8473}},
	}
	if got := n.Config().Tunnels[0].PeerSettings; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for vni, want := range map[frame.VNI]string{1: "[192.0.2.2:8472 192.0.2.3:4789 [2001:db8::2]:8473]", 2: "[192.0.2.2:8472 [2001:db8::2]:8473]"} {
		if got := v.Flood(vni); fmt.Sprint(got) != want {
			t.Errorf("VNI %d: %v, want %v", vni, got, want)
		}
	}
	three := addSegment(t, n, 3, nil)
	must(t, three.JoinAddrPort(v, netip.MustParseAddrPort("192.0.2.2:4789")))
	if got := fmt.Sprint(v.Flood(1)); !strings.HasPrefix(got, "[192.0.2.2:4789 ") {
		t.Errorf("given another port: %v", got)
	}
	before := n.Config()
	for want, f := range map[string]func() error{
		"the tunnel is nil":                               func() error { return one.JoinAddrPort(nil) },
		"tunnels[0].peerSettings[2].address: 239.1.1.1":   func() error { return one.JoinAddrPort(v, netip.MustParseAddrPort("239.1.1.1:9")) },
		"segments[0].tunnels[0].flood[3]: 192.0.2.2: dup": func() error { return one.JoinAddrPort(v, netip.MustParseAddrPort("192.0.2.2:0")) },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if !reflect.DeepEqual(n.Config(), before) {
			t.Fatalf("%s: %+v", want, n.Config())
		}
	}
}

// The zone of a link-local peer may be left out: with it and without, it is one peer with one setting.
func TestJoinAddrPortInZone(t *testing.T) {
	n, _, _ := inMemory(t)
	v := addTunnel(t, n, "vx", Tunnel{Local: netip.MustParseAddr("fe80::1%eth0")})
	for i, a := range []string{"[fe80::2]:7", "[fe80::2%eth0]:8"} {
		seg := addSegment(t, n, frame.VNI(i), nil)
		must(t, seg.JoinAddrPort(v, netip.MustParseAddrPort(a)))
	}
	if got := n.Config().Tunnels[0].PeerSettings; len(got) != 1 || got[0].Port != 8 {
		t.Errorf("%+v", got)
	}
}

// Transmit sockets stay until a tunnel is closed, and there are only so many: one that has no room
// for more is made anew.
func TestPeerSocketsRunOut(t *testing.T) {
	n, _, _ := inMemory(t)
	v := addTunnel(t, n, "vx", Tunnel{Local: netip.MustParseAddr("192.0.2.1")})
	made := 0
	for i := range 100 {
		must(t, n.Update(func(c *Config) error {
			p := PeerSetting{PeerConfig: vtep.PeerConfig{Address: netip.MustParseAddr("192.0.2.2")}}
			p.SrcPorts = underlay.PortRange{Lo: uint16(1000 + i), Hi: 2000}
			c.Tunnels[0].PeerSettings = []PeerSetting{p}
			return nil
		}))
		if is := n.Tunnels()["vx"]; is != v {
			made, v = made+1, is
		}
	}
	if made != 3 {
		t.Errorf("%d tunnels after the first", made)
	}
}

// An underlay of the program's that has one set of transmit sockets says so, and nothing has
// changed.
func TestPeerSocketsUnsupported(t *testing.T) {
	net := memory.NewNetwork(nil)
	defer net.Close()
	n, err := New(&Options{Listen: func(c *Tunnel) (vtep.Underlay, error) {
		u, err := net.Listen(c.AddrPort(), nil)
		return struct{ vtep.Underlay }{u}, err
	}})
	must(t, err)
	defer n.Close()
	v := addTunnel(t, n, "vx", Tunnel{Local: netip.MustParseAddr("192.0.2.1")})
	for _, on := range []underlay.Checksum{underlay.ChecksumOn, underlay.ChecksumAuto} {
		p := PeerSetting{PeerConfig: vtep.PeerConfig{Address: netip.MustParseAddr("192.0.2.2"), Port: 1}, TxConfig: underlay.TxConfig{Checksum: on}}
		err := n.Update(func(c *Config) error { c.Tunnels[0].PeerSettings = []PeerSetting{p}; return nil })
		if wrong := on == underlay.ChecksumOn; errors.Is(err, errors.ErrUnsupported) != wrong || !wrong && err != nil {
			t.Error(err)
		} else if wrong && len(n.Config().Tunnels[0].PeerSettings) > 0 {
			t.Errorf("%+v", n.Config().Tunnels[0])
		}
	}
	if n.Tunnels()["vx"] != v {
		t.Error("the tunnel was made anew")
	}
}

// A tunnel that moves has the transmit sockets of its peers at the new address, under the same numbers.
func TestPeerSocketsMove(t *testing.T) {
	n, _, opened := inMemory(t)
	addTunnel(t, n, "vx", Tunnel{Local: netip.MustParseAddr("192.0.2.1"), Local6: netip.MustParseAddr("2001:db8::1")})
	sets := []underlay.TxConfig{{SrcPorts: underlay.PortRange{Lo: 1000, Hi: 1001}}, {SrcPorts: underlay.PortRange{Lo: 2000, Hi: 2001}}}
	for i, addr := range []string{"2001:db8::2", "192.0.2.2"} {
		p := PeerSetting{PeerConfig: vtep.PeerConfig{Address: netip.MustParseAddr(addr)}, TxConfig: sets[i]}
		must(t, n.Update(func(c *Config) error { c.Tunnels[0].PeerSettings = append(c.Tunnels[0].PeerSettings, p); return nil }))
	}
	must(t, n.Update(func(c *Config) error { c.Tunnels[0].Local = netip.MustParseAddr("192.0.2.11"); return nil }))
	old, moved := (*opened)[0], (*opened)[len(*opened)-1]
	if moved.LocalAddr().Addr() != n.Config().Tunnels[0].Local {
		t.Fatalf("at %v", moved.LocalAddr())
	}
	for i := len(sets) - 1; i >= 0; i-- {
		if num, err := moved.Sockets(sets[i]); err != nil || int(num) != i+1 {
			t.Errorf("set %d is number %d, %v", i, num, err)
		}
	}
	if _, err := old.Sockets(sets[0]); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the old underlay: %v", err)
	}
}
