// Package underlay has the underlays of real networks: sockets of UDP and of raw IP. An underlay knows
// addresses, sockets and outer headers. It does not know VXLAN; package vtep does.
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
// [UDP] is for VXLAN and VXLAN-GPE, and [IP] for IP-in-IP. Both need Linux; on macOS, Windows and the BSDs
// ListenUDP opens a [Portable]. Package afpacket carries UDP past the network stack of the host, and package
// memory carries both inside the process, for tests. All have the methods of vtep.Underlay and more:
//
//	Readers() []frame.Reader        one for each receive queue, one goroutine each; UDP has one more, for groups
//	Sender(w int) frame.Sender      transmit side of worker w
//	Pause(), Resume(), Close()      of the Readers; Close closes everything
//	LocalAddr(), Is4(), MTU(), Stats()
//	PathMTU(f)                      f is called when a packet is too big for its path
//	Unreachable(f)                  f is called when a packet did not arrive (IP)
//	Superframes(f)                  f says whether a payload is one superframe (UDP)
//	Join(group), Leave(group)       multicast groups (IP returns errors.ErrUnsupported)
//	Sockets(TxConfig)               more transmit sockets, with other settings (UDP, afpacket)
//
// An underlay keeps its local address. A VTEP can replace its underlay under traffic; see
// vtep.VTEP.SetUnderlay.
//
// # Receiving
//
// A frame of a Reader is the payload of one UDP datagram, in memory of the batch. The entry of
// [frame.Batch.Outer] beside it has its source, its destination, TOS and TTL. Both are valid until the next
// Read.
//
// The kernel may deliver datagrams of one flow as a run, in one message (UDP_GRO): up to 64 from a network
// card, 128 from the same machine. Readers split runs by reference. The first datagram has the usual
// headroom. The others have none until a VTEP pulls bytes off them, and then only those bytes.
//
// A message may also be one datagram of up to 64 KiB, longer than any MTU: a superframe that a vxlan device
// of this machine leaves to a network card, with an inner checksum over the pseudo header only. UDP_GRO reports
// the segment size of one of UDP, so it looks like a run (Linux 6.18). See [UDP.Superframes].
//
// A frame of an [IP] is the inner packet. Its Kind is that of the outer protocol; the VTEP checks the packet
// itself. It may be up to 64 KiB long, reassembled from fragments or joined by GRO. The TCP checksum of a joined
// packet covers the pseudo header only, without a mark (Linux 6.18); the VTEP completes it. Each queue has two
// Readers, one for each protocol.
//
// A packet to a joined multicast group is received once, with the group as Outer.Dst, regardless of the number
// of queues. One Reader of a UDP serves all groups; each group has its own socket. Groups are joined on one
// interface, [UDPConfig].MulticastDevice, and after the first Join a UDP also sends to groups through it.
// The sender's host does not receive its own packets to a group.
//
// # Sending
//
// Send borrows its datagrams until it returns. A [frame.Datagram] may have many endpoints (head-end
// replication): the kernel gathers the bytes for each copy. Flow selects the outer source port (RFC 7348, section
// 5): there are [UDPConfig].SrcPortCount transmit sockets, 16 by default, on ports of SrcPorts. All packets of a flow
// have one source port, and stay in order. Over IPv6 Flow is the flow label too (RFC 6438), unless somebody has an exclusive
// lease of a label in the network namespace, or the kernel is older than Linux 5.3. Send never waits: if the kernel has no
// room, the datagram is dropped as [frame.PortFull]. An unreachable endpoint loses only its own copy. The Datagram counts the
// copies that were lost, and has the reason.
//
// A Datagram with Seg > 0 is a run of datagrams of one size; the last may be shorter. It is one message for up
// to 64 datagrams, which the kernel or the network card cuts (UDP_SEGMENT). If the kernel refuses a run, its
// datagrams are sent one by one. Runs always have UDP checksums, so with [ChecksumAuto] over IPv4 they have
// sockets of their own, on the same source ports: a flow keeps its port, and its order within one Send.
//
// Datagram.Set selects a set of transmit sockets with its own source port range and checksum mode. Set 0 has
// the settings of the underlay; Sockets returns others.
//
// ICMP errors about earlier datagrams are counted in Stats, and never lose another datagram. If a datagram was
// too big, the PathMTU func is called at once, with the MTU, the endpoint and the start of the payload. The
// sockets ignore path MTUs (RFC 1191); the VTEP has them.
//
// An [IP] sends each Datagram as one packet, and each datagram of a run as one, with the protocol of the
// version in its first byte. It ignores ports, and over IPv4 Flow. Over IPv4 a packet without DF may be fragmented, and has an
// identification. Over IPv6 no packet is ever fragmented: to carry inner packets of 1280 bytes the path must
// have an MTU of 1320 (RFC 2473, section 7.1, would fragment at the entry). The kernel of a host with an IP
// never answers its packets with "protocol unreachable".
//
// An underlay survives an interface that goes down and up, and a local address that is removed and comes back.
// Meanwhile datagrams are lost as [frame.Unreachable], or as [frame.PortFull] if the link is up without a
// carrier (Linux 6.18). An underlay that is bound to a Device follows it when the device is made again, as do
// multicast groups. Endpoints with link-local addresses do not: they have the old interface index.
//
// Sockets that few datagrams need (without DF, for runs) are opened for the first of these, in the network
// namespace of ListenUDP or ListenIP.
//
// # Other systems
//
// A [Portable] is made of the net package's sockets, and runs on Linux too. It has no offloads: a run leaves, and
// comes in, as single datagrams, each with a checksum, and outside Linux each costs a system call. Senders share a
// lock for each source port. Of a [UDPConfig], SrcPorts, SrcPortCount, MulticastDevice, Control, DefaultTTL, RecvBuffer,
// SendBuffer (as much of them as the system grants) and MaxDatagram work. What else it lacks, and what it does then:
//
//	Mark, Device, BusyPoll, ZeroChecksum6RX    an error that wraps errors.ErrUnsupported; Control can set these options
//	Queues above 1, ChecksumOff                the same
//	NoOffload                                  always set
//	Superframes                                ignored; what is longer than MaxDatagram is marked TooBig: with the
//	                                           kernel's vxlan behind a veth set it to 65535, else TCP stalls
//	PathMTU, Unreachable, Stats.Errors         nothing is reported: set the MTU of devices to what the path carries
//	Stats.RxOverflow                           0
//	groups                                     always on the interface that ListenPortable found; on Linux at most
//	                                           net.ipv4.igmp_max_memberships; the port is taken on all addresses
//	network namespaces of Linux                a Join or Sockets opens sockets in that of the calling thread
//	DF over IPv4                               Linux, macOS, FreeBSD, Windows; others never set it
//	TOS received over IPv4                     Linux, macOS, FreeBSD, Windows; on others 0
//	TOS sent                                   Windows sends 0, unless its registry allows more
//	a full send buffer                         PortFull at once; on Windows after 6 ms
//
// Reading and sending one by one allocates nothing. On Linux, where golang.org/x/net takes several
// datagrams with a call, each received one costs two allocations: its net.Addr. Another TOS, TTL or DF
// than the datagram before had costs a system call and allocations. Beside the Linux underlay it carries a fifth
// of one TCP flow (1.6 of 7.8 Gbit/s) and half of the small UDP packets (bench/results/underlays.txt).
//
// Portable's code for macOS, Windows and the BSDs is compiled by CI and not run there.
//
// # Files
//
//	udp*         UDP: ports, sets of transmit sockets     base, sock*, device    what UDP and IP share
//	ip*          raw IP: queues, filters
//	multicast*   groups of UDP                            tx, runs, transmit     sending
//	rx           receiving                                errqueue               ICMP errors
//	portable*    Portable
package underlay
