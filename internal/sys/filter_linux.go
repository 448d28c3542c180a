package sys

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// SockFilter is an instruction of a filter.
type SockFilter = unix.SockFilter

// Attach replaces the filter of a socket.
func Attach(fd int, prog []unix.SockFilter) error {
	f := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &f)
}

// RefuseAll makes a socket drop all packets. It does not filter ICMP errors.
func RefuseAll(fd int) error {
	if err := Attach(fd, []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}); err != nil {
		return fmt.Errorf("SO_ATTACH_FILTER: %w", err)
	}
	return nil
}

// Filter replaces the filter of the socket, also that of PacketMode.Shut. A program gets frames
// from their destination MAC on.
func (s *PacketSocket) Filter(prog []SockFilter) error {
	return Control(s.Conn, func(fd int) error { return Attach(fd, prog) })
}

// Accept makes the interface receive frames to one more MAC, unicast or multicast, while the
// socket is open.
func (s *PacketSocket) Accept(index int, mac [6]byte) error {
	m := &unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_UNICAST, Alen: uint16(len(mac))}
	if mac[0]&1 != 0 {
		m.Type = unix.PACKET_MR_MULTICAST
	}
	copy(m.Address[:], mac[:])
	return Control(s.Conn, func(fd int) error {
		return unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, m)
	})
}
