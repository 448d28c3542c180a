package frame

import "net/netip"

// EventKind says what an [Event] reports.
type EventKind uint8

// Kinds of events, with the fields each one sets.
const (
	EventOverflow     EventKind = iota // events were lost: list the tables again
	EventMACLearned                    // VNI, MAC, Dest
	EventMACMoved                      // VNI, MAC, Dest, Old; Pinned says it was a control entry that gave way
	EventMACFrozen                     // VNI, MAC, Dest, Old: moved too often; stays at Dest, where it was before, and Old has claimed it last
	EventMACFlapping                   // VNI, MAC, Dest, Old: moves many times a second between Dest and Old, where it was before: a loop?
	EventMACAged                       // VNI, MAC, Dest: not heard for the ageing time
	EventMACEvicted                    // VNI, MAC, Dest: made room for another
	EventPortUp                        // Dest
	EventPortDown                      // Dest; Err when it failed, nil when it was detached
	EventPortHeld                      // VNI, MAC, Dest, Old: the port takes no part in the segment for a while, as MAC moved to and fro between it and Old
	EventPortReleased                  // VNI, Dest: and does again
	EventMACMiss                       // VNI, MAC, Dest: nobody knows where the MAC is that a frame from Dest is for

	EventNeighbourLearned   // VNI, IP, MAC, Dest
	EventNeighbourMoved     // VNI, IP, MAC, OldMAC, Dest
	EventNeighbourAged      // VNI, IP, MAC, Dest: not heard for the ageing time
	EventNeighbourDuplicate // VNI, IP, MAC, OldMAC, Dest: claimed by several MACs (RFC 9161, section 3.7)
	EventNeighbourMiss      // VNI, IP, Dest: nobody knows the MAC of the address that Dest asks for
)

var eventNames = [...]string{
	EventOverflow: "overflow", EventMACLearned: "mac-learned", EventMACMoved: "mac-moved", EventMACFrozen: "mac-frozen", EventMACFlapping: "mac-flapping", EventMACAged: "mac-aged",
	EventMACEvicted: "mac-evicted", EventPortUp: "port-up", EventPortDown: "port-down",
	EventPortHeld: "port-held", EventPortReleased: "port-released",
	EventMACMiss: "mac-miss", EventNeighbourLearned: "neighbour-learned", EventNeighbourMoved: "neighbour-moved",
	EventNeighbourAged: "neighbour-aged", EventNeighbourDuplicate: "neighbour-duplicate", EventNeighbourMiss: "neighbour-miss",
}

// String returns the kind's name.
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "invalid"
}

// Event tells a control plane what changed. Which fields are set depends on the
// kind.
type Event struct {
	Kind   EventKind
	Pinned bool
	VNI    VNI
	MAC    MAC
	OldMAC MAC
	IP     netip.Addr
	Dest   Dest
	Old    Dest
	Err    error
}
