package frame

import "strconv"

// VNI is a VXLAN network identifier: 24 bits (RFC 7348, section 4).
type VNI uint32

// MaxVNI is the largest VNI.
const MaxVNI VNI = 1<<24 - 1

// Valid reports whether v fits 24 bits.
func (v VNI) Valid() bool { return v <= MaxVNI }

// String returns the number in decimal.
func (v VNI) String() string { return strconv.FormatUint(uint64(v), 10) }

// Dest is the number of an egress of one switch: port<<16 | peer. Port 0 is the switch
// itself. Peer 0 means none, or on a tunnel its flood list.
type Dest uint32

// Filter is the Dest of a filter entry: frames to or from its MAC are dropped.
const Filter Dest = 0xffff

// NewDest returns the Dest of a port and a peer.
func NewDest(port, peer uint16) Dest { return Dest(port)<<16 | Dest(peer) }

// Port returns the port half.
func (d Dest) Port() uint16 { return uint16(d >> 16) }

// Peer returns the peer half.
func (d Dest) Peer() uint16 { return uint16(d) }

// Local reports whether d is a local port: one of this switch, without a peer.
func (d Dest) Local() bool { return d.Port() != 0 && d.Peer() == 0 }

// String returns "port" or "port/peer".
func (d Dest) String() string {
	if d == Filter {
		return "filter"
	}
	s := strconv.Itoa(int(d.Port()))
	if d.Peer() != 0 {
		s += "/" + strconv.Itoa(int(d.Peer()))
	}
	return s
}

// Tick is the clock of a switch for ageing: seconds since it was made. Tables have no
// clock of their own.
type Tick uint32

// At is what a stage gets beside the frame.
type At struct {
	Tick   Tick
	From   Dest // in slot TooBig, and for frames of a gateway: where the frame entered the switch; 0 = the switch itself
	To     Dest // in slot TooBig: the egress; 0 = several, of a flooded frame
	Worker int  // number of the worker, for counters without contention
	MTU    int  // in slot TooBig: length of the longest frame that the egress takes

	NoLearn bool // in slot Neighbour: the frame came from a tunnel of which nothing is learned
}
