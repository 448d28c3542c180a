package netns

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// A TCP segment whose checksum is zero: written as zero or as 0xffff it is good, as anything
// else it is not.
func TestFieldsTCPChecksum(t *testing.T) {
	segment := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0,
		0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
		0, 80, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0}
	// Addresses, protocol, length, and what the header has so far; the window makes it whole.
	sum := uint32(2*0x0a00 + 1 + 2 + 6 + 20 + 2*80 + 0x5010)
	binary.BigEndian.PutUint16(segment[48:], uint16(0xffff-sum))
	var ps []Packet
	for _, check := range []uint16{0, 0xffff, 1} {
		f := append([]byte(nil), segment...)
		binary.BigEndian.PutUint16(f[50:], check)
		ps = append(ps, Packet{Data: f})
	}
	if rows := Fields(t, ps, "tcp", "tcp.dstport", "tcp.checksum.status"); fmt.Sprint(rows) != "[[80 1] [80 1] [80 0]]" {
		t.Error(rows)
	}
}
