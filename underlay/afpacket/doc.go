// Package afpacket is an underlay of packet sockets (AF_PACKET, packet(7)): UDP datagrams with
// Ethernet, IP and UDP headers of our own, on one interface, past the network stack of this host. It
// needs Linux.
//
// What it receives and sends, and its methods, are those of package underlay. What the stack does for
// a UDP socket it does itself.
//
//	         | frame to our MAC, no VLAN tag (a priority is none)
//	         v
//	+-----------------+   ARP, ND, ICMP    +-------------------+
//	| filter (BPF)    |------------------->| next hops, errors |
//	+-----------------+                    +-------------------+
//	         v                                       | MAC
//	 IP, UDP checked             Ethernet, IP, UDP   v
//	         v                   ------------------------------>
//	      Reader                           Sender
//
// It has an address of its own, best one that the host does not have: then it answers ARP and
// neighbour discovery for it; see [Listen]. No firewall, no route and no connection
// tracking of this host has a part in its datagrams. It neither sends nor puts together
// fragments: without DF too, what is longer than the interface's MTU is lost as
// [frame.TooBig], and a fragment arrives as a frame whose Drop is [frame.Fragment]. Other
// datagrams to our port that are refused have as Drop [frame.Short], [frame.BadHeader],
// [frame.BadChecksum] or [frame.Martian]. IPv4 options are passed over; IPv6 extension headers
// are refused, a hop-by-hop header included.
//
// Flow chooses among all ports of the range, and over IPv6 makes the flow label (RFC 6438).
// A packet to a next hop whose MAC is not known waits for the answer, three for each hop and
// 1 MiB in all, where those that have waited longest give way; the others are lost as
// [frame.Unresolved]. There are 65,536 next hops, of which those without a MAC give way. Of three
// questions without an answer the hop is unreachable, and asked again when it is sent to two
// seconds later; one in use is asked every 30 to 60 s, itself first.
//
// Datagrams that the kernel or the card left in one piece (UDP GRO, or a sender on this host)
// are split as those of a UDP socket are. A card joins what is forwarded only when told to
// ("ethtool -K eth0 rx-udp-gro-forwarding on"). A packet inside a datagram whose checksum is
// unfinished, or that is a superframe, as a vxlan device of this machine leaves them to the
// card, has that said in its [frame.GSO], its DataStart left out: who unwraps it checks it.
// What has no name in a virtio header arrives as BadHeader.
//
// Interface down: what is sent is lost as [frame.Unreachable]. Interface deleted, or moved to
// another namespace: every Read returns an error that names it.
//
// # Files
//
//	config, open, underlay   settings, sockets, methods      hops, messages   next hops, ARP and ND
//	place, local, groups     addresses and groups of ours    control, icmp    what others say
//	reader, filter, parse    the way in                      sender, headers, transmit   the way out
package afpacket
