package gso_test

import (
	"fmt"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A device hands over 2500 bytes of UDP payload to be sent in datagrams of 1000; they are
// cut for a tunnel and, at its far end, joined for the device there.
func Example() {
	packet := make([]byte, 28+2500)
	ip := wire.IPv4(packet)
	copy(ip, []byte{0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, wire.ProtoUDP, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2})
	ip.SetTotalLen(len(packet))
	ip.SetChecksum(wire.Checksum(wire.Sum(ip[:20], 0)))
	copy(packet[20:], []byte{0x30, 0x39, 0, 53})
	udp := wire.UDP(packet[20:])
	udp.SetLen(8 + 2500)
	udp.SetChecksum(wire.Fold(wire.Pseudo4(ip, wire.ProtoUDP, 8+2500)))

	f := frame.Make(packet)
	f.Kind = frame.IPv4
	f.GSO = frame.GSO{Flags: frame.NeedsCsum, Type: frame.GSOUDP, Size: 1000, CsumStart: uint16(f.Headroom() + 20), CsumOffset: 6}
	fmt.Println("checked:", gso.Check(&f), "longest segment:", f.SegLen())

	var c gso.Cutter
	parts, size := c.Cut(nil, []byte("tunnel header"), &f)
	fmt.Println("cut:", len(parts)/2, "segments of", size)

	var out []frame.Out
	for i := 0; i < len(parts); i += 2 {
		packet := append(append([]byte(nil), parts[i]...), parts[i+1]...)
		s := frame.Make(packet[len("tunnel header"):])
		s.Kind = frame.IPv4
		out = append(out, frame.Out{F: &s})
	}
	c.Reset()

	j := gso.Joiner{UDP: true}
	n, g, parts := j.Join(out)
	fmt.Println("joined:", n, "size:", g.Size, "pieces:", len(parts))
	// Output:
	// checked: none longest segment: 1028
	// cut: 3 segments of 1041
	// joined: 3 size: 1000 pieces: 4
}
