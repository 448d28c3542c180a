package netns

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A TCP segment whose checksum is zero: written as zero or as 0xffff it is good, as anything
// else it is not, and neither is 0xffff where the checksum is another.
func TestFieldsTCPChecksum(t *testing.T) {
	segment := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0,
		0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
		0, 80, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0}
	// Addresses, protocol, length, and what the header has so far; the window makes it whole.
	sum := uint32(2*0x0a00 + 1 + 2 + 6 + 20 + 2*80 + 0x5010)
	binary.BigEndian.PutUint16(segment[48:], uint16(0xffff-sum))
	var ps []Packet
	for _, c := range []struct{ check, port uint16 }{{0, 80}, {0xffff, 80}, {1, 80}, {0xffff, 81}} {
		f := append([]byte(nil), segment...)
		binary.BigEndian.PutUint16(f[36:], c.port)
		binary.BigEndian.PutUint16(f[50:], c.check)
		ps = append(ps, Packet{Data: f})
	}
	rows := Fields(t, ps, "tcp", "tcp.dstport", "tcp.checksum", "tcp.checksum.status")
	check.True(t, fmt.Sprint(rows) == "[[80 0x0000 1] [80 0xffff 1] [80 0x0001 0] [81 0xffff 0]]", "%v", rows)
}
