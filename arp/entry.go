package arp

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// Origin says where an entry comes from.
type Origin uint8

// Origins. Learning never changes a static entry. A control entry gives way to a host on a
// local port, never to a message from a tunnel.
const (
	Snooped Origin = iota
	Static
	Control
)

// String returns the origin's name in statistics.
func (o Origin) String() string { return setting.Name([]string{"snooped", "static", "control"}, o) }

// Flags describe an IPv6 neighbour (RFC 4861, section 4.4; RFC 9047).
type Flags uint8

// Flags.
const (
	Router  Flags = 1 << iota // it forwards packets; answers must say so, or hosts delete their default route
	Anycast                   // its advertisements do not override others: answers leave O clear
	Taught                    // set by the table: an advertisement, not a question, gave the other flags
)

// State says how current an entry is.
type State uint8

// States.
const (
	Permanent State = iota // set by Table.Set: it does not age
	Reachable              // seen within the ageing time
	Probing                // asked after three quarters of the ageing time without a message
	Duplicate              // claimed by several MACs, and frozen for the ageing time, or its default if entries do not age
)

// String returns the state's name in statistics.
func (s State) String() string {
	return setting.Name([]string{"permanent", "reachable", "probing", "duplicate"}, s)
}

// An Entry is one neighbour, as dumps and look-ups show it.
type Entry struct {
	IP     netip.Addr
	MAC    frame.MAC
	Origin Origin
	Flags  Flags
	State  State
	From   frame.Dest // where its last message came from; 0 if it was set
	Seen   frame.Tick // when
	since  frame.Tick // the start of the window that Moves counts in
	Moves  int        // to other MACs, in that window
}

// Age returns the time since the neighbour's last message.
func (e Entry) Age(now frame.Tick) frame.Tick {
	if now < e.Seen {
		return 0
	}
	return now - e.Seen
}

// A LearnOutcome is what [Table.Learn] did.
type LearnOutcome uint8

// Outcomes of learning.
const (
	Known   LearnOutcome = iota // unchanged
	New                         // added
	Moved                       // to another MAC
	Refused                     // a static, control or frozen entry contradicts; or the address is foreign and no question is open
	Full                        // a limit is reached, the table's or the Dest's: the table stays as it was
	Busy                        // another goroutine was changing the table: not learned this time
	Invalid                     // the address or the MAC cannot be a host's
	numLearnOutcomes
)

// String returns the outcome's name.
func (o LearnOutcome) String() string {
	return setting.Name([]string{"known", "new", "moved", "refused", "full", "busy", "invalid"}, o)
}
