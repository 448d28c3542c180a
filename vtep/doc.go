// Package vtep is the tunnel end point: a port of the switch made of one underlay for
// each address family and an encapsulation, VXLAN, VXLAN-GPE or IP-in-IP.
//
//	              +--------------------- VTEP ---------------------+
//	switch  <---  | reader: peer, header, VNI  <--- underlay.Read   |  <--- UDP, or IP
//	switch  --->  | writer: next hop or flood list ---> Sender.Send |  ---> UDP, or IP
//	              +------------------------------------------------+
//
// A frame to one peer is a Datagram with one endpoint. A frame with peer 0 is for
// the flood list of its VNI: one Datagram with many endpoints (head-end
// replication), so that a thousand peers cost one Send and no copy.
//
// A flood list may have multicast groups, in place of peers or beside them: the network makes
// the copies then. The VTEP is in the groups of its open VNIs; the senders of what comes to
// them are peers, and are answered as such.
//
// # Peers
//
// The peer half of a frame.Dest is an index into the VTEP's next-hop table. A peer
// is known by the address its packets come from, never by the port, and is sent to
// on the VTEP's destination port, or one of its own: see [VTEP.SetPeers]. Listed peers are
// configured: by AddPeer, or by being in a flood list. Others are learned from what they send, up to a bound, and
// forgotten once no FDB entry names them. At the bound a newcomer takes the place of a learned
// peer that has sent little, or of one whose prefix (24 bits of IPv4, 64 of IPv6) has more than a
// quarter of all; where there is none it gets no number, and teaches nothing. IPv6 link-local peers are known with the interface
// they are on; those of a VTEP with such an address itself are all on its interface.
//
// # Encapsulations
//
//   - VXLAN carries Ethernet frames of many networks (RFC 7348).
//   - VXLAN-GPE carries Ethernet frames, and IP packets without Ethernet, of many networks:
//     the next protocol of each packet says which (draft-ietf-nvo3-vxlan-gpe-13).
//   - IP-in-IP carries IP packets of one network, tag 0, IPv4 or IPv6 over either (RFC 2003,
//     RFC 4213, RFC 2473). It takes packets of listed peers only, and tells senders of peers
//     that are not reached: see Failed.
//
// IP packets go to one peer, which a gateway (package l3) has chosen; without one they are
// dropped, and so are kinds of packets that the encapsulation does not carry.
//
// # Outer headers
//
// A [Header] says what the outer IP header takes from the packet inside: TTL, TOS, DF
// and ECN, for the VTEP and by [VTEP.SetPeers] for one peer. On receipt the two ECN
// fields are combined before anything is learned from the frame (RFC 6040): a congestion
// mark reaches the host, and where the host could not understand it the frame is dropped.
//
// # Path MTU
//
// What the underlay hears of packets that were too long for their way makes
// [VTEP.MTU] of that peer smaller, for [PathMTUAge]. The switch asks it for each frame,
// and package l3 tells the frame's sender. Of a flooded frame each copy is judged for itself: see
// [VTEP.FloodMTU].
//
// # Superframes
//
// A frame with [frame.GSO] is cut here: into headers in scratch memory, each behind a
// VXLAN header of its own, and a payload that stays where it is. The segments leave as
// one run (frame.Datagram.Seg), and so do ordinary frames of one flow and size that
// follow each other.
//
// What comes in may be one too, or an ordinary frame with an unfinished checksum, and nothing says
// so: a kernel's tunnel device leaves both to a network card, which a veth pair has none of. It is
// told by its TCP or UDP checksum, which is the sum of the pseudo header. Longer than [VTEP.MTU]
// of the peer, it is a superframe with segments as long as that allows; of UDP, as long as the
// underlay says, if it says anything. In a tunnel inside the tunnel the kernel leaves nothing so.
//
// A VTEP without a switch is a tunnel one can read and write: call Open for each
// VNI, then use Readers and Writer.
//
// Open, Shut, SetFlood, SetLocal and the other methods that change tables are safe for
// concurrent use and take effect at the next batch, under traffic. Readers and
// writers are each for one goroutine, as package frame says.
package vtep
