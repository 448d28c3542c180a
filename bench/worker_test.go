package bench

import (
	"net/netip"
	"runtime"
	"testing"

	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/frame"
)

// perFrame runs batches through src and reports the time for one frame.
func perFrame(b *testing.B, src *rig.Source) {
	b.ReportAllocs()
	src.Run(b.N/frame.MaxBatch + 1)
}

// BenchmarkWorker is a whole worker in memory, 64-byte frames between 1000 local and
// 1000 remote MACs: from a local port's reader to the underlay's Send, and from the
// underlay's reader to the local port's Write. The time is for one frame.
func BenchmarkWorker(b *testing.B) {
	r := newBed(b)
	r.talk(1000, 64)
	b.Run("port-to-tunnel", func(b *testing.B) { perFrame(b, r.port.Source) })
	b.Run("tunnel-to-port", func(b *testing.B) { perFrame(b, r.wire.Source) })
}

// BenchmarkFlood is one frame to a flood list of 1000 peers; the time is for one
// frame, not for one copy.
func BenchmarkFlood(b *testing.B) {
	r := newBed(b)
	r.flood(b, 1000)
	perFrame(b, r.port.Source)
}

func (r *bed) flood(tb testing.TB, n int) {
	var peers []netip.AddrPort
	for i := range n {
		peers = append(peers, netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}), 4789))
	}
	must(tb, r.v.SetFlood(vni, peers...))
	r.port.Packets = nil
	for i := range frame.MaxBatch { // flows, or they would leave as one run
		r.port.Packets = append(r.port.Packets, rig.Packet(frame.Broadcast, rig.MAC(0, i), 64))
	}
}

// A thousand peers cost one Send call for a batch, and no copy of a frame.
func TestFloodIsOneSend(t *testing.T) {
	r := newBed(t)
	r.flood(t, 1000)
	r.port.Run(1)
	if r.wire.Sends != 1 || r.wire.Datagrams > frame.MaxBatch || r.wire.Copies != 1000*frame.MaxBatch {
		t.Errorf("a batch of %d: %d sends, %d datagrams, %d copies", frame.MaxBatch, r.wire.Sends, r.wire.Datagrams, r.wire.Copies)
	}
}

// Nothing is allocated between read and write, both ways, for known and for unknown
// destinations, and for drops.
func TestWorkerAllocatesNothing(t *testing.T) {
	r := newBed(t)
	r.talk(1000, 64)
	drops := newBed(t)
	drops.port.Packets = [][]byte{make([]byte, 10), rig.Packet(frame.MAC{1, 0x80, 0xc2}, rig.MAC(0, 1), 64), rig.Packet(rig.MAC(0, 2), frame.Broadcast, 64)}
	flood := newBed(t)
	flood.flood(t, 100)
	for name, src := range map[string]*rig.Source{
		"port to tunnel": r.port.Source, "tunnel to port": r.wire.Source, "drops": drops.port.Source, "flood": flood.port.Source,
	} {
		src.Run(4)
		least := ^uint64(0)
		for range 5 {
			least = min(least, mallocs(func() { src.Run(1000) }))
		}
		if least > 50 {
			t.Errorf("%s: %d allocations in 1000 batches", name, least)
		}
	}
}

// mallocs counts the allocations of the whole process, for the worker is a goroutine
// of its own. Those of the runtime and the housekeeping are the tolerance: they are
// few, and not the same in every run.
func mallocs(f func()) uint64 {
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	f()
	runtime.ReadMemStats(&b)
	return b.Mallocs - a.Mallocs
}

// wantNoMallocs has f process frames that nobody has seen before, and wants hardly an allocation.
func wantNoMallocs(t *testing.T, what string, f func(batches int)) (batches int) {
	t.Helper()
	if batches = strangers / frame.MaxBatch; testing.Short() {
		batches = 1000
	}
	least := ^uint64(0)
	for range 4 {
		least = min(least, mallocs(func() { f(batches / 4) }))
	}
	if least > uint64(50*(1+batches/4000)) {
		t.Errorf("%s: %d allocations in %d batches", what, least, batches/4)
	}
	return batches
}
