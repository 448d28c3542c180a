package encap

import "github.com/vxswitch/vxswitch/frame"

// TypeOwn is an [Encapsulation] of the program's own. No file has it: vtep.Config.Own says which it is.
const TypeOwn = Type(255)

// MaxOwn is the longest header of an [Encapsulation] in bytes: outer headers, it and an Ethernet header are in every packet.
const MaxOwn = 256

// An Encapsulation is a header in UDP that this package does not have, such as one of a program's own. Its methods are called for each
// packet, by several goroutines at a time, and must not allocate.
type Encapsulation interface {
	// Header returns the length of the headers that Put writes, 0 to [MaxOwn]: the MTU of the overlay is less by it. It is always
	// the same.
	Header() int

	// Put writes the header of a packet to b, which is Header() bytes long and may have anything in it, or returns why it has none,
	// for instance frame.BadKind. All segments of a superframe have the same header, so it cannot have their length.
	Put(b []byte, p Packet) frame.Reason

	// Parse reads the header at the start of b. It returns what it says and its length, or why the packet is refused; a header may be
	// longer than those that Put writes, and b shorter than any. Packets in VNIs that are not attached are refused afterwards, as
	// are IP packets and frames that are none.
	Parse(b []byte) (p Packet, n int, drop frame.Reason)
}

// A Packet is what the header of an [Encapsulation] says of the packet inside.
type Packet struct {
	VNI  frame.VNI
	Kind frame.Kind
	Copy bool // of a flooded frame, of which all other peers have got theirs; see frame.Frame.Replicated
}
