// Package seal authenticates datagrams between VTEPs and refuses replayed ones. The format is our own.
//
//	 0         1         2            10        n     n+32
//	+---------+---------+------------+---------+------+
//	| version | key ID  | time in ns | payload | HMAC |
//	+---------+---------+------------+---------+------+
//
// The HMAC-SHA-256 is over both addresses and all before it. The time is that of the sender, and higher in each datagram; it must
// be within [Window] of ours, and above the lowest of the last 16 of that sender and none of them. So a datagram that 16 others have
// overtaken is lost.
//
// When a clock is set back by more than a Window, times begin anew from there, for nobody would take those of before.
package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"time"
)

const (
	version = 1
	header  = 10

	Overhead   = header + sha256.Size // bytes around a payload
	Window     = 30 * time.Second     // between the clocks of two VTEPs, with the way
	MaxSenders = 16384                // heard within 2 Windows
)

// Why a datagram is refused.
var (
	ErrFormat  = errors.New("discovery: too short or of another version")
	ErrKey     = errors.New("discovery: no such key, or a wrong HMAC")
	ErrTime    = errors.New("discovery: replayed, overtaken by many, or the clocks differ too much")
	ErrSenders = errors.New("discovery: too many senders")
)

// Keys are secrets by key ID. While keys roll over, all are accepted and one is sent with.
type Keys map[uint8][]byte

func code(key []byte, from, to netip.Addr, b []byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, a := range []netip.Addr{from, to} {
		a16 := a.As16()
		h.Write(a16[:])
	}
	h.Write(b)
	return h.Sum(nil)
}

// A Sealer seals what one VTEP sends. It is not safe for concurrent use.
type Sealer struct{ last int64 }

// Seal returns a datagram with a payload.
func (s *Sealer) Seal(keys Keys, id uint8, from, to netip.Addr, now time.Time, payload []byte) []byte {
	if clock := now.UnixNano(); s.last >= clock && s.last-clock <= int64(Window) {
		s.last++
	} else {
		s.last = clock
	}
	b := binary.BigEndian.AppendUint64([]byte{version, id}, uint64(s.last))
	b = append(b, payload...)
	return append(b, code(keys[id], from, to, b)...)
}

// An Opener opens what one VTEP receives. The zero value is ready. It is not safe for concurrent use.
type Opener struct{ heard map[netip.Addr]*heard }

// heard has the times of the last datagrams of a sender.
type heard struct {
	times  [16]int64
	lowest int // where that is
}

// take notes a time, and reports whether it is a new one.
func (h *heard) take(at int64) bool {
	if at <= h.times[h.lowest] || slices.Contains(h.times[:], at) {
		return false
	}
	h.times[h.lowest] = at
	for i, t := range h.times {
		if t < h.times[h.lowest] {
			h.lowest = i
		}
	}
	return true
}

// Open returns the payload of a datagram, a part of b. What is refused changes nothing.
func (o *Opener) Open(keys Keys, from, to netip.Addr, now time.Time, b []byte) ([]byte, error) {
	if len(b) < Overhead || b[0] != version {
		return nil, ErrFormat
	}
	body := b[:len(b)-sha256.Size]
	if key := keys[b[1]]; len(key) == 0 || !hmac.Equal(code(key, from, to, body), b[len(body):]) {
		return nil, ErrKey
	}
	at, clock := int64(binary.BigEndian.Uint64(b[2:])), now.UnixNano()
	if at < clock-int64(Window) || at > clock+int64(Window) {
		return nil, ErrTime
	}
	h := o.heard[from]
	if h == nil {
		if h = o.add(from, clock); h == nil {
			return nil, ErrSenders
		}
	}
	if h.times[h.lowest] > clock+int64(Window) { // our clock was set back
		*h = heard{}
	}
	if !h.take(at) {
		return nil, ErrTime
	}
	return body[header:], nil
}

// add makes room for a sender, nil if there is none.
func (o *Opener) add(from netip.Addr, clock int64) *heard {
	if len(o.heard) >= MaxSenders {
		for a, h := range o.heard { // the clock refuses replays of these
			if slices.Max(h.times[:]) < clock-int64(Window) {
				delete(o.heard, a)
			}
		}
		if len(o.heard) >= MaxSenders {
			return nil
		}
	}
	if o.heard == nil {
		o.heard = map[netip.Addr]*heard{}
	}
	h := new(heard)
	o.heard[from] = h
	return h
}
