package underlay

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// UDP is an underlay of UDP sockets with one local address: receive sockets on the destination port of
// peers, and transmit sockets on source ports. Its methods are safe for concurrent use; each Reader and each
// Sender is for one goroutine.
type UDP struct {
	base
}

// Join joins a multicast group of the underlay's address family on MulticastDevice. Packets to the group and
// the underlay's port are received by the last Reader, with the group as Outer.Dst. Packets that the underlay
// sends to a group are not received on the same host. Each Leave undoes one Join; Close leaves all groups.
//
// If the interface does not exist, the error wraps syscall.ENODEV and names the field. The number of groups
// is not limited: each has its own socket, so net.ipv4.igmp_max_memberships does not matter.
func (u *UDP) Join(group netip.Addr) error { return u.groups.join(group) }

// Leave undoes one Join. The last Leave drops packets that were not read yet.
func (u *UDP) Leave(group netip.Addr) error { return u.groups.leave(group) }

// Superframes sets the function that Readers call for messages longer than [UDPConfig].MaxDatagram, and
// for runs: it reports whether payload is one datagram with a superframe in it, as a vxlan device of the same
// machine sends them. Such a datagram becomes one frame. If the kernel reports a segment size, the frame's
// [frame.GSO] has Type and Size only; the VTEP completes it. f must not keep payload.
func (u *UDP) Superframes(f func(payload []byte) bool) { u.superframes.Store(&f) }

// Unreachable does nothing: only an [IP] reports what did not arrive.
func (u *UDP) Unreachable(func(to frame.Endpoint, quoted []byte)) {}

// ListenUDP opens an underlay on a local address. The address may be the wildcard address of one family, or
// an IPv6 link-local address with a zone. For port 0 the kernel chooses a port. A nil cfg is the zero value.
//
// Errors name the field and the value of cfg that is out of range or that the system refuses. They wrap
// syscall.EADDRINUSE if the port is in use, and syscall.EADDRNOTAVAIL if the address is not local. On systems
// other than Linux it opens a [Portable]. The caller closes the underlay, or gives it to a VTEP.
func ListenUDP(local netip.AddrPort, cfg *UDPConfig) (*UDP, error) {
	c, err := cfg.withDefaults()
	if err == nil {
		local, err = c.at(local)
	}
	if err != nil {
		return nil, err
	}
	is4 := local.Addr().Is4()
	u := &UDP{base: base{name: "UDPConfig", local: local, is4: is4, overhead: datagrams.UDPHeaders(is4), cfg: c}}
	u.openKind = u.bindTx
	if err := u.setUp(u.openAll); err != nil {
		return nil, err
	}
	return u, nil
}

// openAll opens the receive sockets and the first of the transmit sockets.
func (u *UDP) openAll() error {
	for q := range u.cfg.Queues {
		s, err := u.listen(q)
		if err != nil {
			return err
		}
		u.readers = append(u.readers, newReader(&u.base, s))
	}
	var err error
	if u.groups, err = newGroups(&u.base); err != nil {
		return err
	}
	if _, err := u.sets.Number(TxConfig{u.cfg.SrcPorts, u.cfg.Checksum}, u.newSet); err != nil {
		return err
	}
	if !u.cfg.NoOffload {
		u.runs = u.readers[0].sock.canSegment()
		for _, r := range u.readers {
			r.sock.setGRO()
		}
	}
	return u.start()
}

// listen opens receive socket q. The first may choose the port; the others join it there.
//
// The first is bound without SO_REUSEPORT, so a port that is in use is an error even if its sockets
// have the option. It gets the option afterwards; then sockets of the same user can join
// (udp_lib_lport_inuse looks at the option when the other binds; Linux 6.18).
func (u *UDP) listen(q int) (*sock, error) {
	s, err := u.open(u.udpNetwork(), u.local.Port(), func(fd int) error {
		if q > 0 {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
				return u.fieldError("Queues", err)
			}
		}
		if err := u.rxOptions(fd); err != nil {
			return err
		}
		return u.onlyJoined(fd)
	})
	if err != nil {
		return nil, err
	}
	if q == 0 {
		port, err := s.port()
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("underlay: %w", err)
		}
		u.local = netip.AddrPortFrom(u.local.Addr(), port)
	}
	if q == 0 && u.shares() {
		if err := s.reusePort(true); err != nil {
			s.Close()
			return nil, u.fieldError("Queues", err)
		}
	}
	return s, nil
}
