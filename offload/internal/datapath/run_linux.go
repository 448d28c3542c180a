package datapath

import (
	"fmt"
	"math/bits"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// Run runs a program on a frame, without sending anything: for tests. It returns what the program has done with it, and
// the frame as it is then. It must have a whole IP header, if it is IP, and fit a page of memory.
func (d *Datapath) Run(which Program, in []byte, m Meta) (Action, []byte, Meta, error) {
	p, err := d.test(which)
	if err != nil {
		return 0, nil, Meta{}, err
	}
	ctx := skb{Mark: m.Mark, Ifindex: m.Ifindex, GSOSize: m.GSOSize, GSOSegs: m.GSOSegs, CB: [5]uint32{m.Tag >> 16, m.Tag & 0xffff}}
	after := skb{}
	o := ebpf.RunOptions{Data: in, DataOut: make([]byte, len(in)+256), Context: &ctx, ContextOut: &after}
	if m.Complete {
		o.Flags = testComplete
	}
	ret, err := p.Run(&o)
	if err != nil {
		return 0, nil, Meta{}, fmt.Errorf("datapath: running %v: %w", p, err)
	}
	got := Meta{Ifindex: after.Ifindex, Mark: after.Mark, GSOSize: after.GSOSize, GSOSegs: after.GSOSegs}
	if after.CB[2] != 0 {
		got.Tag = uint32(bits.ReverseBytes16(uint16(after.CB[0])))<<16 | after.CB[1]
	}
	return Action(int32(ret)), o.DataOut, got, nil
}

const testComplete = 1 << 2 // BPF_F_TEST_SKB_CHECKSUM_COMPLETE

// skb is struct __sk_buff of the kernel, as BPF_PROG_TEST_RUN takes it.
type skb struct {
	_       [2]uint32
	Mark    uint32
	_       [7]uint32
	Ifindex uint32
	_       uint32
	CB      [5]uint32
	_       [24]uint32
	GSOSegs uint32
	_       [2]uint32
	GSOSize uint32
	_       [3]uint32
}

// Offsets in struct __sk_buff.
const (
	vlanPresent = 20
	vlanTCI     = 24
	vlanProto   = 28
	cb          = 48
)

// test returns a program for Run: BPF_PROG_TEST_RUN neither takes nor returns a tag beside the bytes. So the program is called
// by one that pushes the tag that cb has, and puts there the tag that the frame has then.
func (d *Datapath) test(which Program) (*ebpf.Program, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.tested[which]; p != nil {
		return p, nil
	}
	spec, err := specOf(len(d.slots) / 2)
	if err != nil {
		return nil, err
	}
	if err := d.set(spec); err != nil {
		return nil, err
	}
	name := [...]string{"port_in", "port_out", "tunnel_in"}[which]
	one := spec.Programs[name]
	inner := btf.FuncMetadata(&one.Instructions[0])
	outer := *inner
	outer.Name = "test"
	static := *inner
	static.Linkage = btf.StaticFunc
	one.Instructions[0] = btf.WithFuncMetadata(one.Instructions[0], &static)
	tagged := asm.Instructions{
		btf.WithFuncMetadata(asm.Mov.Reg(asm.R6, asm.R1).WithSymbol("test").WithSource(one.Instructions[0].Source()), &outer),
		asm.LoadMem(asm.R2, asm.R6, cb, asm.Word),
		asm.JEq.Imm(asm.R2, 0, "run"),
		asm.HostTo(asm.BE, asm.R2, asm.Half),
		asm.LoadMem(asm.R3, asm.R6, cb+4, asm.Word),
		asm.FnSkbVlanPush.Call(),
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("run"),
		asm.Call.Label(name),
	}
	for i, field := range [...]int16{vlanProto, vlanTCI, vlanPresent} {
		tagged = append(tagged, asm.LoadMem(asm.R1, asm.R6, field, asm.Word), asm.StoreMem(asm.R6, cb+4*int16(i), asm.R1, asm.Word))
	}
	one.Instructions = append(append(tagged, asm.Return()), one.Instructions...)
	spec.Programs = map[string]*ebpf.ProgramSpec{name: one}
	o := &d.objects
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{
		"epochs": o.Epochs, "slots": o.Slots, "paths": o.Paths, "out": o.Out, "in": o.In, "tuples": o.Tuples, "misses": o.Misses, "beacons": o.Beacons,
	}})
	if err != nil {
		return nil, fmt.Errorf("datapath: loading %s for tests: %w", name, err)
	}
	defer c.Close()
	d.tested[which] = c.DetachProgram(name)
	return d.tested[which], nil
}
