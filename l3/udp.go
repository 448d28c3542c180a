package l3

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A Datagram is a UDP datagram that came to one of the gateway's own addresses.
type Datagram struct {
	Interface *Interface // it came in here
	Src, Dst  netip.AddrPort
	TTL       uint8  // or hop limit
	Payload   []byte // valid until the function of Listen returns
}

// listeners are the functions of Listen by port.
type listeners map[uint16]func(Datagram)

// Listen has f called with each datagram to a UDP port of the gateway's own addresses, in all VRFs. Other datagrams to it
// are answered as port unreachable. f runs inside the workers of the switch: it must not wait. A nil f ends it.
func (g *Gateway) Listen(port uint16, f func(Datagram)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var next listeners
	if old := g.listeners.Load(); old != nil {
		next = maps.Clone(*old)
	} else {
		next = listeners{}
	}
	if f == nil {
		delete(next, port)
	} else if next[port] != nil {
		return fmt.Errorf("l3: UDP port %d: is in use", port)
	} else {
		next[port] = f
	}
	g.listeners.Store(&next)
	return nil
}

// deliver hands a UDP datagram to the function of its port. m is the UDP header and what follows in the packet, pseudo
// the sum of the pseudo header for a length of 0, must whether the checksum is required.
func (i *Interface) deliver(x *packet, m []byte, ttl uint8, pseudo uint64, must bool) frame.Verdict {
	h := wire.UDP(m)
	if len(m) < wire.UDPLen || h.Len() < wire.UDPLen || h.Len() > len(m) {
		return frame.Drop(frame.BadHeader)
	}
	var f func(Datagram)
	if all := i.vrf.gateway.listeners.Load(); all != nil {
		f = (*all)[binary.BigEndian.Uint16(m[2:])]
	}
	if f == nil {
		return i.refuse(x, icmperr.NoService, frame.NoRoute)
	}
	if x.f.GSO.Type != 0 {
		return frame.Drop(frame.BadHeader) // several datagrams in one
	}
	m = m[:h.Len()]
	if x.f.GSO.Flags&frame.NeedsCsum == 0 && (must || h.Checksum() != 0) && wire.Fold(wire.Sum(m, pseudo+uint64(len(m)))) != 0xffff {
		return frame.Drop(frame.BadChecksum)
	}
	f(Datagram{
		Interface: i, TTL: ttl, Payload: m[wire.UDPLen:],
		Src: netip.AddrPortFrom(x.src(), binary.BigEndian.Uint16(m)), Dst: netip.AddrPortFrom(x.dst(), binary.BigEndian.Uint16(m[2:])),
	})
	return frame.Consume
}

// Errors of SendUDP.
var (
	ErrUnresolved = errors.New("l3: the MAC of the neighbour is unknown") // it is asked for
	errFull       = errors.New("l3: the queue of the switch is full, or it is closed")
)

// SendUDP sends a datagram from an address of the interface to a neighbour on its segment, with a TTL or hop limit.
// The payload is copied.
func (i *Interface) SendUDP(src, dst netip.AddrPort, ttl uint8, payload []byte) error {
	to := dst.Addr().WithZone("")
	switch {
	case i.neighbours == nil:
		return fmt.Errorf("l3: vni %d: has no neighbours", i.cfg.VNI)
	case !slices.Contains(i.addrs, src.Addr()):
		return fmt.Errorf("l3: source %v: is not an address of vni %d", src.Addr(), i.cfg.VNI)
	case src.Addr().Is4() != to.Is4() || !to.IsValid():
		return fmt.Errorf("l3: destination %v: is of another address family than %v", to, src.Addr())
	case len(payload) > 1200:
		return fmt.Errorf("l3: payload: is %d bytes long; must be at most 1200", len(payload))
	}
	e := i.neighbours.Resolve(to)
	if e == 0 {
		i.question(to, netip.Addr{}, 0, frame.Tick(i.tick.Load()))
		return ErrUnresolved
	}
	from := i.mac
	if e.Remote() {
		from = i.own
	}
	n, head := wire.UDPLen+len(payload), wire.IPv4Len
	if to.Is6() {
		head = wire.IPv6Len
	}
	b := make([]byte, wire.EthernetLen+head+n)
	binary.BigEndian.PutUint64(b, e.MAC()<<16|from>>32)
	binary.BigEndian.PutUint32(b[8:], uint32(from))
	ip, u := b[wire.EthernetLen:], wire.UDP(b[wire.EthernetLen+head:])
	binary.BigEndian.PutUint16(u, src.Port())
	binary.BigEndian.PutUint16(u[2:], dst.Port())
	u.SetLen(n)
	copy(u[wire.UDPLen:], payload)
	t, pseudo := uint16(wire.TypeIPv4), uint64(0)
	if to.Is4() {
		h := wire.IPv4Header{TOS: controlTOS, TTL: ttl, Protocol: wire.ProtoUDP, DF: true, TotalLen: uint16(head + n), Src: src.Addr().As4(), Dst: to.As4()}
		h.Put(ip)
		pseudo = wire.Pseudo4(ip, wire.ProtoUDP, n)
	} else {
		h := wire.IPv6Header{TrafficClass: controlTOS, NextHeader: wire.ProtoUDP, HopLimit: ttl, PayloadLen: uint16(n), Src: src.Addr().As16(), Dst: to.As16()}
		h.Put(ip)
		t, pseudo = wire.TypeIPv6, wire.Pseudo6(ip, wire.ProtoUDP, n)
	}
	binary.BigEndian.PutUint16(b[12:], t)
	sum := wire.Checksum(wire.Sum(u, pseudo))
	if sum == 0 {
		sum = 0xffff
	}
	u.SetChecksum(sum)
	f := frame.Make(b)
	if !i.cfg.Send(0, &f) {
		return errFull
	}
	return nil
}

// controlTOS is the TOS of routing protocols: class selector 6 (RFC 2474; RFC 4594, section 3.1).
const controlTOS = 6 << 5
