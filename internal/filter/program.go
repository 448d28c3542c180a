package filter

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// Instructions (linux/bpf_common.h).
const (
	loadWord, loadHalf, loadByte = 0x20, 0x28, 0x30 // absolute
	loadHalfX                    = 0x48             // from X on
	loadLen                      = 0x80
	loadHeaderX                  = 0xb1 // X = length of an IPv4 header
	and                          = 0x54
	toX                          = 0x07
	equal, equalX                = 0x15, 0x1d
	greater, atLeast, anySet     = 0x25, 0x35, 0x45
	end                          = 0x06

	// Offsets (linux/filter.h): the tag that the kernel has removed, and its EtherType.
	vlanTag  = 1<<32 - 0x1000 + 44
	vlanType = 1<<32 - 0x1000 + 60
)

const all = 1<<32 - 1 // bytes to keep

// A program is a filter under construction: checks one after the other. A need that fails jumps to the next or, where the
// next alternative begins.
type program struct {
	ops   []sys.SockFilter
	fails []int  // needs since the last or
	taken uint32 // bytes to keep of what is taken
}

func (p *program) add(code uint16, k uint32) {
	p.ops = append(p.ops, sys.SockFilter{Code: code, K: k})
}

// load puts size bytes of the frame into the accumulator. A frame that is too short is refused at once.
func (p *program) load(off uint32, size int) {
	p.add(map[int]uint16{1: loadByte, 2: loadHalf, 4: loadWord}[size], off)
}

// need goes on when cond holds for the accumulator and k.
func (p *program) need(cond uint16, k uint32) {
	p.fails = append(p.fails, len(p.ops))
	p.add(cond, k)
}

// needBytes goes on when the frame has want at off.
func (p *program) needBytes(off uint32, want []byte) {
	for ; len(want) >= 4; off, want = off+4, want[4:] {
		p.load(off, 4)
		p.need(equal, binary.BigEndian.Uint32(want))
	}
	if len(want) > 0 {
		p.load(off, 2)
		p.need(equal, uint32(binary.BigEndian.Uint16(want)))
	}
}

// take ends when cond holds.
func (p *program) take(cond uint16, k uint32) {
	p.ops = append(p.ops, sys.SockFilter{Code: cond, K: k, Jf: 1})
	p.add(end, p.taken)
}

// takeUnless ends when cond does not hold.
func (p *program) takeUnless(cond uint16, k uint32) {
	p.ops = append(p.ops, sys.SockFilter{Code: cond, K: k, Jt: 1})
	p.add(end, p.taken)
}

// or continues here with frames that failed a need.
func (p *program) or() {
	for _, i := range p.fails {
		p.ops[i].Jf = uint8(len(p.ops) - i - 1)
	}
	p.fails = p.fails[:0]
}

// finish does the opposite with what was not taken.
func (p *program) finish() []sys.SockFilter {
	p.or()
	p.add(end, ^p.taken)
	return p.ops
}
