package main

import (
	"bytes"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// A wrong value is one line that says which flag, what was given and what is
// allowed, and status 2.
func TestWrongValues(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", `flag -local is required: an address of this host`},
		{"-local", `flag needs an argument: -local`},
		{"-local x", `invalid value "x" for flag -local: must be an IP address such as 10.0.0.1`},
		{"-local 10.0.0.1/24", `invalid value "10.0.0.1/24" for flag -local: must be an IP address such as 10.0.0.1`},
		{"-local 0.0.0.0", `invalid value "0.0.0.0" for flag -local: is the unspecified address; must be the address of one host`},
		{"-local ff02::1", `invalid value "ff02::1" for flag -local: is a multicast group; must be the address of one host`},
		{"-local fe80::1", `invalid value "fe80::1" for flag -local: requires a zone, such as fe80::1%eth0`},
		{"-local 10.0.0.1 -remote 10.0.0.2,,10.0.0.3", `invalid value "" for flag -remote: an address is required`},
		{"-local 10.0.0.1 -remote 10.0.0.2:4789", `invalid value "10.0.0.2:4789" for flag -remote: must be an IP address such as 10.0.0.1`},
		{"-local 10.0.0.1 -remote 255.255.255.255", `invalid value "255.255.255.255" for flag -remote: is the broadcast address; must be the address of one host`},
		{"-remote 10.0.0.2,10.0.0.1 -local 10.0.0.1", `invalid value "10.0.0.1" for flag -remote: is this node's own address`},
		{"-local 10.0.0.1 -remote ::ffff:10.0.0.1", `invalid value "::ffff:10.0.0.1" for flag -remote: is of another address family than 10.0.0.1, the local address of tunnel "p2p"`},
		{"-local 10.0.0.1 -remote fd00::2", `invalid value "fd00::2" for flag -remote: is of another address family than 10.0.0.1, the local address of tunnel "p2p"`},
		{"-local fd00::1 -remote fd00::2,10.0.0.2", `invalid value "10.0.0.2" for flag -remote: is of another address family than fd00::1, the local address of tunnel "p2p"`},
		{"-local fe80::1%eth0 -remote fe80::2%eth1", `invalid value "fe80::2%eth1" for flag -remote: has another zone than fe80::1%eth0, the local address of tunnel "p2p"`},
		{"-local 10.0.0.1 -remote 239.1.1.1", `invalid value "239.1.1.1" for flag -remote: is a multicast group; use -group`},
		{"-local 10.0.0.1 -group 10.0.0.2", `invalid value "10.0.0.2" for flag -group: must be a multicast group such as 239.1.1.1 or ff05::1; -underlay-dev selects the interface`},
		{"-local 10.0.0.1 -group ff02::1%eth0", `invalid value "ff02::1%eth0" for flag -group: a multicast group has no zone; set multicastDevice of the tunnel`},
		{"-local 10.0.0.1 -group ff05::1", `invalid value "ff05::1" for flag -group: is of another address family than 10.0.0.1, the local address of tunnel "p2p"`},
		{"-local 10.0.0.1 -group 239.1.1.1 -group-ttl 0", `invalid value "0" for flag -group-ttl: leave the flag out for the default`},
		{"-local 10.0.0.1 -group-ttl 2", `flag -group-ttl: requires -group`},
		{"-local 10.0.0.1 -remote 10.0.0.2 -underlay-dev eth0", `flag -underlay-dev: requires -group`},
		{"-local 10.0.0.1 -group 239.1.1.1 -underlay-dev a-very-long-name", `invalid value "a-very-long-name" for flag -underlay-dev: must be at most 15 bytes`},
		{"-type gpe -tun -local 10.0.0.1 -remote 10.0.0.2 -group 239.1.1.1", `flag -group: requires -type vxlan, or gpe without -tun; a TUN device has no Ethernet frames`},
		{"-local 10.0.0.1 -id 16777216", `invalid value "16777216" for flag -id: must be 0 to 16777215`},
		{"-local 10.0.0.1 -id -1", `invalid value "-1" for flag -id: must be 0 to 16777215`},
		{"-local 10.0.0.1 -id blue", `invalid value "blue" for flag -id: must be 0 to 16777215`},
		{"-local 10.0.0.1 -id=", `invalid value "" for flag -id: must be 0 to 16777215`},
		{"-local 10.0.0.1 -queues=", `invalid value "" for flag -queues: must be 1 to 256`},
		{"-local 10.0.0.1 -type=", `invalid value "" for flag -type: must be one of vxlan, gpe, ipip`},
		{"-local 10.0.0.1 -gateway 10.9.0.1/24 -gateway-mac=", `invalid value "" for flag -gateway-mac: must be a MAC address such as 02:00:00:00:00:01`},
		{"-local a<b", `invalid value "a<b" for flag -local: must be an IP address such as 10.0.0.1`},
		{"-local 10.0.0.1 -dstport 0x1ffff", `invalid value "0x1ffff" for flag -dstport: must be 1 to 65535`},
		{"-local 10.0.0.1 -mtu " + strings.Repeat("x", 70), `invalid value "` + strings.Repeat("x", 70) + `" for flag -mtu: must be 68 to 65521`},
		{"-local 10.0.0.1 -ageing=", `invalid value "" for flag -ageing: must be seconds such as 300, a duration such as 300s, or 0 for never`},
		{"-local 10.0.0.1 -ageing 99999999999999999999", `invalid value "99999999999999999999" for flag -ageing: must be seconds such as 300, a duration such as 300s, or 0 for never`},
		{"-local 10.0.0.1 -fdb 02:00:00:00:00:01=", `invalid value "02:00:00:00:00:01=" for flag -fdb: must be MAC=ADDR, such as 02:00:00:00:00:01=10.0.0.2`},
		{"-local 10.0.0.1 -fdb =10.0.0.2", `invalid value "=10.0.0.2" for flag -fdb: must be MAC=ADDR, such as 02:00:00:00:00:01=10.0.0.2`},
		{"-local 10.0.0.1 -gateway=", `invalid value "" for flag -gateway: an address with a prefix length is required`},
		{"-local 10.0.0.1 -gateway 10.9.0.1/24,", `invalid value "10.9.0.1/24," for flag -gateway: an address with a prefix length is required`},
		{"-local 10.0.0.1 -remote=", `invalid value "" for flag -remote: an address is required`},
		{"-local 10.0.0.1 -type ipip -remote=", `invalid value "" for flag -remote: an address is required`},
		{"-local 10.0.0.1 -group=", `invalid value "" for flag -group: an address is required`},
		{"-local 10.0.0.1 -bind=", `invalid value "" for flag -bind: a name is required`},
		{"-local 10.0.0.1 -group 239.1.1.1 -underlay-dev=", `invalid value "" for flag -underlay-dev: a name is required`},
		{"-local 10.0.0.1 -dstport 0", `invalid value "0" for flag -dstport: leave the flag out for the default`},
		{"-local 10.0.0.1 -dstport 65536", `invalid value "65536" for flag -dstport: must be 1 to 65535`},
		{"-local 10.0.0.1 -dev a-very-long-name", `invalid value "a-very-long-name" for flag -dev: must be at most 15 bytes`},
		{"-local 10.0.0.1 -dev a/b", `invalid value "a/b" for flag -dev: must be a device name, without spaces, slashes, colons or percent signs`},
		{"-local 10.0.0.1 -dev=", `invalid value "" for flag -dev: required`},
		{"-local 10.0.0.1 -srcport 9", `invalid value "9" for flag -srcport: must be LO-HI, two ports from 1 to 65535, such as 49152-65535`},
		{"-local 10.0.0.1 -srcport 0-9", `invalid value "0-9" for flag -srcport: must be LO-HI, two ports from 1 to 65535, such as 49152-65535`},
		{"-local 10.0.0.1 -srcport 9-8", `invalid value "9-8" for flag -srcport: must be LO-HI, two ports from 1 to 65535, such as 49152-65535`},
		{"-local 10.0.0.1 -srcport 1-65536", `invalid value "1-65536" for flag -srcport: must be LO-HI, two ports from 1 to 65535, such as 49152-65535`},
		{"-local 10.0.0.1 -mark -1", `invalid value "-1" for flag -mark: must be 0 to 4294967295`},
		{"-local 10.0.0.1 -mtu -1", `invalid value "-1" for flag -mtu: must be 68 to 65521`},
		{"-local 10.0.0.1 -maxaddress -1", `invalid value "-1" for flag -maxaddress: must be 1 or more`},
		{"-local 10.0.0.1 -ageing -5s", `invalid value "-5s" for flag -ageing: must be seconds such as 300, a duration such as 300s, or 0 for never`},
		{"-local 10.0.0.1 -bind a-very-long-name", `invalid value "a-very-long-name" for flag -bind: must be at most 15 bytes`},
		{"-local 10.0.0.1 -mtu 67", `invalid value "67" for flag -mtu: must be 68 to 65521`},
		{"-local 10.0.0.1 -queues 0", `invalid value "0" for flag -queues: leave the flag out for the default`},
		{"-local 10.0.0.1 -queues 257", `invalid value "257" for flag -queues: must be 1 to 256`},
		{"-local 10.0.0.1 -busy-poll 2ms", `invalid value "2ms" for flag -busy-poll: must be a duration from 0 to 1ms, such as 50us`},
		{"-local 10.0.0.1 -busy-poll -1us", `invalid value "-1us" for flag -busy-poll: must be a duration from 0 to 1ms, such as 50us`},
		{"-local 10.0.0.1 -busy-poll 50", `invalid value "50" for flag -busy-poll: must be a duration from 0 to 1ms, such as 50us`},
		{"-local 10.0.0.1 -offload=maybe", `invalid boolean value "maybe" for -offload: must be true or false`},
		{"-local 10.0.0.1 -datapath fast", `invalid value "fast" for flag -datapath: must be one of user, kernel, auto`},
		{"-local 10.0.0.1 -datapath=", `invalid value "" for flag -datapath: must be one of user, kernel, auto`},
		{"-local 10.0.0.1 -type gpe -tun -remote 10.0.0.2 -datapath kernel", `invalid value "kernel" for flag -datapath: requires -type vxlan, or gpe without -tun; with auto, a TUN device stays in user space`},
		{"-local 10.0.0.1 -type ipip -remote 10.0.0.2 -datapath kernel", `invalid value "kernel" for flag -datapath: requires -type vxlan, or gpe without -tun; with auto, a TUN device stays in user space`},
		{"-local 10.0.0.1 -learning=maybe", `invalid boolean value "maybe" for -learning: must be true or false`},
		{"-local 10.0.0.1 -ageing 0.5s", `invalid value "0.5s" for flag -ageing: must be seconds such as 300, a duration such as 300s, or 0 for never`},
		{"-local 10.0.0.1 -ageing -1", `invalid value "-1" for flag -ageing: must be seconds such as 300, a duration such as 300s, or 0 for never`},
		{"-local 10.0.0.1 -ageing soon", `invalid value "soon" for flag -ageing: must be seconds such as 300, a duration such as 300s, or 0 for never`},
		{"-local 10.0.0.1 -maxaddress 0", `invalid value "0" for flag -maxaddress: leave the flag out for the default`},
		{"-local 10.0.0.1 -storm broadcast", `invalid value "broadcast" for flag -storm: must be CLASS=PPS: broadcast, multicast or unknown, and 1 to 4294967295 frames per second`},
		{"-local 10.0.0.1 -storm all=5", `invalid value "all=5" for flag -storm: must be CLASS=PPS: broadcast, multicast or unknown, and 1 to 4294967295 frames per second`},
		{"-local 10.0.0.1 -storm -1=5", `invalid value "-1=5" for flag -storm: must be CLASS=PPS: broadcast, multicast or unknown, and 1 to 4294967295 frames per second`},
		{"-local 10.0.0.1 -storm 99999999=5", `invalid value "99999999=5" for flag -storm: must be CLASS=PPS: broadcast, multicast or unknown, and 1 to 4294967295 frames per second`},
		{"-local 10.0.0.1 -storm broadcast.packets=5", `invalid value "broadcast.packets=5" for flag -storm: must be CLASS=PPS: broadcast, multicast or unknown, and 1 to 4294967295 frames per second`},
		{"-local 10.0.0.1 -storm unknown=0", `invalid value "unknown=0" for flag -storm: must be CLASS=PPS: broadcast, multicast or unknown, and 1 to 4294967295 frames per second`},
		{"-local 10.0.0.1 -storm multicast=1e3", `invalid value "multicast=1e3" for flag -storm: must be CLASS=PPS: broadcast, multicast or unknown, and 1 to 4294967295 frames per second`},
		{"-local 10.0.0.1 -inner-vlan keep", `invalid value "keep" for flag -inner-vlan: must be one of discard, strip, pass`},
		{"-local 10.0.0.1 -type ipip -remote 10.0.0.2 -storm broadcast=5", `flag -storm: requires -type vxlan, or gpe without -tun; a TUN device has no Ethernet frames`},
		{"-local 10.0.0.1 -type gpe -tun -remote 10.0.0.2 -inner-vlan pass", `flag -inner-vlan: requires -type vxlan, or gpe without -tun; a TUN device has no Ethernet frames`},
		{"-local 10.0.0.1 -fdb 10.0.0.2", `invalid value "10.0.0.2" for flag -fdb: must be MAC=ADDR, such as 02:00:00:00:00:01=10.0.0.2`},
		{"-local 10.0.0.1 -fdb 00:00:00:00:00:00=10.0.0.2", `invalid value "00:00:00:00:00:00=10.0.0.2" for flag -fdb: must be the MAC of one host or of a multicast group`},
		{"-local 10.0.0.1 -fdb 02:00:00:00:00:01", `invalid value "02:00:00:00:00:01" for flag -fdb: must be MAC=ADDR, such as 02:00:00:00:00:01=10.0.0.2`},
		{"-local 10.0.0.1 -fdb 02:00:00:00:00:01=10.0.0.1", `invalid value "02:00:00:00:00:01=10.0.0.1" for flag -fdb: 10.0.0.1: is this node's own address`},
		{"-local 10.0.0.1 -fdb 02:00:00:00:00:01=fd00::2", `invalid value "02:00:00:00:00:01=fd00::2" for flag -fdb: fd00::2: is of another address family than 10.0.0.1, the local address of tunnel "p2p"`},
		{"-local 10.0.0.1 -peers some", `invalid value "some" for flag -peers: must be one of any, listed, listed-per-vni`},
		{"-local 10.0.0.1 -peers listed", `invalid value "listed" for flag -peers: requires -remote or -fdb`},
		{"-local 10.0.0.1 -peers listed-per-vni", `invalid value "listed-per-vni" for flag -peers: requires -remote or -fdb`},
		{"-local 10.0.0.1 -reserved lax", `invalid value "lax" for flag -reserved: must be rfc, strict, or a mask of 64 bits such as 0xf700000000000000`},
		{"-local 10.0.0.1 -reserved 0xff00000000000000", `invalid value "0xff00000000000000" for flag -reserved: 0xff00000000000000 has bits 0x0800000000000000, which vxlan needs`},
		{"-reserved 0x0400000000000001 -local 10.0.0.1 -type gpe", `invalid value "0x0400000000000001" for flag -reserved: 0x0400000000000001 has bits 0x0400000000000000, which gpe needs`},
		{"-local 10.0.0.1 -type ipip -remote 10.0.0.2 -reserved strict", `invalid value "strict" for flag -reserved: strict: ipip has no header`},
		{"-local 10.0.0.1 -ttl 0", `invalid value "0" for flag -ttl: leave the flag out for the default`},
		{"-local 10.0.0.1 -ttl 256", `invalid value "256" for flag -ttl: must be 1 to 255, or inherit`},
		{"-local 10.0.0.1 -tos 0x11", `invalid value "0x11" for flag -tos: must be 0 to 252 in steps of 4, or inherit`},
		{"-local 10.0.0.1 -tos 256", `invalid value "256" for flag -tos: must be 0 to 252 in steps of 4, or inherit`},
		{"-local 10.0.0.1 -df maybe", `invalid value "maybe" for flag -df: must be one of default, set, unset, inherit`},
		{"-local 10.0.0.1 -ecn full", `invalid value "full" for flag -ecn: must be one of default, normal, compat, rfc3168`},
		{"-local 10.0.0.1 -udpcsum yes", `invalid value "yes" for flag -udpcsum: must be one of auto, on, off`},
		{"-local 10.0.0.1 -stats 5", `invalid value "5" for flag -stats: must be a duration of at least 10ms such as 5s, or 0 for off`},
		{"-local 10.0.0.1 -stats 1ms", `invalid value "1ms" for flag -stats: must be a duration of at least 10ms such as 5s, or 0 for off`},
		{"-local 10.0.0.1 -neigh proxy", `invalid value "proxy" for flag -neigh: proxy requires a gateway with addresses: it answers with the gateway's MAC`},
		{"-local 10.0.0.1 -neigh access", `invalid value "access" for flag -neigh: requires -gateway`},
		{"-local 10.0.0.1 -neigh=", `invalid value "" for flag -neigh: must be one of off, suppress, proxy, access`},
		{"-local 10.0.0.1 -gateway 192.168.7.254", `invalid value "192.168.7.254" for flag -gateway: must be an IP address with a prefix length, such as 10.0.0.1/24`},
		{"-local 10.0.0.1 -gateway 192.168.7.254/24,224.0.0.1/8", `invalid value "192.168.7.254/24,224.0.0.1/8" for flag -gateway: 224.0.0.1/8: is a multicast group; must be the address of one host`},
		{"-local 10.0.0.1 -gateway 192.168.7.255/24", `invalid value "192.168.7.255/24" for flag -gateway: is the broadcast address of its network; must be the address of one host`},
		{"-local 10.0.0.1 -ageing 596524h", `invalid value "596524h" for flag -ageing: must be seconds such as 300, a duration such as 300s, or 0 for never`},
		{"-local 10.0.0.1 -gateway 10.1.0.1/24 -gateway-mac ff:ff:ff:ff:ff:ff", `invalid value "ff:ff:ff:ff:ff:ff" for flag -gateway-mac: must be the MAC of one host`},
		{"-local 10.0.0.1 -neighbours off", `flag provided but not defined: -neighbours; p2p -h lists the flags`},
		{"-local 10.0.0.1 -kind tun", `invalid value "tun" for flag -kind: must be tap or veth`},
		{"-local 10.0.0.1 -type ipip -remote 10.0.0.2 -kind veth", `flag -kind: requires -type vxlan, or gpe without -tun; a TUN device has no Ethernet frames`},
		{"-local 10.0.0.1 -type gre", `invalid value "gre" for flag -type: must be one of vxlan, gpe, ipip`},
		{"-local 10.0.0.1 -tun=perhaps", `invalid boolean value "perhaps" for -tun: must be true or false`},
		{"-local 10.0.0.1 -tun", `flag -tun: requires -type gpe or ipip; vxlan carries Ethernet frames`},
		{"-local 10.0.0.1 -type gpe -tun", `flag -remote: 0 addresses; a TUN device requires exactly one`},
		{"-local 10.0.0.1 -type ipip -remote 10.0.0.2,10.0.0.3", `flag -remote: 2 addresses; a TUN device requires exactly one`},
		{"-local 10.0.0.1 -type gpe -tun -remote 10.0.0.2 -learning=false", `flag -learning: requires -type vxlan, or gpe without -tun; a TUN device has no Ethernet frames`},
		{"-local 10.0.0.1 -type ipip -remote 10.0.0.2 -neigh suppress", `flag -neigh: requires -type vxlan, or gpe without -tun; a TUN device has no Ethernet frames`},
		{"-local 10.0.0.1 -type ipip -remote 10.0.0.2 -id 7", `flag -id: requires -type vxlan or gpe; ipip has no VNI`},
		{"-local 10.0.0.1 -type ipip -remote 10.0.0.2 -dstport 4789", `invalid value "4789" for flag -dstport: IP-in-IP has no ports`},
		{"-local 10.0.0.1 up", `unexpected argument "up"; p2p -h lists the flags`},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(c.args), &stdout, &stderr)
		if code != 2 || stderr.String() != "p2p: "+c.want+"\n" || stdout.Len() != 0 {
			t.Errorf("p2p %s: status %d\n got %q\nwant %q\nstdout %q", c.args, code, stderr.String(), "p2p: "+c.want+"\n", &stdout)
		}
	}
	var stderr bytes.Buffer
	if run(t.Context(), []string{"-local", "a\nb"}, nil, &stderr); strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("not one line: %q", &stderr)
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-h"}, &stdout, &stderr); code != 0 || stderr.Len() != 0 {
		t.Errorf("status %d, stderr %q", code, &stderr)
	}
	for _, f := range []string{
		"-local ADDR", "-remote ADDR[,ADDR...]", "-group ADDR", "-group-ttl N", "-underlay-dev IF", "-id N", "-dstport PORT", "-srcport LO-HI", "-mark N", "-bind IF",
		"-type vxlan|gpe|ipip", "-tun", "-dev NAME", "-kind tap|veth", "-mtu N", "-queues N", "-busy-poll DURATION", "-offload", "-datapath user|kernel|auto", "-learning", "-ageing DURATION", "-maxaddress N", "-storm CLASS=PPS", "-inner-vlan discard|strip|pass", "-fdb MAC=ADDR",
		"-neigh off|suppress|proxy|access", "-gateway ADDR/LEN[,ADDR/LEN]", "-gateway-mac MAC", "-peers any|listed|listed-per-vni", "-reserved rfc|strict|0xMASK", "-ttl N|inherit", "-tos N|inherit", "-df set|unset|inherit", "-ecn normal|compat|rfc3168",
		"-udpcsum auto|on|off", "-udp6zerocsumrx", "-pcap FILE", "-stats DURATION",
	} {
		if !strings.Contains(stdout.String(), "  "+f+"\n") {
			t.Errorf("no %s in\n%s", f, &stdout)
		}
	}
}
func TestDefaults(t *testing.T) {
	o, err := parse([]string{"-local", "10.0.0.1", "-remote", "10.0.0.2,10.0.0.3"})
	must(t, err)
	queues := o.node.Ports[0].Queues
	want := &node.Config{
		Tunnels: []node.Tunnel{{Config: vtep.Config{Name: "p2p"}, Local: addr("10.0.0.1"), UDPConfig: underlay.UDPConfig{Queues: queues}}},
		Ports:   []node.Port{{Name: "vxs0", DeviceConfig: port.DeviceConfig{Queues: queues}}},
		Segments: []node.Segment{{
			VNI: 1, Members: []node.Member{{Port: "vxs0"}},
			Tunnels: []node.SegmentTunnel{{Tunnel: "p2p", Flood: []netip.Addr{addr("10.0.0.2"), addr("10.0.0.3")}}},
		}},
	}
	if !reflect.DeepEqual(o.node, want) || queues < 1 || queues > 4 || o.queues || o.every != 0 || o.pcap != "" {
		t.Errorf("%+v,\nwant the library's defaults left to it: %+v", o, want)
	}
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// Every flag arrives where the library takes it.
func TestValues(t *testing.T) {
	o, err := parse(strings.Fields("-local 10.0.0.1 -remote 10.0.0.2 -id 7 -dstport 8472 -dev tap7 -srcport 5000-5999 -srcport-count 32 -mark 0x10 -bind eth0 -mtu 9000 -queues 4 -busy-poll 50us " +
		"-offload=false -learning=false -ageing 60 -maxaddress 100 -storm broadcast=100 -storm unknown=5 -storm broadcast=200 -inner-vlan strip -fdb 02:00:00:00:00:01=10.0.0.3 -fdb 02-00-00-00-00-02=10.0.0.4 -peers listed -reserved strict " +
		"-group 239.1.1.1 -group-ttl 5 -underlay-dev eth1 -ttl inherit -tos 0xb8 -df inherit -ecn rfc3168 -udpcsum off -udp6zerocsumrx -symmetric-hash -neigh proxy -gateway 192.168.7.254/24,fd00::fe/64 -pcap f -stats 2s"))
	must(t, err)
	storm := vswitch.Storm{Broadcast: vswitch.Rate{Packets: 200}, UnknownUnicast: vswitch.Rate{Packets: 5}}
	own := o.node.Segments[0].Gateway.VTEPMAC
	want := &node.Config{
		Tunnels: []node.Tunnel{{
			Config: vtep.Config{
				Name: "p2p", Port: 8472, Peers: vtep.ListedOnly, Reserved: vtep.ReservedStrict, GroupTTL: 5, SymmetricHash: true,
				Header: vtep.Header{TTL: vtep.Inherit, TOS: 0xb8, DF: vtep.DFInherit, ECN: vtep.ECNRFC3168},
			},
			Local: addr("10.0.0.1"),
			UDPConfig: underlay.UDPConfig{
				SrcPorts: underlay.PortRange{Lo: 5000, Hi: 5999}, SrcPortCount: 32, Mark: 16, Device: "eth0", Checksum: underlay.ChecksumOff, ZeroChecksum6RX: true, NoOffload: true,
				MulticastDevice: "eth1", Queues: 4, BusyPoll: 50 * time.Microsecond,
			},
		}},
		Ports: []node.Port{{Name: "tap7", DeviceConfig: port.DeviceConfig{MTU: 9000, Queues: 4, BusyPoll: 50 * time.Microsecond, NoOffload: true}}},
		Segments: []node.Segment{{
			VNI: 7, Members: []node.Member{{Port: "tap7", AttachConfig: vswitch.AttachConfig{Storm: storm}}},
			Tunnels: []node.SegmentTunnel{{
				Tunnel: "p2p", Flood: []netip.Addr{addr("239.1.1.1"), addr("10.0.0.2")}, AttachConfig: vswitch.AttachConfig{Storm: storm},
			}},
			VSIConfig:  vswitch.VSIConfig{NoLearn: true, Ageing: time.Minute, MaxMACs: 100, InnerVLAN: vswitch.VLANStrip},
			FDB:        []node.FDB{{MAC: frame.MAC{2, 0, 0, 0, 0, 1}, Remote: addr("10.0.0.3")}, {MAC: frame.MAC{2, 0, 0, 0, 0, 2}, Remote: addr("10.0.0.4")}},
			Neighbours: &node.Neighbours{Config: arp.Config{Mode: arp.Proxy}, TableConfig: arp.TableConfig{Limit: 100, Ageing: time.Minute}},
			Gateway: &node.SegmentGateway{VRF: "p2p", Gateway: node.Gateway{
				Addresses: []netip.Prefix{netip.MustParsePrefix("192.168.7.254/24"), netip.MustParsePrefix("fd00::fe/64")},
				MAC:       frame.MAC{2, 'v', 'x', 's', 0, 1}, VTEPMAC: own, Anycast: true,
			}},
		}},
		VRFs: []node.VRF{{Name: "p2p"}},
	}
	if !reflect.DeepEqual(o.node, want) || own.IsZero() || own.IsGroup() || !o.queues || o.pcap != "f" || o.every != 2*time.Second {
		t.Errorf("%+v,\nwant %+v", o.node, want)
	}
}

// The same of flags that are not beside those above.
func TestValuesOneByOne(t *testing.T) {
	values := func(get func(c *node.Config) any, cases map[string]any) {
		t.Helper()
		for args, want := range cases {
			if o, err := parse(strings.Fields("-local 10.0.0.1 -remote 10.0.0.2 " + args)); err != nil || !reflect.DeepEqual(get(o.node), want) {
				t.Errorf("%s: %+v, %v; want %+v", args, o.node, err, want)
			}
		}
	}
	values(func(c *node.Config) any { return c.Tunnels[0].Header }, map[string]any{
		"-ttl 1": vtep.Header{TTL: 1}, "-tos inherit": vtep.Header{TOS: vtep.Inherit}, "-tos 0": vtep.Header{TOS: vtep.TOSZero},
		"-df set": vtep.Header{DF: vtep.DFSet}, "-df unset": vtep.Header{DF: vtep.DFUnset}, "-ecn compat": vtep.Header{ECN: vtep.ECNCompat},
	})
	values(func(c *node.Config) any { return c.Datapath }, map[string]any{
		"": node.DatapathUser, "-datapath user": node.DatapathUser, "-datapath kernel": node.DatapathKernel, "-type gpe -datapath kernel": node.DatapathKernel,
		"-type ipip -datapath auto": node.DatapathAuto, "-type gpe -tun -datapath auto": node.DatapathAuto,
	})
	values(func(c *node.Config) any { return c.Tunnels[0].Reserved }, map[string]any{
		"-reserved rfc": vtep.ReservedRFC, "-reserved strict": vtep.ReservedStrict, "-reserved 0x0400000000000001": vtep.Reserved(1<<58 | 1),
	})
	values(func(c *node.Config) any { return c.Segments[0].Ageing }, map[string]any{
		"-ageing 0": time.Duration(-1), "-ageing 300s": 300 * time.Second, "-ageing 5m": 5 * time.Minute, "-ageing 10": 10 * time.Second,
	})
	values(func(c *node.Config) any { return c.Segments[0].Neighbours != nil }, map[string]any{
		"-neigh off": false, "-neigh suppress": true, "-ageing 5 -maxaddress 9": false, "-gateway 10.1.0.1/24": false,
		"-gateway 10.1.0.1/24 -ageing 5": true,
	})
	values(func(c *node.Config) any {
		return []any{c.Tunnels[0].Type, c.Ports[0].Type, c.Segments[0].CrossConnect, len(c.Segments[0].Tunnels[0].Flood)}
	}, map[string]any{
		"-type gpe":                 []any{encap.TypeGPE, node.PortTAP, netip.Addr{}, 1},
		"-kind veth":                []any{encap.TypeVXLAN, node.PortVeth, netip.Addr{}, 1},
		"-type gpe -tun":            []any{encap.TypeGPE, node.PortTUN, addr("10.0.0.2"), 0},
		"-type ipip":                []any{encap.TypeIPIP, node.PortTUN, addr("10.0.0.2"), 0},
		"-type ipip -offload=false": []any{encap.TypeIPIP, node.PortTUN, addr("10.0.0.2"), 0},
	})
}

var must = check.OK
