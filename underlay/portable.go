package underlay

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// Portable is a UDP underlay on sockets of package net, for every system that Go supports. Outside Linux, [ListenUDP] opens
// one. On Linux, [UDP] does more at less cost, and Portable is there for comparison.
//
// All methods are safe for concurrent use; each Reader and each Sender belongs to one goroutine.
type Portable struct {
	life
	cfg     UDPConfig
	local   netip.AddrPort
	is4     bool
	batch   bool // a call takes several messages
	mtu     linkMTU
	readers [2]*portableReader
	device  *net.Interface // of multicast groups, nil for the system's choice
	sets    datagrams.Sets[TxConfig, portableSet]
	joined  atomic.Pointer[map[[16]byte]int] // Joins without a Leave, by group; replaced, never changed

	mu      sync.Mutex
	begun   sync.Cond // the second reader has a socket, or Reads end
	senders map[int]*portableSender
	socks   []*portableSocket // all
	closed  bool

	// write is WriteToUDPAddrPort, or a test's.
	write func(c *net.UDPConn, b []byte, to netip.AddrPort) (int, error)
}

// A portableSet is a set of transmit sockets (Datagram.Set) on source ports of one range, none until they are opened.
type portableSet struct {
	ports datagrams.Ports
	socks atomic.Pointer[[]*portableSocket]
}

// ListenPortable opens a Portable on a local address, like [ListenUDP] on Linux. A nil cfg means the zero value.
//
// If cfg asks for something that Portable cannot do, the error names the field and wraps [errors.ErrUnsupported]; the
// package documentation has a table of these fields. The caller closes the underlay, or gives it to a VTEP.
func ListenPortable(local netip.AddrPort, cfg *UDPConfig) (*Portable, error) {
	return listenPortable(local, cfg, dontWait != 0)
}

func listenPortable(local netip.AddrPort, cfg *UDPConfig, batch bool) (*Portable, error) {
	c, err := cfg.withDefaults()
	if err == nil {
		err = c.portable()
	}
	if err == nil {
		local, err = c.at(local)
	}
	if err != nil {
		return nil, err
	}
	c.Checksum = ChecksumOn // the only mode
	u := &Portable{cfg: c, local: local, is4: local.Addr().Is4(), batch: batch, senders: map[int]*portableSender{}, write: (*net.UDPConn).WriteToUDPAddrPort}
	u.done, u.begun.L = make(chan struct{}), &u.mu
	u.joined.Store(&map[[16]byte]int{})
	if err := u.openAll(); err != nil {
		u.Close()
		return nil, err
	}
	return u, nil
}

// portable returns an error for a field that asks for something Portable does not have.
func (c *UDPConfig) portable() error {
	for _, x := range []struct {
		field string
		value any
		asked bool
	}{
		{"Mark", c.Mark, c.Mark != 0},
		{"Device", strconv.Quote(c.Device), c.Device != ""},
		{"Checksum", c.Checksum, c.Checksum == ChecksumOff},
		{"ZeroChecksum6RX", c.ZeroChecksum6RX, c.ZeroChecksum6RX},
		{"BusyPoll", c.BusyPoll, c.BusyPoll != 0},
		{"Queues", c.Queues, c.Queues > 1},
	} {
		if x.asked {
			return fmt.Errorf("underlay: UDPConfig.%s: %v: a Portable cannot do this: %w", x.field, x.value, errors.ErrUnsupported)
		}
	}
	return nil
}

func (u *Portable) openAll() (err error) {
	if u.device, err = u.multicastDevice(); err != nil {
		return err
	}
	s, err := u.open(u.local, true)
	if err != nil {
		return err
	}
	u.local = netip.AddrPortFrom(u.local.Addr(), s.port())
	u.readers = [2]*portableReader{newPortableReader(u, s), newPortableReader(u, nil)}
	_, err = u.sockets(TxConfig{u.cfg.SrcPorts, u.cfg.Checksum}, "UDPConfig")
	return err
}

