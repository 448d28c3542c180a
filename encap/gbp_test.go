package encap

import (
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
)

func TestGBPHeaders(t *testing.T) {
	for _, c := range []struct {
		vni  frame.VNI
		g    frame.GBP
		want string
	}{
		{4100, frame.GBP{}, "0800000000100400"},
		{4100, frame.GBP{ID: 0x1234}, "8800123400100400"},
		{4100, frame.GBP{ID: 1, DontLearn: true}, "8840000100100400"},
		{4100, frame.GBP{Applied: true}, "8808000000100400"},
		{frame.MaxVNI, frame.GBP{ID: 0xffff, DontLearn: true, Applied: true}, "8848ffffffffff00"},
	} {
		b := make([]byte, VXLANLen)
		PutVXLANGBP(b, c.vni, c.g)
		if got := hex.EncodeToString(b); got != c.want {
			t.Errorf("%+v: %s, want %s", c.g, got, c.want)
		}
		h, drop := ParseVXLAN(b)
		if drop != 0 || h.VNI() != c.vni || h.GBP() != c.g || h&^VXLAN(TypeVXLAN.Used(true)) != 0 {
			t.Errorf("%s: %v, VNI %d, %+v", c.want, drop, h.VNI(), h.GBP())
		}
	}
	// Without G the bits mean nothing.
	if g := (VXLAN(0x0848123400100400)).GBP(); g != (frame.GBP{}) {
		t.Errorf("%+v", g)
	}
}

// gopacket reads the same; it looks for A in another bit than the draft has it in (v1.1.19).
func TestGBPAgainstGopacket(t *testing.T) {
	for range 1000 {
		g := frame.GBP{ID: uint16(1 + rand.N(65535)), DontLearn: rand.N(2) == 0, Applied: rand.N(2) == 0}
		b := make([]byte, VXLANLen+EthernetLen)
		PutVXLANGBP(b, 77, g)
		h, _ := gopacket.NewPacket(b, layers.LayerTypeVXLAN, gopacket.Default).Layer(layers.LayerTypeVXLAN).(*layers.VXLAN)
		if h == nil || !h.ValidIDFlag || h.VNI != 77 || !h.GBPExtension || h.GBPGroupPolicyID != g.ID || h.GBPDontLearn != g.DontLearn {
			t.Fatalf("%+v: % x, gopacket reads %+v", g, b, h)
		}
	}
}

func TestUsed(t *testing.T) {
	for _, c := range []struct {
		t    Type
		gbp  bool
		want uint64
	}{
		{TypeVXLAN, false, 0x08000000ffffff00},
		{TypeVXLAN, true, 0x8848ffffffffff00},
		{TypeGPE, false, 0x3f0000ffffffff00},
		{TypeIPIP, false, 0},
	} {
		if got := c.t.Used(c.gbp); got != c.want {
			t.Errorf("%v, GBP %v: %#x, want %#x", c.t, c.gbp, got, c.want)
		}
	}
}
