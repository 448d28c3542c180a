// Package vtep implements the VXLAN tunnel end point (VTEP). A VTEP is a port of the switch. It
// consists of an underlay for each address family and an encapsulation: VXLAN, VXLAN-GPE or IP-in-IP.
//
//	              +--------------------- VTEP ---------------------+
//	switch  <---  | reader: peer, header, VNI  <--- underlay.Read   |  <--- UDP, or IP
//	switch  --->  | writer: next hop or flood list ---> Sender.Send |  ---> UDP, or IP
//	              +------------------------------------------------+
//
// A frame to one peer becomes a Datagram with one endpoint. A frame to peer 0 goes to the flood list
// of its VNI, as one Datagram with many endpoints (head-end replication): a thousand peers cost one
// Send and no copy.
//
// A flood list may contain multicast groups, beside peers or instead of them; then the network makes
// the copies. The VTEP joins the groups of its open VNIs. The senders of what it receives from a group
// are peers like any other.
//
// # Peers
//
// The peer half of a frame.Dest is an index into the VTEP's next-hop table. A peer is identified by the
// source address of its packets, not by the port. The VTEP sends to it on its own destination port, or
// on a port that [VTEP.SetPeers] gives.
//
// Listed peers are configured, by AddPeer or as members of a flood list. Other peers are learned from the
// packets they send, up to a limit, and forgotten when no FDB entry refers to them. At the limit, a new
// peer replaces a learned peer that has sent little, or one whose prefix (24 bits of IPv4, 64 of IPv6)
// has more than a quarter of all. If there is none to replace, the new peer gets no number, and nothing
// is learned from it. IPv6 link-local peers are identified together with their interface; if the VTEP's
// own address is link-local, that is its interface.
//
// # Encapsulations
//
//   - VXLAN carries Ethernet frames of many networks (RFC 7348).
//   - VXLAN-GPE carries Ethernet frames, and IP packets without Ethernet, of many networks: each
//     packet has a next protocol (draft-ietf-nvo3-vxlan-gpe-13).
//     OAM packets and packets with NSH go to handlers, if there are any: see [VTEP.SetOAM] and
//     [VTEP.SetServices].
//   - IP-in-IP carries IP packets of one network, with tag 0, IPv4 or IPv6 over either (RFC 2003,
//     RFC 4213, RFC 2473). It accepts packets of listed peers only. If a peer cannot be reached, it
//     tells the senders: see [VTEP.Failed].
//   - A program may have one of its own, in UDP: Config.Own.
//
// An IP packet goes to the one peer that a gateway (package l3) has chosen. Without a peer it is dropped,
// as are kinds of packets that the encapsulation does not carry.
//
// # Outer headers
//
// A [Header] says which fields of the outer IP header are copied from the inner packet: TTL, TOS, DF and
// ECN. It applies to the whole VTEP, or with [VTEP.SetPeers] to one peer. On receipt the VTEP combines
// the two ECN fields before it learns anything from the frame (RFC 6040): a congestion mark is passed to
// the host, and a frame of a host that would not understand the mark is dropped.
//
// The outer DSCP of a packet (RFC 2983) is fixed, that of the inner packet, or made of the frame's priority (802.1p). On receipt
// it has no effect (pipe model), or the inner packet gets it (uniform model), or the frame's priority is made of it: see [DSCP].
// [VTEP.SetMarking] sets both for one VNI.
//
// # Path MTU
//
// When the underlay reports that packets to a peer were too big, [VTEP.MTU] of that peer becomes smaller
// for [PathMTUAge]. The switch checks the MTU for each frame, and tells the senders of frames that are
// too big. Each copy of a flooded frame is checked by itself: see [VTEP.FloodMTU]. The MTU of an underlay's own interface is
// read by New, and again by [VTEP.FollowMTU].
//
// # Superframes
//
// The VTEP cuts frames with [frame.GSO]: it builds headers in scratch memory, each behind its own VXLAN
// header, and leaves the payload where it is. The segments are sent as one run (frame.Datagram.Seg), as
// are ordinary frames of one flow and size that follow each other.
//
// Received frames may be superframes, or have unfinished checksums, without saying so: the kernel's
// tunnel devices leave both to the network card, and a veth pair has none. The VTEP recognizes them by
// their TCP or UDP checksum, which is that of the pseudo header alone. If such a frame is longer than
// [VTEP.MTU] of the peer, it is a superframe; its TCP segments are as long as that MTU allows, and its
// UDP segments as long as the underlay says, if it does. The kernel never leaves frames of a tunnel
// inside the tunnel unfinished.
//
// # Use without a switch
//
// A VTEP can be used alone: call Open of its Control for each VNI, then read from Readers and write to a Writer.
//
// All methods that change tables are safe for concurrent use, and take effect at the next batch.
// Readers and writers are for one goroutine each, as package frame says.
package vtep
