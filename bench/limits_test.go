package bench

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// newHardened is a bed of hosts that talk, with every limit and policy on that a hostile
// network asks for: reserved bits, peers by VNI, limits of MACs in all, by segment and by port,
// eviction, freezing, storm control, inner tags, ARP and ND suppressed, senders told what is
// too big. Locked instead of learning is for the port, with an entry for each host.
func newHardened(tb testing.TB, locked bool) *bed {
	tb.Helper()
	rate := vswitch.Rate{Packets: 1000, Bits: 10_000_000}
	storm := vswitch.Storm{Broadcast: rate, Multicast: rate, UnknownUnicast: rate}
	segment := vswitch.VSIConfig{
		MaxMACs: 10_000, Ageing: time.Minute, Freeze: 5, Storm: storm, InnerVLAN: vswitch.VLANStrip,
	}
	r := newBedOver(tb, &vtep.Config{Reserved: vtep.ReservedStrict, Peers: vtep.ListedPerVNI}, &segment, func(w *rig.Wire) vtep.Underlay { return w })
	must(tb, r.v.SetFlood(vni, netip.MustParseAddrPort("192.0.2.2:4789")))
	must(tb, r.sw.Configure(vswitch.Config{MaxMACs: 100_000}))
	table, err := arp.NewTable(&arp.TableConfig{VNI: vni, Notify: r.sw.Notify, PerDest: 5000})
	must(tb, err)
	segment.Slots.Neighbour, err = arp.NewResponder(&arp.Config{Table: table, Mode: arp.Suppress, Locate: r.vsi.FDB().Lookup})
	must(tb, err)
	segment.Slots.TooBig = r.sw.TooBig()
	must(tb, r.vsi.Configure(segment))
	for _, a := range r.vsi.Attachments() {
		c := vswitch.AttachConfig{MaxMACs: 5000, Storm: storm}
		if a.Tag() == 0 {
			c.Group, c.Locked = vswitch.GroupIsolated, locked
			for i := range 1000 {
				if locked {
					must(tb, r.vsi.FDB().Set(rig.MAC(0, i), a.Dest(0), fdb.Static))
				}
			}
		}
		must(tb, a.Configure(c))
	}
	r.talk(1000, 64)
	return r
}

// BenchmarkHardened is a frame of BenchmarkWorker with every limit and policy on, and x-off
// how many times its time without them that is.
func BenchmarkHardened(b *testing.B) {
	off := newBed(b)
	off.talk(1000, 64)
	for _, c := range []struct {
		name string
		r    *bed
	}{{"learning", newHardened(b, false)}, {"locked", newHardened(b, true)}} {
		for _, d := range []struct {
			name     string
			on, none *rig.Source
		}{
			{"port-to-tunnel", c.r.port.Source, off.port.Source},
			{"tunnel-to-port", c.r.wire.Source, off.wire.Source},
		} {
			b.Run(c.name+"/"+d.name, func(b *testing.B) {
				b.ReportAllocs()
				on, none := turns(b.N/frame.MaxBatch+1, 500, d.on.Run, d.none.Run)
				b.ReportMetric(on, "ns/op")
				b.ReportMetric(on/none, "x-off")
			})
		}
	}
}

// All frames pass that pass without the limits, in both directions, and nothing is allocated.
func TestHardened(t *testing.T) {
	for _, locked := range []bool{false, true} {
		r := newHardened(t, locked)
		for _, src := range []*rig.Source{r.port.Source, r.wire.Source} {
			copies, frames := r.wire.Copies, r.port.Frames
			src.Run(100)
			if n := r.wire.Copies - copies + r.port.Frames - frames; n != 100*frame.MaxBatch {
				t.Errorf("locked %v: %d of %d frames", locked, n, 100*frame.MaxBatch)
			}
			least := ^uint64(0)
			for range 5 {
				least = min(least, mallocs(func() { src.Run(1000) }))
			}
			if least > 50 {
				t.Errorf("locked %v: %d allocations in 1000 batches", locked, least)
			}
		}
	}
}
