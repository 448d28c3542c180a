package pcapfilter

import "golang.org/x/net/bpf"

// A node is a condition.
type node interface{ isNode() }

type (
	constant bool
	not      struct{ of node }
	pair     struct { // a, then b
		and  bool
		a, b node
	}

	// field compares bytes of the packet.
	field struct {
		off, size uint32
		behind    bool   // off counts from the end of the IPv4 header at base
		base      uint32 // of that header
		mask      uint32 // 0 = all
		op        bpf.JumpTest
		value     uint32
	}

	// relation compares values.
	relation struct {
		op   bpf.JumpTest
		a, b *value
	}
)

func (constant) isNode() {}
func (not) isNode()      {}
func (pair) isNode()     {}
func (field) isNode()    {}
func (relation) isNode() {}

// both is true if all of list are, which are evaluated in this order.
func both(list ...node) node { return joined(true, list) }

// either is true if one of list is.
func either(list ...node) node { return joined(false, list) }

func joined(and bool, list []node) node {
	n := list[0]
	for _, next := range list[1:] {
		switch n {
		case constant(and):
			n = next
		case constant(!and):
		default:
			n = pair{and, n, next}
		}
	}
	return n
}

// negated returns the opposite.
func negated(n node) node {
	if c, ok := n.(constant); ok {
		return !c
	}
	return not{n}
}

// equal compares size bytes at off.
func equal(off, size, value uint32) node {
	return field{off: off, size: size, op: bpf.JumpEqual, value: value}
}

// masked compares those bits of the 4 bytes at off that mask has.
func masked(off, value, mask uint32) node {
	if mask == 0 {
		return constant(true)
	}
	return field{off: off, size: 4, mask: mask, op: bpf.JumpEqual, value: value & mask}
}
