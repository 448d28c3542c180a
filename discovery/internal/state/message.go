package state

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// Kind says how the owner of a host knows it.
type Kind uint8

const (
	Learned Kind = iota
	Static
)

// A Host is a MAC on a segment.
type Host struct {
	VNI  frame.VNI
	MAC  frame.MAC
	Kind Kind
}

// A Head tells advertisements of an owner apart.
type Head struct {
	Seq uint64
	Sum uint32 // CRC-32 of the hosts
}

func (h Head) newer(o Head) bool { return h.Seq > o.Seq || h.Seq == o.Seq && h.Sum > o.Sum }

// An Advert is what an owner has. One without hosts withdraws those of older ones.
type Advert struct {
	Owner netip.Addr
	Head
	Hold  time.Duration // what is left of it
	Hosts []Host        // shared, never written
}

// A Message is an [Update], an [Ack], a [Summary] or a [Want].
type Message interface{ message() }

type (
	// Update carries an advertisement.
	Update struct{ Advert }
	// Ack says that an advertisement has come.
	Ack struct {
		Owner netip.Addr
		Head
	}
	// Summary says what its sender has.
	Summary struct {
		Epoch uint64 // of the adjacency, for the answer
		Heads map[netip.Addr]Head
	}
	// Want answers a Summary: whose advertisements are newer there.
	Want struct {
		Epoch  uint64
		Owners []netip.Addr
	}
)

func (Update) message()  {}
func (Ack) message()     {}
func (Summary) message() {}
func (Want) message()    {}

// A Send is a message to a neighbour.
type Send struct {
	To netip.Addr
	Message
}

func sum(hosts []Host) uint32 {
	var b []byte
	for _, h := range hosts {
		b = binary.BigEndian.AppendUint32(b, uint32(h.VNI))
		b = append(append(b, h.MAC[:]...), byte(h.Kind))
	}
	return crc32.ChecksumIEEE(b)
}
