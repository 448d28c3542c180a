// Package icmperr makes ICMP errors and decides who gets them and how often. Gateways send them from their own address, a
// switch from that of the packet's destination.
package icmperr

import "github.com/vxswitch/vxswitch/internal/wire"

// A Refusal is the reason for an ICMP error.
type Refusal uint8

// Refusals. NoService means that the gateway itself has no such service, NoHost that the next hop does not answer.
const (
	NoRoute Refusal = iota
	TimeExceeded
	NoService
	NoHost
	FragNeeded
)

// codes4 and codes6 are the types and codes (RFC 792, RFC 1812 section 5.2.7; RFC 4443, section 3).
var (
	codes4 = [...][2]uint8{NoRoute: {3, 0}, TimeExceeded: {11, 0}, NoService: {3, 3}, NoHost: {3, 1}, FragNeeded: {3, 4}}
	codes6 = [...][2]uint8{NoRoute: {1, 0}, TimeExceeded: {3, 0}, NoService: {1, 4}, NoHost: {1, 3}, FragNeeded: {2, 0}}
)

// Put4 writes the headers of an ICMP error to a, which has the quoted packet; rest is the four bytes that depend on the
// type.
func Put4(a []byte, e Refusal, rest uint32, src, dst [4]byte) {
	wire.PutICMP(a[wire.IPv4Len:], codes4[e][0], codes4[e][1], rest, 0)
	h := wire.IPv4Header{TOS: tosControl, TTL: TTL, Protocol: wire.ProtoICMP, DF: true, TotalLen: uint16(len(a)), Src: src, Dst: dst}
	h.Put(a)
}

// Put6 is Put4 for ICMPv6.
func Put6(a []byte, e Refusal, rest uint32, src, dst [16]byte) {
	h := wire.IPv6Header{NextHeader: wire.ProtoICMPv6, HopLimit: TTL, PayloadLen: uint16(len(a) - wire.IPv6Len), Src: src, Dst: dst}
	h.Put(a)
	m := a[wire.IPv6Len:]
	wire.PutICMP(m, codes6[e][0], codes6[e][1], rest, wire.Pseudo6(a, wire.ProtoICMPv6, len(m)))
}
