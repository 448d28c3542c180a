// Package encap holds the wire formats of the tunnels: pure functions over bytes
// that allocate nothing, and what each format costs in length.
//
//	outer IP | UDP | VXLAN header | inner Ethernet frame
//	20 or 40   8     8              from the destination MAC on, without FCS
//
// A format is a Put, a Parse and an overhead. VXLAN (RFC 7348) is here; VXLAN-GPE
// and IP-in-IP join it as files of their own, each a Put and a Parse beside a new
// [Type].
//
// [FlowHash] is the entropy that RFC 7348 section 5 asks of the outer UDP source
// port: a hash of the inner headers.
package encap
