package bfd

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/vxswitch/vxswitch/setting"
)

// Reason says why a received packet was discarded. 0 means that it was not.
type Reason uint8

// Reasons. The last three are those of a session; the others count for the Speaker alone. Most are from RFC 5880, section 6.8.6.
const (
	NotDiscarded    Reason = iota
	BadTTL                 // TTL below 255 from a neighbour, or in a tunnel (RFC 5881, section 5)
	Short                  // shorter than a control packet, or than its Length
	BadVersion             // not version 1
	BadLength              // Length below that of a control packet
	NoMultiplier           // detection time multiplier 0
	Multipoint             // M bit (RFC 8562)
	NoDiscriminator        // My Discriminator 0
	BadState               // Your Discriminator 0 in state Init or Up
	UnknownPeer            // Your Discriminator 0 and no session with the sender
	UnknownSession         // no session has this Your Discriminator
	Stranger               // the session with this Your Discriminator is with another peer
	Authenticated          // A bit: there is no authentication here
	HeldDown               // the session is AdminDown
	NumReasons             // number of reasons, for arrays
)

var reasonNames = []string{
	NotDiscarded: "none", BadTTL: "ttl", Short: "short", BadVersion: "version", BadLength: "length", NoMultiplier: "multiplier",
	Multipoint: "multipoint", NoDiscriminator: "discriminator", BadState: "state", UnknownPeer: "unknown-peer",
	UnknownSession: "unknown-session", Stranger: "stranger", Authenticated: "authenticated", HeldDown: "admin-down",
}

// String returns the reason's name in statistics.
func (r Reason) String() string { return setting.Name(reasonNames, r) }

// Counts is a number of packets for each reason.
type Counts [NumReasons]uint64

// All iterates over the reasons that are not zero, in the order of the constants.
func (c *Counts) All() iter.Seq2[Reason, uint64] {
	return func(yield func(Reason, uint64) bool) {
		for r, n := range c {
			if n != 0 && !yield(Reason(r), n) {
				return
			}
		}
	}
}

// Total returns the sum over all reasons.
func (c *Counts) Total() (n uint64) {
	for _, x := range c {
		n += x
	}
	return n
}

// MarshalJSON writes the reasons that are not zero by name: {"ttl":3}.
func (c Counts) MarshalJSON() ([]byte, error) {
	m := map[string]uint64{}
	for r, n := range c.All() {
		m[r.String()] = n
	}
	return json.Marshal(m)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Counts) UnmarshalJSON(text []byte) error {
	m := map[string]uint64{}
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	*c = Counts{}
	for r := range c {
		c[r] = m[Reason(r).String()]
		delete(m, Reason(r).String())
	}
	for name := range m {
		return fmt.Errorf("bfd: Counts: %q: is not a reason", name)
	}
	return nil
}
