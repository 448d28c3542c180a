// Package arp holds the neighbours of a network segment, IPv4 and IPv6: which address has
// which MAC. A [Table] stores the neighbours. A [Responder] is the stage for a switch's slot
// Neighbour: it fills the table from the ARP and neighbour discovery (ND) that passes, and
// answers questions, so that the switch need not flood them through every tunnel.
//
//	ARP, ND from a port or a tunnel
//	   |
//	   v
//	Responder.Process --- snoop: who is the sender? ---> Table <--- Set: control planes, by hand
//	   |                                               |
//	   |  a question: what is known of its target? <---+
//	   v
//	answered in place (Reply), or passed on: everywhere, or to local ports only
//
// # Modes
//
//   - [Off]: the Responder learns neighbours and answers nothing.
//   - [Suppress]: it answers for hosts behind tunnels as they would, with their own MACs.
//     The segment needs no gateway address.
//   - [Proxy]: it answers with the MAC of the segment's gateway, which routes the packets.
//     ARP and ND in tunnels carry the MACs of VTEPs, not those of hosts.
//   - [Access]: it answers every question with the gateway's MAC, as workloads of Calico
//     expect. A port reaches the gateway and no other host at layer 2: its ARP and ND end
//     here, and the switch drops frames to other MACs as frame.NotGateway, however they are
//     framed. With [OnlyIP] in the slot Ingress only IP passes such a port.
//
// The mode belongs to the segment; [Responder.With] makes the stage of an attachment with
// another mode. Each message counts under one [Outcome].
//
// # Concurrency
//
// Process runs inside the workers of a switch, any number of them at once. It allocates
// nothing and keeps no frame. A look-up takes a read lock, which only ARP and ND need.
// Learning tries the lock and gives up if another goroutine holds it. The switch's
// housekeeping calls Housekeep; any goroutine may call everything else.
//
// # Duplicates
//
// An address that moves between MACs five times in 180 seconds (the default) is a duplicate
// (RFC 9161, section 3.7). The table counts it and sends an event. With Freeze the entry
// keeps its MAC and answers nothing until its address has been silent for the ageing time.
package arp
