// Package encap holds the wire formats of the tunnels: pure functions over bytes
// that allocate nothing, and what each format costs in length.
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
// A format is a [Type], a Put, a Parse and an overhead. IP-in-IP has no header of its own,
// and so no Put: the protocol number of the outer header says what is inside.
//
// [FlowHash] is the entropy that RFC 7348 section 5 asks of the outer UDP source
// port: a hash of the inner headers.
package encap
