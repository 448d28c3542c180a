package datapath

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// Run runs a program on a frame, without sending anything: for tests. It returns what the program has done with it, and
// the frame as it is then. It must have a whole IP header, if it is IP, and fit a page of memory.
func (d *Datapath) Run(which Program, in []byte, m Meta) (Action, []byte, Meta, error) {
	p := d.programs()[which]
	ctx := skb{Mark: m.Mark, Ifindex: m.Ifindex, GSOSize: m.GSOSize, GSOSegs: m.GSOSegs}
	after := skb{}
	o := ebpf.RunOptions{Data: in, DataOut: make([]byte, len(in)+256), Context: &ctx, ContextOut: &after}
	ret, err := p.Run(&o)
	if err != nil {
		return 0, nil, Meta{}, fmt.Errorf("datapath: running %v: %w", p, err)
	}
	return Action(int32(ret)), o.DataOut, Meta{after.Ifindex, after.Mark, after.GSOSize, after.GSOSegs}, nil
}

// skb is struct __sk_buff of the kernel, as BPF_PROG_TEST_RUN takes it.
type skb struct {
	_       [2]uint32
	Mark    uint32
	_       [7]uint32
	Ifindex uint32
	_       [30]uint32
	GSOSegs uint32
	_       [2]uint32
	GSOSize uint32
	_       [3]uint32
}
