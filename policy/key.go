package policy

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/mix"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A key identifies a flow, in both directions:
//
//	0, 1  the lower of the two addresses       2, 3  the higher
//	4     its port 16 | the other's port 16 | protocol 8 | VNI 24
//
// For an ICMP echo the ports are its identifier and the side that asks: 0 the lower, 1 the higher.
// The key of a fragmented datagram has source, destination and identification.
type key [5]uint64

// flowKey returns the key of a packet's flow, and whether the packet goes from higher to lower.
func (k *packet) flowKey(vni frame.VNI) (w key, down bool) {
	a, b, p, q := k.src, k.dst, k.sport, k.dport
	if k.echo != noEcho {
		p, q = 0, 0
	}
	if down = b.less(a) || a == b && (q < p || k.echo == echoReply); down {
		a, b, p, q = b, a, q, p
	}
	if k.echo != noEcho {
		p = k.id
		if down == (k.echo == echoRequest) {
			q = 1
		}
	}
	return key{a.hi, a.lo, b.hi, b.lo, uint64(p)<<48 | uint64(q)<<32 | uint64(k.protocol)<<24 | uint64(vni)}, down
}

func (k *packet) fragmentKey(vni frame.VNI) key {
	return key{k.src.hi, k.src.lo, k.dst.hi, k.dst.lo, uint64(k.fragment)<<32 | uint64(k.protocol)<<24 | uint64(vni)}
}

// protocolOf returns the protocol of word 4.
func protocolOf(w uint64) uint8 { return uint8(w >> 24) }

// hash hashes a key with a secret, so that no one can choose flows that collide.
func (w *key) hash(seed *mix.Key) uint64 { return seed.Hash320((*[5]uint64)(w)) }

// A timeout is an index into limits.
type timeout uint8

const (
	tcpOpening timeout = iota
	tcpHalfOpen
	tcpOpen
	tcpClosing
	udpOpening
	udpOpen
	icmpOpening
	icmpOpen
	otherOpening
	otherOpen
	numTimeouts
)

// A state is the word of a flow that changes, by compare and swap:
//
//	generation 32 | stamp 12 | rule 14 | assured, closing, answered, egress, ingress, down
//
// The stamp is that of the slot: it keeps a worker that found a flow from changing the state of
// the next one in its slot.
type state uint64

const (
	stDown     state = 1 << iota // opened from the higher to the lower
	stIngress                    // the rules admitted its opener in this slot
	stEgress                     // and in this
	stAnswered                   // a reply has passed
	stClosing                    // FIN or RST has passed
	stAssured                    // its opener has sent again after a reply: for TCP, without SYN, FIN or RST

	stSlots   = stIngress | stEgress
	ruleShift = 6
	ruleMask  = 1<<14 - 1
	stampMask = 1<<12 - 1
	stampAt   = ruleShift + 14
)

func newState(generation uint32, rule int, flags state) state {
	return state(generation)<<32 | state(rule)<<ruleShift | flags
}

func (s state) generation() uint32 { return uint32(s >> 32) }
func (s state) rule() int          { return int(s>>ruleShift) & ruleMask }
func (s state) stamped(version uint32) state {
	return s&^(stampMask<<stampAt) | state(version&stampMask)<<stampAt
}
func slotBit(slot int) state { return stIngress << slot }

// admitted returns s with the rule that admitted it, its generation and slots.
func (s state) admitted(generation uint32, rule int, slots state) state {
	return newState(generation, rule, s&(stampMask<<stampAt|stDown|stAnswered|stClosing|stAssured)|slots)
}

// timeoutOf returns which timeout a flow has.
func timeoutOf(protocol uint8, s state) timeout {
	k := otherOpening
	switch protocol {
	case wire.ProtoTCP:
		switch {
		case s&stClosing != 0:
			return tcpClosing
		case s&(stAnswered|stAssured) == stAnswered:
			return tcpHalfOpen
		case s&stAssured != 0:
			return tcpOpen
		}
		return tcpOpening
	case wire.ProtoUDP, protoUDPLite:
		k = udpOpening
	case wire.ProtoICMP, wire.ProtoICMPv6:
		k = icmpOpening
	}
	if s&stAssured != 0 {
		k++
	}
	return k
}
