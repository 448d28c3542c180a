// Package vxlan carries the sessions of package bfd inside VXLAN packets between two tunnel end points (RFC 8971).
// They have a management VNI to themselves:
//
//	bfd.Speaker -- Path.Send --> VSI of the management VNI --> VTEP -->
//	bfd.Speaker <-- Receive -- Path.Process (slot Ingress) <-- VTEP <--
//
// Give the VSI VSIConfig.NoLearn and NoFlood, attach the VTEP to it with the Path in AttachConfig.Slots.Ingress, and tell
// the Path which peers have sessions.
package vxlan

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// VNI is the usual management VNI (RFC 8971, section 6).
const VNI frame.VNI = 1

// MAC is the destination of the frames (RFC 8971, section 8).
var MAC = frame.MAC{0x00, 0x00, 0x5e, 0x00, 0x52, 0x02}

// tos is class selector 6, that of routing protocols (RFC 4594, section 3.2).
const tos = 6 << 5

// A Path is the Path of the sessions with the peers of one VTEP, and the stage that takes their packets. It takes every
// frame.
type Path struct {
	speaker *bfd.Speaker
	send    func(peer uint16, f *frame.Frame) bool
	peers   atomic.Pointer[peers]
}

// peers are the sessions by the peer's number, and the inverse. It is immutable.
type peers struct {
	byNum map[uint16]bfd.Peer
	nums  map[bfd.Peer]uint16
}

// New returns a Path without peers. send sends a frame in the management VNI to a peer of the VTEP, as VSI.Send does.
func New(s *bfd.Speaker, send func(peer uint16, f *frame.Frame) bool) *Path {
	p := &Path{speaker: s, send: send}
	p.peers.Store(new(peers))
	return p
}

// SetPeers sets the numbers of the peers that have sessions: those that the VTEP receives from. Packets of others are
// dropped as [frame.UnknownPeer].
func (p *Path) SetPeers(byNum map[uint16]bfd.Peer) {
	x := &peers{byNum, make(map[bfd.Peer]uint16, len(byNum))}
	for num, peer := range byNum {
		x.nums[peer] = num
	}
	p.peers.Store(x)
}

// Process takes a frame: it is the stage for the slot Ingress.
func (p *Path) Process(f *frame.Frame, _ frame.At) frame.Verdict {
	e, ok := wire.ParseEthernet(f.Bytes())
	if !ok {
		return frame.Drop(frame.Short)
	}
	var u wire.UDP
	var ttl uint8
	whole, right := false, false
	switch b := f.Bytes()[wire.EthernetLen:]; e.Type() {
	case wire.TypeIPv4:
		ip, ok := wire.ParseIPv4(b)
		if !ok || !ip.ChecksumOK() || ip.Fragment() || ip.Protocol() != wire.ProtoUDP {
			return frame.Drop(frame.BadHeader)
		}
		u, whole, right = wire.UDPOf(ip.Payload(), wire.Pseudo4(ip, wire.ProtoUDP, 0), true)
		ttl = ip[8]
	case wire.TypeIPv6:
		ip, ok := wire.ParseIPv6(b)
		if !ok || ip.NextHeader() != wire.ProtoUDP {
			return frame.Drop(frame.BadHeader)
		}
		u, whole, right = wire.UDPOf(ip[wire.IPv6Len:], wire.Pseudo6(ip, wire.ProtoUDP, 0), false)
		ttl = ip[7]
	}
	switch {
	case !whole || f.GSO.Type != 0:
		return frame.Drop(frame.BadHeader)
	case !right && f.GSO.Flags&frame.NeedsCsum == 0:
		return frame.Drop(frame.BadChecksum)
	case u.DstPort() != bfd.Port:
		return frame.Drop(frame.NoRoute)
	}
	from, ok := p.peers.Load().byNum[f.From.Peer()]
	if !ok {
		return frame.Drop(frame.UnknownPeer)
	}
	p.speaker.Receive(from, ttl, u[wire.UDPLen:])
	return frame.Consume
}

// Errors of Send.
var (
	errNoPeer = errors.New("bfd/vxlan: the tunnel has no such peer")
	errFull   = errors.New("bfd/vxlan: the queue of the switch is full, or it is closed")
)

// Send implements [bfd.Path]. The destination is a loopback address, which no router forwards to (RFC 8971, section 3).
func (p *Path) Send(m *bfd.Packet) error {
	num, ok := p.peers.Load().nums[m.Peer]
	if !ok {
		return errNoPeer
	}
	local, dst, t := m.Peer.Local.WithZone(""), netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(wire.TypeIPv4)
	if local.Is6() {
		dst, t = netip.AddrFrom16(dst.As16()), wire.TypeIPv6
	}
	f := frame.Make(make([]byte, wire.EthernetLen+wire.UDPPacketLen(local.Is4(), len(m.Payload))))
	b, own := f.Bytes(), local.As16()
	copy(b, MAC[:])
	copy(b[6:], []byte{2, 0, own[12], own[13], own[14], own[15]}) // the VTEP has none of its own
	binary.BigEndian.PutUint16(b[12:], t)
	wire.PutUDP(b[wire.EthernetLen:], netip.AddrPortFrom(local, m.SrcPort), netip.AddrPortFrom(dst, m.DstPort), tos, 255, m.Payload)
	if !p.send(num, &f) {
		return errFull
	}
	return nil
}
