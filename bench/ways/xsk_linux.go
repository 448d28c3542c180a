package main

import (
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// xsk is an AF_XDP socket in copy mode on the veth's far end. Packets are copied into a
// memory that both sides share, the UMEM: the reader lends chunks of it by the fill ring
// and finds packets in the receive ring, without a system call but to wait.
//
// The program takes every packet of its queue before the kernel's stack sees it, and runs,
// as the copy does, on the sender's CPU here. In generic mode the kernel has made its packet
// already; in the driver's mode a veth first copies one that has too little headroom for
// XDP, as those of a local socket have. A reader that has caught up is woken for every
// packet, where the ring of AF_PACKET wakes it for a block. Superframes do not go this way.
type xsk struct {
	fd       int
	program  *redirect
	umem     []byte
	rx, fill xskRing
}

// An xskRing is one ring of descriptors, shared with the kernel.
type xskRing struct {
	mapping            []byte
	producer, consumer *uint32
	descs              []byte
}

const (
	chunks    = 4096 // of the UMEM, all in the fill ring or in the receive ring
	chunkSize = 2048

	rxPage, fillPage = 0, 0x100000000 // XDP_PGOFF_RX_RING, XDP_UMEM_PGOFF_FILL_RING
)

// struct xdp_desc.
type xskDesc struct {
	addr         uint64
	len, options uint32
}

func newXSK(dev string, mode xdpMode) (_ taker, err error) {
	x := &xsk{}
	if x.fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, refused("socket AF_XDP", err)
	}
	defer func() {
		if err != nil {
			x.Close()
		}
	}()
	if x.umem, err = pages(chunks * chunkSize); err != nil {
		return nil, err
	}
	reg := struct { // struct xdp_umem_reg, as of Linux 5.4
		addr, len                  uint64
		size, headroom, flags, pad uint32
	}{addr: address(unsafe.Pointer(&x.umem[0])), len: chunks * chunkSize, size: chunkSize}
	if _, _, e := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(x.fd), unix.SOL_XDP, unix.XDP_UMEM_REG,
		uintptr(unsafe.Pointer(&reg)), unsafe.Sizeof(reg), 0); e != 0 {
		return nil, refused("XDP_UMEM_REG", e)
	}
	for _, ring := range []int{unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_COMPLETION_RING, unix.XDP_RX_RING} {
		if err := unix.SetsockoptInt(x.fd, unix.SOL_XDP, ring, chunks); err != nil {
			return nil, refused("rings of AF_XDP", err)
		}
	}
	var off unix.XDPMmapOffsets
	size := uint32(unsafe.Sizeof(off))
	if _, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(x.fd), unix.SOL_XDP, unix.XDP_MMAP_OFFSETS,
		uintptr(unsafe.Pointer(&off)), uintptr(unsafe.Pointer(&size)), 0); e != 0 {
		return nil, refused("XDP_MMAP_OFFSETS", e)
	}
	if x.rx, err = mapRing(x.fd, rxPage, off.Rx, int(unsafe.Sizeof(xskDesc{}))); err != nil {
		return nil, err
	}
	if x.fill, err = mapRing(x.fd, fillPage, off.Fr, 8); err != nil {
		return nil, err
	}
	for i := range uint32(chunks) {
		x.lend(i, uint64(i)*chunkSize)
	}
	atomic.StoreUint32(x.fill.producer, chunks)

	index, err := ifindex(dev)
	if err != nil {
		return nil, err
	}
	if err := bindXSK(x.fd, index); err != nil {
		return nil, refused("bind AF_XDP", err)
	}
	if x.program, err = attach(index, mode); err != nil {
		return nil, err
	}
	return x, x.program.serve(x.fd)
}

// bindXSK binds to queue 0 of a device. The kernel frees a queue some time after the
// socket before was closed, from a work queue (Linux 6.18), and nothing tells when: until
// then it is EBUSY.
func bindXSK(fd, index int) error {
	for late := time.Now().Add(2 * time.Second); ; time.Sleep(time.Millisecond) {
		err := unix.Bind(fd, &unix.SockaddrXDP{Flags: unix.XDP_COPY, Ifindex: uint32(index)})
		if err != unix.EBUSY || time.Now().After(late) {
			return err
		}
	}
}

func mapRing(fd int, page int64, off unix.XDPRingOffset, each int) (r xskRing, err error) {
	r.mapping, err = unix.Mmap(fd, page, int(off.Desc)+chunks*each, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return r, refused("mmap of a ring", err)
	}
	r.producer = (*uint32)(unsafe.Pointer(&r.mapping[off.Producer]))
	r.consumer = (*uint32)(unsafe.Pointer(&r.mapping[off.Consumer]))
	r.descs = r.mapping[off.Desc:]
	return r, nil
}

func (x *xsk) Close() {
	if x.program != nil {
		x.program.Close()
	}
	unix.Close(x.fd)
	for _, m := range [][]byte{x.rx.mapping, x.fill.mapping, x.umem} {
		if m != nil {
			unix.Munmap(m)
		}
	}
}

// lend puts a chunk at a place of the fill ring.
func (x *xsk) lend(at uint32, addr uint64) {
	*(*uint64)(unsafe.Pointer(&x.fill.descs[8*(at%chunks)])) = addr
}

func (x *xsk) take() (int, error) {
	first, have := *x.rx.consumer, atomic.LoadUint32(x.rx.producer)
	n := min(have-first, batch)
	if n == 0 {
		return 0, wait(x.fd)
	}
	lent := *x.fill.producer
	for i := range n {
		d := (*xskDesc)(unsafe.Pointer(&x.rx.descs[unsafe.Sizeof(xskDesc{})*uintptr((first+i)%chunks)]))
		if d.len < smallFrame {
			return 0, fmt.Errorf("AF_XDP: a packet of %d bytes", d.len)
		}
		x.lend(lent+i, d.addr)
	}
	atomic.StoreUint32(x.rx.consumer, first+n)
	atomic.StoreUint32(x.fill.producer, lent+n)
	return int(n), nil
}
