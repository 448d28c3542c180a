package underlay

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// UDP is an underlay of UDP sockets on one local address: receive sockets on the
// port peers send to, and transmit sockets on ports of the source port range. All
// methods are safe for concurrent use; each Reader and each Sender is used by one
// goroutine.
type UDP struct {
	base
}

// Join makes the underlay a member of a multicast group of its address family, on the configured
// MulticastDevice: what is sent to the group on the underlay's port is received, by a Reader of
// its own, with the group as Outer.Dst. Nobody hears what the underlay itself sends to a group
// on the same host. A group that is joined several times is left by the last Leave, or by Close.
//
// An interface that is not there is an error that errors.Is syscall.ENODEV and names the field.
// It is no matter how many groups there are: each has a socket of its own, to which the system's
// limit (net.ipv4.igmp_max_memberships) applies.
func (u *UDP) Join(group netip.Addr) error { return u.groups.join(group) }

// Leave undoes one Join. What has arrived from the group and is not read yet is lost with the
// last one.
func (u *UDP) Leave(group netip.Addr) error { return u.groups.leave(group) }

// Superframes has f asked about what arrives longer than [UDPConfig].MaxDatagram, or as a run:
// whether payload is one datagram with a superframe in it, as the vxlan device of a kernel on
// this machine sends it. Such a datagram becomes one frame; if the kernel has said how long the
// segments are, its [frame.GSO] has a Type and a Size and nothing else: who unwraps it does the
// rest. f is called by the Readers, and must not keep payload.
func (u *UDP) Superframes(f func(payload []byte) bool) { u.superframes.Store(&f) }

// Unreachable does nothing: only an [IP] reports what did not arrive.
func (u *UDP) Unreachable(func(to frame.Endpoint, quoted []byte)) {}

// ListenUDP opens an underlay on a local address. The address may be a wildcard,
// in its own family only (an IPv6 socket takes no IPv4), or IPv6 link-local with a
// zone; with port 0 the kernel chooses one.
//
// A value of cfg that is out of range, or that the system refuses, is an error that
// names the field. A port that is taken and an address that is not local are errors
// that errors.Is syscall.EADDRINUSE and syscall.EADDRNOTAVAIL. On systems other
// than Linux the error is errors.ErrUnsupported.
func ListenUDP(local netip.AddrPort, cfg *UDPConfig) (*UDP, error) {
	c, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if local, err = datagrams.Local("underlay", local); err != nil {
		return nil, err
	}
	if c.MaxDatagram == 0 {
		if c.MaxDatagram, err = maxDatagram(local.Addr(), c.Device); err != nil {
			return nil, fmt.Errorf("underlay: UDPConfig.MaxDatagram: asking for the interfaces' MTU: %w", err)
		}
	}
	is4 := local.Addr().Is4()
	u := &UDP{base: base{name: "UDPConfig", local: local, is4: is4, overhead: datagrams.UDPHeaders(is4), cfg: c}}
	u.openKind = u.bindTx
	if err := u.setUp(); err != nil {
		return nil, err
	}
	if err := u.openAll(); err != nil {
		u.Close()
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
// The first is bound without SO_REUSEPORT, so that a port somebody else uses is an
// error even if they share it, and gets the option afterwards: from then on sockets
// of the same user that ask for it may join (udp_lib_lport_inuse looks at the option
// at the time of the other's bind; seen on Linux 6.18).
func (u *UDP) listen(q int) (*sock, error) {
	s, err := u.open(u.network(), u.local.Port(), func(fd int) error {
		if q > 0 {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
				return u.fieldError("Queues", err)
			}
		}
		if err := u.rxOptions(fd); err != nil {
			return err
		}
		return u.hearNoOthers(fd)
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

// network returns the name the net package has for our sockets.
func (u *UDP) network() string { return u.udpNetwork() }
