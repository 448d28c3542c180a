package memory

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
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
	s, r, batch := src.Sender(0), dst.Readers()[0], frame.NewBatch(nil)
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += len(ds) {
		if err := s.Send(ds); err != nil {
			b.Fatal(err)
		}
		for got := 0; got < len(ds); got += len(batch.Frames) {
			if err := r.Read(batch); err != nil {
				b.Fatal(err)
			}
		}
	}
}
