package arp

import (
	"encoding/json"
	"iter"

	"github.com/vxswitch/vxswitch/setting"
)

// An Outcome is what a [Responder] did with a message, and why. Each message counts under
// one.
type Outcome uint8

// Outcomes. Those above Malformed are answers.
const (
	Answered        Outcome = iota // with the target's own MAC (Suppress), or the gateway's (Proxy, Access)
	AnsweredGateway                // the target is an address of the gateway
	Relayed                        // Proxy: passed on a question, or its answer, under the VTEP's or the gateway's MAC

	Malformed     // not ARP for IPv4 over Ethernet; ND that RFC 4861 has nodes discard; fragmented ND (RFC 6980)
	Spoofed       // the sender's MAC differs from the frame's source: not learned
	BadSender     // the sender's address or MAC cannot be a host's
	BadTarget     // the target's address cannot be a host's
	NotQuestion   // an answer, or a router's message
	FromTunnel    // the VTEP of the target's site answers
	Unicast       // a question to one host: is it still there?
	Probe         // is the address free? (RFC 5227; duplicate address detection of RFC 4862)
	Gratuitous    // an announcement
	UnknownIP     // the table does not have the target
	UnknownMAC    // the FDB does not have the target's MAC: an answer would lead nowhere
	Local         // the target is behind a local port and answers for itself
	Frozen        // several MACs claim the target
	OwnMAC        // the target has the MAC of the host that asks
	RemoteAnycast // a question for an anycast gateway through a tunnel: each site has its own gateway
	NoRoom        // the buffer has no room for the answer, or a question without the option has none for another MAC
	Lost          // Proxy: an answer to an unknown host
	Forbidden     // Access: only questions and their answers may pass
	ModeOff       // mode Off answers nothing
	NumOutcomes   // how many there are, for arrays indexed by Outcome
)

var outcomeNames = []string{
	Answered: "answered", AnsweredGateway: "answered-gateway", Relayed: "relayed",
	Malformed: "malformed", Spoofed: "spoofed", BadSender: "bad-sender", BadTarget: "bad-target",
	NotQuestion: "not-question", FromTunnel: "from-tunnel", Unicast: "unicast", Probe: "probe", Gratuitous: "gratuitous",
	UnknownIP: "unknown-ip", UnknownMAC: "unknown-mac", Local: "local", Frozen: "frozen", OwnMAC: "own-mac",
	RemoteAnycast: "remote-anycast", NoRoom: "no-room", Lost: "lost", Forbidden: "forbidden", ModeOff: "mode-off",
}

// String returns the outcome's name in statistics.
func (o Outcome) String() string { return setting.Name(outcomeNames, o) }

// Counts is a number of messages for each outcome.
type Counts [NumOutcomes]uint64

// All iterates over the outcomes that are not zero, in the order of the constants.
func (c *Counts) All() iter.Seq2[Outcome, uint64] {
	return func(yield func(Outcome, uint64) bool) {
		for o, n := range c {
			if n != 0 && !yield(Outcome(o), n) {
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
	for o, n := range c.All() {
		m[o.String()] = n
	}
	return json.Marshal(m)
}
