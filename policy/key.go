package policy

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/mix"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A key is a flow's name, the same for both directions:
//
//	0, 1  the lower of the two addresses       2, 3  the higher
//	4     its port 16 | the other's port 16 | protocol 8 | VNI 24
//
// In place of ports an echo has its identifier, and who asks: 0 the lower, 1 the higher.
// The key of a datagram in fragments has source and destination, and its identification.
type key [5]uint64

// flowKey returns the key of a packet's flow, and whether it goes from higher to lower.
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

// hash mixes a key with a secret, so that nobody can send flows that pile up.
func (w *key) hash(seed *mix.Key) uint64 { return seed.Hash320((*[5]uint64)(w)) }

// A timeout is what a flow's timeout depends on.
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
//	generation 32 | stamp 13 | rule 13 | assured, closing, answered, egress, ingress, down
//
// The stamp is the slot's: when a slot goes to another flow, nobody changes the state of
// the new one who meant the old.
type state uint64

const (
	stDown     state = 1 << iota // opened from the higher to the lower
	stIngress                    // its opener's packets were allowed in this slot
	stEgress                     // and in this
	stAnswered                   // the other side has spoken
	stClosing                    // FIN or RST has been seen
	stAssured                    // its opener has spoken again after that: of TCP, with an ACK alone

	stSlots   = stIngress | stEgress
	ruleShift = 6
	ruleMask  = 1<<13 - 1
	stampMask = 1<<13 - 1
	stampAt   = ruleShift + 13
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

// admitted returns s as judged again: by a rule of a generation, in slots.
func (s state) admitted(generation uint32, rule int, slots state) state {
	return newState(generation, rule, s&(stampMask<<stampAt|stDown|stAnswered|stClosing|stAssured)|slots)
}

// timeoutOf returns what the timeout of a flow depends on.
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
