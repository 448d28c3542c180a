package underlay

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

// One operation is one datagram of 64 bytes, sent over loopback and received, by
// one goroutine, in bursts of n. "ordinary" is what one writes without this package:
// one system call for each datagram, and with "info" the same control messages.
func BenchmarkUDPRoundTrip(b *testing.B) {
	payload := make([]byte, 64)
	for _, n := range []int{1, 64} {
		for _, info := range []bool{false, true} {
			b.Run(fmt.Sprintf("ordinary/burst=%d/info=%v", n, info), func(b *testing.B) {
				ordinaryRoundTrips(b, payload, n, info)
			})
		}
	}
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			src, dst := listen(b, "127.0.0.1:0", nil), listen(b, "127.0.0.1:0", nil)
			ds := make([]frame.Datagram, n)
			for i := range ds {
				ds[i] = frame.Datagram{Parts: [][]byte{payload[:8], payload[8:]}, To: []frame.Endpoint{endpoint(b, dst.LocalAddr())}, DF: true}
			}
			underlaytest.RoundTrips(b, src, dst, ds, n)
		})
	}
	b.Run("replicate=64", func(b *testing.B) {
		src, dst := listen(b, "127.0.0.1:0", nil), listen(b, "127.0.0.1:0", nil)
		d := frame.Datagram{Parts: [][]byte{payload[:8], payload[8:]}, DF: true}
		for range 64 {
			d.To = append(d.To, endpoint(b, dst.LocalAddr()))
		}
		underlaytest.RoundTrips(b, src, dst, []frame.Datagram{d}, 64)
	})
}

// One operation is one datagram of 1400 bytes of a run of 44, over loopback, or in
// "lone" the same datagrams one by one.
func BenchmarkUDPRun(b *testing.B) {
	for _, off := range []bool{false, true} {
		name := map[bool]string{false: "run", true: "lone"}[off]
		b.Run(name, func(b *testing.B) {
			cfg := &UDPConfig{NoOffload: off}
			src, dst := listen(b, "127.0.0.1:0", cfg), listen(b, "127.0.0.1:0", cfg)
			d, want := runOf(44*1400, 1400, 8, 1, endpoint(b, dst.LocalAddr()))
			b.SetBytes(1400)
			underlaytest.RoundTrips(b, src, dst, []frame.Datagram{d}, len(want))
		})
	}
}

func ordinaryRoundTrips(b *testing.B, payload []byte, n int, info bool) {
	src, dst := ordinary(b), ordinary(b)
	if info {
		raw, err := dst.SyscallConn()
		must(b, err)
		u := &UDP{base: base{is4: true, cfg: UDPConfig{RecvBuffer: datagrams.DefaultBuffer}}}
		if e := raw.Control(func(fd uintptr) { err = u.rxOptions(int(fd)) }); e != nil || err != nil {
			b.Fatal(e, err)
		}
	}
	to := dst.LocalAddr().(*net.UDPAddr).AddrPort()
	buf, oob := make([]byte, 2048), make([]byte, rxControl)
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += n {
		for range n {
			if _, err := src.WriteToUDPAddrPort(payload, to); err != nil {
				b.Fatal(err)
			}
		}
		for range n {
			var err error
			if info {
				_, _, _, _, err = dst.ReadMsgUDPAddrPort(buf, oob)
			} else {
				_, _, err = dst.ReadFromUDPAddrPort(buf)
			}
			must(b, err)
		}
	}
}

func ordinary(b *testing.B) *net.UDPConn {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(b, err)
	b.Cleanup(func() { c.Close() })
	return c
}

// Sending alone, to a socket that takes nothing: what a Send costs.
func BenchmarkUDPSend(b *testing.B) {
	payload := make([]byte, 64)
	sink := listen(b, "127.0.0.1:0", nil)
	to := netip.AddrPortFrom(sink.LocalAddr().Addr(), txPort(sink, 0))
	b.Run("ordinary", func(b *testing.B) {
		src := ordinary(b)
		for b.Loop() {
			if _, err := src.WriteToUDPAddrPort(payload, to); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, flows := range []int{1, 16} {
		b.Run(fmt.Sprintf("batch=64/ports=%d", flows), func(b *testing.B) {
			src := listen(b, "127.0.0.1:0", nil)
			ds := make([]frame.Datagram, 64)
			for i := range ds {
				ds[i] = frame.Datagram{Parts: [][]byte{payload[:8], payload[8:]}, To: []frame.Endpoint{endpoint(b, to)},
					Flow: uint16(i % flows * (65536 / 16)), DF: true}
			}
			s := src.Sender(0)
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += len(ds) {
				must(b, s.Send(ds))
			}
			if l := src.Stats().Lost(); l > 0 {
				b.Fatalf("%d lost", l)
			}
		})
	}
}
