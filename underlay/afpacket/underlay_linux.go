package afpacket

import (
	"cmp"
	"errors"
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

// An Underlay is an underlay of packet sockets. All methods are safe for concurrent use; each Reader
// and each Sender is used by one goroutine.
type Underlay struct {
	dev   *sys.PacketInterface
	is4   bool
	mac   frame.MAC // ours
	cfg   Config
	via   hopKey // the gateway, zero without
	head  int    // length of the virtio header of what is sent, 0 without offloads
	place atomic.Pointer[place]

	queues  []*reader
	send    *sys.PacketSocket // of all Senders
	control *sys.PacketSocket // of neighbours and errors
	hops    *hops

	runs   bool // the kernel is to cut runs
	id     atomic.Uint32
	sets   datagrams.Sets[underlay.TxConfig, set] // by Datagram.Set
	errors datagrams.Errors
	late   datagrams.Tx // what has waited for a next hop

	pathMTU atomic.Pointer[func(to frame.Endpoint, mtu int, quoted []byte)]

	mu      sync.Mutex
	senders sync.Map                 // *sender by worker
	groups  map[[16]byte]*membership // by Join

	// sendmmsg is sys.Sendmmsg; a test puts a kernel that refuses in front of it.
	sendmmsg func(fd uintptr, msgs []sys.Mmsghdr, flags int) (int, unix.Errno)
}

// A set is what a Datagram's Set stands for.
type set struct {
	lo   uint16
	n    uint32 // ports
	sum  bool   // a lone datagram has a checksum
	runs bool   // the checksum mode allows runs
}

// Readers returns one Reader for each receive queue. When the interface is deleted, each Read
// returns an error that names it; while it is down, Read waits.
func (p *Underlay) Readers() []frame.Reader {
	rs := make([]frame.Reader, len(p.queues))
	for i, r := range p.queues {
		rs[i] = r
	}
	return rs
}

// Sender returns worker w's Sender; any number will do, and the same number gives
// the same Sender. Senders share the socket, not their scratch.
func (p *Underlay) Sender(w int) frame.Sender {
	s, _ := p.senders.LoadOrStore(w, newSender(p))
	return s.(*sender)
}

// LocalAddr returns the address and port peers send to, a link-local address with the
// interface's index as its zone.
func (p *Underlay) LocalAddr() netip.AddrPort { return p.place.Load().local }

// Is4 reports whether this is an IPv4 underlay.
func (p *Underlay) Is4() bool { return p.is4 }

// MTU returns the MTU of the interface. It costs one load; a change is seen at once.
func (p *Underlay) MTU() int { return int(p.dev.MTU.Load()) }

// PathMTU has f called whenever a datagram to an endpoint turned out too long, as [underlay.UDP] has
// it: because a router said so, or because it is longer than the MTU of the interface. A router is
// believed if it quotes the first eight bytes of the payload, more than RFC 792 asks of it and less
// than RFC 1812, section 4.3.2.3, does. Close
// waits until the goroutine that reads errors is not in f any more.
func (p *Underlay) PathMTU(f func(to frame.Endpoint, mtu int, quoted []byte)) { p.pathMTU.Store(&f) }

// Unreachable does nothing: such errors are counted in Stats.
func (p *Underlay) Unreachable(func(to frame.Endpoint, quoted []byte)) {}

// Superframes does nothing: the kernel says which packets are superframes.
func (p *Underlay) Superframes(func(payload []byte) bool) {}

// Sockets returns the number of a set of settings for datagrams, for [frame.Datagram].Set, as
// that of [underlay.UDP] does. Nothing is opened for it.
func (p *Underlay) Sockets(c underlay.TxConfig) (uint8, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dev.Closed() {
		return 0, net.ErrClosed
	}
	own := p.sets.Own()
	return p.sets.Number(underlay.TxConfig{SrcPorts: cmp.Or(c.SrcPorts, own.SrcPorts), Checksum: cmp.Or(c.Checksum, own.Checksum)}, p.newSet)
}

func (p *Underlay) newSet(c underlay.TxConfig) *set {
	return &set{
		lo: c.SrcPorts.Lo, n: uint32(datagrams.Ports(c.SrcPorts).Len()),
		sum:  c.Checksum == underlay.ChecksumOn || c.Checksum == underlay.ChecksumAuto && !p.is4,
		runs: c.Checksum != underlay.ChecksumOff,
	}
}

// sends reports whether a source port is one that datagrams of ours have.
func (p *Underlay) sends(port uint16) (ours bool) {
	p.sets.All(func(s *set) { ours = ours || uint32(port-s.lo) < s.n })
	return ours
}

// Pause makes every Read return [frame.ErrPaused], those that wait and those to
// come, until Resume. Datagrams that arrive meanwhile wait in the receive buffer.
func (p *Underlay) Pause() { p.dev.Pause(true) }

// Resume ends a Pause.
func (p *Underlay) Resume() { p.dev.Pause(false) }

// Close closes all sockets. Every Read, waiting or to come, then returns an error
// that errors.Is [net.ErrClosed], and every Send loses what it is given with
// [frame.PortDown]. It is idempotent.
func (p *Underlay) Close() error {
	err, first := p.dev.Close()
	if !first {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.place.Load(); at != nil {
		err = errors.Join(err, at.asked.close())
	}
	for _, m := range p.groups {
		err = errors.Join(err, m.close())
	}
	return err
}

// Stats returns a snapshot of the counters. What waited for a next hop counts as sent when it
// is, and as lost for Unresolved when nobody answered.
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
