package wire

import (
	"encoding/binary"
	"net/netip"
	"unicode"
	"unicode/utf8"

	"github.com/vxswitch/vxswitch/discovery/internal/endp"
	"github.com/vxswitch/vxswitch/discovery/internal/state"
)

// A reader reads fields until one is wrong.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || len(r.b) < n {
		r.bad = true
		return make([]byte, n)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) u8() uint8   { return r.take(1)[0] }
func (r *reader) u16() uint16 { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) u32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }

func (r *reader) u24() uint32 {
	b := r.take(3)
	return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
}

// flags reads bits, of which only those in all are known.
func (r *reader) flags(all uint8) uint8 {
	f := r.u8()
	r.bad = r.bad || f&^all != 0
	return f
}

// count reads how many follow, at most limit.
func (r *reader) count(limit int) int {
	n := int(r.u8())
	if r.bad = r.bad || n > limit; r.bad {
		return 0
	}
	return n
}

func (r *reader) addr() netip.Addr {
	n := r.u8()
	if n != 4 && n != 16 {
		r.bad = true
		return netip.Addr{}
	}
	a, _ := netip.AddrFromSlice(r.take(int(n)))
	return a
}

// host reads an address that a VTEP may have.
func (r *reader) host() netip.Addr {
	a := r.addr()
	r.bad = r.bad || !IsVTEP(a)
	return a
}

// IsVTEP reports whether a VTEP may have an address.
func IsVTEP(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && !a.Is4In6() && a.Zone() == "" && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

func (r *reader) name() string {
	n := int(r.u8())
	if n > endp.MaxName {
		r.bad = true
		return ""
	}
	s := string(r.take(n))
	r.bad = r.bad || !r.bad && !IsName(s)
	return s
}

// IsName reports whether a VTEP may have a name.
func IsName(s string) bool {
	if len(s) > endp.MaxName || !utf8.ValidString(s) {
		return false
	}
	for _, c := range s {
		if !unicode.IsPrint(c) {
			return false
		}
	}
	return true
}

func (r *reader) id() state.ID { return state.ID{Owner: r.host(), Part: r.u8()} }

// end reads an ID that is the end of a range.
func (r *reader) end() state.ID { return state.ID{Owner: r.addr(), Part: r.u8()} }

func (r *reader) entry() state.Entry {
	return state.Entry{ID: r.id(), Head: state.Head{Seq: r.u64(), Sum: r.u32()}}
}
