// Package framing puts an Ethernet frame into the framings that some receiver opens, for
// tests of what filters by the packet inside: what is refused in one framing is to be refused
// in all.
//
//	destination | source |            EtherType | packet
//	destination | source | head, head, EtherType | packet
//
// A head is a VLAN tag, an 802.2 LLC/SNAP header behind its length, or several of them.
package framing

import (
	"fmt"
	"iter"
	"slices"
)

// Plain are heads that are opened by those who know what a tag or a SNAP header is.
var Plain = [][]byte{
	{0x81, 0, 0, 0},                      // a priority tag
	{0x88, 0xa8, 0, 7},                   // 802.1ad
	{0x91, 0, 0, 7},                      // the same before there was a standard
	{0, 60, 0xaa, 0xaa, 3, 0, 0, 0},      // RFC 1042
	{5, 0xdc, 0xaa, 0xaa, 3, 0, 0, 0xf8}, // of bridges, the length beyond the frame's end
	{5, 0xff, 0xaa, 0xaa, 3, 0, 0, 0},    // neither length nor type
	{0, 0, 0xaa, 0xaa, 3, 0, 0, 0},       // length 0
	{0x88, 0x70, 0xaa, 0xaa, 3, 0, 0, 0}, // LLC of a frame that is too long for a length
}

// Odd are heads that only careless receivers open.
var Odd = [][]byte{
	{0, 60, 0xab, 0xaa, 3, 0, 0, 0},                              // a group SAP
	{0, 60, 0xaa, 0xab, 3, 0, 0, 0},                              // a response
	{0, 60, 0xaa, 0xaa, 0x13, 0, 0, 0},                           // polled
	{0x81, 0, 0, 0, 0, 0, 0xaa, 0xaa, 3, 0, 0, 0, 0x81, 0, 0, 7}, // tags around SNAP and in it
}

// Put returns b with heads before its EtherType.
func Put(b []byte, heads ...[]byte) []byte {
	return slices.Concat(b[:12], slices.Concat(heads...), b[12:])
}

// All yields b, at least 12 bytes, behind up to three of all heads, and what they are.
func All(b []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		some := append(slices.Clip(Plain), Odd...)
		for _, x := range some {
			if !yield(fmt.Sprintf("% x", x), Put(b, x)) {
				return
			}
			for _, y := range some {
				if !yield(fmt.Sprintf("% x, % x", x, y), Put(b, x, y)) || !yield(fmt.Sprintf("% x, % x, % x", x, y, x), Put(b, x, y, x)) {
					return
				}
			}
		}
	}
}
