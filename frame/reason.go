package frame

// Reason says why a frame was dropped. Every reason has a name and a counter; 0 means
// that the frame was not dropped.
type Reason uint8

//go:generate go run ../internal/drops ..

// Reasons. [Reason.String] returns the names in statistics. docs/drops.md has these comments, and what to do about each.
const (
	NotDropped        Reason = iota
	Short                    // shorter than its headers
	NoVNIFlag                // VXLAN without the I flag (RFC 7348, section 5)
	ReservedBits             // reserved bit of a tunnel header that the configuration refuses
	UnknownVNI               // VNI without an attachment
	UnknownVLAN              // VLAN tag, or untagged frame, without an attachment on the port
	InnerVLAN                // unexpected VLAN tag, such as one inside a tunnel (RFC 7348, section 6.1)
	UnknownPeer              // outer source that is not a listed peer
	OwnAddress               // outer source that is an address of the VTEP
	PeerLimit                // not a drop: no room for another learned peer, forwarded without learning
	BadSourceMAC             // source MAC group, broadcast or zero
	OwnMAC                   // source MAC that is a MAC of the switch
	MACPinned                // source MAC with a static, sticky or frozen entry elsewhere
	Locked                   // source MAC without an entry at its locked port
	Filtered                 // source or destination MAC with a filter entry
	BadKind                  // an IP packet in a segment without a gateway, or a frame on an IP port
	SplitHorizon             // egress in the split-horizon group of the ingress
	Isolated                 // from an isolated port to another one through a gateway
	Reflect                  // destination is where the frame came from
	ReservedMAC              // to 01:80:c2:00:00:00-0f, which bridges do not forward (IEEE 802.1Q)
	BroadcastOff             // broadcast that the VSI or attachment does not flood
	MulticastOff             // the same for multicast
	UnknownUnicastOff        // the same for unknown unicast
	Storm                    // flooded, above the rate of its class
	Flapping                 // on a port that is blocked because a MAC moved to and fro between it and another
	Blocked                  // on an attachment to an Ethernet segment for which another VTEP forwards (RFC 7432, section 8.5)
	NotForwarder             // flooded from a tunnel, to nobody but Ethernet segments that other VTEPs flood it to (RFC 8365, section 8.3.1)
	NoEgress                 // flooded, without another member
	NoPeer                   // sent into a tunnel without a peer for it
	TooBig                   // longer than the egress takes
	ECN                      // congestion mark for a host without ECN (RFC 6040)
	TTL                      // hop limit exceeded
	NoRoute                  // no route to the destination
	Unresolved               // next hop did not answer
	Martian                  // address that cannot be routed
	BadChecksum              // wrong checksum
	BadHeader                // header field that contradicts another
	Fragment                 // fragment of an outer packet; or of a packet for a gateway, without room for it or overlapping others
	GPEVersion               // VXLAN-GPE version other than 0
	GPEProtocol              // VXLAN-GPE next protocol that is not handled
	GPEOAM                   // VXLAN-GPE OAM packet without a handler
	Policy                   // by a policy or a guard, or a message of multicast routers on a port for hosts
	PortFull                 // the egress has no room
	PortDown                 // the egress is closed, or its attachment shut
	Unreachable              // the underlay cannot reach the peer
	SendFailed               // the system refused the packet for another reason
	EtherType                // neither IP nor ARP, on an access port
	NotGateway               // from a port that reaches others, or those behind tunnels, through the gateway alone
	NoListener               // to a multicast group that nobody listens to, as snooping knows
	ServiceIndex             // NSH service index 0: no service of the path is left (RFC 8300)
	NumReasons               // number of reasons, for arrays
)

var reasonNames = [NumReasons]string{
	NotDropped: "none", Short: "short", NoVNIFlag: "no-vni-flag", ReservedBits: "reserved-bits",
	UnknownVNI: "unknown-vni", UnknownVLAN: "unknown-vlan", InnerVLAN: "inner-vlan",
	UnknownPeer: "unknown-peer", OwnAddress: "own-address", PeerLimit: "peer-limit",
	BadSourceMAC: "bad-source-mac", OwnMAC: "own-mac", MACPinned: "mac-pinned", Locked: "locked", Filtered: "filtered",
	BadKind: "kind", SplitHorizon: "split-horizon", Isolated: "isolated", Reflect: "reflect", ReservedMAC: "reserved-mac",
	BroadcastOff: "broadcast-off", MulticastOff: "multicast-off", UnknownUnicastOff: "unknown-unicast-off",
	Storm: "storm", Flapping: "flapping", Blocked: "blocked", NotForwarder: "not-forwarder", NoEgress: "no-egress", NoPeer: "no-peer", TooBig: "too-big", ECN: "ecn", TTL: "ttl",
	NoRoute: "no-route", Unresolved: "unresolved", Martian: "martian", BadChecksum: "bad-checksum",
	BadHeader: "bad-header", Fragment: "fragment", GPEVersion: "gpe-version", GPEProtocol: "gpe-protocol", GPEOAM: "gpe-oam",
	Policy: "policy", PortFull: "port-full", PortDown: "port-down", Unreachable: "unreachable",
	SendFailed: "send-failed", EtherType: "ether-type", NotGateway: "not-gateway", NoListener: "no-listener",
	ServiceIndex: "service-index",
}

// String returns the name of the reason in statistics.
func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return "invalid"
}
