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

// Listen has f called with each datagram to a UDP port of the gateway's own addresses, in all VRFs. Datagrams to ports on
// which nobody listens are answered with ICMP errors. f runs inside the workers of the switch, several at once: it must
// not wait. A nil f ends it. Listen fails if the port is in use.
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
// the sum of the pseudo header for a length of 0, none whether the checksum may be left out.
func (i *Interface) deliver(x *packet, m []byte, ttl uint8, pseudo uint64, none bool) frame.Verdict {
	h, whole, right := wire.UDPOf(m, pseudo, none)
	if !whole {
		return frame.Drop(frame.BadHeader)
	}
	var f func(Datagram)
	if all := i.vrf.gateway.listeners.Load(); all != nil {
		f = (*all)[h.DstPort()]
	}
	switch {
	case f == nil:
		return i.refuse(x, icmperr.NoService, frame.NoRoute)
	case x.f.GSO.Type != 0:
		return frame.Drop(frame.BadHeader) // several datagrams in one
	case !right && x.f.GSO.Flags&frame.NeedsCsum == 0:
		return frame.Drop(frame.BadChecksum)
	}
	f(Datagram{
		Interface: i, TTL: ttl, Payload: h[wire.UDPLen:],
		Src: netip.AddrPortFrom(x.src(), h.SrcPort()), Dst: netip.AddrPortFrom(x.dst(), h.DstPort()),
	})
	return frame.Consume
}

// Errors of SendUDP.
var (
	ErrUnresolved = errors.New("l3: the MAC of the neighbour is unknown") // it is asked for
	errFull       = errors.New("l3: the queue of the switch is full, or it is closed")
)

// maxUDP is the length of the longest payload of SendUDP in bytes: with its headers it fits the least MTU of IPv6, 1280.
const maxUDP = 1200

// SendUDP sends a datagram from an address of the interface to a neighbour on its segment, with a TTL or hop limit, and
// the TOS of routing protocols. The payload has at most 1200 bytes and is copied. SendUDP does not wait: while the MAC of
// the neighbour is unknown it asks for it, and returns [ErrUnresolved].
func (i *Interface) SendUDP(src, dst netip.AddrPort, ttl uint8, payload []byte) error {
	to := dst.Addr().WithZone("")
	switch {
	case i.neighbours == nil:
		return fmt.Errorf("l3: vni %d: has no neighbours", i.cfg.VNI)
	case !slices.Contains(i.addrs, src.Addr()):
		return fmt.Errorf("l3: source %v: is not an address of vni %d", src.Addr(), i.cfg.VNI)
	case src.Addr().Is4() != to.Is4() || !to.IsValid():
		return fmt.Errorf("l3: destination %v: is of another address family than %v", to, src.Addr())
	case len(payload) > maxUDP:
		return fmt.Errorf("l3: payload: is %d bytes long; must be at most %d", len(payload), maxUDP)
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
	b := make([]byte, wire.EthernetLen+wire.UDPPacketLen(to.Is4(), len(payload)))
	binary.BigEndian.PutUint64(b, e.MAC()<<16|from>>32)
	binary.BigEndian.PutUint32(b[8:], uint32(from))
	t := uint16(wire.TypeIPv4)
	if to.Is6() {
		t = wire.TypeIPv6
	}
	binary.BigEndian.PutUint16(b[12:], t)
	wire.PutUDP(b[wire.EthernetLen:], src, netip.AddrPortFrom(to, dst.Port()), controlTOS, ttl, payload)
	f := frame.Make(b)
	if !i.cfg.Send(0, &f) {
		return errFull
	}
	return nil
}

// controlTOS is the TOS of routing protocols: class selector 6 (RFC 4594, section 3.2).
const controlTOS = 6 << 5
