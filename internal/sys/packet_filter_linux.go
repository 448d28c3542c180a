package sys

import "golang.org/x/sys/unix"

// Filter has the socket take only the frames that a program passes, in the place of the
// filter it had, that of PacketMode.Shut included. Frames begin with their destination MAC.
func (s *PacketSocket) Filter(prog []unix.SockFilter) error {
	f := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	return do(s.Conn, func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &f)
	})
}

// Accept has the interface receive frames to one more MAC, a group's or another of its own,
// while the socket is open.
func (s *PacketSocket) Accept(index int, mac [6]byte) error {
	m := &unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_UNICAST, Alen: uint16(len(mac))}
	if mac[0]&1 != 0 {
		m.Type = unix.PACKET_MR_MULTICAST
	}
	copy(m.Address[:], mac[:])
	return do(s.Conn, func(fd int) error {
		return unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, m)
	})
}
