package policy

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// MaxMatch is the longest list of a [Match]. Lists are walked for each frame of the tag.
const MaxMatch = 1024

// A Match selects frames from one of SrcMACs and of one of EtherTypes; an empty list selects all. One of the
// lists is needed.
type Match struct {
	SrcMACs    []MACPrefix `json:"srcMACs,omitempty"`    // source MACs, or prefixes of them, such as a vendor's "00:00:5e:00:00:00/24"
	EtherTypes []uint16    `json:"etherTypes,omitempty"` // 1536 to 65535, such as 2054 for ARP, behind the tag of the member; if another tag follows, its EtherType (33024) is what is compared
}

// Check returns what is wrong with a match.
func (m *Match) Check() error {
	w := setting.Of("Match")
	if len(m.SrcMACs)+len(m.EtherTypes) == 0 {
		w.Wrong("SrcMACs", nil, "a list of source MACs or of EtherTypes is required")
	}
	if n := len(m.SrcMACs); n > MaxMatch {
		w.Want("SrcMACs", n, "at most %d of them", MaxMatch)
	}
	if n := len(m.EtherTypes); n > MaxMatch {
		w.Want("EtherTypes", n, "at most %d of them", MaxMatch)
	}
	for i, p := range m.SrcMACs {
		switch at := fmt.Sprintf("SrcMACs[%d]", i); {
		case p.Bits > 48 || p.MAC.Uint64()&^p.mask() != 0:
			w.Want(at, p, "a MAC, or 0 to 48 bits of one with 0 behind them")
		case p.Bits > 7 && p.MAC.IsGroup():
			w.Want(at, p, "source MACs, which are not those of groups")
		}
	}
	for i, t := range m.EtherTypes {
		if t < 0x600 {
			w.Want(fmt.Sprintf("EtherTypes[%d]", i), t, "1536 (0x600) to 65535")
		}
	}
	return w.Err()
}

// Match reports whether it has an Ethernet frame. It makes a Match a vswitch.Matcher, which must not change any more.
func (m *Match) Match(f *frame.Frame) bool {
	b := f.Bytes()
	if f.Kind != frame.Ethernet || len(b) < 14 {
		return false
	}
	if len(m.EtherTypes) > 0 && !slices.Contains(m.EtherTypes, binary.BigEndian.Uint16(b[12:])) {
		return false
	}
	src := frame.MAC(b[6:]).Uint64()
	return len(m.SrcMACs) == 0 || slices.ContainsFunc(m.SrcMACs, func(p MACPrefix) bool { return (src^p.MAC.Uint64())&p.mask() == 0 })
}

// MACPrefix has all MACs that begin with the same bits. The zero value has all.
type MACPrefix struct {
	MAC  frame.MAC
	Bits uint8 // 0 to 48
}

// ParseMACPrefix reads a MAC, or with "/" the number of its bits that count.
func ParseMACPrefix(text string) (p MACPrefix, err error) {
	mac, bits, isPrefix := strings.Cut(text, "/")
	p.Bits = 48
	if isPrefix {
		n, err := strconv.ParseUint(bits, 10, 8)
		if err != nil || n > 48 {
			return MACPrefix{}, &setting.Error{Value: text, Allowed: "a MAC with 0 to 48 bits, such as 00:00:5e:00:00:00/24"}
		}
		p.Bits = uint8(n)
	}
	if p.MAC, err = frame.ParseMAC(mac); err != nil {
		return MACPrefix{}, &setting.Error{Value: text, Allowed: "a MAC, or a prefix such as 00:00:5e:00:00:00/24"}
	}
	if frame.MACFrom(p.MAC.Uint64()&p.mask()) != p.MAC {
		return MACPrefix{}, &setting.Error{Value: text, Allowed: "a prefix with 0 behind it"}
	}
	return p, nil
}

func (p MACPrefix) mask() uint64 { return 1<<48 - 1<<(48-p.Bits) }

// IsZero reports whether it has all MACs.
func (p MACPrefix) IsZero() bool { return p == MACPrefix{} }

// String returns the prefix as ParseMACPrefix reads it.
func (p MACPrefix) String() string {
	if p.Bits == 48 {
		return p.MAC.String()
	}
	return fmt.Sprintf("%v/%d", p.MAC, p.Bits)
}

// MarshalText implements [encoding.TextMarshaler].
func (p MACPrefix) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what String writes.
func (p *MACPrefix) UnmarshalText(text []byte) (err error) {
	x, err := ParseMACPrefix(string(text))
	if err == nil {
		*p = x
	}
	return err
}
