package wire

import (
	"encoding/binary"
	"math/bits"
)

// Sum adds the bytes of b, taken as big endian 16-bit words, to a running one's
// complement sum (RFC 1071). A sum over several pieces of memory is taken piece by
// piece; all but the last have an even length.
func Sum(b []byte, sum uint64) uint64 {
	// RFC 1071, section 2(B): the sum of swapped words is the swapped sum. So words are
	// loaded as most machines keep them, and the result is swapped once. Two
	// accumulators: the chain of carries in one does not wait for the other.
	var x, y, carry uint64
	for len(b) >= 128 {
		p := (*[128]byte)(b)
		x, carry = bits.Add64(x, binary.LittleEndian.Uint64(p[:]), 0)
		x, carry = bits.Add64(x, binary.LittleEndian.Uint64(p[8:]), carry)
		x, carry = bits.Add64(x, binary.LittleEndian.Uint64(p[16:]), carry)
		x, carry = bits.Add64(x, binary.LittleEndian.Uint64(p[24:]), carry)
		x, carry = bits.Add64(x, binary.LittleEndian.Uint64(p[32:]), carry)
		x, carry = bits.Add64(x, binary.LittleEndian.Uint64(p[40:]), carry)
		x, carry = bits.Add64(x, binary.LittleEndian.Uint64(p[48:]), carry)
		x, carry = bits.Add64(x, binary.LittleEndian.Uint64(p[56:]), carry)
		x += carry // no overflow: a sum that carried is not all ones
		y, carry = bits.Add64(y, binary.LittleEndian.Uint64(p[64:]), 0)
		y, carry = bits.Add64(y, binary.LittleEndian.Uint64(p[72:]), carry)
		y, carry = bits.Add64(y, binary.LittleEndian.Uint64(p[80:]), carry)
		y, carry = bits.Add64(y, binary.LittleEndian.Uint64(p[88:]), carry)
		y, carry = bits.Add64(y, binary.LittleEndian.Uint64(p[96:]), carry)
		y, carry = bits.Add64(y, binary.LittleEndian.Uint64(p[104:]), carry)
		y, carry = bits.Add64(y, binary.LittleEndian.Uint64(p[112:]), carry)
		y, carry = bits.Add64(y, binary.LittleEndian.Uint64(p[120:]), carry)
		y += carry
		b = b[128:]
	}
	for len(b) >= 32 {
		p := (*[32]byte)(b)
		x, carry = bits.Add64(x, binary.LittleEndian.Uint64(p[:]), 0)
		x, carry = bits.Add64(x, binary.LittleEndian.Uint64(p[8:]), carry)
		x, carry = bits.Add64(x, binary.LittleEndian.Uint64(p[16:]), carry)
		x, carry = bits.Add64(x, binary.LittleEndian.Uint64(p[24:]), carry)
		x += carry
		b = b[32:]
	}
	for len(b) >= 8 {
		x, carry = bits.Add64(x, binary.LittleEndian.Uint64(b), 0)
		x += carry
		b = b[8:]
	}
	if len(b) >= 4 {
		x, carry = bits.Add64(x, uint64(binary.LittleEndian.Uint32(b)), 0)
		x += carry
		b = b[4:]
	}
	var last uint64
	if len(b) >= 2 {
		last = uint64(binary.LittleEndian.Uint16(b))
		b = b[2:]
		if len(b) == 1 {
			last |= uint64(b[0]) << 16
		}
	} else if len(b) == 1 {
		last = uint64(b[0])
	}
	x, carry = bits.Add64(x, last, 0)
	x, carry = bits.Add64(x, y, carry)
	x += carry
	sum, carry = bits.Add64(sum, bits.ReverseBytes64(x), 0)
	return sum + carry
}

// Checksum ends a sum: it folds it to 16 bits and inverts it, ready for the header.
func Checksum(sum uint64) uint16 { return ^Fold(sum) }

// Fold adds up the 16-bit words of a sum.
func Fold(sum uint64) uint16 {
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	return uint16(sum)
}

// Update returns the checksum of a header in which a 16-bit word was changed from
// old to new (RFC 1624, equation 3).
func Update(checksum, old, new uint16) uint16 {
	return ^Fold(uint64(^checksum) + uint64(^old) + uint64(new))
}

// Pseudo4 is the sum of the IPv4 pseudo header of TCP and UDP: the addresses, as they
// are in the IPv4 header ip, the protocol and the length of the transport packet.
func Pseudo4(ip []byte, protocol uint8, length int) uint64 {
	return Sum(ip[12:20], uint64(protocol)+uint64(length))
}

// Pseudo6 is likewise that of the IPv6 header ip (RFC 8200, section 8.1).
func Pseudo6(ip []byte, protocol uint8, length int) uint64 {
	return Sum(ip[8:40], uint64(protocol)+uint64(length))
}
