package arp

import (
	"encoding/json"
	"iter"
)

// An Outcome is what a [Responder] did with a message, and why. Each message is counted
// under one.
type Outcome uint8

// Outcomes. Those above Malformed are answers.
const (
	Answered        Outcome = iota // with the target's own MAC (Suppress), or the gateway's (Proxy, Access)
	AnsweredGateway                // the target is an address of the gateway
	Relayed                        // Proxy: a question asked on, or its answer passed back, in our own name

	Malformed     // no ARP for IPv4 over Ethernet; ND that RFC 4861 has nodes discard; fragmented ND (RFC 6980)
	Spoofed       // the sender's MAC in it is not the one the frame is from: not learned either
	BadSender     // its sender's address or MAC is no host's
	BadTarget     // its target is no host's address
	NotQuestion   // an answer, or of a router
	FromTunnel    // who is nearer to the target answers
	Unicast       // sent to one host: is it still there?
	Probe         // is the address free? (RFC 5227; duplicate address detection of RFC 4862)
	Gratuitous    // an announcement
	UnknownIP     // nothing is known of the target
	UnknownMAC    // its MAC is in no FDB: an answer would lead nowhere
	Local         // it is behind a local port and answers for itself
	Frozen        // it is claimed by several MACs
	OwnMAC        // its MAC is the one that asks
	RemoteAnycast // asked for an anycast gateway through a tunnel: each end has its own
	NoRoom        // the answer is longer than the question, and there is no room in the buffer; or a question without an option has none for our MAC
	Lost          // Proxy: an answer to nobody who is known
	Forbidden     // Access: nothing but questions and their answers
	ModeOff       // nothing is answered
	NumOutcomes   // how many there are, for arrays indexed by Outcome
)

var outcomeNames = [NumOutcomes]string{
	Answered: "answered", AnsweredGateway: "answered-gateway", Relayed: "relayed",
	Malformed: "malformed", Spoofed: "spoofed", BadSender: "bad-sender", BadTarget: "bad-target",
	NotQuestion: "not-question", FromTunnel: "from-tunnel", Unicast: "unicast", Probe: "probe", Gratuitous: "gratuitous",
	UnknownIP: "unknown-ip", UnknownMAC: "unknown-mac", Local: "local", Frozen: "frozen", OwnMAC: "own-mac",
	RemoteAnycast: "remote-anycast", NoRoom: "no-room", Lost: "lost", Forbidden: "forbidden", ModeOff: "mode-off",
}

// String returns the outcome's name, as it appears in statistics.
func (b Outcome) String() string { return name(outcomeNames[:], int(b)) }

// Counts is a number of messages for each outcome.
type Counts [NumOutcomes]uint64

// All iterates over the outcomes that are not zero, in the order of the constants.
func (c *Counts) All() iter.Seq2[Outcome, uint64] {
	return func(yield func(Outcome, uint64) bool) {
		for b, n := range c {
			if n != 0 && !yield(Outcome(b), n) {
				return
			}
		}
	}
}

// Total returns the sum over all outcomes.
func (c *Counts) Total() (n uint64) {
	for _, x := range c {
		n += x
	}
	return n
}

// MarshalJSON writes the outcomes that are not zero by name: {"answered":3}.
func (c Counts) MarshalJSON() ([]byte, error) {
	m := map[string]uint64{}
	for b, n := range c.All() {
		m[b.String()] = n
	}
	return json.Marshal(m)
}
