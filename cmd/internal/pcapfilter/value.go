package pcapfilter

import "golang.org/x/net/bpf"

// maxScratch is how many words of memory a program has (BPF_MEMWORDS).
const maxScratch = 16

// maxOffset is above all offsets in a packet, and so small that adding to it does not overflow.
const maxOffset = 1 << 24

// What a value is.
type valueKind uint8

const (
	literal  valueKind = iota // k
	length                    // of the packet
	loaded                    // size bytes of the packet at k + a
	behind                    // the same, counted from the end of the IPv4 header at base
	computed                  // a op b
)

// A value is a number of 32 bits.
type value struct {
	kind    valueKind
	k       uint32
	base    uint32
	size    int
	op      bpf.ALUOp
	a, b    *value
	scratch int    // words of memory that it takes
	checks  []node // without which there is no value
	tokens  string // what it was read from, for comparisons with itself
}

// code loads v into A, with memory from the word m on. It changes X.
func (v *value) code(m int) []bpf.Instruction {
	switch v.kind {
	case literal:
		return []bpf.Instruction{bpf.LoadConstant{Dst: bpf.RegA, Val: v.k}}
	case length:
		return []bpf.Instruction{bpf.LoadExtension{Num: bpf.ExtLen}}
	case loaded, behind:
		return v.load(m)
	}
	if v.b.kind == literal {
		return append(v.a.code(m), bpf.ALUOpConstant{Op: v.op, Val: v.b.k})
	}
	list := append(v.b.code(m), bpf.StoreScratch{Src: bpf.RegA, N: m})
	list = append(list, v.a.code(m+1)...)
	return append(list, bpf.LoadScratch{Dst: bpf.RegX, N: m}, bpf.ALUOpX{Op: v.op})
}

// load loads bytes of the packet. A computed offset that is negative or too large rejects the packet.
func (v *value) load(m int) []bpf.Instruction {
	if v.a.kind == literal {
		off := v.a.k + v.k
		if v.kind == loaded {
			return []bpf.Instruction{bpf.LoadAbsolute{Off: off, Size: v.size}}
		}
		return []bpf.Instruction{bpf.LoadMemShift{Off: v.base}, bpf.LoadIndirect{Off: off, Size: v.size}}
	}
	list := v.a.code(m)
	if v.kind == behind {
		list = append(list, bpf.LoadMemShift{Off: v.base}, bpf.ALUOpX{Op: bpf.ALUOpAdd})
	}
	return append(list, bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: maxOffset, SkipFalse: 1}, bpf.RetConstant{Val: 0},
		bpf.TAX{}, bpf.LoadIndirect{Off: v.k, Size: v.size})
}

// folded computes a op b for numbers.
func folded(op bpf.ALUOp, a, b uint32) uint32 {
	switch op {
	case bpf.ALUOpAdd:
		return a + b
	case bpf.ALUOpSub:
		return a - b
	case bpf.ALUOpMul:
		return a * b
	case bpf.ALUOpDiv:
		return a / b
	case bpf.ALUOpMod:
		return a % b
	case bpf.ALUOpAnd:
		return a & b
	case bpf.ALUOpOr:
		return a | b
	case bpf.ALUOpXor:
		return a ^ b
	case bpf.ALUOpShiftLeft:
		return a << b
	}
	return a >> b
}
