package main

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// packetMmsg is recvmmsg(2) on a packet socket: a batch a system call, each packet
// copied by it. The socket's buffer is large enough that a batch is there.
type packetMmsg struct {
	fd   int
	msgs []sys.Mmsghdr
}

func newPacketMmsg() (taker, error) {
	fd, bind, err := openPacket()
	if err != nil {
		return nil, err
	}
	if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20); err != nil {
		err = fmt.Errorf("SO_RCVBUFFORCE: %w", err)
	} else {
		err = bind()
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &packetMmsg{fd, receivers(batch, smallRoom)}, nil
}

// receivers are messages to receive into, each with its own room.
func receivers(n, room int) []sys.Mmsghdr {
	msgs, iovs := make([]sys.Mmsghdr, n), make([]unix.Iovec, n)
	for i := range msgs {
		iovs[i].Base = &make([]byte, room)[0]
		iovs[i].SetLen(room)
		msgs[i].Hdr.Iov = &iovs[i]
		msgs[i].Hdr.SetIovlen(1)
	}
	return msgs
}

func (p *packetMmsg) Close() { unix.Close(p.fd) }

func (p *packetMmsg) take() (int, error) {
	n, e := sys.Recvmmsg(uintptr(p.fd), p.msgs, unix.MSG_DONTWAIT)
	switch {
	case e == unix.EAGAIN:
		return 0, wait(p.fd)
	case e != 0 && e != unix.EINTR:
		return 0, fmt.Errorf("recvmmsg: %w", e)
	case n > 0 && p.msgs[0].Len < smallFrame:
		return 0, fmt.Errorf("recvmmsg: a packet of %d bytes", p.msgs[0].Len)
	}
	return n, nil
}

// packetRing is a ring that the kernel fills with blocks of packets (TPACKET_V3): no
// system call but to wait, no copy by the reader. A block is handed over when it is full
// or after a time, at least a millisecond: a lone packet waits that long.
type packetRing struct {
	fd, next int
	ring     []byte
}

// Of the ring, and of struct tpacket_block_desc and tpacket3_hdr.
const (
	blockSize = 1 << 16
	blocks    = 64

	blockStatus, blockPackets, blockFirst = 8, 12, 16
	packetNext, packetLen                 = 0, 12
)

func newPacketRing() (_ taker, err error) {
	fd, bind, err := openPacket()
	if err != nil {
		return nil, err
	}
	p := &packetRing{fd: fd}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return nil, refused("TPACKET_V3", err)
	}
	req := unix.TpacketReq3{Block_size: blockSize, Block_nr: blocks, Frame_size: smallRoom,
		Frame_nr: blocks * blockSize / smallRoom, Retire_blk_tov: 1}
	if err := unix.SetsockoptTpacketReq3(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		return nil, refused("PACKET_RX_RING", err)
	}
	if p.ring, err = unix.Mmap(fd, 0, blocks*blockSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, refused("mmap of the ring", err)
	}
	return p, bind()
}

func (p *packetRing) Close() {
	if p.ring != nil {
		unix.Munmap(p.ring)
	}
	unix.Close(p.fd)
}

func (p *packetRing) take() (int, error) {
	block := p.ring[p.next*blockSize : (p.next+1)*blockSize]
	status := (*uint32)(unsafe.Pointer(&block[blockStatus]))
	if atomic.LoadUint32(status)&unix.TP_STATUS_USER == 0 {
		return 0, wait(p.fd)
	}
	n := int(binary.NativeEndian.Uint32(block[blockPackets:]))
	at := binary.NativeEndian.Uint32(block[blockFirst:])
	for range n {
		if size := binary.NativeEndian.Uint32(block[at+packetLen:]); size < smallFrame {
			return 0, fmt.Errorf("ring: a packet of %d bytes", size)
		}
		at += binary.NativeEndian.Uint32(block[at+packetNext:])
	}
	atomic.StoreUint32(status, unix.TP_STATUS_KERNEL)
	p.next = (p.next + 1) % blocks
	return n, nil
}
