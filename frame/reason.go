package frame

// Reason says why a frame was dropped. Every reason has a name and a counter of
// its own; 0 means it was not dropped.
type Reason uint8

// Reasons. The names users see are those of [Reason.String].
const (
	NotDropped        Reason = iota
	Short                    // shorter than its headers
	NoVNIFlag                // VXLAN without the I flag (RFC 7348, section 5)
	ReservedBits             // VXLAN with a reserved bit that the configuration rejects
	UnknownVNI               // VNI without an attachment here
	UnknownVLAN              // VLAN tag, or its absence, without an attachment on this port
	InnerVLAN                // VLAN tag inside a tunnel (RFC 7348, section 6.1), or one that nobody asked for
	UnknownPeer              // outer source that is not a listed peer
	OwnAddress               // outer source that is one of our own addresses
	PeerLimit                // not a drop: no room for another learned peer, forwarded without learning
	BadSourceMAC             // source MAC group, broadcast or zero
	OwnMAC                   // source MAC that is one of our own
	MACPinned                // source MAC that a static, sticky or frozen entry holds elsewhere
	Locked                   // source MAC without an entry at the locked port it came in on
	Filtered                 // source or destination MAC with a filter entry
	BadKind                  // an IP packet in a segment without a gateway, or a frame on an IP port
	SplitHorizon             // egress in the split-horizon group of the ingress
	Isolated                 // from an isolated port to another one, through a gateway
	Reflect                  // destination is where the frame came from
	ReservedMAC              // to 01:80:c2:00:00:00-0f, which bridges do not forward (IEEE 802.1Q)
	BroadcastOff             // broadcast that the VSI or attachment does not flood
	MulticastOff             // multicast, likewise
	UnknownUnicastOff        // unknown unicast, likewise
	Storm                    // flooded beyond the rate of its class
	Flapping                 // on a port that is taken out because a MAC moved to and fro between it and another
	NoEgress                 // flooded, and nobody else is there
	NoPeer                   // sent into a tunnel that leads to nobody
	TooBig                   // longer than the egress takes
	ECN                      // congestion mark that may not be hidden (RFC 6040)
	TTL                      // hop limit exceeded
	NoRoute                  // no route to the destination
	Unresolved               // next hop did not answer
	Martian                  // address that cannot be routed
	BadChecksum              // header checksum wrong
	BadHeader                // header field that contradicts another
	Fragment                 // fragment of an outer packet, which nobody puts together, or one for a gateway that has no room for it, or overlaps others
	GPEVersion               // VXLAN-GPE version other than 0
	GPEProtocol              // VXLAN-GPE next protocol that is not handled
	GPEOAM                   // VXLAN-GPE OAM packet without a handler
	Policy                   // a policy stage said no
	PortFull                 // the egress has no room
	PortDown                 // the egress is gone, or its attachment shut
	Unreachable              // the underlay cannot reach the peer
	SendFailed               // the system refused the packet for another cause
	EtherType                // other than IP and ARP, on an access port
	NotGateway               // from an access port to another than the gateway
	NumReasons               // how many there are, for arrays indexed by Reason
)

var reasonNames = [NumReasons]string{
	NotDropped: "none", Short: "short", NoVNIFlag: "no-vni-flag", ReservedBits: "reserved-bits",
	UnknownVNI: "unknown-vni", UnknownVLAN: "unknown-vlan", InnerVLAN: "inner-vlan",
	UnknownPeer: "unknown-peer", OwnAddress: "own-address", PeerLimit: "peer-limit",
	BadSourceMAC: "bad-source-mac", OwnMAC: "own-mac", MACPinned: "mac-pinned", Locked: "locked", Filtered: "filtered",
	BadKind: "kind", SplitHorizon: "split-horizon", Isolated: "isolated", Reflect: "reflect", ReservedMAC: "reserved-mac",
	BroadcastOff: "broadcast-off", MulticastOff: "multicast-off", UnknownUnicastOff: "unknown-unicast-off",
	Storm: "storm", Flapping: "flapping", NoEgress: "no-egress", NoPeer: "no-peer", TooBig: "too-big", ECN: "ecn", TTL: "ttl",
	NoRoute: "no-route", Unresolved: "unresolved", Martian: "martian", BadChecksum: "bad-checksum",
	BadHeader: "bad-header", Fragment: "fragment", GPEVersion: "gpe-version", GPEProtocol: "gpe-protocol", GPEOAM: "gpe-oam",
	Policy: "policy", PortFull: "port-full", PortDown: "port-down", Unreachable: "unreachable",
	SendFailed: "send-failed", EtherType: "ether-type", NotGateway: "not-gateway",
}

// String returns the reason's name, as it appears in statistics.
func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return "invalid"
}
