//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package bfd

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

const (
	udpBatch = 64      // packets read at once
	udpRoom  = 256     // bytes for each: a Length is less
	udpQueue = 1 << 20 // bytes of a receive buffer

	// internetControl is the class of routing protocols, CS6 (RFC 4594, section 3.2), in the TOS.
	internetControl = 0xc0
)

// A UDP is the Path through the host's UDP sockets. Each session sends from a socket, and so from a port, of its own (RFC
// 5881, section 4), which opens with its first packet, and again if sending failed.
type UDP struct {
	speaker *Speaker
	cfg     UDPConfig
	done    chan struct{}
	ended   sync.WaitGroup
	receive []*udpReceiver

	mu     sync.Mutex
	closed bool
	socks  map[Peer]*udpSocket
}

// A udpSocket is that of a session.
type udpSocket struct {
	io.Closer
	raw     syscall.RawConn
	to      destination
	payload []byte // borrowed
	send    func(fd uintptr) bool
	err     error
}

// ListenUDP receives control packets for s on port 3784, and returns the Path to send them. Close it after s, or sooner.
func ListenUDP(s *Speaker, c *UDPConfig) (*UDP, error) {
	if s == nil {
		return nil, errors.New("bfd: ListenUDP: the Speaker is nil")
	}
	u := &UDP{speaker: s, done: make(chan struct{}), socks: map[Peer]*udpSocket{}}
	if c != nil {
		u.cfg = *c
	}
	if err := u.cfg.Check(); err != nil {
		return nil, err
	}
	addrs, all := u.cfg.Local, len(u.cfg.Local) == 0
	if all {
		addrs = []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	}
	ports := []uint16{Port, MultihopPort}
	if !u.cfg.Multihop {
		ports = ports[:1]
	}
	for _, a := range addrs {
		for _, port := range ports {
			conn, err := u.open(netip.AddrPortFrom(a, port))
			if all && a.Is6() && (errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL)) {
				continue // a host without IPv6
			}
			if err == nil {
				_ = conn.SetReadBuffer(udpQueue) // as much as there may be
				err = u.receiveFrom(conn)
			}
			if err != nil {
				u.Close()
				return nil, udpError("receive on "+netip.AddrPortFrom(a, port).String(), err)
			}
		}
	}
	for _, r := range u.receive {
		u.ended.Go(func() { u.read(r) })
	}
	return u, nil
}

// open opens a socket. What it sends has TTL 255.
func (u *UDP) open(local netip.AddrPort) (*net.UDPConn, error) {
	network := "udp6"
	if local.Addr().Is4() {
		network = "udp4"
	}
	listen := u.cfg.Listen
	if listen == nil {
		listen = net.ListenPacket
	}
	pc, err := listen(network, local.String())
	if err != nil {
		return nil, err
	}
	conn, ok := pc.(*net.UDPConn)
	if !ok {
		pc.Close()
		return nil, fmt.Errorf("UDPConfig.Listen: %T: must be *net.UDPConn", pc)
	}
	if local.Addr().Is4() {
		c := ipv4.NewConn(conn)
		err = c.SetTTL(255)
		_ = c.SetTOS(internetControl)
	} else {
		c := ipv6.NewConn(conn)
		err = c.SetHopLimit(255)
		_ = c.SetTrafficClass(internetControl)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// receiveFrom has u receive from a socket, or closes it.
func (u *UDP) receiveFrom(conn *net.UDPConn) error {
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	r := &udpReceiver{is4: local.Addr().Unmap().Is4(), multihop: local.Port() == MultihopPort}
	var err error
	if r.is4 {
		err = ipv4.NewPacketConn(conn).SetControlMessage(ipv4.FlagTTL|ipv4.FlagDst|ipv4.FlagInterface, true)
	} else {
		err = ipv6.NewPacketConn(conn).SetControlMessage(ipv6.FlagHopLimit|ipv6.FlagDst|ipv6.FlagInterface, true)
	}
	if err != nil {
		conn.Close()
		return err
	}
	if err := r.open(conn); err != nil {
		return err
	}
	u.receive = append(u.receive, r)
	return nil
}

// Close closes all sockets, and waits until nothing is received any more.
func (u *UDP) Close() error {
	u.mu.Lock()
	if u.closed {
		u.mu.Unlock()
		u.ended.Wait()
		return nil
	}
	u.closed = true
	for _, x := range u.socks {
		x.Close()
	}
	clear(u.socks)
	u.mu.Unlock()
	close(u.done)
	for _, r := range u.receive {
		r.Close()
	}
	u.ended.Wait()
	return nil
}

// Send implements [Path].
func (u *UDP) Send(p *Packet) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return net.ErrClosed
	}
	x := u.socks[p.Peer]
	if x == nil {
		var err error
		if x, err = u.dial(p); err != nil {
			return err
		}
		u.socks[p.Peer] = x
	}
	x.payload = p.Payload
	err := x.raw.Write(x.send)
	if err == nil {
		err = x.err
	}
	x.payload = nil
	if err != nil && err != syscall.EAGAIN && err != syscall.ENOBUFS {
		x.Close() // the address or the interface may be another by now
		delete(u.socks, p.Peer)
	}
	return err
}

// dial opens the socket of a session.
func (u *UDP) dial(p *Packet) (*udpSocket, error) {
	conn, err := u.bind(p)
	if err != nil {
		return nil, err
	}
	_ = conn.SetReadBuffer(1) // nobody reads packets to this port
	x := &udpSocket{}
	if x.Closer, x.raw, err = unpolled(conn); err != nil {
		return nil, err
	}
	x.to.set(p.Peer.Remote, p.DstPort)
	x.send = func(fd uintptr) bool {
		x.err = x.to.send(fd, x.payload)
		return true // never wait for room
	}
	return x, nil
}

// bind opens a socket to send from, on a random port if the session's own is taken by somebody else.
func (u *UDP) bind(p *Packet) (conn *net.UDPConn, err error) {
	for port, tries := p.SrcPort, 0; ; tries++ {
		err = u.receive[0].beside(func() (err error) {
			conn, err = u.open(netip.AddrPortFrom(p.Peer.Local, port))
			return err
		})
		if err == nil || tries == 16 || !errors.Is(err, syscall.EADDRINUSE) {
			return conn, err
		}
		port = uint16(MinSrcPort + rand.IntN(MaxSrcPort-MinSrcPort+1))
	}
}

// Leave implements [Leaver].
func (u *UDP) Leave(p Peer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if x := u.socks[p]; x != nil {
		x.Close()
		delete(u.socks, p)
	}
}

// read receives from a socket.
func (u *UDP) read(r *udpReceiver) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		n, err := r.receive(u)
		wait := u.speaker.pause()
		switch {
		case err != nil:
			wait = 10 * time.Millisecond // an error that stays keeps no processor busy
		case n == udpBatch:
			continue
		}
		pause.Reset(wait)
		select {
		case <-u.done:
			return
		case <-pause.C: // meanwhile others arrive, which need not wake this goroutine
		}
	}
}

// packet gives a packet to the Speaker.
func (r *udpReceiver) packet(u *UDP, local, remote netip.Addr, device int, ttl uint8, payload []byte) {
	p := Peer{Path: u, Local: zoned(local, device), Remote: zoned(remote, device), Multihop: r.multihop}
	u.speaker.Receive(p, ttl, payload)
}
