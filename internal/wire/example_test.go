package wire_test

import (
	"fmt"

	"github.com/vxswitch/vxswitch/internal/wire"
)

// A router takes one from the TTL of an IPv4 header and mends its checksum, either way.
func Example() {
	ip := wire.IPv4{0x45, 0, 0, 20, 0, 0, 0x40, 0, 64, wire.ProtoUDP, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2}
	ip.SetChecksum(wire.Checksum(wire.Sum(ip, 0)))
	fmt.Printf("%#04x, sum with it %#x\n", ip.Checksum(), wire.Fold(wire.Sum(ip, 0)))

	updated := wire.Update(ip.Checksum(), 64<<8|wire.ProtoUDP, 63<<8|wire.ProtoUDP)
	ip[8]--
	ip.SetChecksum(0)
	ip.SetChecksum(wire.Checksum(wire.Sum(ip, 0)))
	fmt.Printf("%#04x, updated %#04x\n", ip.Checksum(), updated)
	// Output:
	// 0xb6d5, sum with it 0xffff
	// 0xb7d5, updated 0xb7d5
}
