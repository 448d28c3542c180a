package underlay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// A base is what UDP and IP have in common: receive sockets in the runtime's poller, sets of transmit
// sockets, and a goroutine that reads their error queues.
type base struct {
	life
	name     string         // of the configuration, as in errors
	local    netip.AddrPort // what sockets are bound to
	is4      bool
	raw      bool // of raw IP sockets, which have no ports
	overhead int  // length of the outer headers
	mtu      linkMTU
	cfg      UDPConfig

	readers []*reader
	groups  *groups                         // multicast groups; nil for IP
	sets    datagrams.Sets[TxConfig, txSet] // by Datagram.Set
	runs    bool                            // the kernel is to cut runs

	noLabels atomic.Bool // the kernel has refused IPv6 flow labels recently: see unlabel

	errors  datagrams.Errors
	watch   *errWatch
	running sync.WaitGroup

	pathMTU     atomic.Pointer[func(to frame.Endpoint, mtu int, quoted []byte)]
	unreachable atomic.Pointer[func(to frame.Endpoint, quoted []byte)]
	superframes atomic.Pointer[func(payload []byte) bool]

	mu      sync.Mutex
	senders sync.Map   // *sender by worker
	ranges  []*txPorts // of all sets, no two of them equal
	closed  bool

	// openKind opens the transmit sockets of one kind.
	openKind func(p *txPorts, k kind, x *txSocks) error

	// sendmmsg is sys.Sendmmsg, or a test's.
	sendmmsg func(fd uintptr, msgs []sys.Mmsghdr, flags int) (int, unix.Errno)
}

// setUp makes what needs no socket, and then all sockets. On an error nothing is left open.
func (u *base) setUp(openAll func() error) (err error) {
	u.done = make(chan struct{})
	u.sendmmsg = sys.Sendmmsg
	if u.watch, err = newErrWatch(u); err != nil {
		return err
	}
	u.running.Go(u.watch.run)
	if err = openAll(); err != nil {
		u.Close()
	}
	return err
}

// start opens the transmit sockets that most datagrams need, and keeps all sockets on
// their device.
func (u *base) start() error {
	set := u.sets.Get(0)
	if err := u.openTx(set.ports, set.lone).err; err != nil {
		return err
	}
	if u.cfg.Device != "" {
		u.every(u.keepDevice)
	}
	return nil
}

// open opens a socket, sets its options, calls the configured Control and binds it. It resolves a zone itself,
// because package net caches interface names for a minute, regardless of the namespace.
func (u *base) open(network string, port uint16, set func(fd int) error) (*sock, error) {
	e, err := frame.EndpointFrom(netip.AddrPortFrom(u.local.Addr(), port))
	if err != nil {
		return nil, fmt.Errorf("underlay: local address: %w", err)
	}
	local := e.AddrPort().String()
	if u.raw {
		local = e.AddrPort().Addr().String()
	}
	var optErr error // without the text that package net adds
	lc := net.ListenConfig{Control: func(network, address string, c syscall.RawConn) error {
		err := c.Control(func(fd uintptr) {
			if optErr = u.commonOptions(int(fd)); optErr == nil {
				optErr = set(int(fd))
			}
		})
		if err == nil && optErr == nil {
			optErr = u.callControl(network, address, c)
		}
		return errors.Join(err, optErr)
	}}
	pc, err := lc.ListenPacket(context.Background(), network, local)
	if optErr != nil {
		return nil, optErr
	}
	if err != nil {
		return nil, fmt.Errorf("underlay: %w", err)
	}
	conn, ok := pc.(pollConn)
	if !ok {
		pc.Close()
		return nil, fmt.Errorf("underlay: %v is not a socket", local)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("underlay: %w", err)
	}
	return &sock{conn, raw, conn}, nil
}

// callControl calls the configured Control.
func (u *base) callControl(network, address string, c syscall.RawConn) error {
	if u.cfg.Control != nil {
		if err := u.cfg.Control(network, address, c); err != nil {
			return u.fieldError("Control", err)
		}
	}
	return nil
}

