package bench

import (
	"net"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	"github.com/vxswitch/vxswitch/underlay"
)

// An ipipBed is two underlays for IP in IP on loopback, in a namespace of their own.
type ipipBed struct {
	b        testing.TB
	from, to *underlay.IP
	sender   frame.Sender
	batch    *frame.Batch
	lone     []frame.Datagram // MaxBatch packets
	joined   []frame.Datagram // the same, as few as can be
}

// newIPIPBed makes packets of size bytes, in runs where they are segments of superframes.
func newIPIPBed(b *testing.B, size int, runs bool) *ipipBed {
	b.Helper()
	r := &ipipBed{b: b, batch: frame.NewBatch(nil)}
	listen := func(at string) *underlay.IP {
		u, err := underlay.ListenIP(netip.MustParseAddr(at), &underlay.IPConfig{RecvBuffer: 8 << 20})
		must(b, err)
		b.Cleanup(func() { u.Close() })
		return u
	}
	netns.New(b).Host("a").Do(func() { r.from, r.to = listen("127.0.0.1"), listen("127.0.0.2") })
	e, err := frame.EndpointFrom(r.to.LocalAddr())
	must(b, err)
	to, packet := []frame.Endpoint{e}, insidePacket(b, size)
	run := frame.Datagram{To: to, Seg: uint16(size), DF: true}
	for range frame.MaxBatch {
		parts := [][]byte{packet[:40], packet[40:]}
		r.lone = append(r.lone, frame.Datagram{Parts: parts, To: to, DF: true})
		run.Parts = append(run.Parts, parts...)
	}
	if r.joined = r.lone; runs {
		r.joined = []frame.Datagram{run}
	}
	r.sender = r.from.Sender(0)
	return r
}

// insidePacket is an IPv4 packet with a UDP datagram, size bytes in all.
func insidePacket(tb testing.TB, size int) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IPv4(172, 16, 0, 1), DstIP: net.IPv4(172, 17, 0, 1)}
	udp := &layers.UDP{SrcPort: 1000, DstPort: 2000}
	udp.SetNetworkLayerForChecksum(ip)
	return packets.Of(ip, udp, gopacket.Payload(make([]byte, size-28)))
}

// pass sends datagrams and, if they are to be read, reads n packets.
func (r *ipipBed) pass(ds []frame.Datagram, n int) {
	must(r.b, r.sender.Send(ds))
	for n > 0 {
		must(r.b, r.to.Readers()[0].Read(r.batch))
		n -= len(r.batch.Frames)
	}
}

// BenchmarkIPIP is IPv4 inside IPv4 through the underlay of raw sockets on loopback, 64
// packets with one Send: the time is for one packet. x-lone is how many times as long it
// takes to send them one by one, and to receive each before the next, by the same code;
// the aim is 2. In "send" nobody reads, and what does not fit is dropped by
// the kernel. A run is one of the segments of a superframe.
func BenchmarkIPIP(b *testing.B) {
	for _, c := range []struct {
		name       string
		size       int
		runs, read bool
	}{
		{"send/64", 64, false, false},
		{"send/run", 1480, true, false},
		{"round/64", 64, false, true},
		{"round/run", 1480, true, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			netns.RequireRoot(b)
			r := newIPIPBed(b, c.size, c.runs)
			each, all := 0, 0 // to read
			if c.read {
				each, all = 1, frame.MaxBatch
			}
			lone := func(n int) {
				for range n {
					for i := range r.lone {
						r.pass(r.lone[i:i+1], each)
					}
				}
			}
			joined := func(n int) {
				for range n {
					r.pass(r.joined, all)
				}
			}
			lone(1)
			joined(1)
			b.ReportAllocs()
			b.ResetTimer()
			batches := b.N/frame.MaxBatch + 1
			together, single := turns(batches, 20, joined, lone)
			b.StopTimer()
			if s := r.from.Stats(); s.Lost() > 0 || s.TxDatagrams != uint64(2*(batches+1)*frame.MaxBatch) {
				b.Fatalf("%d batches: %+v", batches, s)
			}
			b.ReportMetric(together, "ns/op")
			b.ReportMetric(single/together, "x-lone")
		})
	}
}
