package underlay

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// A socket has one DF and one checksum setting, so a source port has up to four transmit sockets, one of each kind.
type kind uint8

const (
	mayFragment kind = 1 << iota // without DF
	withSum                      // computes the UDP checksum
	kinds       = 4
)

// txPorts are source ports of a range and the sockets on them, opened on first use, all ports of one kind at a time.
// In an IP underlay they are protocols.
type txPorts struct {
	r     datagrams.Ports
	ports atomic.Pointer[[]uint16] // chosen with the first kind
	kinds [kinds]atomic.Pointer[txSocks]
}

// txSocks are the sockets of one kind in the order of the ports, or the error of opening them.
type txSocks struct {
	socks []*txSock
	err   error
	again time.Time // after an error, the time of the next attempt
}

// A txSock is a transmit socket on one source port.
type txSock struct {
	*sock
	port  uint16
	quiet bool // ICMP errors are read but not reported, because another socket gets them too

	watch *errWatch // that watches it
	fd    int32     // in that epoll instance

	// What all readers together have taken from the error queue: entries, and entries about the interface's MTU.
	taken, tooLong atomic.Uint32
}

// retryOpen is the interval between attempts to open sockets.
const retryOpen = time.Second / 2

// openTx returns the sockets of one kind, and opens them if necessary. After Close it returns neither sockets nor an
// error.
func (u *base) openTx(p *txPorts, k kind) *txSocks {
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
	if x.err = u.inNamespace(func() error { return u.openKind(p, k, x) }); x.err != nil {
		x.close()
		x.again = time.Now().Add(retryOpen)
	}
	p.kinds[k].Store(x)
	return x
}

// inNamespace runs f in the network namespace of the receive sockets: the first sender opens sockets, on any thread.
func (u *base) inNamespace(f func() error) (err error) {
	entered := false
	err = sys.Control(u.readers[0].sock.raw, func(fd int) error {
		return sys.InNamespaceOf(uintptr(fd), func() error { entered = true; return f() })
	})
	if err != nil && !entered {
		return fmt.Errorf("underlay: %w", err)
	}
	return err
}

// all calls f for every transmit socket; u.mu is held.
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
