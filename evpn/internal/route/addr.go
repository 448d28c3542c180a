package route

import "net/netip"

// Addr is an IPv4 or IPv6 address without a zone, or none, which is the zero value. Unlike [netip.Addr] it holds no pointer.
type Addr struct {
	b   [16]byte
	len uint8 // 0, 4 or 16 bytes of b
}

// AddrFrom returns an address of package netip, without its zone. An IPv4 address in IPv6 form becomes an IPv4 address.
func AddrFrom(a netip.Addr) (r Addr) {
	if a.IsValid() {
		r.len = uint8(copy(r.b[:], a.Unmap().AsSlice()))
	}
	return r
}

// Bytes returns 0, 4 or 16 bytes.
func (a *Addr) Bytes() []byte { return a.b[:a.len] }

// Bits returns 0, 32 or 128.
func (a Addr) Bits() int { return 8 * int(a.len) }

// Netip returns the address as package netip has it, the invalid one if there is none.
func (a Addr) Netip() netip.Addr {
	r, _ := netip.AddrFromSlice(a.Bytes())
	return r
}

func (a Addr) String() string {
	if a.len == 0 {
		return "none"
	}
	return a.Netip().String()
}

// AddrOf returns the address whose bytes are b, none unless there are 4 or 16.
func AddrOf(b []byte) (r Addr) {
	if len(b) == 4 || len(b) == 16 {
		r.len = uint8(copy(r.b[:], b))
	}
	return r
}
