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
// An [Interface] is what hosts of a segment know as their gateway: addresses, answered to
// in ARP and ND by the segment's arp.Responder, and a MAC. The MAC is an entry of the
// segment's FDB with Dest 0, which is how the switch knows that a frame is for the gateway.
//
// # A packet's way
//
//	Interface.Process   is it for our MAC, and what is in it?
//	forward4, forward6  is it well formed? which route?       -> local4, local6: ping, whole or in fragments
//	send                which neighbour? rewrite MACs         -> wait: asked for first
//	                    TTL - 1, and into the next segment    -> refuse: ICMP errors
//
// The verdict is Reenter: the switch decides on the frame again, as one that the gateway
// sends in the segment that Frame.VNI now says. There the FDB says which port or tunnel it
// leaves by; if it is too long for that, the segment's slot TooBig hears of it, which
// [PathMTU] fills.
//
// # Where gateways stand
//
//   - Centralised: one VTEP has the interfaces; frames to and from it cross the overlay.
//
//   - Distributed: every VTEP has them, with the same addresses and MAC (Anycast). Each
//     answers its own hosts only, and routes straight into the segment of the target
//     (asymmetric IRB). What it sends to other VTEPs comes from its own MAC.
//
//   - Symmetric IRB: routes lead to the MAC of the target's router on an L3VNI, a segment
//     that has an interface without addresses, and a VTEP (RFC 9135, section 4.2).
//
//   - Layer 3 only: routes lead to nodes, through a tunnel for IP (NextHop.Peer) or directly.
//     A [Blocks] is such routes, whose encapsulation changes under traffic.
//
// A [CrossConnect] is none of these: it joins two IP ports and routes nothing.
//
// # What may be called from where
//
// Process runs inside the workers of a switch, any number of them at once. For a packet
// whose next hop is known it takes no lock and allocates nothing; one that has to wait is
// copied, within bounds. Everything else may be called from anywhere, and takes effect
// with the next packet. Housekeep is for the switch's housekeeping.
package l3
