package underlay

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/ring"
)

// MemoryConfig is how [Network.Listen] makes an underlay. The zero value works,
// and nil stands for it.
type MemoryConfig struct {
	Inbox      int       // datagrams that wait for one Reader, 0 means 1024; more are lost and counted as overflow
	Queues     int       // Readers, between which flows are spread, 0 means 1
	SrcPorts   PortRange // as in UDPConfig
	DefaultTTL int       // as in UDPConfig

	// MulticastLoop has a member of a multicast group receive what it sends to the group
	// itself, as sockets with IP_MULTICAST_LOOP do. Those of UDP do not.
	MulticastLoop bool
}

const (
	defaultInbox = 1024
	firstFree    = 32768 // where ports the network chooses begin
)

// Memory is an underlay on a [Network]. Its methods are those of [UDP], or of [IP] when
// [Network.ListenIP] made it, and so is their behaviour: a Sender learns of a datagram that is too long for the MTU, and
// of nothing that happens to it on the way, except what PathMTU tells.
type Memory struct {
	net   *Network
	at    atomic.Pointer[memoryAddress]
	is4   bool
	ip    bool
	ttl   uint8
	loop  bool                                  // hears what it sends to groups
	users map[[16]byte]int                      // of multicast groups, under net.mu
	sets  datagrams.Sets[TxConfig, memoryPorts] // by Datagram.Set
	boxes []*ring.Ring[meta]

	pathMTU     atomic.Pointer[func(to frame.Endpoint, mtu int, quoted []byte)]
	unreachable atomic.Pointer[func(to frame.Endpoint, quoted []byte)]

	rx, overflow, tooBig, refused atomic.Uint64

	mu      sync.Mutex
	senders map[int]*memSender
	closed  bool
}

// memoryAddress is where a member of a Network is.
type memoryAddress struct {
	key   frame.Endpoint // address and port, 0 for IP
	local netip.AddrPort
	scope uint32 // zone of local
}

// meta goes with a datagram.
type meta struct {
	src, dst frame.Endpoint
	tos, ttl uint8
	flow     uint16         // of an IP packet, whose source port is 0
	at       frame.Endpoint // the member of the multicast group dst it is for
}

// Listen makes an underlay on a local address, which may not be a wildcard. Zones keep
// nobody apart: all members are on one link, which each has under the name of its own
// address's zone. With port 0 the network chooses one. An address and port that
// is taken is an error that errors.Is syscall.EADDRINUSE.
func (n *Network) Listen(local netip.AddrPort, cfg *MemoryConfig) (*Memory, error) {
	return n.listen(local, cfg, false)
}

func (n *Network) listen(local netip.AddrPort, cfg *MemoryConfig, ip bool) (*Memory, error) {
	var c MemoryConfig
	if cfg != nil {
		c = *cfg
	}
	bad := func(field string, v any) (*Memory, error) {
		return nil, fmt.Errorf("underlay: MemoryConfig.%s: %v is out of range", field, v)
	}
	local, err := datagrams.Local("underlay", local)
	if err != nil {
		return nil, err
	}
	if err := notWild(local.Addr()); err != nil {
		return nil, err
	}
	r, ok := c.SrcPorts.orDefault()
	if c.Inbox == 0 {
		c.Inbox = defaultInbox
	}
	if c.Queues == 0 {
		c.Queues = 1
	}
	if c.DefaultTTL == 0 {
		c.DefaultTTL = defaultTTL
	}
	switch {
	case !ok:
		return bad("SrcPorts", r)
	case c.Inbox < 1:
		return bad("Inbox", c.Inbox)
	case c.Queues < 1 || c.Queues > maxQueues:
		return bad("Queues", c.Queues)
	case c.DefaultTTL < 1 || c.DefaultTTL > 255:
		return bad("TTL", c.DefaultTTL)
	}
	m := &Memory{
		net:     n,
		ip:      ip,
		is4:     local.Addr().Is4(),
		loop:    c.MulticastLoop,
		users:   make(map[[16]byte]int),
		ttl:     uint8(c.DefaultTTL),
		senders: make(map[int]*memSender),
	}
	if _, err := m.sets.Number(TxConfig{SrcPorts: r}, newMemoryPorts); err != nil {
		return nil, err
	}
	for range c.Queues {
		m.boxes = append(m.boxes, ring.New[meta](c.Inbox))
	}
	if err := n.join(m, local); err != nil {
		return nil, err
	}
	return m, nil
}

func notWild(a netip.Addr) error {
	if a.IsUnspecified() {
		return fmt.Errorf("underlay: local address %v: a Network has no wildcard addresses: %w", a, syscall.EADDRNOTAVAIL)
	}
	return nil
}

