package underlay

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// IP is an underlay of raw IP sockets with one local address. It carries IP packets in IP: IPv4 as protocol
// 4 (RFC 2003), IPv6 as protocol 41 (RFC 2473, RFC 4213). Its methods are safe for concurrent use; each Reader
// and each Sender is for one goroutine.
//
// Every raw socket of the address and protocol gets a copy of each packet, so two underlays with one
// address both receive everything.
type IP struct{ base }

// ListenIP opens an underlay on a local address, which may be the wildcard address of one family, or an IPv6
// link-local address with a zone. A nil cfg is the zero value.
//
// Errors name the field and the value of cfg that is out of range or that the system refuses. They wrap
// syscall.EADDRNOTAVAIL if the address is not local, os.ErrPermission without CAP_NET_RAW, and
// errors.ErrUnsupported on systems other than Linux. The caller closes the underlay, or gives it to a VTEP.
func ListenIP(local netip.Addr, cfg *IPConfig) (*IP, error) {
	c, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	ap, err := datagrams.Local("underlay", netip.AddrPortFrom(local, 0))
	if err != nil {
		return nil, err
	}
	is4 := ap.Addr().Is4()
	u := &IP{base{name: "IPConfig", local: ap, is4: is4, raw: true, overhead: datagrams.IPHeader(is4), cfg: c}}
	u.openKind = u.openProtocols
	if err := u.setUp(u.openAll); err != nil {
		return nil, err
	}
	return u, nil
}

// openAll opens the receive sockets, two for each queue, and the transmit sockets with DF.
func (u *IP) openAll() error {
	for q := range u.cfg.Queues {
		for p := range datagrams.Protocols {
			s, err := u.listen(q, p)
			if err != nil {
				return err
			}
			r := newReader(&u.base, s)
			r.kind = datagrams.Kind(p)
			u.readers = append(u.readers, r)
		}
	}
	set := &txSet{ports: new(txPorts)}
	if u.is4 {
		set.plain = mayFragment
	}
	set.ports.ports.Store(&[]uint16{datagrams.Carries4: unix.IPPROTO_IPIP, datagrams.Carries6: unix.IPPROTO_IPV6})
	u.ranges = append(u.ranges, set.ports)
	if _, err := u.sets.Number(TxConfig{}, func(TxConfig) *txSet { return set }); err != nil {
		return err
	}
	return u.start()
}

// listen opens the receive socket of a queue for a protocol.
//
// A raw socket receives all packets of its protocol as soon as it is opened, before it is bound. So its
// first filter refuses everything, and the final one is attached after what came before is discarded.
func (u *IP) listen(queue, protocol int) (*sock, error) {
	s, err := u.open(u.network(protocol), 0, func(fd int) error {
		if err := sys.RefuseAll(fd); err != nil {
			return fmt.Errorf("underlay: %w", err)
		}
		return u.rxOptions(fd)
	})
	if err != nil {
		return nil, explain(err)
	}
	prog, err := queueFilter(queue, u.cfg.Queues, protocol, u.is4)
	if err == nil {
		err = sys.Control(s.raw, func(fd int) error {
			sys.Discard(uintptr(fd))
			return sys.Attach(fd, prog)
		})
	}
	if err != nil {
		s.Close()
		return nil, u.fieldError("Queues", err)
	}
	return s, nil
}

// network returns the name of the sockets of a protocol in package net.
func (u *IP) network(protocol int) string {
	number := unix.IPPROTO_IPIP
	if protocol == datagrams.Carries6 {
		number = unix.IPPROTO_IPV6
	}
	if u.is4 {
		return fmt.Sprintf("ip4:%d", number)
	}
	return fmt.Sprintf("ip6:%d", number)
}

// explain adds which privilege a socket needs.
func explain(err error) error {
	if call := (*os.SyscallError)(nil); errors.As(err, &call) && call.Syscall == "socket" && errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("underlay: raw sockets need CAP_NET_RAW: %w", err)
	}
	return err
}

// openProtocols opens the transmit sockets of one kind, one for each protocol.
//
// Each raw socket of a protocol gets a copy of each ICMP error, so only the errors of those with DF, which
// are always open, are reported.
//
// They are bound but refuse all packets. To the kernel a packet is then delivered, so it does not answer
// "protocol unreachable" if the buffer of a receive socket is full (raw_v4_input, raw6_local_deliver, Linux
// 6.18).
func (u *IP) openProtocols(p *txPorts, k kind, x *txSocks) error {
	discover := unix.IPV6_PMTUDISC_PROBE
	switch {
	case u.is4 && k&mayFragment == 0:
		discover = unix.IP_PMTUDISC_PROBE
	case u.is4:
		discover = unix.IP_PMTUDISC_DONT // each packet has an identification
	}
	for protocol := range datagrams.Protocols {
		s, err := u.openWatched(u.network(protocol), 0, func(fd int) error {
			return u.txOptions(fd, discover)
		})
		if err != nil {
			return explain(err)
		}
		s.quiet = k&mayFragment != 0
		x.socks = append(x.socks, s)
		if err := s.raw.Control(sys.Discard); err != nil { // as listen does
			return err
		}
	}
	return nil
}

// Unreachable sets the function that is called for ICMP errors about packets that did not arrive, with the
// quoted start of the inner packet, at most 128 bytes. These are: destination unreachable except fragmentation
// needed, port unreachable and source route failed, and time exceeded (RFC 2003, section 4); in ICMPv6
// destination unreachable except port unreachable, time exceeded, and the parameter problem of a host without
// the tunnel (RFC 2473, section 8). Routers may quote only eight bytes of an IPv4 packet. Nothing of it is
// authenticated.
//
// f is called as that of PathMTU. The last f counts.
func (u *IP) Unreachable(f func(to frame.Endpoint, quoted []byte)) { u.unreachable.Store(&f) }

// Superframes does nothing: frames are whole packets.
func (u *IP) Superframes(func(payload []byte) bool) {}

// Join returns an error that wraps errors.ErrUnsupported, as does Leave: raw IP has no groups.
func (u *IP) Join(group netip.Addr) error { return u.Leave(group) }

// Leave returns errors.ErrUnsupported.
func (u *IP) Leave(group netip.Addr) error {
	return fmt.Errorf("underlay: multicast group %v: raw IP has no groups: %w", group, errors.ErrUnsupported)
}
