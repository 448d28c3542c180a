package bench

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

const neighbours = 1000 // on each side

// neighBed is a bed whose segment suppresses, with everybody known.
type neighBed struct {
	*bed
	r *arp.Responder
}

func newNeighBed(tb testing.TB, b *bed, size int) *neighBed {
	tb.Helper()
	table, err := arp.NewTable(&arp.TableConfig{VNI: vni, Notify: b.sw.Notify})
	must(tb, err)
	r, err := arp.NewResponder(&arp.Config{Table: table, Mode: arp.Suppress, Locate: b.vsi.FDB().Lookup})
	must(tb, err)
	must(tb, b.vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Neighbour: r}}))
	for i := range neighbours {
		for _, v6 := range []bool{false, true} {
			must(tb, table.Set(hostIP(v6, 1, i), rig.MAC(1, i), arp.Control, 0))
		}
	}
	b.talk(neighbours, size)
	return &neighBed{b, r}
}

// hostIP is an address of the i-th host of a side.
func hostIP(v6 bool, side byte, i int) netip.Addr {
	if v6 {
		return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 12: side, 14: byte(i >> 8), 15: byte(i)})
	}
	return netip.AddrFrom4([4]byte{10, side, byte(i >> 8), byte(i)})
}

// question is what host i asks of a host behind the tunnel: 60 bytes of ARP, 86 of ND.
func question(tb testing.TB, v6 bool, i int) []byte {
	src := rig.MAC(0, i)
	from, to := hostIP(v6, 0, i), hostIP(v6, 1, (i*7+3)%neighbours)
	eth := &layers.Ethernet{SrcMAC: src[:], DstMAC: frame.Broadcast.HardwareAddr(), EthernetType: layers.EthernetTypeARP}
	all := []gopacket.SerializableLayer{eth, &layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
		SourceHwAddress: src[:], SourceProtAddress: from.AsSlice(), DstHwAddress: make([]byte, 6), DstProtAddress: to.AsSlice(),
	}}
	if v6 {
		t := to.As16()
		group := []byte{0xff, 2, 11: 1, 12: 0xff, 13: t[13], 14: t[14], 15: t[15]}
		eth.DstMAC, eth.EthernetType = []byte{0x33, 0x33, 0xff, t[13], t[14], t[15]}, layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolICMPv6, HopLimit: 255, SrcIP: from.AsSlice(), DstIP: group}
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborSolicitation, 0)}
		icmp.SetNetworkLayerForChecksum(ip)
		all = []gopacket.SerializableLayer{eth, ip, icmp, &layers.ICMPv6NeighborSolicitation{
			TargetAddress: to.AsSlice(), Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptSourceAddress, Data: src[:]}},
		}}
	}
	return packets.Of(all...)
}

func questions(tb testing.TB, v6 bool) (qs [][]byte) {
	for i := range neighbours {
		qs = append(qs, question(tb, v6, i))
	}
	return qs
}

// anew makes a Fill that hands out packets in turn, each as it was: an answer is written
// over its question. What is compared with that is copied too.
func anew(packets [][]byte) func(*frame.Batch) {
	scratch := new([frame.MaxBatch][128]byte)
	next := 0
	return func(b *frame.Batch) {
		for i := range scratch {
			n := copy(scratch[i][:], packets[next])
			if next++; next == len(packets) {
				next = 0
			}
			b.Borrow(scratch[i][:], 0, n)
		}
	}
}

// BenchmarkNeighbour is a worker in memory that answers questions in place, beside one that
// forwards frames of the same size into the tunnel: the time is for one answer, and
// x-forwarded how many times a forwarded frame's that is. spoofed is the time for a frame
// of one port while another one sends ARP from a million senders that do not exist, and
// x-ordinary how many times that with as many ordinary frames.
func BenchmarkNeighbour(b *testing.B) {
	for _, v6 := range []bool{false, true} {
		name := map[bool]string{false: "answer4", true: "answer6"}[v6]
		b.Run(name, func(b *testing.B) {
			qs := questions(b, v6)
			r := newNeighBed(b, newBed(b), len(qs[0]))
			ask, forward := anew(qs), anew(r.port.Packets)
			run := func(fill func(*frame.Batch)) func(int) {
				return func(n int) { r.port.Fill = fill; r.port.Run(n) }
			}
			run(ask)(neighbours/frame.MaxBatch + 1)
			b.ReportAllocs()
			was := r.port.Frames
			b.ResetTimer()
			batches := b.N/frame.MaxBatch + 1
			answer, plain := turns(batches, 200, run(ask), run(forward))
			b.StopTimer()
			if got := r.port.Frames - was; got != batches*frame.MaxBatch {
				b.Fatalf("%d answers to %d questions", got, batches*frame.MaxBatch)
			}
			b.ReportMetric(answer, "ns/op")
			b.ReportMetric(answer/plain, "x-forwarded")
		})
	}
	b.Run("spoofed", benchmarkSpoofed)
}

