package memory

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/ring"
	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/underlay"
)

// Config configures an underlay. The zero value and nil work.
type Config struct {
	Inbox      int                // maximum of datagrams that wait for one Reader, default 1024; more are lost and count as Overflow
	Queues     int                // number of Readers, over which flows are spread, default 1
	SrcPorts   underlay.PortRange // as in underlay.UDPConfig
	DefaultTTL int                // as in underlay.UDPConfig

	// MulticastLoop makes a member of a multicast group receive its own datagrams to the group, like sockets with
	// IP_MULTICAST_LOOP. Underlays of package underlay do not have it.
	MulticastLoop bool
}

const (
	defaultInbox = 1024
	firstFree    = 32768 // first port that the network chooses
)

// An Underlay is a member of a [Network]. All methods are safe for concurrent use; each Reader and each Sender belongs to
// one goroutine.
type Underlay struct {
	net   *Network
	at    address
	is4   bool
	ip    bool
	ttl   uint8
	loop  bool                                     // receives its own datagrams to groups
	users map[[16]byte]int                         // of multicast groups, under net.mu
	sets  datagrams.Sets[underlay.TxConfig, ports] // by Datagram.Set
	boxes []*ring.Ring[meta]

	pathMTU     atomic.Pointer[func(to frame.Endpoint, mtu int, quoted []byte)]
	unreachable atomic.Pointer[func(to frame.Endpoint, quoted []byte)]

	rx, overflow, tooBig, refused atomic.Uint64

	mu      sync.Mutex
	senders sync.Map // *sender by worker
	closed  bool
}

// address is the address of a member of a Network.
type address struct {
	key   frame.Endpoint // address and port, 0 for IP
	local netip.AddrPort
	scope uint32 // zone of local
}

// meta accompanies a datagram.
type meta struct {
	src, dst frame.Endpoint
	tos, ttl uint8
	flow     uint16         // of an IP packet, whose source port is 0
	at       frame.Endpoint // member of the multicast group dst that it is for
}

// Listen opens an underlay on a local address, which must not be a wildcard. Zones do not separate members: all are on one
// link, and each knows it by the name of its own address's zone. With port 0 the network chooses the port. If the
// address and port are taken, the error is syscall.EADDRINUSE. The caller closes the underlay, or gives it to a VTEP.
func (n *Network) Listen(local netip.AddrPort, cfg *Config) (*Underlay, error) {
	return n.listen(local, cfg, false)
}

func (n *Network) listen(local netip.AddrPort, cfg *Config, ip bool) (*Underlay, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	local, err := datagrams.Local("memory", local)
	if err == nil {
		err = notWild(local.Addr())
	}
	if err != nil {
		return nil, err
	}
	w := setting.Of("memory: Config")
	w.Limit("Inbox", c.Inbox)
	same := underlay.UDPConfig{SrcPorts: c.SrcPorts, DefaultTTL: c.DefaultTTL, Queues: c.Queues}
	w.Add("", same.Check(local))
	if err := w.Err(); err != nil {
		return nil, err
	}
	m := &Underlay{
		net:   n,
		ip:    ip,
		is4:   local.Addr().Is4(),
		loop:  c.MulticastLoop,
		users: make(map[[16]byte]int),
		ttl:   uint8(cmp.Or(c.DefaultTTL, datagrams.DefaultTTL)),
	}
	if _, err := m.sets.Number(underlay.TxConfig{SrcPorts: cmp.Or(c.SrcPorts, underlay.PortRange(datagrams.Dynamic))}, newPorts); err != nil {
		return nil, err
	}
	for range cmp.Or(c.Queues, 1) {
		m.boxes = append(m.boxes, ring.New[meta](cmp.Or(c.Inbox, defaultInbox)))
	}
	if err := n.join(m, local); err != nil {
		return nil, err
	}
	return m, nil
}

func notWild(a netip.Addr) error {
	if a.IsUnspecified() {
		return fmt.Errorf("memory: local address %v: a Network has no wildcard addresses: %w", a, syscall.EADDRNOTAVAIL)
	}
	return nil
}

// join makes m a member at an address, on a free port if the port is 0.
func (n *Network) join(m *Underlay, local netip.AddrPort) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	e, err := frame.EndpointFrom(local)
	if err != nil {
		return fmt.Errorf("memory: local address: %w", err)
	}
	key := frame.Endpoint{IP: e.IP, Port: e.Port}
	if key.Port == 0 && !m.ip {
		for p := firstFree; p < 65536; p++ {
			if n.members[key.WithPort(uint16(p))] == nil {
				key.Port = uint16(p)
				break
			}
		}
	}
	if key.Port == 0 && !m.ip || n.members[key] != nil {
		return fmt.Errorf("memory: listen on %v: %w", key, syscall.EADDRINUSE)
	}
	n.members[key] = m
	m.at = address{key, netip.AddrPortFrom(local.Addr(), key.Port), e.Scope}
	return nil
}

