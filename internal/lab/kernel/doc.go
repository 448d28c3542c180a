// Package kernel holds the Linux kernel against our VTEP, as oracle and as peer. It has
// only tests; they need root.
//
// # Oracle
//
// Two equal networks, in one the kernel's vxlan device and in the other our VTEP, with
// the same addresses, MACs and settings. The same frame goes into both devices, and
// what leaves on the underlay is compared, field by field; the same packet comes to
// both from the peer, and what comes out of the devices is compared, and who counts
// what.
//
//	far host                host k                     far host                host u
//	 Inject --- eth0 | eth0 -- kernel -- vx0      Inject --- eth0 | eth0 -- ours -- tap0
//	                  Capture           Inject, Capture
//
// A difference fails, unless it is in the test's list; one in the list that is none any
// more fails too. Each names its cause, a row of this table, which is also in the
// project's docs/kernel.md (Linux 6.18):
//
//   - CE inside: the kernel sends ECT(0) outside (RFC 3168, section 9.1.1); ours sends
//     CE (RFC 6040, section 4.1). vtep.ECNRFC3168 does as the kernel.
//   - DF by default: the kernel clears it; ours sets it (RFC 7348, section 4.3).
//     vtep.DFUnset, or "df set" there.
//   - DF inherited by ARP: with "df inherit" the kernel clears DF for what is no IP;
//     ours sets it.
//   - UDP checksum by default: over IPv4 the kernel computes it; ours sends zero (RFC
//     7348, section 5). underlay.ChecksumOn, or "noudpcsum" there.
//   - IPv6 flow label: the kernel sends 0; ours follows the host's auto_flowlabels, by
//     default a label for each outer flow (RFC 6438), which afpacket.Listen always sets.
//   - reserved bits: the kernel drops a header that has one set; ours ignores them (RFC
//     7348, section 5). vtep.ReservedStrict does as the kernel.
//   - own source MAC: the kernel drops a frame from the tunnel with its device's MAC as
//     source; to ours the MAC of a TAP is that of any host behind it, which may move.
//   - cut IP headers: the kernel drops an inner frame that says IPv4 or IPv6 and is too
//     short for that header; ours carries it.
//   - VLAN tag inside: the kernel carries tagged frames; ours drops them in both
//     directions on an access port (RFC 7348, section 6.1). vswitch.VLANPass carries them.
//   - 01:80:c2:00:00:00-0f: the kernel's device carries these; ours drops them, as
//     bridges do (IEEE 802.1Q). VSIConfig.ForwardBridgeGroup carries them.
//   - other local addresses: the kernel takes packets to any address of the host, its
//     broadcast address included; ours takes those to the VTEP's own.
//   - own outer source, or none: over IPv6 the kernel takes a packet from the host's own
//     address, or from ::; ours drops it.
//   - sent to itself: the kernel carries a frame to the MAC it is from; ours drops it, as
//     bridges do.
//   - longer than the device: the kernel delivers a frame from the tunnel that is longer
//     than its device's MTU; ours drops it and counts it.
//   - B bit of VXLAN-GPE: to the kernel it is a reserved bit; to ours it marks a copy of a
//     flooded frame (draft-ietf-nvo3-vxlan-gpe-13, section 3.1), and is in no mask.
//   - packets in VXLAN-GPE: the kernel hands to its host what is behind the header,
//     Ethernet, NSH and MPLS too, as it is; ours takes IP packets as long as they say they are,
//     and Ethernet where a port takes it, and drops all else.
//   - reserved bits with group policy: the kernel ("gbp" there) has octets 1 to 3 in use, and
//     ignores the six bits beside D and A; vtep.ReservedStrict, or a mask, drops packets for them.
//   - D of group policy: the kernel learns the source MAC of a frame with it; ours does not
//     (draft-smith-vxlan-group-policy-05, section 2.1).
//
// Masks of reserved bits drop the same ("reserved_bits" there, Linux 6.14).
//
// # Peer
//
// Scenarios with both on one underlay: flooding exactly once, in a mesh and in a star;
// a host that moves between the two; a segment in two fabrics, IPv4 and IPv6, on two ports;
// ageing; two networks with equal addresses; a narrow link on the way; a flood list that
// becomes a multicast group, and back; links, addresses and devices that go away and come back.
//
// # Bridge
//
// A locked port against that of the kernel's bridge. What was learned before the port was
// locked may send on there in the kernel's, not in ours.
//
// # Hosts
//
// Linux hosts that ask for each other by ARP and ND, behind sites of ours and of the
// kernel's: what of that is answered at home, and what goes through a tunnel (neighLab).
//
// # Gateway
//
// Linux hosts of several subnets behind nodes of ours that route, and behind the kernel's:
// what is on the underlay is compared step by step, from a first ping on. The gateway is
// on one node, on all (anycast), or routes into an L3VNI (symmetric IRB); MTU, VRFs and a
// routing loop.
package kernel
