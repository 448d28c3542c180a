package frame

// EventKind says what an [Event] reports.
type EventKind uint8

// Kinds of events, with the fields each one sets.
const (
	EventOverflow   EventKind = iota // events were lost: list the tables again
	EventMACLearned                  // VNI, MAC, Dest
	EventMACMoved                    // VNI, MAC, Dest, Old; Pinned says it was a control entry that gave way
	EventMACAged                     // VNI, MAC, Dest: not heard for the ageing time
	EventMACEvicted                  // VNI, MAC, Dest: made room for another
	EventPortUp                      // Dest
	EventPortDown                    // Dest; Err when it failed, nil when it was detached
)

var eventNames = [...]string{
	EventOverflow: "overflow", EventMACLearned: "mac-learned", EventMACMoved: "mac-moved", EventMACAged: "mac-aged",
	EventMACEvicted: "mac-evicted", EventPortUp: "port-up", EventPortDown: "port-down",
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
	Dest   Dest
	Old    Dest
	Err    error
}
