// Package l3 is the gateway of a switch: it routes between segments, and to and from IP
// ports. Its parts are stages, which fill the slots of VSIs (package vswitch, type Stage).
//
//	           Gateway
//	              |
//	    VRF: routes, longest prefix
//	     |        |              |
//	Interface  Interface     Interface
//	segment 10 segment 20    L3VNI 5000, or an IP port (TUN)
//	arp.Table  arp.Table     router MACs
//
// An [Interface] is the gateway of the hosts of a segment. It has a MAC, and addresses that
// the segment's arp.Responder answers for in ARP and ND. An entry of the segment's FDB has the
// MAC with Dest 0: so the switch knows that a frame is for the gateway.
//
// # The path of a packet
//
//	Interface.Process   is it for the gateway's MAC? is it IP?
//	forward4, forward6  is it well formed? which route?       -> local4, local6: ping, UDP (Listen)
//	                    may it pass the Filters?
//	send                which neighbour? rewrite MACs         -> wait: ask for its MAC first
//	                    TTL - 1, and into the next segment    -> refuse: ICMP errors
//
// The verdict is Reenter: the switch decides on the frame again, as one that the gateway sends
// in the segment of Frame.VNI. The FDB of that segment chooses the port or tunnel. A frame that
// is too long for it goes to the segment's slot TooBig, which [PathMTU] fills.
//
// # Topologies
//
//   - Centralised: one VTEP has the interfaces; frames to and from it cross the overlay.
//
//   - Distributed: every VTEP has them, with the same addresses and MAC (Anycast). Each
//     answers only its own hosts and routes straight into the target's segment (asymmetric
//     IRB). Its frames to other VTEPs carry its own MAC.
//
//   - Symmetric IRB: routes lead to the MAC of the target's router on an L3VNI, a segment
//     with a VTEP and an interface without addresses (RFC 9135, section 4.2).
//
//   - Layer 3 only: routes lead to nodes, through a tunnel for IP (NextHop.Peer) or directly.
//     [Encapsulation] says which; the pools of package node change it under traffic.
//
// [Interface.SetFilters] has a policy decide about the packets between segments.
//
// A [CrossConnect] joins two IP ports and routes nothing.
//
// # Next hops
//
// The flows of a route with several next hops are shared among them by weight, and each flow keeps
// to one. The route passes over a next hop that is dead, while it has another:
//
//   - whose neighbour does not answer, or is not known yet; it is asked until it answers
//   - whose tunnel has had an ICMP error about its peer, for 10 s
//   - that [VRF.SetDown] says is dead, as a probe does
//
// Only the flows of the dead one move, and they return to it. Events next-hop-down and next-hop-up
// tell control planes.
//
// # Offload
//
// [Interface.Lookup] says what Process does with packets between two addresses, until the function of [Interface.Watch] is called:
// by that, package offload has the kernel route them.
//
// # Concurrency
//
// Process runs inside the workers of a switch, any number of them at once. If the next hop is
// known it takes no lock and allocates nothing; a packet that has to wait is copied, within
// bounds. The switch's housekeeping calls Housekeep. Any goroutine may call everything else,
// with effect from the next packet on.
package l3
