package routed_test

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	"github.com/vxswitch/vxswitch/port"
)

// A pod is a host behind a Pipe: it answers ARP, neighbour solicitations and pings.
type pod struct {
	t     *testing.T
	pipe  *port.Pipe
	ip    netip.Addr
	mac   frame.MAC
	gate  frame.MAC
	pongs chan pong
}

// A pong is an answer to a ping.
type pong struct {
	from netip.Addr
	seq  uint16
	ttl  uint8
}

func newPod(t *testing.T, name string, ip netip.Addr, gate frame.MAC) *pod {
	p := &pod{t: t, pipe: port.NewPipe(&port.PipeConfig{Name: name}), ip: ip, gate: gate, mac: frame.RandomMAC(), pongs: make(chan pong, 1000)}
	var reads sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	reads.Go(func() {
		for {
			b, err := p.pipe.Recv(ctx)
			if err != nil {
				return
			}
			p.got(b)
		}
	})
	t.Cleanup(func() { cancel(); reads.Wait() })
	return p
}

func (p *pod) send(to frame.MAC, kind layers.EthernetType, l ...gopacket.SerializableLayer) {
	eth := &layers.Ethernet{SrcMAC: p.mac[:], DstMAC: to[:], EthernetType: kind}
	p.pipe.Send(packets.Of(append([]gopacket.SerializableLayer{eth}, l...)...))
}

func addr(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

func (p *pod) got(b []byte) {
	x := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
	if a, ok := x.Layer(layers.LayerTypeARP).(*layers.ARP); ok && a.Operation == layers.ARPRequest && addr(a.DstProtAddress) == p.ip {
		p.send(frame.MAC(a.SourceHwAddress), layers.EthernetTypeARP, &layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4,
			Operation: layers.ARPReply, SourceHwAddress: p.mac[:], SourceProtAddress: p.ip.AsSlice(), DstHwAddress: a.SourceHwAddress, DstProtAddress: a.SourceProtAddress})
	}
	if ip, ok := x.Layer(layers.LayerTypeIPv4).(*layers.IPv4); ok && addr(ip.DstIP) == p.ip {
		icmp, ok := x.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
		switch {
		case !ok:
		case icmp.TypeCode.Type() == layers.ICMPv4TypeEchoRequest:
			p.icmp(addr(ip.SrcIP), layers.ICMPv4TypeEchoReply, icmp.Id, icmp.Seq, icmp.Payload)
		case icmp.TypeCode.Type() == layers.ICMPv4TypeEchoReply:
			p.pongs <- pong{addr(ip.SrcIP), icmp.Seq, ip.TTL}
		}
	}
	ip, ok := x.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
	if !ok {
		return
	}
	if ns, ok := x.Layer(layers.LayerTypeICMPv6NeighborSolicitation).(*layers.ICMPv6NeighborSolicitation); ok && addr(ns.TargetAddress) == p.ip {
		eth := x.LinkLayer().(*layers.Ethernet)
		out := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: p.ip.AsSlice(), DstIP: ip.SrcIP}
		h := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborAdvertisement, 0)}
		h.SetNetworkLayerForChecksum(out)
		p.send(frame.MAC(eth.SrcMAC), layers.EthernetTypeIPv6, out, h, &layers.ICMPv6NeighborAdvertisement{Flags: 0x60, TargetAddress: p.ip.AsSlice(),
			Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptTargetAddress, Data: p.mac[:]}}})
	}
	if e, ok := x.Layer(layers.LayerTypeICMPv6Echo).(*layers.ICMPv6Echo); ok && addr(ip.DstIP) == p.ip {
		icmp := x.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6)
		if icmp.TypeCode.Type() == layers.ICMPv6TypeEchoRequest {
			p.icmp(addr(ip.SrcIP), layers.ICMPv6TypeEchoReply, e.Identifier, e.SeqNumber, e.Payload)
		} else {
			p.pongs <- pong{addr(ip.SrcIP), e.SeqNumber, ip.HopLimit}
		}
	}
}

// icmp sends an echo request or reply to an address, by the gateway.
func (p *pod) icmp(to netip.Addr, kind uint8, id, seq uint16, data gopacket.Payload) {
	if to.Is4() {
		p.send(p.gate, layers.EthernetTypeIPv4, &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: p.ip.AsSlice(), DstIP: to.AsSlice()},
			&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(kind, 0), Id: id, Seq: seq}, data)
		return
	}
	ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolICMPv6, SrcIP: p.ip.AsSlice(), DstIP: to.AsSlice()}
	h := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(kind, 0)}
	h.SetNetworkLayerForChecksum(ip)
	p.send(p.gate, layers.EthernetTypeIPv6, ip, h, &layers.ICMPv6Echo{Identifier: id, SeqNumber: seq}, data)
}

// ping sends one echo request, and returns whether it is answered within d, and with which TTL.
func (p *pod) ping(to netip.Addr, seq uint16, d time.Duration) (ttl uint8, ok bool) {
	kind := uint8(layers.ICMPv4TypeEchoRequest)
	if to.Is6() {
		kind = layers.ICMPv6TypeEchoRequest
	}
	p.icmp(to, kind, 7, seq, bytes.Repeat([]byte("flannel "), 10))
	late := time.After(d)
	for {
		select {
		case x := <-p.pongs:
			if x.from == to && x.seq == seq {
				return x.ttl, true
			}
		case <-late:
			return 0, false
		}
	}
}

// reach pings until there is an answer, and returns its TTL.
func (p *pod) reach(to netip.Addr) uint8 {
	p.t.Helper()
	for seq := range uint16(200) {
		if ttl, ok := p.ping(to, seq, 50*time.Millisecond); ok {
			return ttl
		}
	}
	p.t.Fatalf("%v does not reach %v", p.ip, to)
	return 0
}
