package sys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Redirect says where a program of [AttachRedirect] sends all that its interface receives. The zero value is
// another interface, which sends the frames.
type Redirect struct {
	Index int     // of the interface, in the same network namespace
	Peer  bool    // no: the other end of the veth pair that Index is an end of, in another namespace, receives them
	Own   [6]byte // as if with Peer for frames to this MAC, which wait in no queue then; zero for none
}

// Helpers that a program calls: bpf-helpers(7). None of them asks for the GPL.
const (
	helperRedirect     = 23  // bpf_redirect(ifindex, flags)
	helperRedirectPeer = 155 // bpf_redirect_peer(ifindex, flags), Linux 5.10
)

// An insn is struct bpf_insn.
type insn struct {
	op       uint8
	dst, src uint8
	off      int16
	imm      int32
}

// Fields of struct __sk_buff, and the 32-bit comparisons, for which x/sys has no name.
const (
	skbData    = 76
	skbDataEnd = 80
	jmp32      = 0x06
)

// program returns the instructions:
//
//	   (with Own)
//	   r2 = skb->data
//	   r3 = skb->data_end
//	   r4 = r2 + 6
//	   if r4 > r3 goto other
//	   if the 6 bytes at r2 are not Own goto other
//	   r1 = Index
//	   r2 = 0
//	   call bpf_redirect_peer
//	   exit
//	other:
//	   r1 = Index
//	   r2 = 0
//	   call bpf_redirect, or with Peer bpf_redirect_peer
//	   exit
func (to Redirect) program() []byte {
	send := func(helper int32) []insn {
		return []insn{
			{op: unix.BPF_ALU64 | unix.BPF_MOV | unix.BPF_K, dst: 1, imm: int32(to.Index)},
			{op: unix.BPF_ALU64 | unix.BPF_MOV | unix.BPF_K, dst: 2},
			{op: unix.BPF_JMP | unix.BPF_CALL, imm: helper},
			{op: unix.BPF_JMP | unix.BPF_EXIT},
		}
	}
	list := send(helperRedirect)
	switch {
	case to.Peer:
		list = send(helperRedirectPeer)
	case to.Own != [6]byte{}:
		first, last := binary.NativeEndian.Uint32(to.Own[:]), binary.NativeEndian.Uint16(to.Own[4:])
		list = append(append([]insn{
			{op: unix.BPF_LDX | unix.BPF_MEM | unix.BPF_W, dst: 2, src: 1, off: skbData},
			{op: unix.BPF_LDX | unix.BPF_MEM | unix.BPF_W, dst: 3, src: 1, off: skbDataEnd},
			{op: unix.BPF_ALU64 | unix.BPF_MOV | unix.BPF_X, dst: 4, src: 2},
			{op: unix.BPF_ALU64 | unix.BPF_ADD | unix.BPF_K, dst: 4, imm: 6},
			{op: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_X, dst: 4, src: 3, off: 8},
			{op: unix.BPF_LDX | unix.BPF_MEM | unix.BPF_W, dst: 4, src: 2},
			{op: jmp32 | unix.BPF_JNE | unix.BPF_K, dst: 4, off: 6, imm: int32(first)},
			{op: unix.BPF_LDX | unix.BPF_MEM | unix.BPF_H, dst: 4, src: 2, off: 4},
			{op: jmp32 | unix.BPF_JNE | unix.BPF_K, dst: 4, off: 4, imm: int32(last)},
		}, send(helperRedirectPeer)...), list...)
	}
	var p []byte
	for _, i := range list {
		regs := i.dst | i.src<<4 // two bit fields: the first is the low half only on little-endian machines
		if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
			regs = i.dst<<4 | i.src
		}
		p = append(p, i.op, regs)
		p = binary.NativeEndian.AppendUint16(p, uint16(i.off))
		p = binary.NativeEndian.AppendUint32(p, uint32(i.imm))
	}
	return p
}

// AttachRedirect redirects all frames that an interface receives, before any protocol of the host sees them, until
// the returned descriptor is closed, as it is when the process ends. Packet sockets on the interface see the
// frames. The interface is in the network namespace of the calling thread.
//
// It needs tcx (Linux 6.6), CAP_BPF and CAP_NET_ADMIN. The error is an errno in words, or wraps
// [errors.ErrUnsupported].
func AttachRedirect(index int, to Redirect) (link *BPFLink, err error) {
	insns, licence, name := to.program(), []byte("Apache-2.0\x00"), [16]byte{}
	copy(name[:], "vxs_redirect")
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&insns[0])
	pin.Pin(&licence[0])
	load := struct { // union bpf_attr for BPF_PROG_LOAD
		typ, count     uint32
		insns, licence uint64
		logLevel       uint32
		logSize        uint32
		log            uint64
		version, flags uint32
		name           [16]byte
	}{
		typ: unix.BPF_PROG_TYPE_SCHED_CLS, count: uint32(len(insns) / 8), name: name,
		insns: uint64(uintptr(unsafe.Pointer(&insns[0]))), licence: uint64(uintptr(unsafe.Pointer(&licence[0]))),
	}
	prog, err := bpf(unix.BPF_PROG_LOAD, unsafe.Pointer(&load), unsafe.Sizeof(load))
	if err != nil {
		return nil, fmt.Errorf("BPF_PROG_LOAD: %w", err)
	}
	defer unix.Close(prog) // the link keeps it
	create := struct {     // union bpf_attr for BPF_LINK_CREATE
		prog, index, typ, flags uint32
		relative, _             uint32
		revision                uint64
	}{prog: uint32(prog), index: uint32(index), typ: unix.BPF_TCX_INGRESS}
	fd, err := bpf(unix.BPF_LINK_CREATE, unsafe.Pointer(&create), unsafe.Sizeof(create))
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.E2BIG): // a kind of link, or fields, that it does not know
		return nil, fmt.Errorf("needs tcx, of Linux 6.6: BPF_LINK_CREATE: %w: %w", err, errors.ErrUnsupported)
	case err != nil:
		return nil, fmt.Errorf("BPF_LINK_CREATE: %w", err)
	}
	return &BPFLink{fd}, nil
}

// A BPFLink keeps a program attached to an interface.
type BPFLink struct{ fd int }

// Close detaches the program.
func (l *BPFLink) Close() { unix.Close(l.fd) }

// bpf is bpf(2), which returns a descriptor that is closed on exec.
func bpf(cmd int, attr unsafe.Pointer, size uintptr) (int, error) {
	for {
		fd, _, e := unix.Syscall(unix.SYS_BPF, uintptr(cmd), uintptr(attr), size)
		switch e {
		case 0:
			return int(fd), nil
		case syscall.EAGAIN, syscall.EINTR: // the verifier was interrupted by a signal
		default:
			return -1, e
		}
	}
}
