package pcapfilter

import (
	"fmt"
	"slices"

	"golang.org/x/net/bpf"
)

// farthest is the longest conditional jump.
const farthest = 255

// A builder makes a program from its end to its start, so that the target of each jump is known.
type builder struct {
	code []bpf.Instruction // the last one first
}

// A label is a place in the program: the number of instructions from there to the end.
type label int

func build(root node) ([]bpf.Instruction, error) {
	b := &builder{}
	reject := b.put(bpf.RetConstant{Val: 0})
	accept := b.put(bpf.RetConstant{Val: 262144})
	if start := b.node(root, accept, reject); start != label(len(b.code)) {
		b.put(bpf.Jump{Skip: uint32(len(b.code) - int(start))})
	}
	if len(b.code) > maxProgram {
		return nil, fmt.Errorf("filter: has %d instructions of BPF, must have at most %d", len(b.code), maxProgram)
	}
	slices.Reverse(b.code)
	return b.code, nil
}

// put adds instructions in front of the program.
func (b *builder) put(list ...bpf.Instruction) label {
	for _, i := range slices.Backward(list) {
		b.code = append(b.code, i)
	}
	return label(len(b.code))
}

// node adds the code of n, which goes on at yes or at no. It returns its start.
func (b *builder) node(n node, yes, no label) label {
	switch n := n.(type) {
	case constant:
		if n {
			return yes
		}
		return no
	case not:
		return b.node(n.of, no, yes)
	case pair:
		next := b.node(n.b, yes, no)
		if n.and {
			return b.node(n.a, next, no)
		}
		return b.node(n.a, yes, next)
	case field:
		return b.field(n, yes, no)
	}
	return b.relation(n.(relation), yes, no)
}

// near returns labels that a conditional jump reaches.
func (b *builder) near(yes, no label) (label, label) {
	const rest = 2 // jumps that may be added
	far := func(l label) label {
		if len(b.code)-int(l)+rest <= farthest {
			return l
		}
		return b.put(bpf.Jump{Skip: uint32(len(b.code) - int(l))})
	}
	yes = far(yes)
	return yes, far(no)
}

func (b *builder) field(f field, yes, no label) label {
	yes, no = b.near(yes, no)
	here := label(len(b.code))
	b.put(bpf.JumpIf{Cond: f.op, Val: f.value, SkipTrue: uint8(here - yes), SkipFalse: uint8(here - no)})
	if f.mask != 0 && f.mask != 0xffffffff {
		b.put(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: f.mask})
	}
	if f.behind {
		return b.put(bpf.LoadMemShift{Off: f.base}, bpf.LoadIndirect{Off: f.base + f.off, Size: int(f.size)})
	}
	return b.put(bpf.LoadAbsolute{Off: f.off, Size: int(f.size)})
}

func (b *builder) relation(r relation, yes, no label) label {
	yes, no = b.near(yes, no)
	here := label(len(b.code))
	t, f := uint8(here-yes), uint8(here-no)
	if r.b.kind == literal {
		b.put(bpf.JumpIf{Cond: r.op, Val: r.b.k, SkipTrue: t, SkipFalse: f})
		return b.put(r.a.code(0)...)
	}
	b.put(bpf.JumpIfX{Cond: r.op, SkipTrue: t, SkipFalse: f})
	b.put(bpf.LoadScratch{Dst: bpf.RegX, N: 0})
	b.put(r.a.code(1)...)
	b.put(bpf.StoreScratch{Src: bpf.RegA, N: 0})
	return b.put(r.b.code(0)...)
}
