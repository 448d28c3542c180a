package main

import (
	"encoding/binary"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// xdpMode is where an XDP program runs.
type xdpMode uint32

const (
	xdpGeneric xdpMode = unix.XDP_FLAGS_SKB_MODE // on the kernel's packet, in the network stack
	xdpDriver  xdpMode = unix.XDP_FLAGS_DRV_MODE // in the device's driver
)

// redirect is an XDP program that gives each packet to the socket of its queue:
//
//	return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS)
//
// It is attached to a device for as long as its descriptors are open.
type redirect struct{ sockets, prog, link int }

// attach loads the program and attaches it. A queue without a socket passes its packets on.
func attach(index int, mode xdpMode) (_ *redirect, err error) {
	r := &redirect{-1, -1, -1}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	m := struct{ kind, key, value, entries, flags uint32 }{unix.BPF_MAP_TYPE_XSKMAP, 4, 4, 1, 0}
	if r.sockets, err = bpf(unix.BPF_MAP_CREATE, unsafe.Pointer(&m), unsafe.Sizeof(m)); err != nil {
		return nil, refused("BPF_MAP_CREATE", err)
	}
	code := program(r.sockets)
	license := []byte("GPL\x00")
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&code[0])
	pin.Pin(&license[0])
	p := struct { // the beginning of what BPF_PROG_LOAD takes of union bpf_attr
		kind, n       uint32
		code, license uint64
	}{unix.BPF_PROG_TYPE_XDP, uint32(len(code) / 8), address(unsafe.Pointer(&code[0])), address(unsafe.Pointer(&license[0]))}
	if r.prog, err = bpf(unix.BPF_PROG_LOAD, unsafe.Pointer(&p), unsafe.Sizeof(p)); err != nil {
		return nil, refused("BPF_PROG_LOAD", err)
	}
	l := struct{ prog, index, kind, flags uint32 }{uint32(r.prog), uint32(index), unix.BPF_XDP, uint32(mode)}
	if r.link, err = bpf(unix.BPF_LINK_CREATE, unsafe.Pointer(&l), unsafe.Sizeof(l)); err != nil {
		return nil, refused("BPF_LINK_CREATE", err)
	}
	return r, nil
}

// serve puts a socket at queue 0.
func (r *redirect) serve(fd int) error {
	pair := &[2]uint32{0, uint32(fd)}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(pair)
	u := struct {
		sockets, _        uint32
		key, value, flags uint64
	}{sockets: uint32(r.sockets), key: address(unsafe.Pointer(&pair[0])), value: address(unsafe.Pointer(&pair[1]))}
	if _, err := bpf(unix.BPF_MAP_UPDATE_ELEM, unsafe.Pointer(&u), unsafe.Sizeof(u)); err != nil {
		return refused("BPF_MAP_UPDATE_ELEM", err)
	}
	return nil
}

func (r *redirect) Close() {
	for _, fd := range []int{r.link, r.prog, r.sockets} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// program is redirect as struct bpf_insn: code, registers, offset, constant.
func program(sockets int) (code []byte) {
	insn := func(op, dst, src byte, off int16, imm int32) {
		regs := dst | src<<4
		if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 { // big endian: the nibbles are swapped
			regs = src | dst<<4
		}
		code = append(code, op, regs)
		code = binary.NativeEndian.AppendUint16(code, uint16(off))
		code = binary.NativeEndian.AppendUint32(code, uint32(imm))
	}
	insn(0x61, 2, 1, 16, 0)             // r2 = *(u32 *)(r1 + 16): rx_queue_index of struct xdp_md
	insn(0x18, 1, 1, 0, int32(sockets)) // r1 = the map of this descriptor (BPF_PSEUDO_MAP_FD)
	insn(0, 0, 0, 0, 0)                 // its upper half
	insn(0xb7, 3, 0, 0, 2)              // r3 = XDP_PASS
	insn(0x85, 0, 0, 0, 51)             // call bpf_redirect_map
	insn(0x95, 0, 0, 0, 0)              // return r0
	return code
}

func bpf(cmd uintptr, attr unsafe.Pointer, size uintptr) (int, error) {
	fd, _, e := unix.Syscall(unix.SYS_BPF, cmd, uintptr(attr), size)
	if e != 0 {
		return -1, e
	}
	return int(fd), nil
}
