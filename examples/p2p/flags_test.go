package main

import (
	"bytes"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// A wrong value is one line that says which flag, what was given and what is
// allowed, and status 2.
func TestWrongValues(t *testing.T) {
	const id, port = "allowed are 0 to 16777215", "allowed are 1 to 65535"
	const addr = "allowed are IPv4 and IPv6 addresses of one host"
	const ports = "allowed are LO-HI with 1 <= LO <= HI <= 65535"
	const name = "allowed is the name of a device, at most 15 bytes"
	const group = "allowed are multicast groups, such as 239.1.1.1 and ff05::1; -underlay-dev says on which interface"
	const busy = "allowed are durations of 0 to 1ms, such as 50us"
	const age = "allowed are durations of 1s to 596523h, such as 300s, and 0 for never"
	const entry = "allowed is MAC=ADDR with the MAC of one host, such as 02:00:00:00:00:01=10.0.0.2"
	const storm = "allowed is CLASS=PPS, with broadcast, multicast or unknown, and 1 to 4294967295 frames a second"
	const every = "allowed are durations of at least 10ms, such as 5s, and 0 for off"
	for _, c := range []struct{ args, want string }{
		{"", `flag -local is missing: required is an address of this host`},
		{"-local", `flag needs an argument: -local`},
		{"-local x", `invalid value "x" for flag -local: "x": ` + addr},
		{"-local 10.0.0.1/24", `invalid value "10.0.0.1/24" for flag -local: "10.0.0.1/24": ` + addr},
		{"-local 0.0.0.0", `invalid value "0.0.0.0" for flag -local: "0.0.0.0": ` + addr},
		{"-local ff02::1", `invalid value "ff02::1" for flag -local: "ff02::1": ` + addr},
		{"-local fe80::1", `invalid value "fe80::1" for flag -local: "fe80::1": allowed are link-local addresses with a zone, such as fe80::1%eth0`},
		{"-local 10.0.0.1 -remote 10.0.0.2,,10.0.0.3", `invalid value "10.0.0.2,,10.0.0.3" for flag -remote: "": ` + addr},
		{"-local 10.0.0.1 -remote 10.0.0.2:4789", `invalid value "10.0.0.2:4789" for flag -remote: "10.0.0.2:4789": ` + addr},
		{"-local 10.0.0.1 -remote 255.255.255.255", `invalid value "255.255.255.255" for flag -remote: "255.255.255.255": ` + addr},
		{"-remote 10.0.0.2,10.0.0.1 -local 10.0.0.1", `invalid value "10.0.0.1" for flag -remote: is the -local address, allowed are addresses of other hosts`},
		{"-local 10.0.0.1 -remote ::ffff:10.0.0.1", `invalid value "10.0.0.1" for flag -remote: is the -local address, allowed are addresses of other hosts`},
		{"-local 10.0.0.1 -remote fd00::2", `invalid value "fd00::2" for flag -remote: allowed are addresses of the family of -local 10.0.0.1`},
		{"-local fd00::1 -remote fd00::2,10.0.0.2", `invalid value "10.0.0.2" for flag -remote: allowed are addresses of the family of -local fd00::1`},
		{"-local fe80::1%eth0 -remote fe80::2%eth1", `invalid value "fe80::2%eth1" for flag -remote: allowed are addresses in the zone of -local fe80::1%eth0`},
		{"-local 10.0.0.1 -group 10.0.0.2", `invalid value "10.0.0.2" for flag -group: ` + group},
		{"-local 10.0.0.1 -group ff02::1%eth0", `invalid value "ff02::1%eth0" for flag -group: ` + group},
		{"-local 10.0.0.1 -group ff05::1", `invalid value "ff05::1" for flag -group: allowed are multicast groups of the family of -local 10.0.0.1`},
		{"-local 10.0.0.1 -group 239.1.1.1 -group-ttl 0", `invalid value "0" for flag -group-ttl: allowed are 1 to 255`},
		{"-local 10.0.0.1 -group-ttl 2", `flag -group-ttl: is about a multicast group, required is -group`},
		{"-local 10.0.0.1 -remote 10.0.0.2 -underlay-dev eth0", `flag -underlay-dev: is about a multicast group, required is -group`},
		{"-local 10.0.0.1 -underlay-dev a-very-long-name", `invalid value "a-very-long-name" for flag -underlay-dev: ` + name},
		{"-type gpe -tun -local 10.0.0.1 -remote 10.0.0.2 -group 239.1.1.1", `flag -group: a TUN device has no Ethernet frames, allowed with -type vxlan, and gpe without -tun`},
		{"-local 10.0.0.1 -id 16777216", `invalid value "16777216" for flag -id: ` + id},
		{"-local 10.0.0.1 -id -1", `invalid value "-1" for flag -id: ` + id},
		{"-local 10.0.0.1 -id blue", `invalid value "blue" for flag -id: ` + id},
		{"-local 10.0.0.1 -dstport 0", `invalid value "0" for flag -dstport: ` + port},
		{"-local 10.0.0.1 -dstport 65536", `invalid value "65536" for flag -dstport: ` + port},
		{"-local 10.0.0.1 -dev a-very-long-name", `invalid value "a-very-long-name" for flag -dev: allowed is the name of a device, at most 15 bytes`},
		{"-local 10.0.0.1 -dev=", `invalid value "" for flag -dev: allowed is the name of a device, at most 15 bytes`},
		{"-local 10.0.0.1 -srcport 9", `invalid value "9" for flag -srcport: ` + ports},
		{"-local 10.0.0.1 -srcport 0-9", `invalid value "0-9" for flag -srcport: ` + ports},
		{"-local 10.0.0.1 -srcport 9-8", `invalid value "9-8" for flag -srcport: ` + ports},
		{"-local 10.0.0.1 -srcport 1-65536", `invalid value "1-65536" for flag -srcport: ` + ports},
		{"-local 10.0.0.1 -mark -1", `invalid value "-1" for flag -mark: allowed are 0 to 4294967295`},
		{"-local 10.0.0.1 -bind a-very-long-name", `invalid value "a-very-long-name" for flag -bind: ` + name},
		{"-local 10.0.0.1 -mtu 67", `invalid value "67" for flag -mtu: allowed are 68 to 65521`},
		{"-local 10.0.0.1 -queues 0", `invalid value "0" for flag -queues: allowed are 1 to 64`},
		{"-local 10.0.0.1 -queues 65", `invalid value "65" for flag -queues: allowed are 1 to 64`},
		{"-local 10.0.0.1 -busy-poll 2ms", `invalid value "2ms" for flag -busy-poll: ` + busy},
		{"-local 10.0.0.1 -busy-poll -1us", `invalid value "-1us" for flag -busy-poll: ` + busy},
		{"-local 10.0.0.1 -busy-poll 50", `invalid value "50" for flag -busy-poll: ` + busy},
		{"-local 10.0.0.1 -offload=maybe", `invalid boolean value "maybe" for -offload: allowed are true and false`},
		{"-local 10.0.0.1 -learning=maybe", `invalid boolean value "maybe" for -learning: allowed are true and false`},
		{"-local 10.0.0.1 -ageing 0.5s", `invalid value "0.5s" for flag -ageing: ` + age},
		{"-local 10.0.0.1 -ageing -1", `invalid value "-1" for flag -ageing: ` + age},
		{"-local 10.0.0.1 -ageing soon", `invalid value "soon" for flag -ageing: ` + age},
		{"-local 10.0.0.1 -maxaddress 0", `invalid value "0" for flag -maxaddress: allowed are 1 to 16777216`},
		{"-local 10.0.0.1 -storm broadcast", `invalid value "broadcast" for flag -storm: ` + storm},
		{"-local 10.0.0.1 -storm all=5", `invalid value "all=5" for flag -storm: ` + storm},
		{"-local 10.0.0.1 -storm unknown=0", `invalid value "unknown=0" for flag -storm: ` + storm},
		{"-local 10.0.0.1 -storm multicast=1e3", `invalid value "multicast=1e3" for flag -storm: ` + storm},
		{"-local 10.0.0.1 -inner-vlan keep", `invalid value "keep" for flag -inner-vlan: allowed are discard, strip, pass`},
		{"-local 10.0.0.1 -type ipip -remote 10.0.0.2 -storm broadcast=5", `flag -storm: a TUN device has no Ethernet frames, allowed with -type vxlan, and gpe without -tun`},
		{"-local 10.0.0.1 -type gpe -tun -remote 10.0.0.2 -inner-vlan pass", `flag -inner-vlan: a TUN device has no Ethernet frames, allowed with -type vxlan, and gpe without -tun`},
		{"-local 10.0.0.1 -fdb 10.0.0.2", `invalid value "10.0.0.2" for flag -fdb: ` + entry},
		{"-local 10.0.0.1 -fdb ff:ff:ff:ff:ff:ff=10.0.0.2", `invalid value "ff:ff:ff:ff:ff:ff=10.0.0.2" for flag -fdb: ` + entry},
		{"-local 10.0.0.1 -fdb 00:00:00:00:00:00=10.0.0.2", `invalid value "00:00:00:00:00:00=10.0.0.2" for flag -fdb: ` + entry},
		{"-local 10.0.0.1 -fdb 02:00:00:00:00:01", `invalid value "02:00:00:00:00:01" for flag -fdb: "": ` + addr},
		{"-local 10.0.0.1 -fdb 02:00:00:00:00:01=10.0.0.1", `invalid value "10.0.0.1" for flag -fdb: is the -local address, allowed are addresses of other hosts`},
		{"-local 10.0.0.1 -fdb 02:00:00:00:00:01=fd00::2", `invalid value "fd00::2" for flag -fdb: allowed are addresses of the family of -local 10.0.0.1`},
		{"-local 10.0.0.1 -peers some", `invalid value "some" for flag -peers: allowed are any, listed`},
		{"-local 10.0.0.1 -peers listed", `invalid value "listed" for flag -peers: nobody is listed, required are -remote or -fdb`},
		{"-local 10.0.0.1 -reserved lax", `invalid value "lax" for flag -reserved: allowed are rfc, strict, and a mask of 64 bits such as 0xf700000000000000`},
		{"-local 10.0.0.1 -reserved 0xff00000000000000", `invalid value "0xff00000000000000" for flag -reserved: bits 0x0800000000000000 are in use by vxlan, allowed are the others`},
		{"-reserved 0x0400000000000001 -local 10.0.0.1 -type gpe", `invalid value "0x0400000000000001" for flag -reserved: bits 0x0400000000000000 are in use by gpe, allowed are the others`},
		{"-local 10.0.0.1 -type ipip -remote 10.0.0.2 -reserved strict", `flag -reserved: ipip has no header of its own, allowed with -type vxlan and gpe`},
		{"-local 10.0.0.1 -ttl 0", `invalid value "0" for flag -ttl: allowed are 1 to 255, and inherit`},
		{"-local 10.0.0.1 -ttl 256", `invalid value "256" for flag -ttl: allowed are 1 to 255, and inherit`},
		{"-local 10.0.0.1 -tos 0x11", `invalid value "0x11" for flag -tos: allowed are 0 to 252 in steps of 4, and inherit`},
		{"-local 10.0.0.1 -tos 256", `invalid value "256" for flag -tos: allowed are 0 to 252 in steps of 4, and inherit`},
		{"-local 10.0.0.1 -df maybe", `invalid value "maybe" for flag -df: allowed are set, unset, inherit`},
		{"-local 10.0.0.1 -ecn full", `invalid value "full" for flag -ecn: allowed are normal, compat, rfc3168`},
		{"-local 10.0.0.1 -udpcsum yes", `invalid value "yes" for flag -udpcsum: allowed are auto, on, off`},
		{"-local 10.0.0.1 -stats 5", `invalid value "5" for flag -stats: ` + every},
		{"-local 10.0.0.1 -stats 1ms", `invalid value "1ms" for flag -stats: ` + every},
		{"-local 10.0.0.1 -neigh proxy", `invalid value "proxy" for flag -neigh: it answers with the gateway's MAC, required is -gateway`},
		{"-local 10.0.0.1 -neigh=", `invalid value "" for flag -neigh: allowed are off, suppress, proxy`},
		{"-local 10.0.0.1 -gateway 192.168.7.254", `invalid value "192.168.7.254" for flag -gateway: allowed are addresses of a host with the length of its network, such as 192.168.7.254/24`},
		{"-local 10.0.0.1 -gateway 192.168.7.254/24,224.0.0.1/8", `invalid value "192.168.7.254/24,224.0.0.1/8" for flag -gateway: allowed are addresses of a host with the length of its network, such as 192.168.7.254/24`},
		{"-local 10.0.0.1 -gateway 192.168.7.255/24", `invalid value "192.168.7.255/24" for flag -gateway: allowed are addresses of a host with the length of its network, such as 192.168.7.254/24`},
		{"-local 10.0.0.1 -ageing 596524h", `invalid value "596524h" for flag -ageing: ` + age},
		{"-local 10.0.0.1 -gateway-mac ff:ff:ff:ff:ff:ff", `invalid value "ff:ff:ff:ff:ff:ff" for flag -gateway-mac: allowed is the MAC of one host, such as 02:00:00:00:00:01`},
		{"-local 10.0.0.1 -neighbours off", `flag provided but not defined: -neighbours; p2p -h lists the flags`},
		{"-local 10.0.0.1 -type gre", `invalid value "gre" for flag -type: allowed are vxlan, gpe, ipip`},
		{"-local 10.0.0.1 -tun=perhaps", `invalid boolean value "perhaps" for -tun: allowed are true and false`},
		{"-local 10.0.0.1 -tun", `flag -tun: vxlan carries Ethernet frames, allowed is -tun with -type gpe and ipip`},
		{"-local 10.0.0.1 -type gpe -tun", `flag -remote: a tunnel on a TUN device has one other end, required is one address, given are 0`},
		{"-local 10.0.0.1 -type ipip -remote 10.0.0.2,10.0.0.3", `flag -remote: a tunnel on a TUN device has one other end, required is one address, given are 2`},
		{"-local 10.0.0.1 -type gpe -tun -remote 10.0.0.2 -learning=false", `flag -learning: a TUN device has no Ethernet frames, allowed with -type vxlan, and gpe without -tun`},
		{"-local 10.0.0.1 -type ipip -remote 10.0.0.2 -neigh suppress", `flag -neigh: a TUN device has no Ethernet frames, allowed with -type vxlan, and gpe without -tun`},
		{"-local 10.0.0.1 -type ipip -remote 10.0.0.2 -id 7", `flag -id: ipip has no VNI, allowed with -type vxlan and gpe`},
		{"-local 10.0.0.1 -type ipip -remote 10.0.0.2 -dstport 4789", `flag -dstport: ipip has no UDP header, allowed with -type vxlan and gpe`},
		{"-local 10.0.0.1 -type ipip -remote 10.0.0.2 -peers any", `invalid value "any" for flag -peers: ipip takes packets of -remote only, allowed is listed`},
		{"-local 10.0.0.1 up", `argument "up": allowed are flags only; p2p -h lists them`},
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
		"-type vxlan|gpe|ipip", "-tun", "-dev NAME", "-mtu N", "-queues N", "-busy-poll DURATION", "-offload", "-learning", "-ageing DURATION", "-maxaddress N", "-storm CLASS=PPS", "-inner-vlan discard|strip|pass", "-fdb MAC=ADDR",
		"-neigh off|suppress|proxy", "-gateway ADDR/LEN[,ADDR/LEN]", "-gateway-mac MAC", "-peers any|listed", "-reserved rfc|strict|0xMASK", "-ttl N|inherit", "-tos N|inherit", "-df set|unset|inherit", "-ecn normal|compat|rfc3168",
		"-udpcsum auto|on|off", "-udp6zerocsumrx", "-pcap FILE", "-stats DURATION",
	} {
		if !strings.Contains(stdout.String(), "  "+f+"\n") {
			t.Errorf("no %s in\n%s", f, &stdout)
		}
	}
}

func TestDefaults(t *testing.T) {
	o, err := parse([]string{"-local", "::ffff:10.0.0.1", "-remote", "10.0.0.2,10.0.0.3"})
	if err != nil || o.local.String() != "10.0.0.1" || o.id != 1 || o.dstport != 4789 || o.dev != "vxs0" || o.queues != 0 || o.queueCount() < 1 || o.queueCount() > 4 ||
		o.busy != 0 || o.mtu != 0 || o.every != 0 || o.neigh != arp.Off || len(o.flood()) != 2 {
		t.Errorf("%+v, %v", o, err)
	}
	if o.storm != (vswitch.Storm{}) || o.vtep != (vtep.Config{}) || o.vsi != (vswitch.VSIConfig{}) || !reflect.DeepEqual(o.underlay, underlay.UDPConfig{}) {
		t.Errorf("the library's defaults are not left to it: %+v", o)
	}
}

// Every flag arrives where the library takes it.
func TestValues(t *testing.T) {
	o, err := parse(strings.Fields("-local 10.0.0.1 -remote 10.0.0.2 -srcport 5000-5999 -mark 0x10 -bind eth0 -mtu 9000 -queues 4 -busy-poll 50us " +
		"-offload=false -learning=false -ageing 60 -maxaddress 100 -storm broadcast=100 -storm unknown=5 -storm broadcast=200 -inner-vlan strip -fdb 02:00:00:00:00:01=10.0.0.3 -fdb 02-00-00-00-00-02=10.0.0.4 -peers listed -reserved strict " +
		"-group 239.1.1.1 -group-ttl 5 -underlay-dev eth1 -ttl inherit -tos 0xb8 -df inherit -ecn rfc3168 -udpcsum off -udp6zerocsumrx -pcap f -stats 2s"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (underlay.UDPConfig{
		SrcPorts: underlay.PortRange{Lo: 5000, Hi: 5999}, Mark: 16, Device: "eth0", Checksum: underlay.ChecksumOff, ZeroChecksum6RX: true, NoOffload: true,
		MulticastDevice: "eth1",
	}); !reflect.DeepEqual(o.underlay, want) {
		t.Errorf("underlay %+v", o.underlay)
	}
	if want := (vtep.Config{
		Peers: vtep.ListedOnly, Reserved: vtep.ReservedStrict, GroupTTL: 5,
		Header: vtep.Header{TTL: vtep.Inherit, TOS: 0xb8, DF: vtep.DFInherit, ECN: vtep.ECNRFC3168},
	}); o.vtep != want {
		t.Errorf("vtep %+v", o.vtep)
	}
	if want := (vswitch.VSIConfig{NoLearn: true, Ageing: time.Minute, MaxMACs: 100, InnerVLAN: vswitch.VLANStrip}); o.vsi != want {
		t.Errorf("vsi %+v", o.vsi)
	}
	if want := (vswitch.Storm{Broadcast: vswitch.Rate{Packets: 200}, UnknownUnicast: vswitch.Rate{Packets: 5}}); o.storm != want {
		t.Errorf("storm %+v", o.storm)
	}
	if want := []static{
		{frame.MAC{2, 0, 0, 0, 0, 1}, netip.MustParseAddr("10.0.0.3")}, {frame.MAC{2, 0, 0, 0, 0, 2}, netip.MustParseAddr("10.0.0.4")},
	}; !slices.Equal(o.static, want) {
		t.Errorf("static %+v", o.static)
	}
	if f := o.flood(); len(f) != 2 || f[0] != netip.MustParseAddrPort("239.1.1.1:0") || f[1] != netip.MustParseAddrPort("10.0.0.2:0") {
		t.Errorf("flood list %v", f)
	}
	if !o.plain || o.mtu != 9000 || o.queues != 4 || o.busy != 50*time.Microsecond || o.pcap != "f" || o.every != 2*time.Second {
		t.Errorf("%+v", o)
	}
	for arg, want := range map[string]vtep.Header{
		"-ttl 1": {TTL: 1}, "-tos inherit": {TOS: vtep.Inherit}, "-df set": {}, "-df unset": {DF: vtep.DFUnset}, "-ecn compat": {ECN: vtep.ECNCompat},
	} {
		if o, err := parse(strings.Fields("-local 10.0.0.1 " + arg)); err != nil || o.vtep.Header != want {
			t.Errorf("%s: %+v, %v", arg, o.vtep.Header, err)
		}
	}
	for arg, want := range map[string]vtep.Reserved{"rfc": 0, "strict": vtep.ReservedStrict, "0x0400000000000001": 1<<58 | 1} {
		if o, err := parse([]string{"-local", "10.0.0.1", "-reserved", arg}); err != nil || o.vtep.Reserved != want {
			t.Errorf("-reserved %s: %v, %v", arg, o.vtep.Reserved, err)
		}
	}
	for arg, want := range map[string]arp.Mode{"off": arp.Off, "suppress": arp.Suppress} {
		if o, err := parse([]string{"-local", "10.0.0.1", "-neigh", arg}); err != nil || o.neigh != want {
			t.Errorf("-neigh %s: %v, %v", arg, o.neigh, err)
		}
	}
	for arg, want := range map[string]time.Duration{"0": -1, "300s": 300 * time.Second, "5m": 5 * time.Minute, "10": 10 * time.Second} {
		if o, err := parse([]string{"-local", "10.0.0.1", "-ageing", arg}); err != nil || o.vsi.Ageing != want {
			t.Errorf("-ageing %s: %v, %v", arg, o.vsi.Ageing, err)
		}
	}
}
