package bench

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/vtep"
)

// BenchmarkStage is what the steps of a 64-byte frame cost by themselves, with what they
// read in the cache; the time is for one frame. BenchmarkWorker is their sum, and what it
// takes to bring frames and tables into the cache.
func BenchmarkStage(b *testing.B) {
	r := newBed(b)
	r.talk(1000, 64)
	peer, err := r.v.AddPeer(netip.MustParseAddrPort("192.0.2.2:4789"))
	must(b, err)
	var frames [frame.MaxBatch]frame.Frame
	var out [frame.MaxBatch]frame.Out
	for i := range frames {
		p := r.port.Packets[i]
		frames[i] = frame.Over(p, 0, len(p))
		out[i] = frame.Out{F: &frames[i], Peer: peer, Tag: vni}
	}
	perFrame := func(name string, f func(i int)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				f(i % frame.MaxBatch)
			}
		})
	}
	perBatch := func(name string, f func() error) {
		perFrame(name, func(i int) {
			if i != 0 {
				return
			}
			must(b, f())
		})
	}

	table := r.vsi.FDB()
	here, _ := table.Lookup(frame.MAC(r.port.Packets[0][6:]))
	perFrame("learn", func(i int) { table.Learn(frame.MAC(r.port.Packets[i][6:]), here, 0) })
	perFrame("look-up", func(i int) { table.Lookup(frame.MAC(r.port.Packets[i])) })
	perFrame("flow hash", func(i int) { encap.FlowHash(r.port.Packets[i], 1) })
	w := r.v.Writer(1)
	perBatch("VTEP writer", func() error {
		for i := range frames {
			frames[i].Hash = 0
		}
		return w.Write(out[:])
	})

	batch, src := frame.NewBatch(nil), endless{r.wire.Packets[:frame.MaxBatch], r.wire.Outer}
	wire := rig.NewWire(netip.MustParseAddrPort("192.0.2.2:4789"))
	v, err := vtep.New(nil, wireFrom{wire, src})
	must(b, err)
	must(b, v.Control().Open(vni))
	in := v.Readers()[0]
	perBatch("batch", func() error { return src.Read(batch) })
	perBatch("batch and VTEP reader", func() error { return in.Read(batch) })
}

// endless is a Reader that brings the same batch again and again.
type endless struct {
	packets [][]byte
	outer   frame.Outer
}

func (s endless) Read(b *frame.Batch) error {
	b.Reset()
	for i, p := range s.packets {
		b.Borrow(p, 0, len(p))
		b.Outer[i] = s.outer
	}
	return nil
}

// wireFrom is a Wire with another reader.
type wireFrom struct {
	*rig.Wire
	in frame.Reader
}

func (u wireFrom) Readers() []frame.Reader { return []frame.Reader{u.in} }
