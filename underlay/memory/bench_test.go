package memory

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

// One operation is one datagram of 64 bytes through a perfect Network.
func BenchmarkRoundTrip(b *testing.B) {
	n := NewNetwork(nil)
	src, dst := member(b, n, "192.0.2.1:1", nil), member(b, n, "192.0.2.2:1", nil)
	payload := make([]byte, 64)
	ds := make([]frame.Datagram, 64)
	for i := range ds {
		ds[i] = frame.Datagram{Parts: [][]byte{payload[:8], payload[8:]}, To: []frame.Endpoint{endpoint(b, dst.LocalAddr())}, DF: true}
	}
	underlaytest.RoundTrips(b, src, dst, ds, len(ds))
}
