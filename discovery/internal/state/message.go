package state

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// Kind says how the owner of a host knows it.
type Kind uint8

const (
	Learned Kind = iota
	Static
)

// A Host is a MAC on a segment. A zero MAC is the segment itself: the owner has it, and gets what is flooded.
type Host struct {
	VNI   frame.VNI
	MAC   frame.MAC
	Kind  Kind
	Moves uint16 // how often it has moved from one VTEP to another
}

func (h Host) compare(o Host) int {
	return cmp.Or(cmp.Compare(h.VNI, o.VNI), cmp.Compare(h.Kind, o.Kind), cmp.Compare(h.MAC.Uint64(), o.MAC.Uint64()))
}

func (h Host) valid() bool {
	if h.MAC.IsZero() {
		return h.VNI.Valid() && h.Kind == Learned && h.Moves == 0
	}
	return h.VNI.Valid() && h.MAC.IsHost() && h.Kind <= Static
}

// An ID is a part of what an owner advertises.
type ID struct {
	Owner netip.Addr
	Part  uint8
}

// Compare orders by owner and part.
func (i ID) Compare(o ID) int { return cmp.Or(i.Owner.Compare(o.Owner), cmp.Compare(i.Part, o.Part)) }

// First and Last are the ends of the range of all IDs.
var (
	First = ID{netip.IPv4Unspecified(), 0}
	Last  = ID{netip.AddrFrom16([16]byte(slices.Repeat([]byte{255}, 16))), 255}
)

// A Head tells advertisements of an ID apart.
type Head struct {
	Seq uint64
	Sum uint32 // CRC-32 of the hosts
}

func (h Head) newer(o Head) bool { return h.Seq > o.Seq || h.Seq == o.Seq && h.Sum > o.Sum }

// An Advert is a part of what an owner has. One without hosts withdraws those of older ones.
type Advert struct {
	ID
	Head
	Hold  time.Duration // what is left of it
	Hosts []Host        // by VNI, kind and MAC; shared, never written
}

func (a *Advert) valid() bool {
	if !a.Owner.IsValid() || a.Seq > MaxSeq || a.Hold <= 0 || a.Hold > Hold || len(a.Hosts) > PartHosts || a.Sum != sum(a.Hosts) {
		return false
	}
	for i, h := range a.Hosts {
		if !h.valid() || i > 0 && a.Hosts[i-1].compare(h) >= 0 {
			return false
		}
	}
	return true
}

// A Message is an [Update], an [Ack], a [Summary] or a [Want].
type Message interface{ message() }

// An Entry is a line of a [Summary].
type Entry struct {
	ID
	Head
}

type (
	// Update carries an advertisement.
	Update struct{ Advert }
	// Ack says that an advertisement has come.
	Ack struct{ Entry }
	// Summary says what its sender has in a range.
	Summary struct {
		Epoch    uint64 // for the answer
		From, To ID
		Entries  []Entry // by ID
	}
	// Want answers a Summary: which advertisements are newer there.
	Want struct {
		Epoch uint64
		IDs   []ID
	}
)

func (Update) message()  {}
func (Ack) message()     {}
func (Summary) message() {}
func (Want) message()    {}

func (m *Summary) valid() bool {
	if len(m.Entries) > MaxEntries || m.From.Compare(m.To) > 0 {
		return false
	}
	for i, e := range m.Entries {
		if e.Compare(m.From) < 0 || e.Compare(m.To) > 0 || i > 0 && m.Entries[i-1].Compare(e.ID) >= 0 {
			return false
		}
	}
	return true
}

// A Send is a message to a neighbour.
type Send struct {
	To netip.Addr
	Message
}

func sum(hosts []Host) uint32 {
	b := make([]byte, 0, 13*len(hosts))
	for _, h := range hosts {
		b = binary.BigEndian.AppendUint32(b, uint32(h.VNI))
		b = append(append(b, h.MAC[:]...), byte(h.Kind))
		b = binary.BigEndian.AppendUint16(b, h.Moves)
	}
	return crc32.ChecksumIEEE(b)
}
