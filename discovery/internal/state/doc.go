// Package state is the link state of VTEPs, without clock, wire or I/O: who has which hosts, and what to tell which neighbour.
//
//	Set ------> own advertisement --+
//	                                v
//	Receive -> newer or older? -> database -> Hosts
//	                                |
//	                                +-> pending, by neighbour -> Poll -> Send
//
// Each VTEP owns one advertisement, with a sequence number and a hold time. The newer one counts: that with the higher sequence
// number, and of equal ones that with the higher checksum. It goes to all neighbours but the one it came from, again and again until
// they acknowledge it or send it themselves. Its owner sends a new one each third of [Hold], and without that it ages out everywhere.
// A VTEP that restarts hears its own advertisement from the past, and jumps over its sequence number.
//
// At adjacency both ends send a [Summary] of what they have. The answer is the list of what the other end wants, and what it
// has newer follows. A summary is sent until its answer comes.
package state
