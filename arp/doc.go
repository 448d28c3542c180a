// Package arp knows the neighbours of a network segment, IPv4 and IPv6: which address has
// which MAC. A [Table] holds what it has heard, or was told; a [Responder] is the stage
// for a switch's slot Neighbour that fills the table from the ARP and neighbour discovery
// (ND) that passes, and answers questions, so that they need not be flooded to every end
// of every tunnel.
//
//	ARP, ND from a port or a tunnel
//	   |
//	   v
//	Responder.Process --- snoop: who has spoken ---> Table <--- Set: control planes, by hand
//	   |                                               |
//	   |  a question: what is known of its target? <---+
//	   v
//	answered in place (Reply), or passed on, whole or to local ports only
//
// # Modes
//
//   - [Off]: neighbours are noted, nothing is answered.
//   - [Suppress]: the answer is the one that the target would give, with its own MAC. Only
//     a host behind a tunnel is answered for; it needs no gateway address.
//   - [Proxy]: the answer carries the MAC of the segment's gateway, which routes what
//     comes. What is asked and answered through tunnels carries the MACs of VTEPs, not
//     those of hosts.
//   - [Access]: every question is answered with the gateway's MAC, as workloads of Calico
//     expect it. A port reaches the gateway and nobody else at layer 2: what it says in ARP and
//     ND ends here, and frames to other MACs are dropped as frame.NotGateway, however they are
//     framed. With [OnlyIP] in the slot Ingress nothing but IP passes such a port.
//
// The mode is the segment's; [Responder.With] makes the stage of an attachment that has
// another one. What became of each message is counted under an [Outcome].
//
// # Who waits for whom
//
// Process runs inside the workers of a switch, any number of them at once. It allocates
// nothing and keeps no frame. Looking up takes a read lock, which only ARP and ND need;
// learning what is new tries the lock, and gives up when it is taken. Housekeep is for the
// switch's housekeeping; everything else may be called from anywhere.
//
// # Duplicates
//
// An address that goes back and forth between MACs, five times in 180 seconds by default,
// is a duplicate (RFC 9161, section 3.7): it is counted, told of in an event, and if
// Freeze is set, neither followed nor answered for until it has been silent for the ageing
// time.
package arp
