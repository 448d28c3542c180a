package underlay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// UDP is an underlay of UDP sockets on one local address: receive sockets on the
// port peers send to, and transmit sockets on ports of the source port range. All
// methods are safe for concurrent use; each Reader and each Sender is used by one
// goroutine.
type UDP struct {
	local   netip.AddrPort
	scope   uint32 // of a link-local address
	is4     bool
	cfg     UDPConfig
	readers []*udpReader
	sets    [maxSets]atomic.Pointer[txSet] // by Datagram.Set
	runs    atomic.Bool                    // the kernel is to cut runs
	paused  atomic.Bool
	done    chan struct{} // closed by Close
	pathMTU atomic.Pointer[func(to frame.Endpoint, mtu int, quoted []byte)]
	errors  errCounters
	watch   *errWatch
	running sync.WaitGroup // goroutines of ours

	mu      sync.Mutex
	senders map[int]*udpSender
	ranges  []*txPorts // of all sets, no two of them equal
	configs []TxConfig // of the sets
	closed  bool

	canSegment bool // the kernel knows UDP_SEGMENT

	// sendmmsg is sys.Sendmmsg; a test puts a kernel that refuses in front of it.
	sendmmsg func(fd uintptr, msgs []sys.Mmsghdr, flags int) (int, unix.Errno)
}

// A sock is a socket whose descriptor is only touched while the runtime holds it
// open.
type sock struct {
	io.Closer
	raw  syscall.RawConn
	conn *net.UDPConn // nil once it is unpolled
}

// unpolled takes a socket that nobody will wait for out of the runtime's poller.
func (s *sock) unpolled() (*sock, error) {
	defer s.Close()
	var fd int
	var err error
	if e := s.raw.Control(func(old uintptr) {
		if fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			err = unix.SetNonblock(fd, false) // os.NewFile goes by this; we send with MSG_DONTWAIT
		}
	}); e != nil || err != nil {
		return nil, fmt.Errorf("underlay: %w", errors.Join(e, err))
	}
	f := os.NewFile(uintptr(fd), "transmit socket")
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("underlay: %w", err)
	}
	return &sock{Closer: f, raw: raw}, nil
}

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
	if local, err = localAddress(local); err != nil {
		return nil, err
	}
	ep, err := frame.EndpointFrom(local)
	if err != nil {
		return nil, fmt.Errorf("underlay: local address: %w", err)
	}
	if c.MaxDatagram == 0 {
		c.MaxDatagram = maxDatagram(local.Addr(), c.Device)
	}
	u := &UDP{
		scope:   ep.Scope,
		is4:     local.Addr().Is4(),
		cfg:     c,
		done:    make(chan struct{}),
		senders: make(map[int]*udpSender),

		sendmmsg: sys.Sendmmsg,
	}
	if u.watch, err = newErrWatch(u); err != nil {
		return nil, err
	}
	u.running.Go(u.watch.run)
	for q := range c.Queues {
		s, bound, err := u.listen(local, q)
		if err != nil {
			u.Close()
			return nil, err
		}
		local = bound
		u.local = bound
		u.readers = append(u.readers, newUDPReader(u, s))
	}
	u.configs = []TxConfig{{c.SrcPorts, c.Checksum}}
	set := u.addSet(0)
	if err := u.openTx(set.ports, set.lone).err; err != nil {
		u.Close()
		return nil, err
	}
	u.canSegment = u.readers[0].sock.canSegment()
	u.SetOffload(!c.NoOffload)
	if c.Device != "" {
		u.running.Go(u.keepDevice)
	}
	return u, nil
}

// listen opens receive socket q.
//
// The first is bound without SO_REUSEPORT, so that a port somebody else uses is an
// error even if they share it, and gets the option afterwards: from then on sockets
// of the same user that ask for it may join (udp_lib_lport_inuse looks at the option
// at the time of the other's bind; seen on Linux 6.18).
func (u *UDP) listen(local netip.AddrPort, q int) (*sock, netip.AddrPort, error) {
	s, bound, err := u.open(local, func(fd int) error {
		if q > 0 {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
				return fieldError("Queues", err)
			}
		}
		return u.rxOptions(fd)
	})
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	if q == 0 && u.cfg.Queues > 1 {
		if err := s.reusePort(); err != nil {
			s.Close()
			return nil, netip.AddrPort{}, fieldError("Queues", err)
		}
	}
	return s, bound, nil
}

func (s *sock) reusePort() (err error) {
	if e := s.raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}); e != nil {
		return e
	}
	return err
}

