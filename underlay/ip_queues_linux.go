package underlay

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// Raw sockets have no SO_REUSEPORT: each gets a copy of every packet. A filter makes a socket a queue: it passes only
// the packets of that queue.

// spread multiplies a hash so that its high bits depend on all bits: 2^32 divided by the golden ratio.
const spread = 2654435769

// queueFilter returns the filter of a receive socket: it passes packets whose inner addresses have a hash that is the
// queue's number modulo the number of queues. Packets too short for addresses go to queue 0.
//
// Over IPv4 a filter sees the outer header first (RFC 791, section 3.1), over IPv6 only the payload.
func queueFilter(queue, queues, protocol int, is4 bool) ([]unix.SockFilter, error) {
	const start, hash = 0, 1 // words of the filter's memory
	all := bpf.RetConstant{Val: 1<<32 - 1}
	if queues == 1 {
		return datagrams.Assemble([]bpf.Instruction{all})
	}
	prog := []bpf.Instruction{bpf.LoadConstant{Dst: bpf.RegX, Val: 0}}
	if is4 {
		prog[0] = bpf.LoadMemShift{Off: 0} // length of the outer header
	}
	addresses, end := uint32(12), uint32(20) // of the inner packet
	if protocol == datagrams.Carries6 {
		addresses, end = 8, 40
	}
	lone := bpf.Instruction(bpf.RetConstant{Val: 0})
	if queue == 0 {
		lone = all
	}
	prog = append(prog,
		bpf.StoreScratch{Src: bpf.RegX, N: start},
		bpf.LoadExtension{Num: bpf.ExtLen},
		bpf.ALUOpX{Op: bpf.ALUOpSub},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: end, SkipTrue: 1},
		lone,
		bpf.LoadConstant{Dst: bpf.RegA, Val: 0},
		bpf.StoreScratch{Src: bpf.RegA, N: hash},
	)
	for off := addresses; off < end; off += 4 {
		prog = append(prog,
			bpf.LoadScratch{Dst: bpf.RegX, N: start},
			bpf.LoadIndirect{Off: off, Size: 4},
			bpf.LoadScratch{Dst: bpf.RegX, N: hash},
			bpf.ALUOpX{Op: bpf.ALUOpXor},
			bpf.ALUOpConstant{Op: bpf.ALUOpMul, Val: spread},
			bpf.StoreScratch{Src: bpf.RegA, N: hash},
		)
	}
	return datagrams.Assemble(append(prog,
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 16},
		bpf.ALUOpConstant{Op: bpf.ALUOpMod, Val: uint32(queues)},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(queue), SkipFalse: 1},
		all,
		bpf.RetConstant{Val: 0},
	))
}
