package datapath

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// A Program is one of the three programs.
type Program uint8

// Programs.
const (
	PortIn   Program = iota // tcx ingress of a port
	PortOut                 // tcx egress of a port
	TunnelIn                // tcx ingress of an underlay device
)

// An Action is what a program has done with a frame.
type Action int32

// Actions (TCX_NEXT, TCX_DROP and TCX_REDIRECT of the kernel).
const (
	Miss     Action = -1 // on to the next program, or the stack
	Dropped  Action = 2
	Redirect Action = 7
)

// A Meta is what the kernel knows of a frame beside its bytes.
type Meta struct {
	Ifindex uint32 // where it is; 0 stands for 1, the loopback
	Mark    uint32
	GSOSize uint32 // of a superframe: payload of each segment
	GSOSegs uint32
}

// Run runs a program on a frame, without sending anything: for tests. It returns what the program has done with it, and
// the frame as it is then. The frame must be at most 65,000 bytes long.
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
