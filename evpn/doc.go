// Package evpn is the EVPN control plane (RFC 7432, RFC 8365): a [Speaker] advertises the hosts, segments and prefixes of a switch by BGP,
// and makes rows of package control of what other VTEPs advertise. A program with a node has it in three lines:
//
//	sp, err := evpn.New(n, &evpn.Config{AS: 65000, RouterID: addr, Peers: peers})
//	...
//	err = sp.Run(ctx)
//
//	the switch -- events --> Speaker -> table --- routes --> BGP <--> other VTEPs
//	    ^                                 |  ^                |
//	    +------------- rows --------------+  +---- routes ----+
//
// # What is advertised
//
//	a segment with a VXLAN tunnel   type 3: our VTEP, with ingress replication
//	a MAC on a port                 type 2; static ones are sticky (RFC 7432, section 15.2)
//	its addresses, from ARP and ND  type 2 with the address; in a VRF with an L3VNI also its label, route target and router's MAC
//	a gateway that only we have     type 2, with the default gateway community
//	networks of gateways, routes    type 5, in VRFs with an L3VNI
//
// The L3VNI of a VRF is its gateway without addresses. What other VTEPs advertise becomes flood lists, MACs with their
// neighbours, and routes: host routes to hosts of other VTEPs (symmetric IRB, RFC 9135) unless [VRF].NoHostRoutes.
//
// # How to set up the segments
//
// Nothing should be learned from the tunnel, for BGP says what is there: set NoLearn of the segment's tunnel. Set Peers of the
// tunnel to [vtep.ListedPerVNI], so that only VTEPs of the segment are heard, and give the segment ARP suppression.
//
// On a host with fewer than four processors set GOMAXPROCS to 4: with less, frames wait up to four times as long while many routes come or go.
//
// # Hosts that move
//
// A host that speaks here is ours, with a sequence number above that of the VTEP that had it. Of equal claims that of the lower address
// counts, and what the switch has learned makes room. A MAC that moves five times in 180 s stays where it was last, with a warning
// in the log, until [Speaker.ClearDuplicate] or [Mobility].Release.
//
// # Hosts with several links
//
// A port of [Config].EthernetSegments is a link of hosts that have others, to other VTEPs (RFC 7432, section 8; RFC 8365, section 8). These
// find each other by routes of type 4, and elect one that forwards what is flooded (or, single-active, everything). MACs on an Ethernet
// segment, types 1 and 2, go to all VTEPs that have it, each flow to one; a VTEP that leaves it is one change for all its MACs. A host that
// speaks by several links has not moved.
//
// # What peers may say
//
// Peers are not trusted. A route that cannot be used is left out and counted by a reason. No route takes the MAC or an address of
// our gateways, leads to one of our VTEPs, or has a tunnel go through itself. Peers, segments and VRFs have limits.
//
// # Peers without addresses
//
// A peer may be the router at the other end of an interface (unnumbered): set [Peer].Interface in place of Addr. Its link-local address is
// learned from router advertisements (RFC 4861), and ours are sent. Next hops of EVPN are VTEPs as ever.
//
// # Changes
//
// [Speaker.Configure] changes the settings under traffic. Segments, gateways and routes of the node need nothing: the Speaker follows them.
//
// # With other implementations
//
// Tested with FRR 8.4, as a leaf, a spine, a border leaf, a route reflector and an unnumbered neighbour, and with gobgpd 3.10 as a route reflector. A spine in
// another AS must leave next hops as they are (FRR: neighbor attribute-unchanged next-hop). FRR 8 has no IPv6 VTEPs, and ends a session that
// says one. gobgpd 3 passes on no route with an EVPN community that it does not know, such as that of an IPv6 router's address.
//
// FRR 8.4 as a VTEP elects by preference only.
package evpn