// Readers returns one Reader for each receive queue and, of a UDP, one for all multicast groups.
func (u *base) Readers() []frame.Reader {
	rs := make([]frame.Reader, len(u.readers), len(u.readers)+1)
	for i, r := range u.readers {
		rs[i] = r
	}
	if u.groups != nil {
		rs = append(rs, u.groups.rx)
	}
	return rs
}

// Sender returns the Sender of worker w, which may be any number. Senders share the sockets.
func (u *base) Sender(w int) frame.Sender {
	s, ok := u.senders.Load(w)
	if !ok {
		s, _ = u.senders.LoadOrStore(w, newSender(u))
	}
	return s.(*sender)
}

// LocalAddr returns the address and port that peers send to.
func (u *base) LocalAddr() netip.AddrPort { return u.local }

// shares reports whether other sockets need the port of the first receive socket: other queues, or multicast
// groups beside a wildcard address.
func (u *base) shares() bool { return u.cfg.Queues > 1 || u.local.Addr().IsUnspecified() }

// Is4 reports whether this is an IPv4 underlay.
func (u *base) Is4() bool { return u.is4 }

// MTU returns the current IP MTU of Device, or of the interface with the local address; 1500 for a wildcard
// address, and while there is no such interface what was last seen. It is at most what the underlay receives
// (UDPConfig.MaxDatagram), because peers probably have the same limit. It asks the system each time.
func (u *base) MTU() int {
	_ = u.inNamespace(func() error {
		u.mtu.look(u.LocalAddr().Addr(), u.cfg.Device)
		return nil
	})
	return min(u.mtu.seen(), u.cfg.MaxDatagram+u.overhead)
}

// Pause makes every Read return [frame.ErrPaused] until Resume. Datagrams wait in the receive buffers.
func (u *base) Pause() { u.pause(true) }

// Resume ends a Pause.
func (u *base) Resume() { u.pause(false) }

func (u *base) pause(on bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.paused.Store(on)
	for _, r := range u.readers {
		r.sock.pause(on)
	}
	if u.groups != nil {
		_ = u.groups.file.SetReadDeadline(pausedUntil(on))
	}
}

// pause makes reads of a receive socket fail at once, or wait again.
func (s *sock) pause(on bool) {
	_ = s.conn.SetReadDeadline(pausedUntil(on)) // fails only after Close
}

// Close closes all sockets. Every Read then returns an error that wraps [net.ErrClosed], and every Send loses
// its datagrams as [frame.PortDown]. It is idempotent.
func (u *base) Close() error {
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
	if u.groups != nil {
		errs = append(errs, u.groups.close())
	}
	for _, p := range u.ranges {
		p.all(func(s *txSock) { errs = append(errs, s.Close()) })
	}
	return errors.Join(append(errs, u.watch.file.Close())...)
}

// Stats returns a snapshot of the counters.
func (u *base) Stats() Stats {
	u.mu.Lock()
	defer u.mu.Unlock()
	var st datagrams.Counts
	for _, r := range u.readers {
		r.addTo(&st)
		st.Buffers(r.sock.bufferSize(unix.SO_RCVBUF), 0)
	}
	if u.groups != nil {
		u.groups.addTo(&st)
	}
	for _, p := range u.ranges {
		p.all(func(s *txSock) { st.Buffers(0, s.bufferSize(unix.SO_SNDBUF)) })
	}
	for _, s := range u.senders.Range {
		s.(*sender).Tx.AddTo(&st)
	}
	u.errors.AddTo(&st)
	return Stats(st)
}

// readError returns the error of a Reader for one of RawConn.Read.
func readError(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return frame.ErrPaused
	case errors.Is(err, net.ErrClosed):
		return net.ErrClosed
	}
	return fmt.Errorf("underlay: receive: %w", err)
}