// open makes a socket, sets its options, calls the configured Control and binds it.
func (u *UDP) open(local netip.AddrPort, set func(fd int) error) (*sock, netip.AddrPort, error) {
	fail := func(err error) (*sock, netip.AddrPort, error) { return nil, netip.AddrPort{}, err }
	var optErr error // told without the words the net package would add
	lc := net.ListenConfig{Control: func(network, address string, c syscall.RawConn) error {
		err := c.Control(func(fd uintptr) {
			if optErr = u.commonOptions(int(fd)); optErr == nil {
				optErr = set(int(fd))
			}
		})
		if err == nil && optErr == nil && u.cfg.Control != nil {
			if err := u.cfg.Control(network, address, c); err != nil {
				optErr = fieldError("Control", err)
			}
		}
		return errors.Join(err, optErr)
	}}
	network := "udp6"
	if u.is4 {
		network = "udp4"
	}
	pc, err := lc.ListenPacket(context.Background(), network, local.String())
	if optErr != nil {
		return fail(optErr)
	}
	if err != nil {
		return fail(fmt.Errorf("underlay: %w", err))
	}
	conn, ok := pc.(*net.UDPConn)
	if !ok {
		pc.Close()
		return fail(fmt.Errorf("underlay: %v is not a UDP socket", local))
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		conn.Close()
		return fail(fmt.Errorf("underlay: %w", err))
	}
	bound := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return &sock{conn, raw, conn}, netip.AddrPortFrom(local.Addr(), bound.Port()), nil
}

// Readers returns one Reader for each receive queue.
func (u *UDP) Readers() []frame.Reader {
	rs := make([]frame.Reader, len(u.readers))
	for i, r := range u.readers {
		rs[i] = r
	}
	return rs
}

// Sender returns worker w's Sender; any number will do, and the same number gives
// the same Sender. Senders share the sockets, not their scratch.
func (u *UDP) Sender(w int) frame.Sender {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.senders[w]
	if s == nil {
		s = newUDPSender(u)
		u.senders[w] = s
	}
	return s
}

// LocalAddr returns the address and port peers send to.
func (u *UDP) LocalAddr() netip.AddrPort { return u.local }

// Is4 reports whether this is an IPv4 underlay.
func (u *UDP) Is4() bool { return u.is4 }

// MTU returns the IP MTU of the interface that has the local address, or of
// UDPConfig.Device, as it is now: 1500 for a wildcard address. It is never more than
// UDPConfig.MaxDatagram lets us receive, for the far end has most likely the same. It
// asks the system each time and is not for the packet path.
func (u *UDP) MTU() int {
	m := defaultMTU
	_ = u.inNamespace(func() error {
		m = interfaceMTU(u.local.Addr(), u.cfg.Device)
		return nil
	})
	return min(m, u.cfg.MaxDatagram+headers(u.is4))
}

// Pause makes every Read return [frame.ErrPaused], those that wait and those to
// come, until Resume. Datagrams that arrive meanwhile wait in the socket's buffer.
func (u *UDP) Pause() { u.pause(true) }

// Resume ends a Pause.
func (u *UDP) Resume() { u.pause(false) }

func (u *UDP) pause(on bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.paused.Store(on)
	var t time.Time
	if on {
		t = time.Unix(1, 0)
	}
	for _, r := range u.readers {
		_ = r.sock.conn.SetReadDeadline(t) // fails only after Close
	}
}

// stopped returns what a Read returns that has no need to ask a socket.
func (u *UDP) stopped() error {
	select {
	case <-u.done:
		return net.ErrClosed
	default:
	}
	if u.paused.Load() {
		return frame.ErrPaused
	}
	return nil
}

// Close closes all sockets. Every Read, waiting or to come, then returns an error
// that errors.Is [net.ErrClosed], and every Send loses what it is given with
// [frame.PortDown]. It is idempotent.
func (u *UDP) Close() error {
	defer u.running.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil
	}
	u.closed = true
	close(u.done)
	var errs []error
	for _, r := range u.readers {
		errs = append(errs, r.sock.Close())
	}
	for _, p := range u.ranges {
		p.all(func(s *txSock) { errs = append(errs, s.Close()) })
	}
	return errors.Join(append(errs, u.watch.file.Close())...)
}

// Stats returns a snapshot of the counters.
func (u *UDP) Stats() Stats {
	u.mu.Lock()
	defer u.mu.Unlock()
	var st Stats
	for _, r := range u.readers {
		r.addTo(&st)
		st.RecvBuffer = smaller(st.RecvBuffer, r.sock.bufferSize(unix.SO_RCVBUF))
	}
	for _, p := range u.ranges {
		p.all(func(s *txSock) { st.SendBuffer = smaller(st.SendBuffer, s.bufferSize(unix.SO_SNDBUF)) })
	}
	for _, s := range u.senders {
		s.count.addTo(&st)
	}
	u.errors.addTo(&st)
	return st
}

func smaller(a, b int) int {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// readError turns what RawConn.Read returns into what a Reader returns.
func readError(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return frame.ErrPaused
	case errors.Is(err, net.ErrClosed):
		return net.ErrClosed
	}
	return fmt.Errorf("underlay: receive: %w", err)
}
