package main

import (
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Two p2p in mode proxy, with a gateway each: what hosts send each other is routed twice,
// and no MAC of one end is in the FDB of the other (IPv6 hosts speak before they are asked,
// with their own MAC: there only the way of packets is looked at).
func TestProxy(t *testing.T) {
	t.Parallel()
	for _, f := range families {
		for _, v6 := range []bool{false, true} {
			name := f.name + "/IPv4 inside"
			if v6 {
				name = f.name + "/IPv6 inside"
			}
			t.Run(name, func(t *testing.T) { proxied(t, &f, v6) })
		}
	}
}

func proxied(t *testing.T, f *family, v6 bool) {
	a, b := f.hosts(t)
	if !v6 { // or the devices would speak as soon as they are up
		for _, h := range []*netns.Host{a, b} {
			h.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
		}
	}
	args := []string{"-id", "9", "-neigh", "proxy", "-gateway", "192.168.7.254/24,fd07::fe/64", "-gateway-mac", "02:00:00:00:fe:fe"}
	far := family{f.name, f.remote, f.local, f.bits, f.brackets, f.mtu}
	pa := start(t, a, f.ready("vxs0", 9, f.mtu), append(args, "-local", f.local, "-remote", f.remote)...)
	pb := start(t, b, far.ready("vxs0", 9, f.mtu), append(args, "-local", f.remote, "-remote", f.local)...)
	target, ttl, icmp, echo := "192.168.7.2", "ip.ttl", "icmp", "icmp.type==8"
	if v6 {
		target, ttl, icmp, echo = "fd07::2", "ipv6.hlim", "icmp6", "icmpv6.type==128"
		a.Addr("vxs0", "fd07::1/64")
		b.Addr("vxs0", "fd07::2/64")
	} else {
		a.Addr("vxs0", "192.168.7.1/24")
		b.Addr("vxs0", "192.168.7.2/24")
	}
	there, back := b.Capture("vxs0", icmp), a.Capture("vxs0", icmp)
	a.Ping(target, 3) // none is lost, the first neither
	toB, toA := there.Stop(), back.Stop()
	reply := strings.NewReplacer("==8", "==0", "==128", "==129").Replace(echo)
	for _, c := range []struct {
		file         []netns.Packet
		filter, from string
		host         *netns.Host
	}{{toB, echo, "02:00:00:00:fe:fe", b}, {toA, reply, "02:00:00:00:fe:fe", a}} {
		rows := netns.Fields(t, c.file, c.filter, ttl, "eth.src", "eth.dst")
		if len(rows) != 3 {
			t.Errorf("%d packets, want 3\n%s", len(rows), netns.Dump(c.file))
		}
		for _, r := range rows {
			if r[0] != "62" || r[1] != c.from || r[2] != c.host.MAC("vxs0") {
				t.Errorf("%v, want TTL 62 from the gateway", r)
			}
		}
	}
	macs := map[string]string{"a": a.MAC("vxs0"), "b": b.MAC("vxs0")}
	for end, l := range map[string]line{"a": stop(t, pa), "b": stop(t, pb)} {
		if l.Counts.Table["entries"] != 2 && !v6 {
			t.Errorf("%s: %+v", end, l.Neigh)
		}
		for _, e := range l.FDB {
			if !v6 && e.MAC != macs[end] && (e.MAC == macs["a"] || e.MAC == macs["b"]) {
				t.Errorf("%s knows the other end's host: %+v", end, e)
			}
		}
	}
}
