package frame

import (
	"net/netip"
	"time"
)

// EventKind says what an [Event] reports.
type EventKind uint8

// Kinds of events, with the fields each one sets.
const (
	EventOverflow     EventKind = iota // events were lost: read all tables again
	EventMACLearned                    // VNI, MAC, Dest
	EventMACMoved                      // VNI, MAC, Dest, Old; Pinned if it was a control entry
	EventMACFrozen                     // VNI, MAC, Dest, Old: moved too often, the last time to Old; stays at Dest, where it was first
	EventMACFlapping                   // VNI, MAC, Dest, Old: moves many times a second between Dest and Old, where it was first, as in a loop
	EventMACAged                       // VNI, MAC, Dest: not seen for the ageing time
	EventMACEvicted                    // VNI, MAC, Dest: removed to make room
	EventMACDeleted                    // VNI, MAC, Dest: deleted by hand, or replaced by a static or control entry
	EventMACRefused                    // VNI, MAC, Dest, Old: a frame from Dest has the MAC of an entry at Old that never moves; once a second for a MAC
	EventFlushed                       // VNI; Dest, 0 = all: MACs learned there and snooped neighbours were removed together: read those of the segment again
	EventSegmentUp                     // VNI
	EventSegmentDown                   // VNI: after the last event of the segment
	EventAttached                      // VNI, Dest: a port has become a member of a segment
	EventDetached                      // VNI, Dest: after the last event of the port in the segment, with all its MACs and snooped neighbours
	EventPortUp                        // Dest: before it is attached for the first time
	EventPortDown                      // Dest; Err if it failed, nil if it was detached; after the last EventDetached
	EventPeerUp                        // Dest: a tunnel has a new peer, learned or listed, or a new next hop or group of peers
	EventPeerDown                      // Dest: a peer of a tunnel is gone, with all its MACs and snooped neighbours
	EventPeerDead                      // Dest: a probe has found a peer, the peer of a next hop, or all of a group, dead; see vtep.VTEP.SetDown
	EventPeerAlive                     // Dest: it is alive again
	EventLocalChanged                  // Dest: a tunnel has another local address; vtep.VTEP.Local returns it
	EventGatewayUp                     // VNI, Name of the VRF: the segment has a gateway; l3.Interface.Config has its addresses and MACs
	EventGatewayDown                   // VNI, Name of the VRF: that gateway is gone, or is replaced by the next
	EventPortHeld                      // VNI, MAC, Dest, Old: the port is blocked in the segment, because MAC moved to and fro between it and Old
	EventPortReleased                  // VNI, Dest: the port is no longer blocked
	EventMACMiss                       // VNI, MAC, Dest: a frame from Dest is for a MAC without an entry

	EventNeighbourLearned   // VNI, IP, MAC, Dest
	EventNeighbourMoved     // VNI, IP, MAC, OldMAC, Dest: has another MAC, or is at another Dest; Pinned if it was a control entry
	EventNeighbourAged      // VNI, IP, MAC, Dest: silent for the ageing time, or removed to make room
	EventNeighbourDeleted   // VNI, IP, MAC, Dest: deleted by hand, or replaced by a static or control entry
	EventNeighbourDuplicate // VNI, IP, MAC, OldMAC, Dest: claimed by several MACs (RFC 9161, section 3.7)
	EventNeighbourMiss      // VNI, IP, Dest: Dest asks for an address without an entry, or sends there through the gateway

	EventNextHopDown // VNI; IP, MAC or Dest: a next hop of routes is dead; those with another pass over it
	EventNextHopUp   // VNI; IP, MAC or Dest: it is alive again
)

var eventNames = [...]string{
	EventOverflow: "overflow", EventMACLearned: "mac-learned", EventMACMoved: "mac-moved", EventMACFrozen: "mac-frozen", EventMACFlapping: "mac-flapping", EventMACAged: "mac-aged",
	EventMACEvicted: "mac-evicted", EventMACDeleted: "mac-deleted", EventMACRefused: "mac-refused", EventFlushed: "flushed",
	EventSegmentUp: "segment-up", EventSegmentDown: "segment-down", EventAttached: "attached", EventDetached: "detached",
	EventPortUp: "port-up", EventPortDown: "port-down", EventPeerUp: "peer-up", EventPeerDown: "peer-down",
	EventPeerDead: "peer-dead", EventPeerAlive: "peer-alive", EventLocalChanged: "local-changed", EventGatewayUp: "gateway-up", EventGatewayDown: "gateway-down",
	EventPortHeld: "port-held", EventPortReleased: "port-released",
	EventMACMiss: "mac-miss", EventNeighbourLearned: "neighbour-learned", EventNeighbourMoved: "neighbour-moved",
	EventNeighbourAged: "neighbour-aged", EventNeighbourDeleted: "neighbour-deleted", EventNeighbourDuplicate: "neighbour-duplicate", EventNeighbourMiss: "neighbour-miss",
	EventNextHopDown: "next-hop-down", EventNextHopUp: "next-hop-up",
}

// String returns the kind's name.
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "invalid"
}

// Event is a change, for control planes. The kind says which fields are set. The switch sets Time, Name and OldName when it
// passes an event on: numbers of ports and peers are used again, and a Dest may have another name when the event is read.
type Event struct {
	Kind    EventKind
	Pinned  bool
	VNI     VNI
	MAC     MAC
	OldMAC  MAC
	IP      netip.Addr
	Dest    Dest
	Old     Dest
	Err     error
	Time    time.Time // the events of a switch are in this order
	Name    string    // of Dest: the name of the port, or the address of the peer; or the name of a VRF
	OldName string    // of Old
}
