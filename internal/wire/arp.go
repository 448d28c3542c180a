package wire

import "encoding/binary"

// ARPLen is the length of an ARP packet for IPv4 over Ethernet (RFC 826).
const ARPLen = 28

// Operations of ARP.
const (
	ARPRequest = 1
	ARPReply   = 2
)

// arpHead is how an ARP packet for IPv4 over Ethernet begins: hardware type 1, protocol
// type 0x0800, their lengths 6 and 4.
const arpHead = 0x0001_0800_06_04

// ARP is a view over an ARP packet for IPv4 over Ethernet.
type ARP []byte

// ParseARP returns the packet that b begins with, without padding; ok is false when it is
// too short, or ARP for something else.
func ParseARP(b []byte) (a ARP, ok bool) {
	if len(b) < ARPLen || binary.BigEndian.Uint64(b)>>16 != arpHead {
		return nil, false
	}
	return b[:ARPLen:ARPLen], true
}

// Op returns the operation.
func (a ARP) Op() uint16 { return binary.BigEndian.Uint16(a[6:]) }

// SenderMAC returns the sender's hardware address.
func (a ARP) SenderMAC() [6]byte { return [6]byte(a[8:]) }

// SenderIP returns the sender's protocol address.
func (a ARP) SenderIP() [4]byte { return [4]byte(a[14:]) }

// TargetMAC returns the target's hardware address: of a request, anything.
func (a ARP) TargetMAC() [6]byte { return [6]byte(a[18:]) }

// TargetIP returns the target's protocol address.
func (a ARP) TargetIP() [4]byte { return [4]byte(a[24:]) }

// SetSenderMAC sets the sender's hardware address.
func (a ARP) SetSenderMAC(mac [6]byte) { copy(a[8:], mac[:]) }

// SetTargetMAC sets the target's hardware address.
func (a ARP) SetTargetMAC(mac [6]byte) { copy(a[18:], mac[:]) }

// PutARP writes a packet to b, 28 bytes.
func PutARP(b []byte, op uint16, senderMAC [6]byte, sender [4]byte, targetMAC [6]byte, target [4]byte) {
	p := (*[ARPLen]byte)(b)
	binary.BigEndian.PutUint64(p[:], arpHead<<16|uint64(op))
	*(*[6]byte)(p[8:]) = senderMAC
	*(*[4]byte)(p[14:]) = sender
	*(*[6]byte)(p[18:]) = targetMAC
	*(*[4]byte)(p[24:]) = target
}
