// Package seal authenticates datagrams between VTEPs and refuses replayed ones. The format is our own.
//
//	 0         1         2            10        n     n+32
//	+---------+---------+------------+---------+------+
//	| version | key ID  | time in ns | payload | HMAC |
//	+---------+---------+------------+---------+------+
//
// The HMAC-SHA-256 is over both addresses and all before it. The time is that of the sender, and higher in each datagram; it must
// be within [Window] of ours and above the last of that sender. So a datagram that was overtaken is lost too.
package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"
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
	ErrTime    = errors.New("discovery: replayed, overtaken, or the clocks differ too much")
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
	s.last = max(s.last+1, now.UnixNano())
	b := binary.BigEndian.AppendUint64([]byte{version, id}, uint64(s.last))
	b = append(b, payload...)
	return append(b, code(keys[id], from, to, b)...)
}

// An Opener opens what one VTEP receives. The zero value is ready. It is not safe for concurrent use.
type Opener struct{ last map[netip.Addr]int64 }

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
	last, known := o.last[from]
	if at < clock-int64(Window) || at > clock+int64(Window) || known && at <= last {
		return nil, ErrTime
	}
	if !known && len(o.last) >= MaxSenders {
		for a, t := range o.last { // the clock refuses replays of these
			if t < clock-int64(Window) {
				delete(o.last, a)
			}
		}
		if len(o.last) >= MaxSenders {
			return nil, ErrSenders
		}
	}
	if o.last == nil {
		o.last = map[netip.Addr]int64{}
	}
	o.last[from] = at
	return body[header:], nil
}
