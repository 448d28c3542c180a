// Package afpacket is an underlay of packet sockets (AF_PACKET, packet(7)). It sends and receives UDP
// datagrams, or IP-in-IP, on one interface, bypassing the network stack of the host: it writes the Ethernet, IP and
// UDP headers itself, and finds next hops by ARP and neighbour discovery. It needs Linux. Its methods are those of
// package underlay.
//
// Use it for an address that the host does not have, for flows that equal-cost paths are to share, and for
// latency. Beside UDP sockets, 1,024 flows use 972 source ports instead of 16, and the busiest of 16 paths gets
// 7.5% of the flows instead of 19%; TCP makes 1.16 times the transactions (the median takes 132 us instead of
// 150). TCP at full speed is the same (0.98 with one flow, 0.99 with four), small UDP packets are 5% slower, and
// TCP on a card without offloads 9% (bench/results/underlays.txt).
//
//	         | frame to our MAC, with the tag of Config.VLAN; by default without one, or with a priority only
//	         v
//	+-----------------+   ARP, ND, ICMP    +-------------------+
//	| filter (BPF)    |------------------->| next hops, errors |
//	+-----------------+                    +-------------------+
//	         v                                       | MAC
//	 IP, UDP checked             Ethernet, IP, UDP   v
//	         v                   ------------------------------>
//	      Reader                           Sender
//
// The underlay should have an address that the host does not have; then it answers ARP and neighbour
// discovery for it. See [Listen] and [ListenIP]. Firewalls, routes and connection tracking of the host do not see its
// datagrams. It does not fragment or reassemble: a datagram longer than the interface's MTU is lost as
// [frame.TooBig], with and without DF, and a fragment is received as a frame with Drop [frame.Fragment].
// Other datagrams to the port that are refused have Drop [frame.Short], [frame.BadHeader],
// [frame.BadChecksum] or [frame.Martian]. IPv4 options are ignored. Packets with IPv6 extension headers are
// refused.
//
// # An address shared with a gateway
//
// Peers that send to one address with and without the tunnel, as BGP and flannel have them, need an underlay and the
// interface of a gateway (package l3) with one address and one MAC on one interface. The gateway's segment has a port.Packet
// there. Filters in the kernel divide the frames, so that nothing is done twice and no packet is looked at more than before:
//
//	             +-- UDP to the underlay's port, or IP-in-IP --> Underlay (Config.Shared)
//	interface ---+
//	             +-- ARP, ICMP, packets for others -----------> port.Packet (Leave) --> segment, gateway
//
// Both see the answers to ARP and neighbour discovery, and the underlay sees ICMP errors. Package node sets this up by itself.
//
// # Sending
//
// Flow selects one of all ports of the range, and over IPv6 the flow label (RFC 6438).
//
// While the MAC of a next hop is unknown, three packets wait for it. Packets that wait have 1 MiB in all; the
// oldest are dropped first. Other packets are lost as [frame.Unresolved]. There are up to 65,536 next hops;
// those without a MAC are replaced first. After three requests without an answer a next hop is unreachable, and
// is asked again when a packet is sent to it two seconds later. One in use is probed every 30 to 60 s by
// unicast.
//
// Datagrams that the kernel or the card left in one piece (UDP GRO, or a sender on the same host) are split as
// with a UDP socket. A card joins forwarded datagrams only if told to ("ethtool -K eth0
// rx-udp-gro-forwarding on"). If the packet inside a datagram is a superframe or has an unfinished checksum, as
// from a vxlan device of the same machine, its [frame.GSO] says so, without DataStart; the VTEP checks it. What
// a virtio header cannot describe is refused as BadHeader.
//
// While the interface is down, datagrams are lost as [frame.Unreachable]. After the interface is deleted or
// moved to another namespace, every Read returns an error with its name.
//
// # Files
//
//	config, open, underlay   settings, sockets, methods      hops, messages   next hops, ARP and ND
//	local, groups            own addresses and groups        control, icmp    messages of others
//	reader, parse            receiving                       sender, headers, transmit   sending
package afpacket
