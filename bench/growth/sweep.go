package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"

	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

const (
	frameSize = 64
	vni       = 100
)

// A sweep is one thing that grows.
type sweep struct {
	name, about string
	unit        string // what there is size of
	sizes       []int
	paths       []path
	build       func(b *bed, size int) ([]drive, error) // a drive for each path
}

func (s sweep) String() string { return s.name }

// A path is a way of frames through the switch.
type path struct {
	name string
	kind kind
	why  string // a look-up is not quite flat
}

// kind is what a path is expected to do when the size grows.
type kind string

const (
	lookup      kind = "look-up"     // stays flat
	replication kind = "replication" // grows with the copies
)

// A drive sends frames down a path.
type drive struct {
	run    func(batches int)
	moved  func() int // copies that came out so far, of all runs
	copies int        // of each frame
}

func sweeps() []sweep { return []sweep{macs(), vnis(), peers(), ports()} }

// A bed is a switch that runs.
type bed struct {
	sw    *vswitch.Switch
	ended chan error
}

func newBed() (*bed, error) {
	sw, err := vswitch.New(nil)
	if err != nil {
		return nil, err
	}
	b := &bed{sw: sw, ended: make(chan error, 1)}
	go func() { b.ended <- sw.Run(context.Background()) }()
	return b, nil
}

func (b *bed) close() {
	b.sw.Close()
	<-b.ended
}

// vsi makes a VSI for so many MACs, which stay.
func (b *bed) vsi(id frame.VNI, macs int) (*vswitch.VSI, error) {
	return b.sw.VSI(id, &vswitch.VSIConfig{MaxMACs: macs, Ageing: -1})
}

// unlimited floods whatever comes in.
var unlimited = vswitch.AttachConfig{Storm: vswitch.Storm{
	Broadcast:      vswitch.Rate{Packets: vswitch.Unlimited},
	Multicast:      vswitch.Rate{Packets: vswitch.Unlimited},
	UnknownUnicast: vswitch.Rate{Packets: vswitch.Unlimited},
}}

// join makes a VSI between a VTEP and a port, under a tag each.
func (b *bed) join(id frame.VNI, macs int, v *vtep.VTEP, p *rig.Port, tag uint32) (tunnel, local *vswitch.Attachment, err error) {
	vsi, err := b.vsi(id, macs)
	if err != nil {
		return nil, nil, err
	}
	if tunnel, err = vsi.Attach(v, uint32(id)); err != nil {
		return nil, nil, err
	}
	local, err = vsi.AttachWith(p, tag, &unlimited)
	return tunnel, local, err
}

// learn has the table learn MACs first to first+n-1 of a side, as frames would do it.
func (b *bed) learn(vsi *vswitch.VSI, side byte, first, n int, d frame.Dest) error {
	for i := range n {
		m := rig.MAC(side, first+i)
		o := vsi.FDB().Learn(m, d, b.sw.Tick())
		for try := 0; o == fdb.Busy && try < 1e6; try++ { // the housekeeping is at it
			runtime.Gosched()
			o = vsi.FDB().Learn(m, d, b.sw.Tick())
		}
		if o != fdb.New && o != fdb.Known {
			return fmt.Errorf("learning %v, one of %d, in VNI %d: outcome %d", m, n, vsi.VNI(), o)
		}
	}
	return nil
}

// fill returns a Fill for a source: each packet of a batch is what write makes of the
// one that was there before. The random numbers are the same in every run.
func fill(template []byte, write func(p []byte, r *rand.Rand)) func(*frame.Batch) {
	var packets [frame.MaxBatch][]byte
	for i := range packets {
		packets[i] = append([]byte(nil), template...)
	}
	r := rand.New(rand.NewPCG(1, 2))
	return func(b *frame.Batch) {
		for _, p := range packets {
			write(p, r)
			b.Borrow(p, 0, len(p))
		}
	}
}

// blank is a frame whose addresses are yet to be written.
func blank() []byte { return rig.Packet(frame.MAC{}, frame.MAC{}, frameSize) }

func upTo(from, to, factor int) (sizes []int) {
	for n := from; n <= to; n *= factor {
		sizes = append(sizes, n)
	}
	return sizes
}
