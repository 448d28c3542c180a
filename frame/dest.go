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

// Dest names an egress of one switch: port<<16 | peer. Port 0 is the switch
// itself. Peer 0 means none, or on a tunnel port "not one peer": flood.
type Dest uint32

// Filter is the Dest of a filter entry: frames to or from its MAC are dropped.
const Filter Dest = 0xffff

// NewDest returns the Dest of a port and a peer.
func NewDest(port, peer uint16) Dest { return Dest(port)<<16 | Dest(peer) }

// Port returns the port half.
func (d Dest) Port() uint16 { return uint16(d >> 16) }

// Peer returns the peer half.
func (d Dest) Peer() uint16 { return uint16(d) }

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

// Tick is a switch's clock for ageing: seconds since it was made. Tables compare
// ticks and never read a clock of their own.
type Tick uint32

// At is what a stage is told beside the frame: the time and who asks.
type At struct {
	Tick   Tick
	From   Dest // in the TooBig slot, and of a gateway's frames: where the frame entered, whoever's it is by now; 0 = the switch
	To     Dest // in the TooBig slot: the egress; 0 = several, where the frame was flooded to
	Worker int  // number of the worker, for counters without contention
	MTU    int  // in the TooBig slot: the longest frame the egress takes, from its first byte on
}
