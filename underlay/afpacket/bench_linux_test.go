package afpacket

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
	"github.com/vxswitch/vxswitch/underlay"
)

// One operation is one datagram over a veth, sent by one goroutine in bursts of 64, or as
// runs of 44, and received by the same: from one underlay to another of its kind.
func BenchmarkRoundTrip(b *testing.B) {
	v := newVeth(b, false)
	udp := func(cfg *underlay.UDPConfig) (src, dst network) { return v.udp(v.A, 100, cfg), v.udp(v.B, 2, cfg) }
	packet := func(cfg *Config) (src, dst network) {
		return v.packetAt(v.A, 1, cfg), v.packetAt(v.B, 3, cfg)
	}
	for name, open := range map[string]func() (src, dst network){
		"UDP":             func() (src, dst network) { return udp(nil) },
		"UDP/sum":         func() (src, dst network) { return udp(&underlay.UDPConfig{Checksum: underlay.ChecksumOn}) },
		"Packet":          func() (src, dst network) { return packet(nil) },
		"Packet/sum":      func() (src, dst network) { return packet(&Config{Checksum: underlay.ChecksumOn}) },
		"Packet/software": func() (src, dst network) { return packet(&Config{Checksum: underlay.ChecksumOn, NoOffload: true}) },
	} {
		for _, size := range []int{64, 1400} {
			b.Run(fmt.Sprintf("%s/lone/%d", name, size), func(b *testing.B) {
				src, dst := open()
				defer src.Close()
				defer dst.Close()
				payload := make([]byte, size)
				ds := make([]frame.Datagram, 64)
				for i := range ds {
					ds[i] = frame.Datagram{Parts: [][]byte{payload[:8], payload[8:]}, To: []frame.Endpoint{endpoint(b, dst.LocalAddr())}, DF: true}
				}
				meet(b, src, dst)
				b.SetBytes(int64(size))
				defer processor(b)()
				underlaytest.RoundTrips(b, src, dst, ds, len(ds))
			})
		}
		b.Run(name+"/run/1400", func(b *testing.B) {
			src, dst := open()
			defer src.Close()
			defer dst.Close()
			d, want := runOf(44*1400, 1400, 8, 1, endpoint(b, dst.LocalAddr()))
			meet(b, src, dst)
			b.SetBytes(1400)
			defer processor(b)()
			underlaytest.RoundTrips(b, src, dst, []frame.Datagram{d}, len(want))
		})
	}
}

// processor reports the time that the processors were busy with it, which others who are busy
// do not change much.
func processor(b *testing.B) func() {
	used := func() int64 {
		var r syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
		return r.Utime.Nano() + r.Stime.Nano()
	}
	start := used()
	return func() {
		b.StopTimer() // closing packet sockets takes dozens of milliseconds
		b.ReportMetric(float64(used()-start)/float64(b.N), "cpu-ns/op")
	}
}

// meet has the next hop known.
func meet(b *testing.B, src, dst network) {
	send(b, src, to("hello", 0, endpoint(b, dst.LocalAddr())))
	receive(b, dst, 1)
}
