package main

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of linux/io_uring.h.
const (
	opSendmsg       = 9
	opRead          = 22
	opSendZC        = 47
	opReadMultishot = 49

	setupSingleIssuer = 1 << 12
	setupDeferTaskrun = 1 << 13
	enterGetevents    = 1 << 0
	enterExtArg       = 1 << 3
	featSingleMmap    = 1 << 0

	registerBuffers  = 0
	registerPbufRing = 22

	sqeBufferSelect = 1 << 5

	sendFixedBuf    = 1 << 2 // of ioprio
	sendReportUsage = 1 << 3

	cqeBuffer = 1 << 0
	cqeMore   = 1 << 1
	cqeNotif  = 1 << 3

	notifCopied = 1 << 31 // of the result of a notification

	offRings = 0
	offSQEs  = 0x10000000
)

// struct io_uring_sqe, as far as it is used here.
type sqe struct {
	opcode, flags uint8
	ioprio        uint16
	fd            int32
	off, addr     uint64
	len, opFlags  uint32
	user          uint64
	buf           uint16 // index of a fixed buffer, or group of provided ones
	_             [22]byte
}

// struct io_uring_cqe.
type cqe struct {
	user  uint64
	res   int32
	flags uint32
}

// struct io_uring_params.
type uringParams struct {
	sqEntries, cqEntries, flags, threadCPU, threadIdle, features, wqFD uint32
	_                                                                  [3]uint32
	sq                                                                 struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
}

// struct io_uring_getevents_arg.
type uringWait struct {
	sigmask         uint64
	sigmaskSize, _  uint32
	timespecAddress uint64
}

// A uring is an io_uring of one thread, which alone submits and reaps. Completions are
// produced when it enters the kernel to fetch them, and at no other time
// (IORING_SETUP_DEFER_TASKRUN, Linux 6.1).
//
// What the kernel does on behalf of such a ring counts as the thread's own CPU time, as
// long as nothing is handed to a worker thread of io_uring: that is why only files are
// used that can say EAGAIN.
type uring struct {
	fd             int
	rings, entries []byte // mappings
	sqes           []sqe
	cqes           []cqe

	sqTail, cqHead, cqTail *uint32 // shared with the kernel
	tail, queued           uint32
	pin                    runtime.Pinner // of what the kernel knows by address

	limit *unix.Timespec
	arg   *uringWait
}

// newRing makes a ring of a number of entries, a power of two.
func newRing(n int) (_ *uring, err error) {
	var p uringParams
	p.flags = setupSingleIssuer | setupDeferTaskrun
	fd, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(n), uintptr(unsafe.Pointer(&p)), 0)
	if e != 0 {
		return nil, refused("io_uring_setup", e)
	}
	r := &uring{fd: int(fd), limit: &unix.Timespec{Nsec: tick * 1e6}, arg: new(uringWait)}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	if p.features&featSingleMmap == 0 {
		return nil, refusal{"one mapping for both rings needs Linux 5.4"}
	}
	size := max(int(p.sq.array+4*p.sqEntries), int(p.cq.cqes)+int(p.cqEntries)*int(unsafe.Sizeof(cqe{})))
	if r.rings, err = unix.Mmap(r.fd, offRings, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return nil, fmt.Errorf("mmap of the rings: %w", err)
	}
	size = int(p.sqEntries) * int(unsafe.Sizeof(sqe{}))
	if r.entries, err = unix.Mmap(r.fd, offSQEs, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return nil, fmt.Errorf("mmap of the entries: %w", err)
	}
	word := func(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.rings[off])) }
	r.sqTail, r.cqHead, r.cqTail = word(p.sq.tail), word(p.cq.head), word(p.cq.tail)
	r.sqes = unsafe.Slice((*sqe)(unsafe.Pointer(&r.entries[0])), p.sqEntries)
	r.cqes = unsafe.Slice((*cqe)(unsafe.Pointer(&r.rings[p.cq.cqes])), p.cqEntries)
	for i := range p.sqEntries { // entry i is always in slot i
		*word(p.sq.array + 4*i) = i
	}
	r.pin.Pin(r.limit)
	r.arg.timespecAddress = address(unsafe.Pointer(r.limit))
	return r, nil
}

