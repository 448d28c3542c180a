// Package state is the link state of VTEPs, without clock, wire or I/O: who has which segments and hosts, and what to tell which
// neighbour.
//
//	Add, Remove -> own advertisements --+
//	                                    v
//	Receive ----> newer or older? -> database -> Best, Has, Changes
//	                                    |
//	                                    +-> waiting, by neighbour -> Poll -> Send
//
// A VTEP owns up to 256 advertisements, its parts, each small enough for a datagram, with a sequence number, a hold time and a
// checksum. A part stands for itself: nothing is put together, and a change sends one of them. The newer one counts: that with the
// higher sequence number, and of equal ones that with the higher checksum. Its owner sends a new one after a third of [Hold], and
// without that it ages out everywhere. A VTEP that restarts hears its own advertisement from the past, and jumps over its number.
//
// # Links
//
// At adjacency both ends of a link send a [Summary] of what they have, range by range. The answer is the list of what the other end
// wants, and what it has newer follows. Then an advertisement goes over all links but the one it came from, again and again
// until the neighbour acknowledges it or sends it itself.
//
// # The mesh
//
// Neighbours of the mesh have links to each other. So an advertisement that came from one of them goes to none of them, as in a mesh
// group of IS-IS (RFC 2973), and a change costs each of n VTEPs one message instead of n. At adjacency each end sends its own parts only.
// What two of them miss of each other, for want of a link or for what was before a restart, comes by a Summary to one of the mesh each
// [Gossip], in turn.
package state
