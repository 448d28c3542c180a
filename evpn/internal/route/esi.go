package route

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
)

// ESI is an Ethernet segment identifier; zero is none (RFC 7432, section 5).
type ESI [10]byte

// AllTags is the Ethernet tag of a route of type 1 that is about the Ethernet segment, and not about one of its networks (MAX-ET).
const AllTags = 1<<32 - 1

// String returns "00:11:22:33:44:55:66:77:88:99".
func (e ESI) String() string {
	b := make([]byte, 0, 29)
	for i := range e {
		if i > 0 {
			b = append(b, ':')
		}
		b = hex.AppendEncode(b, e[i:i+1])
	}
	return string(b)
}

// ParseESI reads what String writes.
func ParseESI(s string) (e ESI, err error) {
	parts := strings.Split(s, ":")
	for i, p := range parts {
		if len(parts) != len(e) || len(p) != 2 {
			err = errESI
			break
		}
		if _, bad := hex.Decode(e[i:i+1], []byte(p)); bad != nil {
			err = errESI
			break
		}
	}
	switch {
	case err != nil:
	case !e.Shared():
		err = errESI
	case endsInZero(e[0]) && e[9] != 0:
		err = errESIEnd
	}
	if err != nil {
		e = ESI{}
	}
	return e, err
}

var (
	errESI    = errors.New("must be ten bytes such as 00:11:22:33:44:55:66:77:88:99, not all 00 and not all ff")
	errESIEnd = errors.New("must end in 00, as all of types 01, 02, 04 and 05 do")
)

// endsInZero reports whether the last byte of all identifiers of a type is zero (RFC 7432, section 5). Some peers end the session when it is not.
func endsInZero(typ byte) bool { return typ == 1 || typ == 2 || typ == 4 || typ == 5 }

// Shared reports whether several VTEPs may have the segment: it is neither none nor the reserved MAX-ESI.
func (e ESI) Shared() bool {
	for _, b := range e[1:] {
		if b != e[0] {
			return true
		}
	}
	return e[0] != 0 && e[0] != 0xff
}

// Types of EVPN's communities that are about Ethernet segments.
const (
	subESILabel = 0x01
	subESImport = 0x02
	subElection = 0x06
)

// ESILabel returns that of a route of type 1 about an Ethernet segment: whether one VTEP at a time forwards (RFC 7432, section 7.5). VXLAN
// needs no label (RFC 8365, section 8.3.1).
func ESILabel(singleActive bool) Community {
	c := Community{typeEVPN, subESILabel}
	if singleActive {
		c[2] = 1
	}
	return c
}

// ESImport returns the route target of an Ethernet segment: six bytes of its identifier (RFC 7432, section 7.6), whatever its type.
func ESImport(e ESI) (c Community) {
	c[0], c[1] = typeEVPN, subESImport
	copy(c[2:], e[1:7])
	return c
}

// An Election is how a VTEP wants the designated forwarder elected (RFC 8584, section 2.2). The zero value is what it says by silence.
type Election struct {
	Algorithm    uint8
	Capabilities uint16 // the first of RFC 8584 is the highest bit
	Preference   uint16 // with the algorithm of RFC 9785
}

// Community returns the extended community that says e.
func (e Election) Community() (c Community) {
	c[0], c[1], c[2] = typeEVPN, subElection, e.Algorithm&0x1f
	binary.BigEndian.PutUint16(c[3:], e.Capabilities)
	binary.BigEndian.PutUint16(c[6:], e.Preference)
	return c
}

// ESILabel reports whether one VTEP at a time forwards; ok is false if nothing is said of it.
func (c Communities) ESILabel() (singleActive, ok bool) {
	x, ok := c.find(typeEVPN, subESILabel)
	return x[2]&1 != 0, ok
}

// ESImports reports whether c has the route target of an Ethernet segment.
func (c Communities) ESImports(e ESI) bool {
	want := ESImport(e)
	for i := range c.Len() {
		if c.At(i) == want {
			return true
		}
	}
	return false
}

// Election returns how the designated forwarder is to be elected.
func (c Communities) Election() Election {
	x, _ := c.find(typeEVPN, subElection)
	return Election{x[2] & 0x1f, binary.BigEndian.Uint16(x[3:]), binary.BigEndian.Uint16(x[6:])}
}