func (r *uring) Close() {
	unix.Close(r.fd)
	for _, m := range [][]byte{r.rings, r.entries} {
		if m != nil {
			unix.Munmap(m)
		}
	}
	r.pin.Unpin()
}

// add queues an entry for the next enter; there must be no more than the ring has.
func (r *uring) add(s sqe) {
	r.sqes[r.tail&uint32(len(r.sqes)-1)] = s
	r.tail++
	r.queued++
}

// enter submits what was added and waits for a number of completions, at most a tick.
func (r *uring) enter(want int) error {
	atomic.StoreUint32(r.sqTail, r.tail)
	n, _, e := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(r.queued), uintptr(want),
		enterGetevents|enterExtArg, uintptr(unsafe.Pointer(r.arg)), unsafe.Sizeof(*r.arg))
	switch e {
	case 0:
		r.queued -= uint32(n)
	case unix.ETIME, unix.EINTR: // all is submitted
		r.queued = 0
	default:
		return fmt.Errorf("io_uring_enter: %w", e)
	}
	return nil
}

// reap calls f with each completion there is, and returns how many.
func (r *uring) reap(f func(c *cqe)) (n int) {
	head, tail := *r.cqHead, atomic.LoadUint32(r.cqTail)
	for ; head != tail; head++ {
		f(&r.cqes[head&uint32(len(r.cqes)-1)])
		n++
	}
	atomic.StoreUint32(r.cqHead, head)
	return n
}

func (r *uring) register(what uintptr, p unsafe.Pointer, n int) error {
	if _, _, e := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), what, uintptr(p), uintptr(n), 0, 0); e != 0 {
		return refused("io_uring_register", e)
	}
	return nil
}

// A provided buffer ring lends the kernel buffers to read into: buffer i is the i-th
// part of memory.
type bufferRing struct {
	ring, memory []byte
	each, n      int
	tail         uint16
}

// provide lends n buffers, a power of two, under group 0.
func (r *uring) provide(n, each int) (*bufferRing, error) {
	b := &bufferRing{each: each, n: n}
	var err error
	if b.ring, err = pages(16 * n); err != nil {
		return nil, err
	}
	if b.memory, err = pages(n * each); err != nil {
		b.Close()
		return nil, err
	}
	var reg struct { // struct io_uring_buf_reg
		addr         uint64
		entries      uint32
		group, flags uint16
		_            [3]uint64
	}
	reg.addr, reg.entries = address(unsafe.Pointer(&b.ring[0])), uint32(n)
	if err := r.register(registerPbufRing, unsafe.Pointer(&reg), 1); err != nil {
		b.Close()
		return nil, err
	}
	for i := range n {
		b.back(uint16(i))
	}
	b.publish()
	return b, nil
}

func (b *bufferRing) Close() {
	for _, m := range [][]byte{b.ring, b.memory} {
		if m != nil {
			unix.Munmap(m)
		}
	}
}

// bytes is a buffer.
func (b *bufferRing) bytes(id uint16) []byte {
	return b.memory[int(id)*b.each : (int(id)+1)*b.each]
}

// back returns a buffer to the kernel, with the next publish.
func (b *bufferRing) back(id uint16) {
	s := b.ring[16*(int(b.tail)&(b.n-1)):]
	*(*uint64)(unsafe.Pointer(&s[0])) = address(unsafe.Pointer(&b.bytes(id)[0]))
	*(*uint32)(unsafe.Pointer(&s[8])) = uint32(b.each)
	*(*uint16)(unsafe.Pointer(&s[12])) = id
	b.tail++
}

// publish shows the kernel what is back. The tail is in the first entry, beside the id
// of a buffer: there is no atomic store of 16 bits, so both go in one of 32.
func (b *bufferRing) publish() {
	w := (*uint32)(unsafe.Pointer(&b.ring[12]))
	pair := [2]uint16{*(*uint16)(unsafe.Pointer(&b.ring[12])), b.tail}
	atomic.StoreUint32(w, *(*uint32)(unsafe.Pointer(&pair)))
}

// address is a pointer as the kernel's structures have it. What it points to must be
// kept alive by who calls, and must not be on a stack.
func address(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }
