package arp

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// Origin says where an entry comes from.
type Origin uint8

// Origins. Static entries never change by what is heard. Control entries give way to a
// host that is heard on a local port, never to what comes out of a tunnel.
const (
	Snooped Origin = iota
	Static
	Control
)

// String returns the origin as it appears in statistics.
func (o Origin) String() string { return name([]string{"snooped", "static", "control"}, int(o)) }

// Flags say more about a neighbour of IPv6 (RFC 4861, section 4.4; RFC 9047).
type Flags uint8

// Flags.
const (
	Router  Flags = 1 << iota // it forwards packets; answers say so, or hosts would delete their default route
	Anycast                   // its advertisements do not override others: O is clear in answers
	Taught                    // set by the table: the other flags come from an advertisement, not from a question
)

// State says how sure an entry is.
type State uint8

// States.
const (
	Permanent State = iota // set, not heard: it does not age
	Reachable              // heard within the ageing time
	Probing                // asked, because it was not heard for three quarters of the ageing time
	Duplicate              // claimed by several MACs, and frozen for the ageing time, or where there is none for its default
)

// String returns the state as it appears in statistics.
func (s State) String() string {
	return name([]string{"permanent", "reachable", "probing", "duplicate"}, int(s))
}

func name(of []string, i int) string {
	if i < len(of) {
		return of[i]
	}
	return "invalid"
}

// An Entry is one neighbour, as dumps and look-ups show it.
type Entry struct {
	IP     netip.Addr
	MAC    frame.MAC
	Origin Origin
	Flags  Flags
	State  State
	From   frame.Dest // where it was heard last; 0 for one that was set
	Seen   frame.Tick // when
	since  frame.Tick // when the window that runs began
	Moves  int        // to other MACs, in that window
}

// Age returns how long ago the entry was heard.
func (e Entry) Age(now frame.Tick) frame.Tick {
	if now < e.Seen {
		return 0
	}
	return now - e.Seen
}

// A LearnOutcome is what [Table.Learn] did.
type LearnOutcome uint8

// Outcomes.
const (
	Known   LearnOutcome = iota // as it was
	New                         // added
	Moved                       // to another MAC
	Refused                     // a static or control entry, or a frozen one, says otherwise; or it is foreign, and nobody asked
	Full                        // no room, in all or at its Dest: what was known stays
	Busy                        // another goroutine was changing the table: not learned this time
	Invalid                     // no address of a host, or no MAC of one
	numLearnOutcomes
)

// String returns the outcome's name.
func (o LearnOutcome) String() string {
	return name([]string{"known", "new", "moved", "refused", "full", "busy", "invalid"}, int(o))
}
