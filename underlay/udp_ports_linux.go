package underlay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// A txSock is a transmit socket on one source port.
type txSock struct {
	*sock
	port uint16
}

// A txSet is the transmit sockets of one setting of DF, or why there are none.
type txSet struct {
	socks []*txSock
	err   error
}

// openTx binds the transmit sockets, one port out of each slot of the range. A slot
// all of whose ports are taken gives none; it is an error when there is none at all.
func (u *UDP) openTx() error {
	n := u.cfg.SrcPorts.slots()
	for i := range n {
		s, err := u.openTxIn(u.cfg.SrcPorts.slot(i, n))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return err
		}
		u.tx = append(u.tx, s)
	}
	if len(u.tx) == 0 {
		r := u.cfg.SrcPorts
		return fieldError("SrcPorts", fmt.Errorf("no port of %d-%d is free: %w", r.Lo, r.Hi, syscall.EADDRINUSE))
	}
	return nil
}

// openTxIn binds a transmit socket to a port of r: a random one, or the next that
// is free.
func (u *UDP) openTxIn(r PortRange) (*txSock, error) {
	size := int(r.Hi) - int(r.Lo) + 1
	first := rand.IntN(size)
	for i := range size {
		port := r.Lo + uint16((first+i)%size)
		s, _, err := u.open(netip.AddrPortFrom(u.local.Addr(), port), func(fd int) error {
			return u.txOptions(fd, true)
		})
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// Only now, so that the port was ours alone; the socket without DF joins later.
		if err := s.reusePort(); err != nil {
			s.conn.Close()
			return nil, fmt.Errorf("underlay: SO_REUSEPORT: %w", err)
		}
		return &txSock{s, port}, nil
	}
	return nil, fmt.Errorf("underlay: ports %d-%d: %w", r.Lo, r.Hi, syscall.EADDRINUSE)
}

// openPlain returns the sockets for datagrams without DF, which it opens when they
// are first needed: on the same source ports, because a flow keeps its port.
func (u *UDP) openPlain() *txSet {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p := u.plain.Load(); p != nil {
		return p
	}
	set := &txSet{}
	if u.closed {
		return set
	}
	for _, t := range u.tx {
		s, _, err := u.open(netip.AddrPortFrom(u.local.Addr(), t.port), func(fd int) error {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
				return err
			}
			return u.txOptions(fd, false)
		})
		if err != nil {
			for _, s := range set.socks {
				s.conn.Close()
			}
			set = &txSet{err: err}
			break
		}
		set.socks = append(set.socks, &txSock{s, t.port})
	}
	u.plain.Store(set)
	return set
}

// txCounters are one sender's; they are added to once for each Send.
type txCounters struct {
	datagrams, calls, retries                        atomic.Uint64
	lost                                             lostCounters
	refused, unreachable, tooBig, prohibited, others atomic.Uint64
}

func (c *txCounters) addTo(st *Stats) {
	st.TxDatagrams += c.datagrams.Load()
	st.TxCalls += c.calls.Load()
	st.TxRetries += c.retries.Load()
	c.lost.addTo(st)
	st.Errors.Refused += c.refused.Load()
	st.Errors.Unreachable += c.unreachable.Load()
	st.Errors.TooBig += c.tooBig.Load()
	st.Errors.Prohibited += c.prohibited.Load()
	st.Errors.Other += c.others.Load()
}
