package port

import (
	"cmp"
	"errors"
	"fmt"
	"syscall"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// packetBuffer is the size of a buffer by default, in bytes: dozens of superframes.
const packetBuffer = 4 << 20

// OpenPacket opens a port to the network interface name, at most 15 bytes long, which is an
// Ethernet interface that exists: a veth, a network card. A nil cfg is the zero value. Nothing
// is changed about the interface; it may be down.
//
// An error that errors.Is(err, os.ErrPermission) means CAP_NET_RAW is missing;
// [syscall.ENODEV], that there is no such interface. On systems other than Linux the error is
// [errors.ErrUnsupported].
//
// Two things that a veth leaves to a network card have no name in a virtio header (Linux 6.18).
// Superframes of the kernel's own tunnels come in as [frame.BadHeader], and checksums of SCTP
// come in wrong: where guests send such things, switch that off at their end of the veth
// ("ethtool -K eth0 tx-udp_tnl-segmentation off tx-udp_tnl-csum-segmentation off", and
// "tx-checksum-sctp off tx-sctp-segmentation off").
func OpenPacket(name string, cfg *PacketConfig) (*Packet, error) {
	p := &Packet{name: name}
	var c PacketConfig
	if cfg != nil {
		c = *cfg
	}
	err := c.check()
	switch {
	case len(name) == 0 || len(name) > 15: // IFNAMSIZ - 1
		return nil, fmt.Errorf("port: interface name %q: want 1 to 15 bytes", name)
	case err == nil:
		err = inNamespace("PacketConfig", c.Namespace, func() error { return p.attach(c) })
	}
	if err != nil {
		p.release()
		return nil, p.wrap(err)
	}
	p.drops = make([]dropCount, len(p.queues))
	p.watched = make(chan struct{})
	go p.watch()
	return p, nil
}

func (c *PacketConfig) check() error {
	switch {
	case c.Queues < 0 || c.Queues > maxQueues:
		return fmt.Errorf("PacketConfig.Queues %d: want 1 to %d, or 0 for 1", c.Queues, maxQueues)
	case c.BusyPoll < 0 || c.BusyPoll > sys.MaxBusyPoll:
		return fmt.Errorf("PacketConfig.BusyPoll %v: want 0 to %v", c.BusyPoll, sys.MaxBusyPoll)
	case c.RecvBuffer < 0 || c.RecvBuffer > maxPacketBuffer:
		return fmt.Errorf("PacketConfig.RecvBuffer %d: want 1 to %d, or 0 for %d", c.RecvBuffer, maxPacketBuffer, packetBuffer)
	case c.SendBuffer < 0 || c.SendBuffer > maxPacketBuffer:
		return fmt.Errorf("PacketConfig.SendBuffer %d: want 1 to %d, or 0 for %d", c.SendBuffer, maxPacketBuffer, packetBuffer)
	}
	return nil
}

// maxPacketBuffer is what the kernel can double in an int.
const maxPacketBuffer = 1<<30 - 1

// attach opens the sockets, in the namespace of the calling thread.
func (p *Packet) attach(c PacketConfig) (err error) {
	if !c.NoOffload {
		p.header, p.whole, p.uso = virtioLen, true, sys.PacketUSO()
	}
	if p.send, err = p.open(c, sys.PacketMode{Buffer: cmp.Or(c.SendBuffer, packetBuffer)}); err != nil {
		return err
	}
	index, err := p.send.Index(p.name)
	if err != nil {
		return err
	}
	if err := p.follow(index); err != nil {
		return err
	}
	if err := p.send.Bind(index, false); err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	queues := max(c.Queues, 1)
	for range queues {
		if err := p.add(c, index); err != nil {
			return err
		}
	}
	if c.Promiscuous {
		if err := p.queues[0].Promiscuous(index); err != nil {
			return fmt.Errorf("PacketConfig.Promiscuous: %w", err)
		}
	}
	if queues > 1 { // all there: until now each would have got all frames
		for _, q := range p.queues {
			if err := q.Admit(); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow begins to watch the interface, and finds out what it is like.
func (p *Packet) follow(index int) (err error) {
	if p.link, err = sys.WatchLink(index); err != nil {
		return fmt.Errorf("following the interface: %w", err)
	}
	switch s, err := p.link.Next(); {
	case err != nil:
		return fmt.Errorf("following the interface: %w", err)
	case s.Gone:
		return errGone
	case !s.Ethernet:
		return errors.New("not an Ethernet interface")
	default:
		p.mtu.Store(int64(s.MTU))
	}
	return nil
}

// add opens a receive queue.
func (p *Packet) add(c PacketConfig, index int) error {
	shut := c.Queues > 1
	s, err := p.open(c, sys.PacketMode{Receive: true, Shut: shut, Buffer: cmp.Or(c.RecvBuffer, packetBuffer)})
	if err != nil {
		return err
	}
	q := &packetQueue{PacketSocket: s, p: p, head: make(virtioHeader, p.header)}
	q.reader.open(q, s.Conn)
	q.reader.busy.Max = c.BusyPoll
	p.queues = append(p.queues, q)
	if err := s.Bind(index, true); err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	if !shut {
		return nil
	}
	var group *sys.PacketSocket
	if len(p.queues) > 1 {
		group = p.queues[0].PacketSocket
	}
	if err := s.Join(group); err != nil {
		return fmt.Errorf("PacketConfig.Queues %d: PACKET_FANOUT with PACKET_FANOUT_FLAG_IGNORE_OUTGOING: %w", c.Queues, err)
	}
	return nil
}

// open opens a socket that is not bound yet.
func (p *Packet) open(c PacketConfig, m sys.PacketMode) (*sys.PacketSocket, error) {
	m.Vnet = p.header > 0
	s, err := sys.OpenPacket(m)
	if errors.Is(err, syscall.EPERM) {
		err = fmt.Errorf("needs CAP_NET_RAW: %w", err)
	}
	if err != nil || c.Control == nil {
		return s, err
	}
	if err := c.Control("packet", p.name, s.Conn); err != nil {
		s.File.Close()
		return nil, fmt.Errorf("PacketConfig.Control: %w", err)
	}
	return s, nil
}