// newSpoofed is a bed beside which somebody sends ARP from a million senders that do not
// exist, for an address that nobody has.
func newSpoofed(tb testing.TB, interval time.Duration) (*neighBed, *attacker) {
	tb.Helper()
	r := newNeighBed(tb, newSharedBed(tb, nil), 60)
	a := newAttacker(tb, r.bed, interval)
	packets, sender := make([][]byte, frame.MaxBatch), uint32(0)
	for i := range packets {
		packets[i] = question(tb, false, 0)
	}
	a.hostile = func(b *frame.Batch) {
		for _, p := range packets {
			sender = (sender + 1) % strangers
			m := rig.MAC(3, int(sender))
			copy(p[6:], m[:])
			copy(p[22:], m[:])
			binary.BigEndian.PutUint32(p[28:], 100<<24|sender)
			copy(p[38:], []byte{10, 77, 0, 1})
			b.Borrow(p, 0, len(p))
		}
	}
	return r, a
}

func benchmarkSpoofed(b *testing.B) {
	r, a := newSpoofed(b, 128*time.Microsecond)     // half a million frames a second
	a.attack(2 * arp.DefaultLimit / frame.MaxBatch) // from here on the tables are full
	r.beside(b, a)
}

// Answering allocates nothing, and sends nothing into the tunnel.
func TestAnswersAllocateNothing(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		qs := questions(t, v6)
		r := newNeighBed(t, newBed(t), len(qs[0]))
		r.port.Fill = anew(qs)
		r.port.Run(neighbours/frame.MaxBatch + 1)
		was, copies := r.port.Frames, r.wire.Copies
		least, batches := ^uint64(0), 0
		for range 5 {
			least = min(least, mallocs(func() { r.port.Run(1000) }))
			batches += 1000
		}
		if least > 50 {
			t.Errorf("IPv6 %v: %d allocations in 1000 batches", v6, least)
		}
		if got := r.port.Frames - was; got != batches*frame.MaxBatch || r.wire.Copies != copies {
			t.Errorf("IPv6 %v: %d answers to %d questions, %d copies into the tunnel", v6, got, batches*frame.MaxBatch, r.wire.Copies-copies)
		}
	}
}

// However many strangers speak at a port, the table holds as many entries as the port's share, and
// once it is full a stranger costs no memory at all. Those who were known stay known.
func TestSpoofedIsBounded(t *testing.T) {
	r, a := newSpoofed(t, 0)
	qs := questions(t, false)
	r.port.Fill = anew(qs)
	r.port.Run(neighbours/frame.MaxBatch + 1)
	a.attack(2 * arp.DefaultLimit / frame.MaxBatch)
	full := r.r.Stats().Table
	if snooped := arp.DefaultLimit/2 + neighbours; full.Snooped != snooped || full.Entries != snooped+2*neighbours {
		t.Errorf("%+v", full)
	}
	batches := wantNoMallocs(t, "full", a.Run)
	is := r.r.Stats()
	if is.Table.Snooped != full.Snooped || is.Table.Entries != full.Entries || is.Table.Learned != full.Learned {
		t.Errorf("%+v, when it was full %+v", is.Table, full)
	}
	if n := is.Table.Full + is.Table.Learned + is.Table.Busy; n < uint64(batches*frame.MaxBatch) {
		t.Errorf("%d claims of %d accounted for: %+v", n, batches*frame.MaxBatch, is.Table)
	}
	if n := r.vsi.FDB().Len(); n > 8192 {
		t.Errorf("%d MACs", n)
	}
	was := r.port.Frames
	r.port.Run(1)
	if r.port.Frames-was != frame.MaxBatch {
		t.Errorf("%d answers to %d questions", r.port.Frames-was, frame.MaxBatch)
	}
}
