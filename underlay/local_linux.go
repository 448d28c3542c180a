package underlay

import (
	"net"
	"net/netip"

	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// SetLocal gives the underlay another local address of the same family, on the same port,
// while it is in use. Readers and Senders stay the same: a Read that waits goes on waiting at
// the new address, and what a Send has not sent yet leaves from there. What is on its way to
// the old address is lost, and what waits in its receive buffers.
//
// The new sockets are opened before the old ones are closed, so that for a moment there are
// twice as many. On an error nothing has changed; it is one of those of ListenUDP, or
// net.ErrClosed after Close. The source ports are chosen anew, unless one of the addresses
// is a wildcard. UDPConfig.MaxDatagram stays what it was, also where the MTU of the old
// interface had chosen it.
//
// A VTEP has to know: use its SetLocal, which calls this one.
func (u *UDP) SetLocal(addr netip.Addr) error {
	return u.setLocal(addr, func(i int, join bool) (*sock, error) {
		s, err := u.listen(i, join || i > 0)
		if err == nil && u.gro {
			s.setGRO(true)
		}
		return s, err
	})
}

// SetLocal gives the underlay another local address of the same family, as [UDP.SetLocal]
// does.
func (u *IP) SetLocal(addr netip.Addr) error {
	return u.setLocal(addr, func(i int, _ bool) (*sock, error) {
		return u.listen(i/datagrams.Protocols, i%datagrams.Protocols)
	})
}

// A move is the sockets at a new address: receive sockets in the order of the readers,
// transmit sockets in that of base.ranges.
type move struct {
	rx []*sock
	tx []*txPorts
}

// setLocal does the work of SetLocal. listen opens the receive socket of reader i; with join
// it is to be on a port where there is another already.
func (u *base) setLocal(addr netip.Addr, listen func(i int, join bool) (*sock, error)) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	old := u.local
	addr, err := datagrams.Another("underlay", old.Addr(), addr)
	switch {
	case u.closed:
		return net.ErrClosed
	case err != nil:
		return err
	case addr == old.Addr():
		return nil
	}
	// A wildcard address has the ports of all others.
	join := addr.IsUnspecified() || old.Addr().IsUnspecified()
	u.local = netip.AddrPortFrom(addr, old.Port())
	var m move
	err = u.inNamespace(func() error {
		if join && !u.raw {
			if err := u.readers[0].sock.Load().reusePort(true); err != nil {
				return err
			}
			defer u.share()
		}
		return u.openMove(&m, join, listen)
	})
	if err != nil {
		m.close()
		u.local = old
		return err
	}
	u.commit(&m)
	if join && !u.raw {
		u.share()
	}
	_ = u.inNamespace(func() error { u.groups.relocate(); return nil })
	return nil
}

// shares reports whether others of ours need the port of the first receive socket: its other
// queues, or the multicast groups, which are in the way of one on the wildcard address.
func (u *base) shares() bool { return u.cfg.Queues > 1 || u.local.Addr().IsUnspecified() }

// share lets others have the port of the first receive socket as long as that is needed. Theirs it
// may have anyway.
func (u *base) share() { _ = u.readers[0].sock.Load().reusePort(u.shares()) }

// openMove opens what there is at the old address at the new one.
func (u *base) openMove(m *move, join bool, listen func(i int, join bool) (*sock, error)) error {
	for i := range u.readers {
		s, err := listen(i, join)
		if err != nil {
			return err
		}
		m.rx = append(m.rx, s)
	}
	for _, p := range u.ranges {
		to := &txPorts{r: p.r}
		m.tx = append(m.tx, to)
		if join || u.raw {
			to.ports.Store(p.ports.Load())
		}
		for k := range p.kinds {
			x := p.kinds[k].Load()
			if x == nil || x.err != nil {
				continue
			}
			x = new(txSocks)
			to.kinds[k].Store(x)
			if err := u.openKind(to, kind(k), x); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *move) close() {
	for _, s := range m.rx {
		s.Close()
	}
	for _, p := range m.tx {
		p.all(func(s *txSock) { s.Close() })
	}
}

// commit puts the new sockets in the place of the old ones, and closes those when everybody
// can see that.
func (u *base) commit(m *move) {
	u.publish()
	var old []*txSock
	for i, p := range u.ranges {
		to := m.tx[i]
		for k := range p.kinds {
			x := to.kinds[k].Load()
			if x == nil {
				p.kinds[k].Store(nil) // none, or an error of the old address
				continue
			}
			for j, s := range p.kinds[k].Load().socks {
				s.next.Store(x.socks[j%len(x.socks)])
				old = append(old, s)
			}
			p.kinds[k].Store(x)
		}
		p.ports.Store(to.ports.Load())
	}
	for i, r := range u.readers {
		s := m.rx[i]
		s.pause(u.paused.Load())
		if u.raw {
			_ = s.raw.Control(sys.Discard) // copies of what the old one has received
		}
		r.countDrops()
		was := r.sock.Swap(s)
		r.dropped.Last = 0
		was.Close()
	}
	for _, s := range old {
		s.Close()
	}
}
