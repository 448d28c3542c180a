package underlay

import (
	"bytes"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
)

// FuzzPullIPv4: of what a raw socket hands over the outer header goes, all of it and no more,
// as gopacket reads it; what has none stays as it is.
func FuzzPullIPv4(f *testing.F) {
	f.Add(append([]byte{0x45, 0, 0, 40, 0, 0, 0, 0, 64, 4, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}, make([]byte, 20)...))
	f.Add(append([]byte{0x46, 0, 0, 24, 0, 0, 0, 0, 64, 4, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 0}, 0x45))
	f.Add([]byte{0x4f, 0, 0, 20})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		x := frame.Make(b)
		ok := pullIPv4(&x)
		var ip layers.IPv4
		err := ip.DecodeFromBytes(b, gopacket.NilDecodeFeedback)
		switch n := len(b) - x.Len(); {
		case !ok:
			if !bytes.Equal(x.Bytes(), b) {
				t.Fatalf("% x became % x", b, x.Bytes())
			}
			if err == nil && ip.Version == 4 && int(ip.IHL)*4 <= len(b) {
				t.Fatalf("% x is no packet, to gopacket it is", b)
			}
		case n < 20 || n != int(b[0]&15)*4 || !bytes.Equal(x.Bytes(), b[n:]) || x.Headroom() < frame.Headroom+n:
			t.Fatalf("%d bytes off % x", n, b)
		case err == nil && (int(ip.IHL)*4 != n || ip.Version != 4):
			t.Fatalf("%d bytes off % x, gopacket has %+v", n, b, ip)
		}
	})
}
