package encap

import "github.com/vxswitch/vxswitch/frame"

// TypeOwn is an [Encapsulation] of the program's own. No file has it: vtep.Config.Own says which it is.
const TypeOwn = Type(255)

// MaxOwn is the limit of [Encapsulation].Header in bytes.
const MaxOwn = 256

// An Encapsulation is a header in UDP that this package does not have, such as one of a program's own. Headers may differ in length from
// packet to packet. Several goroutines call its methods at a time, for each packet. They must not allocate or wait.
type Encapsulation interface {
	// Header returns the length of the longest header that Put writes, 0 to [MaxOwn]: the MTU of the overlay is less by it, whatever
	// the header of a packet takes. It is always the same.
	Header() int

	// Put writes the header of a packet to b, which is Header() bytes long and may have anything in it, and returns its length, or
	// why the packet cannot be sent, for instance frame.BadKind. It is called once for all segments of a superframe, and once for
	// all peers that a frame is flooded to: a header has no length or checksum of what follows, no sequence number, and nothing
	// that differs between peers.
	Put(b []byte, p Packet) (n int, drop frame.Reason)

	// Parse reads the header at the start of b, and returns what it says and its length, or why the packet is refused. The header
	// may be longer than any that Put writes. Packets in VNIs that are not attached are refused afterwards, as are IP packets and
	// frames that are none.
	//
	// Parse must not change anything, since it may be called several times for a packet, or for one that is then refused. It is
	// also called for what ICMP errors quote: the start of a packet that Put has written the header of, often with little behind
	// it. It returns frame.Short, and nothing else, if b ends before the header does.
	Parse(b []byte) (p Packet, n int, drop frame.Reason)
}

// A Packet is what the header of an [Encapsulation] says of the packet inside.
type Packet struct {
	VNI  frame.VNI
	Kind frame.Kind
	Copy bool // of a flooded frame, of which all other peers have got theirs; see frame.Frame.Replicated
}
