package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
)

// host is a host in 100 lines: it answers ARP and ping, and reports what it receives. It makes its packets with gopacket.
type host struct {
	name string
	mac  frame.MAC
	ip   netip.Addr
	vni  frame.VNI

	site    *site
	segment *node.VSI
	port    *port.Pipe
	heard   chan string // reports of received packets

	gateway atomic.Pointer[frame.MAC] // from its answer
}

func (h *host) String() string { return h.name }

// serve answers packets until the port closes.
func (h *host) serve(p *port.Pipe) {
	for {
		b, err := p.Recv(context.Background())
		if err != nil {
			return
		}
		pkt := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
		eth, _ := pkt.LinkLayer().(*layers.Ethernet)
		if eth == nil {
			continue
		}
		if a, ok := pkt.Layer(layers.LayerTypeARP).(*layers.ARP); ok {
			h.arp(a)
		} else if c, ok := pkt.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4); ok {
			h.icmp(eth, pkt.NetworkLayer().(*layers.IPv4), c)
		}
	}
}

func (h *host) hear(what string) {
	select {
	case h.heard <- what:
	default:
	}
}

func (h *host) arp(a *layers.ARP) {
	from, _ := netip.AddrFromSlice(a.SourceProtAddress)
	target, _ := netip.AddrFromSlice(a.DstProtAddress)
	switch {
	case a.Operation == layers.ARPReply:
		if from.As4()[3] == 254 {
			gw := frame.MAC(a.SourceHwAddress)
			h.gateway.Store(&gw)
		}
		h.hear("arp-reply " + from.String() + " " + frame.MAC(a.SourceHwAddress).String())
	case a.Operation == layers.ARPRequest:
		h.hear("arp-request " + target.String())
		if target == h.ip {
			h.sendARP(layers.ARPReply, frame.MAC(a.SourceHwAddress), from)
		}
	}
}

// sendARP sends a request (broadcast) or a reply.
func (h *host) sendARP(op uint16, to frame.MAC, ip netip.Addr) {
	target := to
	if op == layers.ARPRequest {
		target = frame.MAC{}
	}
	h.send(&layers.Ethernet{SrcMAC: h.mac.HardwareAddr(), DstMAC: to.HardwareAddr(), EthernetType: layers.EthernetTypeARP},
		&layers.ARP{
			AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: op,
			SourceHwAddress: h.mac[:], SourceProtAddress: h.ip.AsSlice(), DstHwAddress: target[:], DstProtAddress: ip.AsSlice(),
		})
}

func (h *host) icmp(eth *layers.Ethernet, ip *layers.IPv4, c *layers.ICMPv4) {
	from, _ := netip.AddrFromSlice(ip.SrcIP.To4())
	switch c.TypeCode.Type() {
	case layers.ICMPv4TypeEchoRequest:
		h.hear(fmt.Sprintf("ping %v ttl %d", from, ip.TTL))
		to := frame.MAC(eth.SrcMAC)
		if gw := h.gateway.Load(); gw != nil && h.ip.As4()[2] != from.As4()[2] { // another network
			to = *gw
		}
		h.sendICMP(layers.ICMPv4TypeEchoReply, to, from, c.Seq)
	case layers.ICMPv4TypeEchoReply:
		h.hear(fmt.Sprintf("pong %v ttl %d", from, ip.TTL))
	}
}

func (h *host) sendICMP(typ uint8, to frame.MAC, ip netip.Addr, seq uint16) {
	h.send(&layers.Ethernet{SrcMAC: h.mac.HardwareAddr(), DstMAC: to.HardwareAddr(), EthernetType: layers.EthernetTypeIPv4},
		&layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: h.ip.AsSlice(), DstIP: ip.AsSlice()},
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(typ, 0), Id: 1, Seq: seq},
		gopacket.Payload("vxswitch quickstart"))
}

func (h *host) send(ls ...gopacket.SerializableLayer) {
	buf := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buf, opts, ls...); err != nil {
		h.hear("error " + err.Error())
		return
	}
	if err := h.port.Send(buf.Bytes()); err != nil {
		h.hear("error " + err.Error())
	}
}
