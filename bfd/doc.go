// Package bfd finds out whether a path still carries packets: Bidirectional Forwarding Detection in asynchronous mode (RFC
// 5880), over one hop (RFC 5881), several (RFC 5883), or through a tunnel (RFC 8971). Both ends send each other small UDP
// packets; who misses a few in a row knows that the path is dead, within a second by default.
//
//	   gateway       tunnel end point      the host's sockets
//	      |                 |                      |
//	      |  Receive(peer, TTL, payload)           |            any goroutine; allocates nothing
//	      v                 v                      v
//	+-------------------------------------------------------+
//	| Speaker                                               |
//	|   session, session, session ...   one heap of timers  |---> Notify(Change): Alive, Dead, Unknown
//	+-------------------------------------------------------+
//	      |                 |                      |
//	      v                 v                      v
//	  Path.Send         Path.Send              UDP.Send         one goroutine; does not wait
//
// A [Speaker] has all sessions. A [Peer] is the key of one: two addresses and the [Path] its packets take, so that the same
// addresses in two VRFs, or in two VNIs, are two sessions. A Path sends what the Speaker gives it, and its owner gives the
// Speaker what arrives. [ListenUDP] makes the one through the host's sockets. A [Prober] has both, for a program whose peers are
// to be probed, such as those of BGP.
//
// # What is reported
//
// A session begins as [Unknown]: a path that was never up is to be used as if there were no BFD. The first time it is up it is
// [Alive] at once. When it fails it is [Dead] at once; when it is up again it is Alive after [SessionConfig].Hold, so that a
// path that flaps is not used, and is reported once in that time at most.
//
// If an operator holds the session down (AdminDown) here or at the peer, or the peer removes it, that says nothing about the
// path (RFC 5882, section 3.2): it is Unknown, not Dead, and stays so if the peer then falls silent.
//
// The C bit of our packets is clear: a session ends with the process, and with it forwarding and the program's other sessions (RFC 5882,
// section 4.3). That of peers changes nothing here.
//
// # Timers
//
// A session that is not up sends at most once a second (RFC 5880, section 6.8.3); a change of its state is sent at once. Packets
// are 75 to 100 percent of the agreed interval apart. Those of different sessions are due at the same times, a few
// milliseconds apart, so that a thousand sessions do not wake the Speaker four thousand times a second.
//
// # Strangers
//
// There is no authentication; a packet that has it is discarded. What protects a session is that its packets arrive with TTL
// 255, which no packet from beyond the link has (RFC 5881, section 5), or not from outside a tunnel, and that they come over its
// Path from its address to its own. Over several hops only the addresses count, which anybody may forge: filter port 4784. The
// discriminators protect nothing, since a packet that says Down needs none (RFC 5880, section 6.8.6). A packet makes no
// session, and each one that is discarded counts under a [Reason].
//
// # Concurrency
//
// Any goroutine may call everything. Receive holds a lock of the session for less than a microsecond.
package bfd
