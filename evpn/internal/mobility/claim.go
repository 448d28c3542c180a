package mobility

import (
	"bytes"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// MaxSequence ends the order of sequence numbers: a host with it cannot move any more, as if it were sticky.
const MaxSequence = 1<<32 - 1

// A Claim is what a VTEP, perhaps this one, says of a MAC.
type Claim struct {
	VTEP     route.Addr
	Sequence uint32
	Sticky   bool // the host never moves (RFC 7432, section 15.2)
}

// Fixed reports whether the host of a claim cannot move.
func (c *Claim) Fixed() bool { return c.Sticky || c.Sequence == MaxSequence }

// Beats reports whether c counts and not d: a sticky host does not move, else the higher sequence is the later place; of equal ones
// the lower address counts, an IPv4 address before an IPv6 one, so that all VTEPs agree (RFC 7432, section 15.1). Of two claims of one
// VTEP neither beats the other, unless sequences or flags differ.
func (c *Claim) Beats(d *Claim) bool {
	if c.Sticky != d.Sticky {
		return c.Sticky
	}
	if c.Sequence != d.Sequence {
		return c.Sequence > d.Sequence
	}
	a, b := c.VTEP.Bytes(), d.VTEP.Bytes()
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return bytes.Compare(a, b) < 0
}
