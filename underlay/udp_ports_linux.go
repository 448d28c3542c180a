package underlay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// A socket has one DF setting and one checksum setting, so one source port has up to
// four transmit sockets, one of each kind.
type kind uint8

const (
	mayFragment kind = 1 << iota // without DF
	withSum                      // computes the UDP checksum
	kinds       = 4
)

// txPorts is the source ports taken out of one range, and the sockets on them. They are
// opened when they are first needed, all ports of one kind at a time.
type txPorts struct {
	r     PortRange
	ports atomic.Pointer[[]uint16] // chosen with the first kind
	kinds [kinds]atomic.Pointer[txSocks]
}

// txSocks is the sockets of one kind, in the order of the ports, or why there are none.
type txSocks struct {
	socks []*txSock
	err   error
	again time.Time // after an error: when to try again
}

// A txSock is a transmit socket on one source port.
type txSock struct {
	*sock
	port uint16

	// What anybody has read from the error queue: entries, and how often there was one
	// about the interface's MTU.
	taken, tooLong atomic.Uint32
}

// retryOpen is how long sockets that could not be opened are left alone.
const retryOpen = time.Second / 2

// openTx returns the sockets of one kind, which it opens if need be. After Close it
// returns neither sockets nor an error.
func (u *UDP) openTx(p *txPorts, k kind) *txSocks {
	u.mu.Lock()
	defer u.mu.Unlock()
	x := p.kinds[k].Load()
	if x != nil && (x.err == nil || time.Now().Before(x.again)) {
		return x
	}
	x = new(txSocks)
	if u.closed {
		return x
	}
	if x.err = u.inNamespace(func() error { return u.bindTx(p, k, x) }); x.err != nil {
		x.close()
		x.again = time.Now().Add(retryOpen)
	}
	p.kinds[k].Store(x)
	return x
}

// inNamespace runs f in the network namespace of the receive sockets: sockets are opened
// by whoever sends first, on whatever thread that is.
func (u *UDP) inNamespace(f func() error) (err error) {
	if e := u.readers[0].sock.raw.Control(func(fd uintptr) {
		err = sys.InNamespaceOf(fd, f)
	}); e != nil {
		return e
	}
	return err
}

// bindTx opens sockets of one kind: on the ports there are, or, the first time, on one
// port out of each slot of the range. A slot all of whose ports are taken gives none; it
// is an error when there is none at all.
func (u *UDP) bindTx(p *txPorts, k kind, x *txSocks) error {
	if ports := p.ports.Load(); ports != nil {
		for _, port := range *ports {
			s, err := u.openPort(port, k, true)
			if err != nil {
				return err
			}
			x.socks = append(x.socks, s)
		}
		return nil
	}
	var ports []uint16
	for i, n := 0, p.r.slots(); i < n; i++ {
		s, err := u.openIn(p.r.slot(i, n), k)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return err
		}
		x.socks = append(x.socks, s)
		ports = append(ports, s.port)
	}
	if len(ports) == 0 {
		return fieldError("SrcPorts", fmt.Errorf("no port of %d-%d is free: %w", p.r.Lo, p.r.Hi, syscall.EADDRINUSE))
	}
	p.ports.Store(&ports)
	return nil
}

// openIn binds a socket to a port of r: a random one, or the next that is free.
func (u *UDP) openIn(r PortRange, k kind) (*txSock, error) {
	size := int(r.Hi) - int(r.Lo) + 1
	first := rand.IntN(size)
	for i := range size {
		s, err := u.openPort(r.Lo+uint16((first+i)%size), k, false)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// Only now, so that the port was ours alone; the other kinds join later.
		if err := s.reusePort(); err != nil {
			s.Close()
			return nil, fmt.Errorf("underlay: SO_REUSEPORT: %w", err)
		}
		return s, nil
	}
	return nil, fmt.Errorf("underlay: ports %d-%d: %w", r.Lo, r.Hi, syscall.EADDRINUSE)
}

// openPort binds a socket to a port, which may have one of ours already.
func (u *UDP) openPort(port uint16, k kind, join bool) (*txSock, error) {
	s, _, err := u.open(netip.AddrPortFrom(u.local.Addr(), port), func(fd int) error {
		if join {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
				return fmt.Errorf("underlay: SO_REUSEPORT: %w", err)
			}
		}
		return u.txOptions(fd, k)
	})
	if err == nil {
		s, err = s.unpolled()
	}
	if err != nil {
		return nil, err
	}
	t := &txSock{sock: s, port: port}
	if err := u.watch.add(t); err != nil {
		t.Close()
		return nil, fmt.Errorf("underlay: waiting for errors: %w", err)
	}
	return t, nil
}

// all calls f with every transmit socket there is; u.mu is held.
func (p *txPorts) all(f func(*txSock)) {
	for k := range p.kinds {
		if x := p.kinds[k].Load(); x != nil {
			for _, s := range x.socks {
				f(s)
			}
		}
	}
}

func (x *txSocks) close() {
	for _, s := range x.socks {
		s.Close()
	}
	x.socks = nil
}
