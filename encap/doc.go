// Package encap reads and writes the headers of tunnels. Its functions do not allocate.
//
//	outer IP | UDP | VXLAN header     | inner Ethernet frame
//	20 or 40   8     8                  from the destination MAC on, without FCS
//
//	outer IP | UDP | VXLAN-GPE header | inner Ethernet frame or IP packet
//	20 or 40   8     8
//
//	outer IP | inner IP packet
//	20 or 40
//
//	outer IP | UDP | inner IP packet
//	20 or 40   8
//
// Each format has a [Type], a Put function, a Parse function and an overhead. IP-in-IP and IP in UDP have no header of their own
// and no Put: the protocol number of the outer IP header identifies the inner packet, or its version does.
//
// In VXLAN-GPE, a network service header ([NSH], RFC 8300) may come before the inner packet.
//
// An [Encapsulation] is another header, which a program adds to those here.
//
// [FlowHash] hashes the inner headers, for the outer UDP source port (RFC 7348, section 5); [SymmetricHash] is the
// same in both directions of a flow.
package encap
