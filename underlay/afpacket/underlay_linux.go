package afpacket

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
	"github.com/vxswitch/vxswitch/underlay"
)

// An Underlay is an underlay of packet sockets. Its methods are safe for concurrent use; each Reader and each
// Sender is for one goroutine.
type Underlay struct {
	dev   *sys.PacketInterface
	is4   bool
	raw   bool // IP-in-IP
	udp   int  // length of the UDP header: 0 if raw
	eth   int  // length of the Ethernet header with its tag
	mac   frame.MAC
	cfg   Config
	via   hopKey // the gateway, zero without
	head  int    // length of the virtio header of what is sent, 0 without offloads
	local netip.AddrPort
	near  [2]uint64             // prefix of the link ...
	mask  [2]uint64             // ... and its mask, IPv4 as IPv4-mapped
	rules atomic.Pointer[rules] // replaced by Join and Leave, never changed
	owned ownership

	messenger messenger
	solicited *membership // of the solicited-node group; nil over IPv4

	queues  []*reader
	send    *sys.PacketSocket // of all Senders
	control *sys.PacketSocket // of neighbours and errors
	hops    *hops

	runs   bool // the kernel is to cut runs
	id     atomic.Uint32
	sets   datagrams.Sets[underlay.TxConfig, set] // by Datagram.Set
	errors datagrams.Errors
	late   datagrams.Tx // what has waited for a next hop

	pathMTU     atomic.Pointer[func(to frame.Endpoint, mtu int, quoted []byte)]
	unreachable atomic.Pointer[func(to frame.Endpoint, quoted []byte)] // of IP-in-IP

	mu      sync.Mutex
	senders sync.Map                 // *sender by worker
	groups  map[[16]byte]*membership // by Join

	// sendmmsg is sys.Sendmmsg, or a test's.
	sendmmsg func(fd uintptr, msgs []sys.Mmsghdr, flags int) (int, unix.Errno)
}

// A set is the settings that Datagram.Set selects.
type set struct {
	lo   uint16
	n    uint32 // ports
	sum  bool   // a lone datagram has a checksum
	runs bool   // the checksum mode allows runs
}

// Readers returns one Reader for each receive queue. While the interface is down, Read waits. After it is
// deleted, Read returns an error with its name.
func (p *Underlay) Readers() []frame.Reader {
	rs := make([]frame.Reader, len(p.queues))
	for i, r := range p.queues {
		rs[i] = r
	}
	return rs
}

// Sender returns the Sender of worker w, which may be any number. Senders share the socket.
func (p *Underlay) Sender(w int) frame.Sender {
	s, ok := p.senders.Load(w)
	if !ok {
		s, _ = p.senders.LoadOrStore(w, newSender(p))
	}
	return s.(*sender)
}

// LocalAddr returns the address and port that peers send to, port 0 with IP-in-IP. The zone of a link-local address is the index of
// the interface.
func (p *Underlay) LocalAddr() netip.AddrPort { return p.local }

// Is4 reports whether this is an IPv4 underlay.
func (p *Underlay) Is4() bool { return p.is4 }

// MTU returns the current MTU of the interface.
func (p *Underlay) MTU() int { return int(p.dev.MTU.Load()) }

// PathMTU sets the function that is called if a datagram was too big, as that of [underlay.UDP.PathMTU]. An
// ICMP error counts only if it quotes the first eight bytes of the payload, which is more than RFC 792
// requires, and less than RFC 1812, section 4.3.2.3. Close waits until the goroutine that reads errors has left f.
func (p *Underlay) PathMTU(f func(to frame.Endpoint, mtu int, quoted []byte)) { p.pathMTU.Store(&f) }

// Unreachable sets the function that is called for ICMP errors about packets of IP-in-IP that did not arrive, as that of
// [underlay.IP.Unreachable]. Those about datagrams are only counted in Stats.
func (p *Underlay) Unreachable(f func(to frame.Endpoint, quoted []byte)) { p.unreachable.Store(&f) }

// Superframes does nothing: the kernel says which packets are superframes.
func (p *Underlay) Superframes(func(payload []byte) bool) {}

// Sockets returns a number for [frame.Datagram].Set, as that of [underlay.UDP] does. It opens no sockets.
func (p *Underlay) Sockets(c underlay.TxConfig) (uint8, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.dev.Closed():
		return 0, net.ErrClosed
	case p.raw:
		return 0, fmt.Errorf("afpacket: IP-in-IP has no UDP header: %w", errors.ErrUnsupported)
	}
	own := p.sets.Own()
	return p.sets.Number(underlay.TxConfig{SrcPorts: cmp.Or(c.SrcPorts, own.SrcPorts), Checksum: cmp.Or(c.Checksum, own.Checksum)}, p.newSet)
}

func (p *Underlay) newSet(c underlay.TxConfig) *set {
	return &set{
		lo: c.SrcPorts.Lo, n: uint32(datagrams.Ports(c.SrcPorts).Len()),
		sum:  !p.raw && (c.Checksum == underlay.ChecksumOn || c.Checksum == underlay.ChecksumAuto && !p.is4),
		runs: c.Checksum != underlay.ChecksumOff,
	}
}

// sends reports whether a source port is in one of the sets.
func (p *Underlay) sends(port uint16) (ok bool) {
	p.sets.All(func(s *set) { ok = ok || uint32(port-s.lo) < s.n })
	return ok
}

// Pause makes every Read return [frame.ErrPaused] until Resume. Datagrams wait in the receive buffers.
func (p *Underlay) Pause() { p.dev.Pause(true) }

// Resume ends a Pause.
func (p *Underlay) Resume() { p.dev.Pause(false) }

// Close closes all sockets. Every Read then returns an error that wraps [net.ErrClosed], and every Send loses
// its datagrams as [frame.PortDown]. It is idempotent.
func (p *Underlay) Close() error {
	err, first := p.dev.Close()
	if !first {
		return nil
	}
	p.hops.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	err = errors.Join(err, p.solicited.close())
	for _, m := range p.groups {
		err = errors.Join(err, m.close())
	}
	return err
}

// Stats returns a snapshot of the counters. Datagrams that wait for a next hop count when they are sent, or lost
// as Unresolved.
func (p *Underlay) Stats() underlay.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	var st datagrams.Counts
	st.Buffers(0, p.send.Buffer(false))
	for _, r := range p.queues {
		r.addTo(&st)
		st.Buffers(r.sock.Buffer(true), 0)
	}
	for _, s := range p.senders.Range {
		s.(*sender).Tx.AddTo(&st)
	}
	p.late.AddTo(&st)
	p.errors.AddTo(&st)
	return underlay.Stats(st)
}