// Sockets opens a set of transmit sockets with other source ports, and returns its number for [frame.Datagram].Set. Equal
// settings have equal numbers, and those of the underlay have 0. The error names the field of TxConfig. There are at most
// 32 sets. After Close the error is net.ErrClosed.
func (u *Portable) Sockets(c TxConfig) (uint8, error) { return u.sockets(c, "TxConfig") }

func (u *Portable) sockets(c TxConfig, config string) (uint8, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return 0, net.ErrClosed
	}
	if err := c.Check(); err != nil {
		return 0, err
	}
	if c.Checksum == ChecksumOff {
		return 0, fmt.Errorf("underlay: TxConfig.Checksum: %v: a Portable cannot do this: %w", c.Checksum, errors.ErrUnsupported)
	}
	c = TxConfig{cmp.Or(c.SrcPorts, u.cfg.SrcPorts), u.cfg.Checksum}
	n, err := u.sets.Number(c, func(c TxConfig) *portableSet { return &portableSet{ports: datagrams.Ports(c.SrcPorts)} })
	if err == nil {
		err = u.openSet(u.sets.Get(n), config)
	}
	return n, err
}

// Readers returns one Reader for the local address and one for multicast groups.
func (u *Portable) Readers() []frame.Reader { return []frame.Reader{u.readers[0], u.readers[1]} }

// Sender returns the Sender of worker w, which may be any number.
func (u *Portable) Sender(w int) frame.Sender {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.senders[w]
	if s == nil {
		s = newPortableSender(u)
		u.senders[w] = s
	}
	return s
}

// LocalAddr returns the address and port that peers send to.
func (u *Portable) LocalAddr() netip.AddrPort { return u.local }

// Is4 reports whether this is an IPv4 underlay.
func (u *Portable) Is4() bool { return u.is4 }

// MTU returns the current IP MTU of the interface with the local address, 1500 for a wildcard address, and while there is no such
// interface what was last seen. It is at most what the underlay receives (UDPConfig.MaxDatagram).
func (u *Portable) MTU() int {
	u.mtu.look(u.local.Addr(), "")
	return min(u.mtu.seen(), u.cfg.MaxDatagram+datagrams.UDPHeaders(u.is4))
}

// PathMTU ignores f: package net does not report ICMP errors.
func (u *Portable) PathMTU(f func(to frame.Endpoint, mtu int, quoted []byte)) {}

// Unreachable ignores f, like PathMTU.
func (u *Portable) Unreachable(f func(to frame.Endpoint, quoted []byte)) {}

// Superframes ignores f: datagrams longer than MaxDatagram are dropped.
func (u *Portable) Superframes(f func(payload []byte) bool) {}

// Pause makes every Read return [frame.ErrPaused] until Resume.
func (u *Portable) Pause() { u.pause(true) }

// Resume ends a Pause.
func (u *Portable) Resume() { u.pause(false) }

func (u *Portable) pause(on bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.paused.Store(on)
	for _, r := range u.readers {
		if s := r.sock.Load(); s != nil {
			_ = s.SetReadDeadline(pausedUntil(on)) // fails only after Close
		}
	}
	u.begun.Broadcast()
}

// Close closes all sockets. Every Read then returns net.ErrClosed, and every Send loses its datagrams as
// [frame.PortDown]. It is idempotent.
func (u *Portable) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil
	}
	u.closed = true
	close(u.done)
	u.begun.Broadcast()
	var errs []error
	for _, s := range u.socks {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// Stats returns a snapshot of the counters.
func (u *Portable) Stats() Stats {
	u.mu.Lock()
	defer u.mu.Unlock()
	var st datagrams.Counts
	for _, r := range u.readers {
		r.rx.AddTo(&st)
	}
	for _, s := range u.senders {
		s.Tx.AddTo(&st)
	}
	for _, s := range u.socks {
		st.Buffers(s.recv, s.send)
	}
	return Stats(st)
}
