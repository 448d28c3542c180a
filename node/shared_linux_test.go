package node

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/qemu"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// TestSharedBond: a Linux host with a bond (balance-xor) to two nodes gets each broadcast once, and none of its own; pings by both links,
// and by one when the other is lost.
func TestSharedBond(t *testing.T) {
	net := netns.New(t)
	es, far := net.Host("es"), net.Host("far")
	es.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
	far.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
	var cards []string
	for i, tap := range []string{"ta", "tb"} {
		es.IP("tuntap", "add", "dev", tap, "mode", "tap")
		es.Up(tap)
		id := string('0' + rune(i))
		cards = append(cards, "-netdev", "tap,id=net"+id+",vhost=off,vnet_hdr=off,script=no,downscript=no,ifname="+tap,
			"-device", "virtio-net-pci,netdev=net"+id+",romfile=,mac=52:54:00:00:09:0"+id)
	}
	g := qemu.Boot(t, es, qemu.Config{Card: cards, Modules: []string{"bonding"}, Setup: []string{
		"echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6",
		"ip link add bond9 type bond mode balance-xor miimon 50 xmit_hash_policy layer2+3",
		"for d in eth0 eth1; do ip link set $d down; ip link set $d master bond9; done",
		"ip link set bond9 up && ip addr add 10.9.0.1/24 broadcast + dev bond9",
	}})
	network := memory.NewNetwork(nil)
	t.Cleanup(func() { network.Close() })
	nodes := map[string]*Node{}
	for name, ports := range map[string]string{
		"a": `{"name": "ta", "type": "interface", "namespace": "` + es.NS + `"}`,
		"b": `{"name": "tb", "type": "interface", "namespace": "` + es.NS + `"}`,
		"c": `{"name": "tc", "namespace": "` + far.NS + `"}`,
	} {
		nodes[name] = running(t, &Options{Owners: []string{"evpn"}, Listen: func(c *Tunnel) (vtep.Underlay, error) {
			return network.Listen(netip.AddrPortFrom(c.Local, 4789), nil)
		}})
		must(t, nodes[name].Apply(parse(t, `{"tunnels": [{"name": "vx", "local": "`+nodeAt[name].String()+`"}], "ports": [`+ports+`],
			"segments": [{"vni": 100, "tunnels": [{"tunnel": "vx", "noLearning": true}], "members": [{"port": "t`+name+`"}]}]}`)))
	}
	far.Addr("tc", "10.9.0.2/24")
	far.Up("tc")
	address := func(s string) frame.MAC {
		var m frame.MAC
		must(t, m.UnmarshalText([]byte(strings.TrimSpace(s))))
		return m
	}
	bond, other := address(g.Run("cat /sys/class/net/bond9/address")), address(far.Run("cat", "/sys/class/net/tc/address"))
	at := func(name string) netip.AddrPort { return netip.AddrPortFrom(nodeAt[name], 0) }
	es1 := func(name string) control.Row { return control.Group{VNI: 100, Name: "es", VTEP: at(name)} }
	for name, n := range nodes {
		var rows []control.Row
		for x := range nodes {
			if x != name {
				rows = append(rows, control.Flood{VNI: 100, VTEP: at(x)})
			}
		}
		if name == "c" {
			rows = append(rows, es1("a"), es1("b"), control.MAC{VNI: 100, MAC: bond, Group: "es"})
		} else {
			rows = append(rows, control.MAC{VNI: 100, MAC: bond, Port: "t" + name}, control.MAC{VNI: 100, MAC: other, VTEP: at("c")})
		}
		must(t, n.Program("evpn", control.Update{Add: rows}))
	}
	must(t, nodes["a"].SetRole("ta", 100, vswitch.Role{Shared: []netip.Addr{nodeAt["b"]}}))
	must(t, nodes["b"].SetRole("tb", 100, vswitch.Role{NoFlood: true, Shared: []netip.Addr{nodeAt["a"]}}))

	out := func() (n uint64) { // frames to the host
		for _, name := range []string{"a", "b"} {
			for _, p := range nodes[name].Switch().Stats().Ports {
				if p.Name == "t"+name {
					n += p.Tx.Frames
				}
			}
		}
		return n
	}
	pings := func(what string, size ...string) {
		t.Helper()
		far.Sysctl("net.ipv4.icmp_echo_ignore_broadcasts", "1")
		g.Run("echo 0 >/proc/sys/net/ipv4/icmp_echo_ignore_broadcasts")
		for _, to := range []string{"10.9.0.1", "10.9.0.255"} {
			text, _ := far.Try(t.Context(), "ping", append([]string{"-n", "-b", "-c", "50", "-i", "0.05", "-W", "2", to}, size...)...)
			check.True(t, strings.Contains(text, "50 packets transmitted, 50 received, 0% packet loss"), "%s: to %s: %s", what, to, text)
		}
		far.Sysctl("net.ipv4.icmp_echo_ignore_broadcasts", "0")
		g.Run("echo 1 >/proc/sys/net/ipv4/icmp_echo_ignore_broadcasts")
		was := out()
		text, _ := g.Try("ping -c 5 -W 2 10.9.0.255")
		check.True(t, strings.Contains(text, "5 packets transmitted, 5 packets received, 0% packet loss"), "%s: broadcasts of the host: %s", what, text)
		if n := out() - was; n < 5 || n > 8 { // the answers, and ARP
			t.Errorf("%s: %d frames went back to the host, want 5 answers", what, n)
		}
	}
	far.Until("the host answers", func() bool {
		_, err := far.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", "10.9.0.1")
		return err == nil
	})
	pings("both links")

	g.Run("ip link set eth0 down")
	must(t, nodes["b"].SetRole("tb", 100, vswitch.Role{}))
	must(t, nodes["a"].SetRole("ta", 100, vswitch.Role{Blocked: true}))
	must(t, nodes["a"].Program("evpn", control.Update{Add: []control.Row{es1("b"), control.MAC{VNI: 100, MAC: bond, Group: "es"}}}))
	must(t, nodes["c"].Program("evpn", control.Update{Del: []control.Row{es1("a")}}))
	pings("without a")
}
