// Package underlay is what a VTEP stands on: the part of a tunnel end point that
// knows an address family, sockets and outer headers, and nothing of VXLAN.
//
//	          VTEP                          VTEP
//	  Sender |    ^ Reader          Sender |    ^ Reader
//	Datagram v    | Batch         Datagram v    | Batch (Frames + Outer)
//	+-----------------------+     +-----------------------+
//	| UDP                   |     | IP                    |
//	| tx: 16 ports          |     | tx: protocols 4, 41   |
//	| rx: n queues          |     | rx: n queues of each  |
//	+-----------------------+     +-----------------------+
//	   sendmmsg   recvmmsg           sendmmsg   recvmmsg
//
// [UDP] is the one for real networks, and [IP] the one for tunnels without UDP: raw sockets, for
// IP in IP. Both need Linux. Package afpacket does what UDP does past the network stack of this host,
// and package memory has a network inside the process, for tests. All have the same methods:
//
//	Readers() []frame.Reader        one for each receive queue, one goroutine each; of a UDP one more, for groups
//	Sender(w int) frame.Sender      worker w's way out
//	Pause(), Resume(), Close()      of the readers; Close of everything
//	LocalAddr(), Is4(), MTU(), Stats()
//	PathMTU(f)                      what the way to an endpoint turned out to take
//	Join(group), Leave(group)       multicast groups to receive from (IP: errors.ErrUnsupported)
//	Sockets(TxConfig)               more transmit sockets, with settings of their own (not IP)
//	Unreachable(f)                  what the network could not deliver (UDP and afpacket: nothing)
//	Superframes(f)                  asks what is longer than a datagram, or seems to be several (UDP only)
//
// # Receiving
//
// A frame that comes out of a Reader is the payload of one UDP datagram, in memory
// of the batch, and the entry of [frame.Batch.Outer] beside it says whom it came
// from, to which of our addresses, and with which TOS and TTL. Nothing is kept of
// it after the next Read.
//
// Datagrams of one flow may come as a run, in one message (UDP_GRO): up to 64 of them over
// a network card, 128 from a sender on the same machine. They are split by reference. The
// first has the usual headroom; in front of every other lies its neighbour, so that it has
// none: the bytes a VTEP pulls off it, and only those, can be pushed again.
//
// A message may also be one datagram of up to 64 KiB, longer than any MTU: the superframe that a
// vxlan device of this machine's kernel leaves to a network card, with the inner TCP or UDP checksum
// that of the pseudo header only. Nothing says so; of one of UDP, UDP_GRO says how long the
// segments inside are, which makes it look like a run (Linux 6.18). A UDP knows nothing of what it
// carries, and asks: see [UDP.Superframes].
//
// A frame from an [IP] is the inner packet, as [frame.IPv4] or [frame.IPv6] by the outer
// protocol: whether the packet itself agrees is the VTEP's to see. It may be up to 64 KiB
// long, longer than any MTU: what was in fragments, and segments of one TCP flow that the
// kernel joined on the way here (GRO). The TCP checksum of the latter is that of the pseudo
// header only, and nothing says so (Linux 6.18): a VTEP finishes it. Each queue has two Readers,
// one for each protocol.
//
// What is sent to a multicast group that was joined comes out with the group as Outer.Dst, once,
// whatever the number of queues: of a UDP out of one Reader for all groups, each of which has a
// socket of its own. Nobody hears a group on any other interface than that of the groups,
// [UDPConfig].MulticastDevice. A UDP also sends to groups through it, once one
// has been joined. They do not come back to the sender's host.
//
// # Sending
//
// A Sender borrows what it is given and is done with it when Send returns. One
// [frame.Datagram] may go to many endpoints (head-end replication): its bytes are
// gathered by the kernel from where they lie, once for each copy. The outer source
// port carries Flow (RFC 7348, section 5): there are 16 transmit sockets, each with
// a port of its own out of [UDPConfig].SrcPorts, and all packets of one flow leave
// from one port, in order. A Sender never waits: what the kernel has no room for is
// dropped with [frame.PortFull]. An endpoint that cannot be reached costs its own
// copy only; the Datagram says how many copies were lost, and why.
//
// A Datagram with Seg > 0 is a run: datagrams of one size, the last may be shorter,
// whose pieces of memory lie one after the other. It costs one message for up to 64 of
// them (UDP_SEGMENT); the kernel or the network card cuts it. A run that the kernel
// refuses leaves as single datagrams. Such messages always have a UDP checksum, so with
// [ChecksumAuto] over IPv4 they use sockets of their own, on the same source ports: a
// flow keeps its port, and its order within one Send.
//
// A Datagram's Set chooses among sets of transmit sockets, each with a source port range
// and a checksum mode of its own: 0 is the underlay's own, others are had from Sockets.
//
// What the network reports about datagrams sent earlier (ICMP errors) is counted in Stats,
// and never costs another datagram anything. That one was too long for its way is told to
// the PathMTU func, with the MTU, the endpoint and the start of the payload: the sockets
// themselves ignore path MTUs (RFC 1191), which are the VTEP's to know. It is told as soon
// as the error comes, whether or not anything is sent.
//
// An [IP] sends each Datagram as one packet and each of a run as one of its own, by the
// protocol of the version in the first byte. Endpoints have no port, and Flow means nothing.
// Over IPv4 a packet without DF may be cut here or on its way, and has an identification.
// Over IPv6 none is ever cut, DF or not: where an inner packet of 1280 bytes is to pass, the
// way has to take 1320 (RFC 2473, section 7.1, would cut it at the entry). What the network
// says of a packet that did not arrive at all is told to the Unreachable func. A host that has
// an IP never answers for one of its two protocols that nobody wants it, not even while it has
// no room for what comes.
//
// Nothing has to be done when an interface goes down and comes back, when the local address
// is removed and put back, or when a peer is away for a while: what cannot be sent meanwhile
// is lost as [frame.Unreachable], or as [frame.PortFull] where a link is up and has no carrier
// (Linux 6.18 has no queue for it then). An underlay bound to a device by name
// (Device in its configuration) also follows it when it is made anew, and so do multicast
// groups; endpoints at link-local addresses do not: they have the interface's old index. An underlay
// keeps its local address; a VTEP can change its underlay under traffic (vtep.VTEP.SetUnderlay).
//
// Sockets that only some datagrams need (without DF, for runs) are opened when the first
// of these is sent, in the network namespace ListenUDP or ListenIP was called in.
//
// # Files
//
//	udp*         UDP: ports, sets of transmit sockets     base, sock*, device   what UDP and IP share
//	ip*          raw IP: queues, filters
//	multicast*   groups of UDP                            tx, runs, transmit           the way out
//	rx           the way in                               errqueue                     what the network reports
package underlay
