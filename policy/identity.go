package policy

import (
	"slices"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// UDP ports of servers and tunnels, those of VXLAN in package encap.
const (
	portBootServer = 67 // RFC 2131, section 4.1
	portBootClient = 68
	portDHCP6      = 546 // RFC 8415, section 7.2: clients
	portDHCP6Relay = 547 // servers and relay agents
	portGeneve     = 6081
)

// Messages of multicast listeners, sent before a host has an address (RFC 3590).
const (
	mldReport  = 131
	mldDone    = 132
	mldReport2 = 143
)

// judge returns why to drop a frame, or noCause.
func (o *identity) judge(f *frame.Frame) cause {
	var k packet
	if !k.parse(f) {
		return badHeader
	}
	if k.macs && !o.hasMAC(k.srcMAC) {
		return badMAC
	}
	switch b := f.Bytes()[k.at:]; {
	case k.class == classARP:
		return o.arp(b, k.srcMAC)
	case !k.ip:
		return noCause
	case k.protocol == wire.ProtoICMPv6 && !k.src.is4() && k.ports:
		if t := uint8(k.dport >> 8); t >= wire.RouterSolicitation && t <= wire.ICMPv6Redirect {
			return o.nd(&k, b, t)
		}
	}
	return o.sender(&k)
}

// sender judges a packet other than ND.
func (o *identity) sender(k *packet) cause {
	if !o.source(k) {
		return badAddress
	}
	return o.role(k)
}

func (o *identity) hasMAC(mac uint64) bool {
	if len(o.macs) == 0 {
		return true
	}
	_, ok := slices.BinarySearch(o.macs, mac)
	return ok
}

// hasAddr reports whether the port may use an address. mac is the source of the frame, 0 for none.
func (o *identity) hasAddr(a addr, mac uint64) bool {
	if o.addrs == nil || o.addrs.Lookup(a.netip()) {
		return true
	}
	if a.hi>>54 != 0xfe80>>6 {
		return false
	}
	return o.LinkLocal || mac != 0 && a == linkLocal(mac)
}

// linkLocal returns the address that RFC 4291, appendix A, makes of a MAC.
func linkLocal(mac uint64) addr {
	mac ^= 2 << 40
	return addr{0xfe80 << 48, mac>>24<<40 | 0xfffe<<24 | mac&0xffffff}
}

func (a addr) unspecified() bool { return a == addr{} || a == addr{0, mapped} }

// source reports whether a packet other than ND may have its source address.
func (o *identity) source(k *packet) bool {
	if o.addrs == nil {
		return true
	}
	if !k.src.unspecified() {
		return o.hasAddr(k.src, k.srcMAC)
	}
	if k.src.is4() {
		return k.protocol == wire.ProtoUDP && k.ports && k.sport == portBootClient && k.dport == portBootServer
	}
	switch k.dport >> 8 {
	case mldReport, mldDone, mldReport2:
		return k.protocol == wire.ProtoICMPv6 && k.ports && k.dst.isGroup()
	}
	return false
}

// role returns whether a packet is of a server or tunnel that the port may not be.
func (o *identity) role(k *packet) cause {
	switch k.protocol {
	case protoIPIP, protoIPv6:
		if !o.Tunnels && !o.IPIP {
			return isTunnel
		}
	case protoGRE:
		if !o.Tunnels {
			return isTunnel
		}
	case wire.ProtoUDP:
		if !k.ports {
			return noCause // a later fragment, useless without its first
		}
		if !o.Tunnels && (k.dport == encap.GPEPort || k.dport == portGeneve || !o.VXLAN && slices.Contains(o.VXLANPorts, k.dport)) {
			return isTunnel
		}
		server, client := uint16(portDHCP6Relay), uint16(portDHCP6)
		if k.src.is4() {
			server, client = portBootServer, portBootClient
		}
		if (k.sport == server || k.dport == client) && !o.DHCPServer {
			return isDHCPServer
		}
	}
	return noCause
}

// arp judges an ARP packet in a frame from mac.
func (o *identity) arp(b []byte, mac uint64) cause {
	a, ok := wire.ParseARP(b)
	if !ok || !o.hasMAC(frame.MAC(a.SenderMAC()).Uint64()) {
		return badARP
	}
	ip := a.SenderIP()
	switch sender := addr4(ip[:]); {
	case sender.unspecified() && a.Op() == wire.ARPRequest: // a probe (RFC 5227, section 2.1.1)
		return noCause
	case !o.hasAddr(sender, mac):
		return badARP
	}
	return noCause
}

// nd judges neighbour discovery of type t. A message behind extension headers evades filters
// (RFC 7113), and hosts ignore fragments (RFC 6980).
func (o *identity) nd(k *packet, b []byte, t uint8) cause {
	if !o.RouterAdvertisements && (t == wire.RouterAdvertisement || t == wire.ICMPv6Redirect) {
		return isRouter
	}
	if t == wire.ICMPv6Redirect {
		if !o.hasAddr(k.src, k.srcMAC) {
			return badAddress
		}
		return noCause
	}
	p, _ := wire.ParseIPv6(b) // as parse did
	n, ok := wire.ParseND(p)
	if !ok {
		return badND
	}
	option, target := uint8(wire.SourceLinkLayer), k.src
	switch {
	case t == wire.NeighbourAdvert:
		option, target = wire.TargetLinkLayer, targetOf(n)
	case k.src.unspecified() && t == wire.NeighbourSolicitation: // is the address free? (RFC 4862, section 5.4)
		target = targetOf(n)
	}
	if asks := t == wire.NeighbourSolicitation || t == wire.RouterSolicitation; !asks || !k.src.unspecified() {
		if !o.hasAddr(k.src, k.srcMAC) {
			return badAddress
		}
	} else if t == wire.RouterSolicitation {
		return noCause // from a host without an address; no option then (RFC 4861, section 6.1.1)
	}
	if !o.hasAddr(target, k.srcMAC) {
		return badND
	}
	if mac, ok := n.LinkLayer(option); ok && !o.hasMAC(frame.MAC(mac).Uint64()) {
		return badND
	}
	return noCause
}

func targetOf(n wire.ND) addr {
	target := n.Target()
	return addr6(target[:])
}
