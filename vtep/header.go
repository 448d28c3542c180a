package vtep

import (
	"cmp"
	"strconv"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// A Value is the value of an outer header field: a number, or one of the words below. In JSON they are "inherit", "none" and
// "priority".
type Value int

const (
	Inherit      = -1 // copied from the inner packet
	TOSZero      = -2 // TOS 0, where 0 stands for another default
	FromPriority = -3 // TOS of the class selector (CS0 to CS7) with the number of the frame's priority (frame.Frame.Priority)
)

// MarshalJSON writes a number or a word.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v {
	case Inherit:
		return []byte(`"inherit"`), nil
	case TOSZero:
		return []byte(`"none"`), nil
	case FromPriority:
		return []byte(`"priority"`), nil
	}
	return strconv.AppendInt(nil, int64(v), 10), nil
}

// String returns what MarshalJSON writes.
func (v Value) String() string {
	text, _ := v.MarshalJSON()
	return string(text)
}

// UnmarshalJSON reads what MarshalJSON writes. It accepts numbers that are too large; Check does not.
func (v *Value) UnmarshalJSON(text []byte) error {
	switch n, err := strconv.ParseUint(string(text), 10, 31); {
	case string(text) == `"inherit"`:
		*v = Inherit
	case string(text) == `"none"`:
		*v = TOSZero
	case string(text) == `"priority"`:
		*v = FromPriority
	case err != nil:
		return &setting.Error{Value: setting.Literal(text), Allowed: `a number up to 255 or a word such as "inherit"`}
	default:
		*v = Value(n)
	}
	return nil
}

// A Header configures the outer IP headers. The zero value follows RFC 7348 and RFC 6040, and for
// IP-in-IP RFC 2003, section 3.1.
//
// Inherited fields come from the inner IPv4 or IPv6 header, behind up to two VLAN tags. Frames without an
// IP header, such as ARP, are sent with TTL 64, TOS 0 and DF set.
type Header struct {
	TTL Value `json:"ttl,omitzero"` // outer TTL or hop limit, 1 to 255, or Inherit; 0 = 64
	TOS Value `json:"tos,omitzero"` // outer TOS or traffic class without its two ECN bits: 4 to 252 in steps of 4, Inherit, FromPriority, or TOSZero; 0 = TOSZero, for IP-in-IP Inherit
	DF  DF    `json:"df,omitzero"`  // outer DF bit over IPv4; for IP-in-IP it is always set if the inner one is
	ECN ECN   `json:"ecn,omitzero"` // outer ECN bits

	// Sockets selects the underlay's transmit sockets: 0 for its own, or a number that
	// underlay.UDP.Sockets returned for another checksum mode or source port range.
	Sockets uint8 `json:"-"`
}

// DF says whether the outer IPv4 header has the DF bit, which forbids routers to fragment the packet.
// Routers never fragment IPv6.
type DF uint8

// DF modes.
const (
	DFDefault DF = iota // DFSet; for a single peer, the mode of the tunnel
	DFSet               // always (RFC 7348, section 4.3)
	DFUnset             // never
	DFInherit           // copied from the inner IPv4 header; set for all other packets
)

// ECN says which ECN field the outer header gets.
type ECN uint8

// ECN modes.
const (
	ECNDefault ECN = iota // ECNNormal; for a single peer, the mode of the tunnel
	ECNNormal             // a copy of the inner field (RFC 6040, section 4.1, normal mode)
	ECNCompat             // Not-ECT, for peers that ignore the outer field (RFC 6040, section 4.1, compatibility mode)
	ECNRFC3168            // like ECNNormal, but CE becomes ECT(0), as Linux and OVS do (RFC 3168, section 9.1.1, full functionality)
)

const defaultTTL = 64

func (h *Header) check() error {
	w := setting.Of("vtep: Header")
	if h.TTL < Inherit || h.TTL > 255 {
		w.Want("TTL", h.TTL, `1 to 255, 0 for 64, or "inherit"`)
	}
	checkTOS(w, h.TOS)
	if h.DF > DFInherit {
		w.Want("DF", uint8(h.DF), "DFSet, DFUnset or DFInherit")
	}
	if h.ECN > ECNRFC3168 {
		w.Want("ECN", uint8(h.ECN), "ECNNormal, ECNCompat or ECNRFC3168")
	}
	return w.Err()
}

// header is a Header as the writers use it: immutable.
type header struct {
	ttl      uint8
	ttlIn    bool // inherited
	tos      tos
	df, dfIn bool
	dfKeep   bool // DF of the inner header is never lost
	ecn      ECN
	set      uint8
}

func (h *Header) compile(t encap.Type) *header {
	c := &header{ttl: defaultTTL, df: h.DF != DFUnset, dfIn: h.DF == DFInherit, dfKeep: t.Bare(), ecn: cmp.Or(h.ECN, ECNNormal), set: h.Sockets}
	switch {
	case h.TTL == Inherit:
		c.ttlIn = true
	case h.TTL != 0:
		c.ttl = uint8(h.TTL)
	}
	c.tos = tosOf(h.TOS)
	if h.TOS == 0 && t.Bare() {
		c.tos = tosOf(Inherit)
	}
	return c
}

// headerTo returns the header towards a hop.
func (v *VTEP) headerTo(h *hop) *header {
	if c := h.header.Load(); c != nil {
		return c
	}
	return v.header
}

// fill sets the outer header fields of d for an inner packet of this priority. The TOS is that of mark, unless that is nil.
func (h *header) fill(d *frame.Datagram, in *innerIP, priority uint8, mark *tos) {
	if mark == nil {
		mark = &h.tos
	}
	d.TTL, d.TOS, d.DF, d.Set = h.ttl, mark.of(in, priority), h.df, h.set
	if !in.isIP {
		return
	}
	if h.ttlIn {
		d.TTL = in.ttl
	}
	if h.dfIn && in.is4 {
		d.DF = in.df
	}
	if h.dfKeep && in.is4 && in.df { // RFC 2003, section 3.1
		d.DF = true
	}
	switch ecn := in.tos & 3; {
	case h.ecn == ECNCompat:
	case h.ecn == ECNRFC3168 && ecn == ce:
		d.TOS |= ect0
	default:
		d.TOS |= ecn
	}
}
