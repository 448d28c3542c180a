package qemu

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// What tshark says of an outer and an inner header.
var (
	v4 = []string{"ip.proto", "ip.ttl", "ip.flags.df"}
	v6 = []string{"ipv6.nxt", "ipv6.hlim"}
)

// The guest's kernel ends tunnels: an echo request in a tunnel packet, sent through a raw
// socket, is answered through the tunnel. tshark reads the outer headers of the answers.
func TestTunnels(t *testing.T) {
	const (
		on4 = " local 10.0.0.2 remote 10.0.0.1"
		on6 = " local fd00::2 remote fd00::1"
		in4 = "192.168.7."
		in6 = "fd07::"
	)
	n := netns.New(t)
	a := n.Host("a")
	g := Boot(t, a, Config{Link: "tap0", Addr: "10.0.0.2/24,fd00::2/64"})
	a.Addr("tap0", "10.0.0.1/24,fd00::1/64")
	a.Ping("10.0.0.2", 1)
	a.Ping("fd00::2", 1)
	for _, c := range []struct {
		name   string
		dev    string // the words after "type"
		inner  string
		fields []string
		want   string
		hops   string // TTL or hop limit, the outer first, of a request of the guest whose own is 20
	}{
		{"ipip", "ipip" + on4, in4, v4, "4,1 64,64 1,0", "20,20"},
		{"ipip, TTL", "ipip ttl 7" + on4, in4, v4, "4,1 7,64 1,0", "7,20"},
		{"ipip, nopmtudisc", "ipip nopmtudisc" + on4, in4, v4, "4,1 64,64 0,0", "20,20"},
		{"sit", "sit" + on4, in6, append(v4, "ipv6.nxt", "ipv6.hlim"), "41 64 1 58 64", "20,20"},
		{"ip6tnl mode ipip6", "ip6tnl mode ipip6 encaplimit none" + on6, in4, append(v6, v4...), "4 64 1 64 0", "64,20"},
		{"ip6tnl mode ip6ip6", "ip6tnl mode ip6ip6 encaplimit none" + on6, in6, v6, "41,58 64,64", "64,20"},
		{"ip6tnl mode ipip6, limit", "ip6tnl mode ipip6" + on6, in4, append(v6, append(v4, "ipv6.opt.tel")...), "60 64 1 64 0 4", "64,20"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g.Run("ip link add tun type " + c.dev)
			defer g.Run("ip link del tun")
			bits := "24"
			if c.inner == in6 {
				bits = "64 nodad"
			}
			g.Run("ip addr add " + c.inner + "2/" + bits + " dev tun; ip link set tun up")

			outer := "10.0.0.2"
			if strings.HasPrefix(c.dev, "ip6tnl") {
				outer = "fd00::2"
			}
			tap := a.Capture(g.TAP, "ether src "+g.MAC+" and (ip proto 4 or ip proto 41 or ip6 proto 4 or ip6 proto 41 or ip6 proto 60)")
			exchange(t, a, outer, echo(t, c.inner+"1", c.inner+"2"))
			rows := netns.Fields(t, tap.Stop(), "icmp.type==0 or icmpv6.type==129", c.fields...)
			if len(rows) != 1 || strings.Join(rows[0], " ") != c.want {
				t.Errorf("the outer header is %v, want %s", rows, c.want)
			}

			tap = a.Capture(g.TAP, "ether src "+g.MAC)
			g.Run("echo 20 >/proc/sys/net/ipv6/conf/tun/hop_limit") // -t is for IPv4
			g.Try("ping -c 1 -W 1 -t 20 " + c.inner + "1")
			rows = netns.Fields(t, tap.Stop(), "icmp.type==8 or icmpv6.type==128", "frame.protocols", "ip.ttl", "ipv6.hlim")
			if len(rows) != 1 || hops(rows[0]) != c.hops {
				t.Errorf("the hops left are %v, want %s", rows, c.hops)
			}
		})
	}

	// Without path MTU discovery the kernel copies DF into the outer header: a TCP SYN has
	// it, an echo reply has not.
	t.Run("ipip, nopmtudisc, inner DF", func(t *testing.T) {
		g.Run("ip link add tun type ipip nopmtudisc" + on4 + "; ip addr add " + in4 + "2/24 dev tun; ip link set tun up")
		tap := a.Capture(g.TAP, "ip proto 4")
		g.Run("nc " + in4 + "1 9 &")
		rows := netns.Fields(t, tap.Want(1, nil), "tcp.flags.syn==1", v4...)
		if len(rows) != 1 || strings.Join(rows[0], " ") != "4,6 64,64 1,1" {
			t.Errorf("the outer header is %v", rows)
		}
	})
}

