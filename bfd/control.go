package bfd

import (
	"encoding/binary"
	"time"

	"github.com/vxswitch/vxswitch/setting"
)

// State is the state of a session (RFC 5880, section 4.1).
type State uint8

// States, with their values in packets.
const (
	AdminDown State = iota // held down by its operator
	Down                   // nothing heard, or the path failed
	Init                   // the peer is heard, and does not know that
	Up                     // both hear each other
)

var stateNames = []string{AdminDown: "admin-down", Down: "down", Init: "init", Up: "up"}

// String returns the state's name.
func (s State) String() string { return setting.Name(stateNames, s) }

// Diag is the reason for the last change of a session's state (RFC 5880, section 4.1).
type Diag uint8

// Diagnostic codes, with their values in packets.
const (
	NoDiag        Diag = iota
	TimeExpired        // no packet within the detection time
	EchoFailed         // no echo
	NeighborDown       // the peer signalled that the session is down
	PlaneReset         // forwarding plane reset
	PathDown           // the path is known to have failed
	ConcatDown         // a path behind this one has failed
	DiagAdminDown      // held down by an operator
	ReverseConcat      // a path behind this one has failed in the other direction
)

var diagNames = []string{
	NoDiag: "none", TimeExpired: "time-expired", EchoFailed: "echo-failed", NeighborDown: "neighbor-down",
	PlaneReset: "plane-reset", PathDown: "path-down", ConcatDown: "concatenated-path-down", DiagAdminDown: "admin-down",
	ReverseConcat: "reverse-concatenated-path-down",
}

// String returns the name of the code, "invalid" for one that RFC 5880 reserves.
func (d Diag) String() string { return setting.Name(diagNames, d) }

// A Control is a control packet (RFC 5880, section 4.1) without its authentication section.
type Control struct {
	Diag        Diag
	State       State
	Poll        bool  // asks for a packet with Final
	Final       bool  // answers one with Poll
	Independent bool  // C: the sender's BFD survives its control plane
	Auth        bool  // A: an authentication section follows
	Demand      bool  // D: the sender wants no periodic packets
	Multiplier  uint8 // detection time multiplier
	My, Your    uint32

	// Intervals in whole microseconds, up to 71 minutes.
	MinTx     time.Duration // desired between packets of the sender
	MinRx     time.Duration // required between packets to the sender; 0 = it wants none
	MinEchoRx time.Duration // required between echo packets to the sender; 0 = it has no echo function
}

const (
	controlLen = 24 // of the mandatory section
	authLen    = 26 // least length with an authentication section
	version    = 1
)

// Parse reads a control packet, and checks what RFC 5880, section 6.8.6 has receivers check without knowing the session.
// The reason is NotDiscarded if that passes. A packet with an authentication section passes; what is in the section is not
// looked at.
func Parse(b []byte) (c Control, why Reason) {
	if len(b) < controlLen {
		return c, Short
	}
	least := controlLen
	if b[1]&0x04 != 0 {
		least = authLen
	}
	switch n := int(b[3]); {
	case b[0]>>5 != version:
		return c, BadVersion
	case n < least:
		return c, BadLength
	case n > len(b):
		return c, Short
	case b[2] == 0:
		return c, NoMultiplier
	case b[1]&0x01 != 0:
		return c, Multipoint
	}
	c = Control{
		Diag: Diag(b[0] & 0x1f), State: State(b[1] >> 6),
		Poll: b[1]&0x20 != 0, Final: b[1]&0x10 != 0, Independent: b[1]&0x08 != 0, Auth: b[1]&0x04 != 0, Demand: b[1]&0x02 != 0,
		Multiplier: b[2], My: binary.BigEndian.Uint32(b[4:]), Your: binary.BigEndian.Uint32(b[8:]),
		MinTx: interval(b[12:]), MinRx: interval(b[16:]), MinEchoRx: interval(b[20:]),
	}
	switch {
	case c.My == 0:
		return c, NoDiscriminator
	case c.Your == 0 && c.State != Down && c.State != AdminDown:
		return c, BadState
	}
	return c, NotDiscarded
}

// Append appends the packet to b. It does not write Auth: there is no authentication section.
func (c *Control) Append(b []byte) []byte {
	flags := byte(c.State) << 6
	for bit, on := range [...]bool{1: c.Demand, 3: c.Independent, 4: c.Final, 5: c.Poll} {
		if on {
			flags |= 1 << bit
		}
	}
	b = append(b, version<<5|byte(c.Diag)&0x1f, flags, c.Multiplier, controlLen)
	for _, v := range [...]uint32{c.My, c.Your, micros(c.MinTx), micros(c.MinRx), micros(c.MinEchoRx)} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func interval(b []byte) time.Duration {
	return time.Duration(binary.BigEndian.Uint32(b)) * time.Microsecond
}

func micros(d time.Duration) uint32 { return uint32(d / time.Microsecond) }
