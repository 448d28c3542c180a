// Package packets writes packets for tests with gopacket, which shares no code with what is tested.
package packets

import (
	"slices"

	"github.com/google/gopacket"
)

// Of returns the bytes of layers, with right lengths and checksums.
func Of(layers ...gopacket.SerializableLayer) []byte {
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, layers...); err != nil {
		panic(err)
	}
	return slices.Clip(b.Bytes())
}
