package datapath

import "iter"

// A Cause is why a frame was not carried.
type Cause uint8

// Causes. The order is that of enum cause in bpf/maps.h.
const (
	NoFlow     Cause = iota // no entry for these MACs, nor for them and the tuple
	Stale                   // the entry is dead, or something has changed since it was validated
	Kind                    // neither IPv4 nor IPv6, or with a VLAN tag in the frame, or with one of another type than 802.1Q, of VLAN 0 or with DEI
	Group                   // to a group of hosts
	Short                   // a header is cut off
	Options                 // IP options, or another version than the EtherType says
	Protocol                // not TCP, UDP or ICMP; or an IPv6 extension header but that of a fragment
	Neighbour               // neighbour discovery: ICMPv6 types 133 to 137
	DHCP                    // ports 67, 68, 546 or 547
	TooBig                  // longer than the flow allows
	Length                  // a superframe that is too long for a UDP datagram
	OuterIP                 // an outer header with options, of a fragment, with other lengths or a wrong checksum
	Tunnel                  // no plain header of VXLAN, or of VXLAN-GPE for Ethernet, or not the one that the flow expects; most UDP packets have neither
	Elsewhere               // to another host, address or port than the flow expects, or at another device
	Checksum                // a UDP checksum that the flow does not accept
	Merged                  // several tunnel packets in one, by generic receive offload, or that within the last 2 s
	Segments                // a UDP superframe that this kernel would not decapsulate right
	Congestion              // an ECN combination that user space counts or drops
	Namespace               // at a device that was moved to another network namespace
	Room                    // the kernel could not change the packet's size
	Header                  // routed: an IP header with a wrong checksum, or of a packet that is longer than the frame
	Hops                    // routed: the TTL or hop limit ends here
	Lost                    // no miss: the frame was dropped, since the kernel could not make the last of several changes to it
	NumCauses
)

var causes = [NumCauses]string{
	NoFlow: "no-flow", Stale: "stale", Kind: "kind", Group: "group", Short: "short", Options: "options", Protocol: "protocol",
	Neighbour: "neighbour", DHCP: "dhcp", TooBig: "too-big", Length: "length", OuterIP: "outer", Tunnel: "tunnel",
	Elsewhere: "elsewhere", Checksum: "checksum", Merged: "merged", Segments: "segments", Congestion: "congestion", Namespace: "namespace", Room: "room",
	Header: "header", Hops: "ttl", Lost: "lost",
}

// String returns the name of the counter.
func (c Cause) String() string {
	if c < NumCauses {
		return causes[c]
	}
	return "unknown"
}

// Misses is a number of frames for each cause.
type Misses [NumCauses]uint64

// All iterates over the causes that are not zero, in the order of the constants.
func (m *Misses) All() iter.Seq2[Cause, uint64] {
	return func(yield func(Cause, uint64) bool) {
		for c, n := range m {
			if n != 0 && !yield(Cause(c), n) {
				return
			}
		}
	}
}