// join makes m a member at an address, in place of the one it has, on a free port if it is
// given none.
func (n *Network) join(m *Memory, local netip.AddrPort) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	e, err := frame.EndpointFrom(local)
	if err != nil {
		return fmt.Errorf("underlay: local address: %w", err)
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
		return fmt.Errorf("underlay: listen on %v: %w", key, syscall.EADDRINUSE)
	}
	if old := m.at.Load(); old != nil {
		delete(n.members, old.key)
	}
	n.members[key] = m
	m.at.Store(&memoryAddress{key, netip.AddrPortFrom(local.Addr(), key.Port), e.Scope})
	for group := range m.users {
		slices.SortFunc(n.groups[group], compareMembers)
	}
	return nil
}

// put takes a datagram into an inbox: always the same for one flow.
func (m *Memory) put(x meta, parts [][]byte) frame.Reason {
	if x.src.IsLinkLocal() {
		x.src.Scope = m.at.Load().scope
	}
	if x.dst.IsLinkLocal() {
		x.dst.Scope = m.at.Load().scope
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
func (m *Memory) Readers() []frame.Reader {
	rs := make([]frame.Reader, len(m.boxes))
	for i := range rs {
		rs[i] = &memReader{m, m.boxes[i]}
	}
	return rs
}

type memReader struct {
	m   *Memory
	box *ring.Ring[meta]
}

// Read implements [frame.Reader].
func (r *memReader) Read(b *frame.Batch) error {
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

// LocalAddr returns the address and port peers send to.
func (m *Memory) LocalAddr() netip.AddrPort { return m.at.Load().local }

// Is4 reports whether this is an IPv4 underlay.
func (m *Memory) Is4() bool { return m.is4 }

// SetLocal gives the underlay another address, as [UDP.SetLocal] does: what is under way to
// the old one finds nobody there. What waits in the inboxes is not lost.
func (m *Memory) SetLocal(addr netip.Addr) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.LocalAddr()
	addr, err := datagrams.Another("underlay", old.Addr(), addr)
	if err == nil {
		err = notWild(addr)
	}
	switch {
	case m.closed:
		return net.ErrClosed
	case err != nil:
		return err
	case addr == old.Addr():
		return nil
	}
	return m.net.join(m, netip.AddrPortFrom(addr, old.Port()))
}

// MTU returns the network's IP MTU.
func (m *Memory) MTU() int { return m.net.mtu }

// PathMTU has f called as [UDP.PathMTU] does: within Send for a datagram above the
// interface's MTU, with an empty quoted, and by the network, while nothing needs to be
// sent, for one above a Link's PathMTU, with the first 128 bytes of its payload.
func (m *Memory) PathMTU(f func(to frame.Endpoint, mtu int, quoted []byte)) { m.pathMTU.Store(&f) }

// report tells the PathMTU func, if there is one and m is open, and counts.
func (m *Memory) report(to *frame.Endpoint, mtu int, quoted []byte) {
	m.tooBig.Add(1)
	if f := m.pathMTU.Load(); f != nil && !m.isClosed() {
		(*f)(*to, mtu, quoted)
	}
}

// Pause makes every Read return [frame.ErrPaused] until Resume.
func (m *Memory) Pause() { m.pause(true) }

// Resume ends a Pause.
func (m *Memory) Resume() { m.pause(false) }

func (m *Memory) pause(on bool) {
	for _, b := range m.boxes {
		b.Pause(on)
	}
}

// Close leaves the network. Every Read, waiting or to come, then returns
// [net.ErrClosed], and every Send loses what it is given with [frame.PortDown].
// What was sent before still arrives. It is idempotent.
func (m *Memory) Close() error {
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

func (m *Memory) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// Sockets returns the number of a set of source ports, for [frame.Datagram].Set; equal
// settings give equal numbers, and those of the underlay give 0. There are no checksums
// here, so that their mode changes nothing. Errors are those of [UDP.Sockets], and
// errors.ErrUnsupported for IP.
func (m *Memory) Sockets(c TxConfig) (uint8, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, net.ErrClosed
	}
	if m.ip {
		return 0, fmt.Errorf("underlay: an IP underlay has one set of sockets: %w", errors.ErrUnsupported)
	}
	own := m.sets.Own()
	return m.sets.Number(TxConfig{cmp.Or(c.SrcPorts, own.SrcPorts), cmp.Or(c.Checksum, own.Checksum)}, newMemoryPorts)
}

// memoryPorts is the source ports of a set.
type memoryPorts []uint16

func newMemoryPorts(c TxConfig) *memoryPorts {
	r, ports := datagrams.Ports(c.SrcPorts), memoryPorts{}
	for i := range r.Slots() {
		ports = append(ports, r.Slot(i, r.Slots()).Middle())
	}
	return &ports
}

// Stats returns a snapshot of the counters.
func (m *Memory) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := datagrams.Counts{RxDatagrams: m.rx.Load(), RxOverflow: m.overflow.Load()}
	st.Errors.TooBig, st.Errors.Refused = m.tooBig.Load(), m.refused.Load()
	for _, s := range m.senders {
		st.TxDatagrams += s.sent.Load()
		s.lost.AddTo(&st)
	}
	return Stats(st)
}