// put puts a datagram into an inbox, always the same for one flow.
func (m *Underlay) put(x meta, parts [][]byte) frame.Reason {
	if x.src.IsLinkLocal() {
		x.src.Scope = m.at.scope
	}
	if x.dst.IsLinkLocal() {
		x.dst.Scope = m.at.scope
	}
	q := 0
	if len(m.boxes) > 1 {
		h := uint32(x.src.Port | x.flow)
		for _, b := range x.src.IP[12:] {
			h = h*31 + uint32(b)
		}
		q = int(h*2654435769>>16) % len(m.boxes)
	}
	why := m.boxes[q].Put(x, parts...)
	if why == frame.PortFull {
		m.overflow.Add(1)
	}
	return why
}

// Readers returns one Reader for each receive queue.
func (m *Underlay) Readers() []frame.Reader {
	rs := make([]frame.Reader, len(m.boxes))
	for i := range rs {
		rs[i] = &reader{m, m.boxes[i]}
	}
	return rs
}

type reader struct {
	m   *Underlay
	box *ring.Ring[meta]
}

// Read implements [frame.Reader].
func (r *reader) Read(b *frame.Batch) error {
	if err := r.box.Fill(b, setOuter); err != nil {
		b.Release()
		return err
	}
	r.m.rx.Add(uint64(len(b.Frames)))
	return nil
}

func setOuter(b *frame.Batch, i int, x meta) {
	b.Outer[i] = frame.Outer{Src: x.src, Dst: x.dst, If: 1, TOS: x.tos, TTL: x.ttl}
	if f := &b.Frames[i]; x.ip() {
		f.Kind = datagrams.Kind(datagrams.Protocol([][]byte{f.Bytes()}))
	}
}

// LocalAddr returns the address and port that peers send to.
func (m *Underlay) LocalAddr() netip.AddrPort { return m.at.local }

// Is4 reports whether this is an IPv4 underlay.
func (m *Underlay) Is4() bool { return m.is4 }

// MTU returns the network's IP MTU.
func (m *Underlay) MTU() int { return m.net.mtu }

// PathMTU sets the function to call like [underlay.UDP.PathMTU] does. For a datagram above the interface's MTU, Send calls it
// with an empty quoted. For one above a Link's PathMTU, the network calls it with the first 128 bytes of the payload.
func (m *Underlay) PathMTU(f func(to frame.Endpoint, mtu int, quoted []byte)) { m.pathMTU.Store(&f) }

// report calls the PathMTU function, if there is one and m is open, and counts.
func (m *Underlay) report(to *frame.Endpoint, mtu int, quoted []byte) {
	m.tooBig.Add(1)
	if f := m.pathMTU.Load(); f != nil && !m.isClosed() {
		(*f)(*to, mtu, quoted)
	}
}

// Superframes does nothing, because datagrams arrive as sent.
func (m *Underlay) Superframes(func(payload []byte) bool) {}

// Pause makes every Read return [frame.ErrPaused] until Resume.
func (m *Underlay) Pause() { m.pause(true) }

// Resume ends a Pause.
func (m *Underlay) Resume() { m.pause(false) }

func (m *Underlay) pause(on bool) {
	for _, b := range m.boxes {
		b.Pause(on)
	}
}

// Close leaves the network. Every Read then returns [net.ErrClosed], and every Send loses its datagrams as
// [frame.PortDown]. Datagrams sent before still arrive. It is idempotent.
func (m *Underlay) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	m.net.leave(m)
	for _, b := range m.boxes {
		b.Close()
	}
	return nil
}

func (m *Underlay) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// Sockets returns the number of a set of source ports, for [frame.Datagram].Set. Equal settings have equal numbers, and those
// of the underlay have 0. There are no checksums, so their mode has no effect. Errors are those of
// [underlay.UDP.Sockets], and errors.ErrUnsupported for IP.
func (m *Underlay) Sockets(c underlay.TxConfig) (uint8, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, net.ErrClosed
	}
	if m.ip {
		return 0, fmt.Errorf("memory: an IP underlay has one set of sockets: %w", errors.ErrUnsupported)
	}
	own := m.sets.Own()
	return m.sets.Number(underlay.TxConfig{SrcPorts: cmp.Or(c.SrcPorts, own.SrcPorts), Checksum: cmp.Or(c.Checksum, own.Checksum)}, newPorts)
}

// ports are the source ports of a set.
type ports []uint16

func newPorts(c underlay.TxConfig) *ports {
	r, ports := datagrams.Ports(c.SrcPorts), ports{}
	n := r.Slots(datagrams.DefaultSlots)
	for i := range n {
		ports = append(ports, r.Slot(i, n).Middle())
	}
	return &ports
}

// Stats returns a snapshot of the counters.
func (m *Underlay) Stats() underlay.Stats {
	st := datagrams.Counts{RxDatagrams: m.rx.Load(), RxOverflow: m.overflow.Load()}
	st.Errors.TooBig, st.Errors.Refused = m.tooBig.Load(), m.refused.Load()
	for _, x := range m.senders.Range {
		s := x.(*sender)
		st.TxDatagrams += s.sent.Load()
		s.lost.AddTo(&st)
	}
	return underlay.Stats(st)
}