// hops puts the values of ip.ttl and ipv6.hlim behind frame.protocols in the order of the
// headers.
func hops(row []string) string {
	protocols, ttl, hlim := row[0], row[1], row[2]
	switch {
	case ttl == "" || hlim == "":
		return ttl + hlim
	case strings.Contains(protocols, ":ipv6:ip:"), strings.Contains(protocols, ":ipv6:ipv6.dstopts:ip:"):
		return hlim + "," + ttl
	}
	return ttl + "," + hlim
}

// echo makes an echo request.
func echo(t *testing.T, from, to string) []byte {
	t.Helper()
	src, dst := net.ParseIP(from), net.ParseIP(to)
	payload := gopacket.Payload("through a tunnel")
	var ls []gopacket.SerializableLayer
	if src.To4() != nil {
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: src, DstIP: dst}
		ls = []gopacket.SerializableLayer{ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, 0), Id: 7, Seq: 1}}
	} else {
		ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolICMPv6, SrcIP: src, DstIP: dst}
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeEchoRequest, 0)}
		icmp.SetNetworkLayerForChecksum(ip)
		ls = []gopacket.SerializableLayer{ip, icmp, &layers.ICMPv6Echo{Identifier: 7, SeqNumber: 1}}
	}
	return packets.Of(append(ls, payload)...)
}

// exchange sends an inner echo request to the tunnel's other end and waits for the answer,
// which is the request with the addresses exchanged and another type.
func exchange(t *testing.T, a *netns.Host, to string, request []byte) {
	t.Helper()
	proto := "4"
	if request[0]>>4 == 6 {
		proto = "41"
	}
	family := "ip4:"
	if strings.Contains(to, ":") {
		family = "ip6:"
	}
	var c net.Conn
	var err error
	a.Do(func() { c, err = net.Dial(family+proto, to) })
	check.OK(t, err)
	conn := c.(*net.IPConn)
	defer conn.Close()
	check.Must(conn.Write(request))(t)
	conn.SetDeadline(time.Now().Add(netns.Timeout))
	buf := make([]byte, 1<<16)
	for {
		n, _, err := conn.ReadFrom(buf) // without the outer header; Read would keep that of IPv4
		check.Need(t, err == nil, "no answer: %v", err)
		if answers(buf[:n], request) {
			return
		}
	}
}

// answers reports whether an inner packet is the answer to an echo request.
func answers(answer, request []byte) bool {
	first := layers.LayerTypeIPv4
	if request[0]>>4 == 6 {
		first = layers.LayerTypeIPv6
	}
	p, q := gopacket.NewPacket(answer, first, gopacket.Default), gopacket.NewPacket(request, first, gopacket.Default)
	if p.NetworkLayer() == nil || p.NetworkLayer().NetworkFlow() != q.NetworkLayer().NetworkFlow().Reverse() {
		return false
	}
	if i, ok := p.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4); ok && i.TypeCode.Type() != layers.ICMPv4TypeEchoReply {
		return false
	}
	if i, ok := p.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6); ok && i.TypeCode.Type() != layers.ICMPv6TypeEchoReply {
		return false
	}
	return bytes.HasSuffix(answer, []byte("through a tunnel"))
}
