//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package bfd

import (
	"io"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// A packetConn is an ipv4.PacketConn or an ipv6.PacketConn.
type packetConn interface {
	ReadBatch(ms []ipv4.Message, flags int) (int, error)
}

// A udpReceiver is a socket to receive from.
type udpReceiver struct {
	is4, multihop bool
	*net.UDPConn
	conn packetConn
	ms   [udpBatch]ipv4.Message
}

func (r *udpReceiver) open(conn *net.UDPConn) error {
	r.UDPConn = conn
	oob := ipv6.NewControlMessage(ipv6.FlagHopLimit | ipv6.FlagDst | ipv6.FlagInterface)
	r.conn = ipv6.NewPacketConn(conn)
	if r.is4 {
		oob = ipv4.NewControlMessage(ipv4.FlagTTL | ipv4.FlagDst | ipv4.FlagInterface)
		r.conn = ipv4.NewPacketConn(conn)
	}
	for i := range r.ms {
		r.ms[i].Buffers, r.ms[i].OOB = [][]byte{make([]byte, udpRoom)}, make([]byte, len(oob))
	}
	return nil
}

// beside runs f, which opens a socket: there are no network namespaces.
func (r *udpReceiver) beside(f func() error) error { return f() }

// receive waits for packets and gives them to the Speaker.
func (r *udpReceiver) receive(u *UDP) (int, error) {
	n, err := r.conn.ReadBatch(r.ms[:], 0)
	for i := range max(n, 0) {
		m := &r.ms[i]
		a, ok := m.Addr.(*net.UDPAddr)
		if !ok {
			continue
		}
		var dst net.IP
		var ttl, device int
		if r.is4 {
			var c ipv4.ControlMessage
			if c.Parse(m.OOB[:m.NN]) != nil {
				continue
			}
			ttl, dst, device = c.TTL, c.Dst, c.IfIndex
		} else {
			var c ipv6.ControlMessage
			if c.Parse(m.OOB[:m.NN]) != nil {
				continue
			}
			ttl, dst, device = c.HopLimit, c.Dst, c.IfIndex
		}
		local, _ := netip.AddrFromSlice(dst)
		remote, _ := netip.AddrFromSlice(a.IP)
		r.packet(u, local.Unmap(), remote.Unmap(), device, uint8(ttl), m.Buffers[0][:m.N])
	}
	return n, err
}

// A destination is where a socket sends to.
type destination struct{ sa syscall.Sockaddr }

func (d *destination) set(a netip.Addr, port uint16) {
	if a.Is4() {
		d.sa = &syscall.SockaddrInet4{Addr: a.As4(), Port: int(port)}
		return
	}
	zone, _ := strconv.Atoi(a.Zone())
	d.sa = &syscall.SockaddrInet6{Addr: a.As16(), Port: int(port), ZoneId: uint32(zone)}
}

// send sends without waiting: the sockets of package net do not.
func (d *destination) send(fd uintptr, b []byte) error { return syscall.Sendto(int(fd), b, 0, d.sa) }

// unpolled returns the socket as it is: only Linux wakes the poller for each packet. On errors it is closed.
func unpolled(conn *net.UDPConn) (io.Closer, syscall.RawConn, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, raw, nil
}
