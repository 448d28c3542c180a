package bgp

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// control sets up a socket before it connects.
func (p *peer) control(_, _ string, c syscall.RawConn) error { return onSocket(c, p.prepare) }

func (p *peer) prepare(fd uintptr) error {
	if p.Password != "" {
		if err := setPassword(fd, p.Addr, p.Password); err != nil {
			return err
		}
	}
	if p.Hops > 0 {
		return setTTL(fd, p.Addr.Is4(), p.Hops)
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

// listen opens a listener, which has the passwords of all peers.
func (b *BGP) listen(ctx context.Context, at netip.AddrPort) (l net.Listener, err error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return onSocket(c, func(fd uintptr) error {
			for _, p := range b.peers {
				if p.Addr.Is4() != at.Addr().Is4() {
					continue
				}
				if p.Password != "" {
					if err := setPassword(fd, p.Addr, p.Password); err != nil {
						return err
					}
				}
				if p.Hops > 0 { // of what answers a SYN; the least is set when it is known who connects
					if err := setTTL(fd, p.Addr.Is4(), 255); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}}
	network := "tcp6"
	if at.Addr().Is4() {
		network = "tcp4"
	}
	b.conf.In(func() { l, err = lc.Listen(ctx, network, at.String()) })
	return l, err
}

// accept takes connections of peers: one of each at a time before it is its session. All others are closed at once.
func (b *BGP) accept(ctx context.Context, l net.Listener, wg *sync.WaitGroup) {
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
		p := b.peers[c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()]
		if p == nil || !p.admit(c) {
			c.Close()
			continue
		}
		wg.Go(func() {
			_, err := p.session(ctx, c, false)
			p.mu.Lock()
			if p.incoming == c {
				p.incoming = nil
			}
			p.mu.Unlock()
			p.failed(err)
		})
	}
}

// admit reports whether a connection of the peer may begin a session.
func (p *peer) admit(c net.Conn) bool {
	if p.Hops > 0 {
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil || onSocket(raw, func(fd uintptr) error { return setTTL(fd, p.Addr.Is4(), p.Hops) }) != nil {
			return false
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.incoming != nil {
		return false
	}
	p.incoming = c
	return true
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
