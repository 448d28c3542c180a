package framing

import (
	"bytes"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// The packet inside stays, and gopacket finds it behind what it knows.
func TestAll(t *testing.T) {
	arp := append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1}, make([]byte, 40)...)
	n, opened := 0, 0
	for name, b := range All(arp) {
		n++
		if !bytes.Equal(b[:12], arp[:12]) || !bytes.HasSuffix(b, arp[12:]) {
			t.Errorf("%s: % x", name, b)
		}
		if gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default).Layer(layers.LayerTypeARP) != nil {
			opened++
		}
	}
	if want := len(Plain) + len(Odd); n != want+2*want*want || opened < 10 {
		t.Errorf("%d framings, %d opened by gopacket", n, opened)
	}
	for range All(arp) {
		break
	}
}
