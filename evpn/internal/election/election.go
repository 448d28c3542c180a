// Package election elects the designated forwarder of an Ethernet segment (RFC 7432, section 8.5; RFC 8584; RFC 9785). All VTEPs that know
// the same candidates elect the same one, whatever order they are in.
package election

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// Algorithms (IANA's "DF Alg").
const (
	Modulo     = 0 // by ordinal (RFC 7432, section 8.5)
	HRW        = 1 // highest random weight (RFC 8584, section 3)
	Preference = 2 // the highest preference (RFC 9785)
)

// DefaultPreference is that of RFC 9785, section 3.
const DefaultPreference = 32767

const stays = 0x8000 // capability: a forwarder is not replaced by one of equal preference (RFC 9785, "DP")

// A Candidate is a VTEP on the segment.
type Candidate struct {
	Addr route.Addr // originator of its route of type 4
	route.Election
}

// Algorithm returns that by which candidates elect: the one that all want, else the default (RFC 8584, section 2.2.1).
func Algorithm(list []Candidate) uint8 {
	for _, c := range list {
		if c.Algorithm != list[0].Algorithm || c.Algorithm > Preference {
			return Modulo
		}
	}
	if len(list) == 0 {
		return Modulo
	}
	return list[0].Algorithm
}

// Elect returns the forwarder of a network on the segment, none without candidates. list is sorted by Sort.
func Elect(e route.ESI, vni frame.VNI, list []Candidate) route.Addr {
	if len(list) == 0 {
		return route.Addr{}
	}
	switch Algorithm(list) {
	case HRW:
		d := digest(e, vni)
		return slices.MaxFunc(list, func(a, b Candidate) int { return cmp.Compare(weight(d, a.Addr), weight(d, b.Addr)) }).Addr
	case Preference:
		return slices.MaxFunc(list, func(a, b Candidate) int {
			return cmp.Or(cmp.Compare(a.Preference, b.Preference), cmp.Compare(a.Capabilities&stays, b.Capabilities&stays))
		}).Addr
	}
	return list[int(vni)%len(list)].Addr
}

// Sort puts candidates in the order of their addresses, IPv4 before IPv6, each once: of those with one address the first in the order of
// what they want. So the lowest address counts where nothing else decides.
func Sort(list []Candidate) []Candidate {
	slices.SortFunc(list, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.Addr.Bits(), b.Addr.Bits()), bytes.Compare(a.Addr.Bytes(), b.Addr.Bytes()),
			cmp.Compare(a.Algorithm, b.Algorithm), cmp.Compare(a.Preference, b.Preference), cmp.Compare(a.Capabilities, b.Capabilities))
	})
	return slices.CompactFunc(list, func(a, b Candidate) bool { return a.Addr == b.Addr })
}

const low31 = 1<<31 - 1

// digest is D(v, Es) of RFC 8584, section 3.2: 31 bits of the CRC of the Ethernet tag and the segment.
func digest(e route.ESI, vni frame.VNI) uint32 {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 14), uint32(vni))
	return crc32.ChecksumIEEE(append(b, e[:]...)) & low31
}

// weight is Wrand of RFC 8584, section 3.2. Only the lowest bits of the address count.
func weight(d uint32, a route.Addr) uint32 {
	b := a.Bytes()
	s := binary.BigEndian.Uint32(b[len(b)-4:])
	return (1103515245*((1103515245*s+12345)^d) + 12345) & low31
}
