package bench

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
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
	if err != nil {
		tb.Fatal(err)
	}
	r, err := arp.NewResponder(arp.Config{Table: table, Mode: arp.Suppress, Locate: b.vsi.FDB().Lookup})
	if err != nil {
		tb.Fatal(err)
	}
	if err := b.vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Neighbour: r}}); err != nil {
		tb.Fatal(err)
	}
	for i := range neighbours {
		for _, v6 := range []bool{false, true} {
			if err := table.Set(hostIP(v6, 1, i), rig.MAC(1, i), arp.Control, 0); err != nil {
				tb.Fatal(err)
			}
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
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, all...); err != nil {
		tb.Fatal(err)
	}
	return bytes.Clone(buf.Bytes())
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

// turns runs two things alternately, n batches of each, and returns the median time of a
// turn for one frame, of each.
func turns(n, chunk int, one, other func(batches int)) (a, b float64) {
	var took [2][]float64
	for n > 0 {
		k := min(n, chunk)
		for i, f := range []func(int){one, other} {
			start := time.Now()
			f(k)
			took[i] = append(took[i], float64(time.Since(start).Nanoseconds())/float64(k*frame.MaxBatch))
		}
		n -= k
	}
	for i := range took {
		slices.Sort(took[i])
	}
	return took[0][len(took[0])/2], took[1][len(took[1])/2]
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

// An attacker is another port of the segment, that sends at a rate of its own.
type attacker struct {
	*rig.Port
	spoof    atomic.Bool
	sent     atomic.Int64
	interval time.Duration // between batches; 0 = as fast as it gets
	next     time.Time
	ordinary func(*frame.Batch)
	spoofed  [][]byte
	sender   uint32
}

const strangers = 1 << 20

func newAttacker(tb testing.TB, r *neighBed, interval time.Duration) *attacker {
	tb.Helper()
	a := &attacker{Port: rig.NewPort(), interval: interval}
	if _, err := r.vsi.Attach(a, 0); err != nil {
		tb.Fatal(err)
	}
	var known [][]byte
	for i := range neighbours {
		known = append(known, rig.Packet(rig.MAC(1, (i*7+3)%neighbours), rig.MAC(2, i), 60))
	}
	a.ordinary = anew(known)
	for range frame.MaxBatch {
		a.spoofed = append(a.spoofed, question(tb, false, 0))
	}
	a.Fill = a.fill
	return a
}

func (a *attacker) fill(b *frame.Batch) {
	if a.interval > 0 {
		for now := time.Now(); ; now = time.Now() { // busy: a timer is too coarse, and it is the same for both
			if !now.Before(a.next) {
				a.next = now.Add(a.interval)
				break
			}
		}
	}
	a.sent.Add(frame.MaxBatch)
	if !a.spoof.Load() {
		a.ordinary(b)
		return
	}
	for _, p := range a.spoofed {
		a.sender = (a.sender + 1) % strangers
		m := rig.MAC(3, int(a.sender))
		copy(p[6:], m[:])
		copy(p[22:], m[:])
		binary.BigEndian.PutUint32(p[28:], 100<<24|a.sender)
		copy(p[38:], []byte{10, 77, 0, 1}) // nobody has it
		b.Borrow(p, 0, len(p))
	}
}

// shared is a Wire that several workers send through: it counts nothing.
type shared struct{ *rig.Wire }

func (shared) Sender(int) frame.Sender { return nowhere{} }

type nowhere struct{}

func (nowhere) Send([]frame.Datagram) error { return nil }

func newSpoofed(tb testing.TB, interval time.Duration) (*neighBed, *attacker) {
	tb.Helper()
	r := newNeighBed(tb, newBedOver(tb, func(w *rig.Wire) vtep.Underlay { return shared{w} }), 60)
	return r, newAttacker(tb, r, interval)
}

func benchmarkSpoofed(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	const interval = 128 * time.Microsecond // half a million frames a second
	r, a := newSpoofed(b, interval)
	a.Run(neighbours/frame.MaxBatch + 1)
	a.spoof.Store(true)
	a.Run(2 * arp.DefaultLimit / frame.MaxBatch) // from here on the tables are full
	var stop atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !stop.Load() {
			a.Run(16)
		}
	}()
	var sent [2]int64
	var took [2]time.Duration
	phase := func(spoof bool) func(int) {
		i := map[bool]int{true: 1}[spoof]
		return func(n int) {
			a.spoof.Store(spoof)
			was, start := a.sent.Load(), time.Now()
			r.port.Run(n)
			sent[i] += a.sent.Load() - was
			took[i] += time.Since(start)
		}
	}
	r.port.Fill = anew(r.port.Packets)
	b.ReportAllocs()
	b.ResetTimer()
	ordinary, spoofed := turns(b.N/frame.MaxBatch+1, 4000, phase(false), phase(true))
	b.StopTimer()
	stop.Store(true)
	<-ended
	b.ReportMetric(spoofed, "ns/op")
	b.ReportMetric(spoofed/ordinary, "x-ordinary")
	for i, unit := range []string{"ordinary-frames/s", "spoofed-frames/s"} { // the same, or the ratio means nothing
		b.ReportMetric(float64(sent[i])/took[i].Seconds(), unit)
	}
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

// However many strangers speak, the tables hold as many entries as they may, and once they
// are full a stranger costs no memory at all. Those who were known stay known.
func TestSpoofedIsBounded(t *testing.T) {
	r, a := newSpoofed(t, 0)
	qs := questions(t, false)
	r.port.Fill = anew(qs)
	r.port.Run(neighbours/frame.MaxBatch + 1)
	a.spoof.Store(true)
	a.Run(2 * arp.DefaultLimit / frame.MaxBatch)
	full := r.r.Stats().Table
	if full.Snooped != arp.DefaultLimit || full.Entries != arp.DefaultLimit+2*neighbours {
		t.Errorf("%+v", full)
	}
	batches := strangers / frame.MaxBatch
	if testing.Short() {
		batches = 1000
	}
	least := ^uint64(0)
	for range 4 {
		least = min(least, mallocs(func() { a.Run(batches / 4) }))
	}
	if least > uint64(50*(1+batches/4000)) {
		t.Errorf("%d allocations in %d batches", least, batches/4)
	}
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
