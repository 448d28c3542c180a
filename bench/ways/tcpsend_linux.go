package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// tcpSend sends TCP segments with all their headers: each message is two pieces of memory,
// headers and payload, and is so many packets.
type tcpSend struct {
	fd     int
	memory []byte
	msgs   []sys.Mmsghdr
	each   int // packets in a message
}

// newTCPSend makes n messages with payloads of size bytes. head puts the headers of a
// message with such a payload into b, and returns how long they are.
func newTCPSend(fd, n, size int, head func(b []byte, size int) int) (*tcpSend, error) {
	s := &tcpSend{fd: fd, msgs: make([]sys.Mmsghdr, n), each: size / segmentSize}
	var err error
	if s.memory, err = pages(2 * superRoom); err != nil {
		return nil, err
	}
	iovs := make([]unix.Iovec, 2*n)
	for i := range s.msgs {
		h, v := s.memory[superRoom+i*headSpace:][:headSpace], iovs[2*i:2*i+2]
		v[0].Base, v[1].Base = &h[0], &s.memory[i*size]
		v[0].SetLen(head(h, size))
		v[1].SetLen(size)
		s.msgs[i].Hdr.Iov = &v[0]
		s.msgs[i].Hdr.SetIovlen(2)
	}
	return s, nil
}

// newRawSend is n packets a system call; the kernel puts the outer header in front.
func newRawSend(fd, n int) (sender, error) { return newTCPSend(fd, n, segmentSize, putInner) }

func newPacketSend(fd int) (sender, error) { return newTCPSend(fd, pieces, segmentSize, putLink) }

// newPacketSuper is all segments in one message.
func newPacketSuper(fd int) (sender, error) {
	return newTCPSend(fd, 1, wholeSize, func(b []byte, size int) int {
		putSuper(b, linkHead)
		return vnetHeader + putLink(b[vnetHeader:], size)
	})
}

// putSuper puts a virtio header: the inner packet begins at a place behind it.
func putSuper(b []byte, at int) {
	b[0], b[1] = unix.VIRTIO_NET_HDR_F_NEEDS_CSUM, unix.VIRTIO_NET_HDR_GSO_TCPV4
	for i, v := range []int{at + innerHead, segmentSize, at + 20, 16} { // 16: the checksum in the TCP header
		binary.NativeEndian.PutUint16(b[2+2*i:], uint16(v))
	}
}

// putInner puts IPv4 and TCP.
func putInner(b []byte, size int) int {
	ip := wire.IPv4Header{TTL: 64, Protocol: unix.IPPROTO_TCP, DF: true, TotalLen: uint16(innerHead + size),
		Src: [4]byte{172, 16, 0, 1}, Dst: [4]byte{172, 17, 0, 1}}
	ip.Put(b)
	tcp := b[20:innerHead]
	binary.BigEndian.PutUint16(tcp, 1000)
	binary.BigEndian.PutUint16(tcp[2:], 2000)
	tcp[12], tcp[13] = 5<<4, 0x10 // its length, and ACK
	return innerHead
}

// putLink puts what is in front of that too.
func putLink(b []byte, size int) int {
	putEthernet(b)
	ip := wire.IPv4Header{TTL: 64, Protocol: unix.IPPROTO_IPIP, DF: true, TotalLen: uint16(20 + innerHead + size),
		Src: netip.MustParseAddr(addrA).As4(), Dst: netip.MustParseAddr(addrB).As4()}
	ip.Put(b[14:])
	return linkHead + putInner(b[linkHead:], size)
}

func putEthernet(b []byte) {
	from, _ := net.ParseMAC(macA)
	to, _ := net.ParseMAC(macB)
	copy(b, to)
	copy(b[6:], from)
	b[12], b[13] = 8, 0 // IPv4
}

func (s *tcpSend) send() (int, error) {
	n, e := sys.Sendmmsg(uintptr(s.fd), s.msgs, 0)
	switch {
	case e == 0 || e == unix.ENOBUFS || e == unix.EINTR:
		return n * s.each, nil
	case s.each > 1:
		return 0, refused("sendmsg of a superframe", e)
	}
	return 0, fmt.Errorf("sendmsg: %w", e)
}

func (s *tcpSend) end() (string, error) { return "", nil }
func (s *tcpSend) Close()               { unix.Munmap(s.memory) }
