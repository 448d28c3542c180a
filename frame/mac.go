package frame

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
)

// MAC is an EUI-48 address. It is comparable and contains no pointer.
type MAC [6]byte

// RandomMAC returns a random, locally administered MAC of one host.
func RandomMAC() (m MAC) {
	rand.Read(m[:])
	m[0] = m[0]&^1 | 2
	return m
}

// Broadcast is ff:ff:ff:ff:ff:ff.
var Broadcast = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// ParseMAC reads a MAC in any of the forms of [net.ParseMAC], 6 bytes long.
func ParseMAC(s string) (MAC, error) {
	h, err := net.ParseMAC(s)
	if err != nil || len(h) != 6 {
		return MAC{}, fmt.Errorf("frame: %q: must be a MAC such as 02:00:00:00:00:01", s)
	}
	return MAC(h), nil
}

// MACFrom returns the MAC in the low 48 bits of u: the inverse of [MAC.Uint64].
func MACFrom(u uint64) MAC {
	return MAC{byte(u >> 40), byte(u >> 32), byte(u >> 24), byte(u >> 16), byte(u >> 8), byte(u)}
}

// Uint64 returns the address as a number of 48 bits, in big endian order.
func (m MAC) Uint64() uint64 {
	return uint64(binary.BigEndian.Uint32(m[:4]))<<16 | uint64(binary.BigEndian.Uint16(m[4:]))
}

// IsGroup reports whether the address is multicast or broadcast (I/G bit set).
func (m MAC) IsGroup() bool { return m[0]&1 != 0 }

// IsZero reports whether the address is 00:00:00:00:00:00.
func (m MAC) IsZero() bool { return m == MAC{} }

// IsHost reports whether the address may be that of one host: neither group nor zero.
func (m MAC) IsHost() bool { return !m.IsGroup() && !m.IsZero() }

// String returns the address as 02:00:00:00:00:01.
func (m MAC) String() string { return m.HardwareAddr().String() }

// HardwareAddr returns the address as the standard library's type.
func (m MAC) HardwareAddr() net.HardwareAddr { return net.HardwareAddr(m[:]) }

// MarshalText implements [encoding.TextMarshaler].
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (m *MAC) UnmarshalText(text []byte) error {
	p, err := ParseMAC(string(text))
	if err == nil {
		*m = p
	}
	return err
}
