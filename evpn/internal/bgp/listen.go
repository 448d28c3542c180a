package bgp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// prepare sets up a socket before it connects to an address of the peer.
func (p *peer) prepare(fd uintptr, addr netip.Addr) error {
	if p.Password != "" {
		if err := setPassword(fd, addr, p.Password); err != nil {
			return err
		}
	}
	if p.Hops > 0 {
		return setTTL(fd, addr.Is4(), p.Hops)
	}
	return nil
}

func onSocket(c syscall.RawConn, f func(fd uintptr) error) error {
	var err error
	if cerr := c.Control(func(fd uintptr) { err = f(fd) }); cerr != nil {
		return cerr
	}
	return err
}

// A listener takes connections to an address. It has the passwords of all peers.
type listener struct {
	net.Listener
	v4 bool
}

func (b *BGP) listen(ctx context.Context, at netip.AddrPort) (l *listener, err error) {
	l = &listener{v4: at.Addr().Is4()}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		for _, p := range *b.peers.Load() {
			if err := l.expect(c, &p.Peer, false); err != nil {
				return err
			}
		}
		return nil
	}}
	lc.SetMultipathTCP(false) // whose sockets take no password
	network := "tcp6"
	if l.v4 {
		network = "tcp4"
	}
	b.conf.In(func() {
		l.Listener, err = lc.Listen(ctx, network, netip.AddrPortFrom(withIndex(at.Addr()), at.Port()).String())
	})
	return l, err
}

// expect sets up the socket c of a listener for a peer, whose address may not be known. A password that it had, and has no more, is taken away.
func (l *listener) expect(c syscall.RawConn, p *Peer, had bool) error {
	if p.Addr.Is4() != l.v4 {
		return nil
	}
	return onSocket(c, func(fd uintptr) error {
		if p.Addr.IsValid() && (p.Password != "" || had) {
			if err := setPassword(fd, p.Addr, p.Password); err != nil {
				return err
			}
		}
		if p.Hops > 0 { // of what answers a SYN; the least is set when it is known who connects
			return setTTL(fd, l.v4, 255)
		}
		return nil
	})
}

// expect sets up all listeners for a peer.
func (b *BGP) expect(p *Peer, had bool) error {
	for _, l := range b.listeners {
		c, err := l.Listener.(*net.TCPListener).SyscallConn()
		if err == nil {
			err = l.expect(c, p, had)
		}
		if err != nil && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("bgp: peer %v: %w", p.Addr, err)
		}
	}
	return nil
}

// accept takes connections of peers, of each at most one that has not become its session yet. All others are closed at once.
func (b *BGP) accept(ctx context.Context, l *listener) {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				c.Close()
			}
			return
		}
		if err != nil {
			if !pauseAfter(ctx) {
				return
			}
			continue
		}
		p := b.peerOf(c)
		if p == nil {
			c.Close()
			continue
		}
		at, ok := p.admit(c)
		if !ok {
			c.Close()
			continue
		}
		go func() {
			defer p.running.Done()
			_, err := p.session(at, c, false)
			p.mu.Lock()
			if p.incoming == c {
				p.incoming = nil
			}
			p.mu.Unlock()
			p.failed(err)
		}()
	}
}

// admit reports whether a connection of the peer may begin a session, which is then among those that stop waits for.
func (p *peer) admit(c net.Conn) (at location, ok bool) {
	if p.Hops > 0 {
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil || onSocket(raw, func(fd uintptr) error { return setTTL(fd, p.Addr.Is4(), p.Hops) }) != nil {
			return at, false
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.incoming != nil || p.at.ctx == nil || p.at.ctx.Err() != nil {
		return at, false
	}
	p.incoming = c
	p.running.Add(1)
	return p.at, true
}

const acceptPause = 100 * time.Millisecond

// pauseAfter waits a moment after a failure of the system, such as too many open files.
func pauseAfter(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(acceptPause):
		return true
	}
}
