package underlay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// ListenPacket opens an underlay on an Ethernet interface, cfg.Device, with a local address of
// its own: an address of one host, and a port. Nothing is changed about the interface; it may
// be down.
//
// The address is best one that this host does not have: the underlay then answers for it.
// If the host has it, its stack answers, and whoever sends to the port is told by ICMP that
// nobody listens there, unless somebody does (a UDP socket that is never read) or a rule
// forbids it ("nft add rule inet filter input udp dport 4789 drop"). And a host that forwards
// IP packets will forward what comes to its own MAC for an address that it does not have:
// there the underlay needs a MAC of its own.
//
// A value of cfg that is out of range, or that the system refuses, is an error that names
// the field. An error that errors.Is(err, os.ErrPermission) means CAP_NET_RAW is missing;
// [syscall.ENODEV], that there is no such interface. On systems other than Linux the error is
// errors.ErrUnsupported.
func ListenPacket(local netip.AddrPort, cfg *PacketConfig) (*Packet, error) {
	local, err := packetLocal(local)
	if err != nil {
		return nil, err
	}
	c, err := cfg.withDefaults(local.Addr())
	if err != nil {
		return nil, err
	}
	p := &Packet{
		name: c.Device, is4: local.Addr().Is4(), cfg: c, done: make(chan struct{}), senders: make(map[int]*packetSender),
		groups: make(map[[16]byte]*membership), configs: []TxConfig{{c.SrcPorts, c.Checksum}},
		sendmmsg: sys.Sendmmsg,
	}
	if g := c.Gateway; g.IsValid() {
		p.via = g.As16()
	}
	p.hops = newHops(p.ask, p.emit, &p.late.lost)
	if !c.NoOffload {
		p.head, p.canRun = vnetLen, sys.PacketUSO()
	}
	p.addSet(0)
	p.SetOffload(true)
	if err := p.attach(local); err != nil {
		p.Close()
		return nil, p.wrap(err)
	}
	p.announce()
	p.running.Go(p.follow)
	p.running.Go(p.listen)
	p.running.Go(p.tend)
	return p, nil
}

// attach opens the sockets, in the namespace of the calling thread.
func (p *Packet) attach(local netip.AddrPort) (err error) {
	c := &p.cfg
	if p.send, err = p.open(sys.PacketMode{Vnet: p.head > 0, Buffer: c.SendBuffer}); err != nil {
		return err
	}
	if p.index, err = p.send.Index(p.name); err != nil {
		return fmt.Errorf("PacketConfig.Device: %w", err)
	}
	if p.link, err = sys.WatchLink(p.index); err != nil {
		return fmt.Errorf("following the interface: %w", err)
	}
	switch s, err := p.link.Next(); {
	case err != nil:
		return fmt.Errorf("following the interface: %w", err)
	case s.Gone:
		return errDeviceGone
	case !s.Ethernet:
		return errors.New("PacketConfig.Device: not an Ethernet interface")
	default:
		p.mtu.Store(int64(s.MTU))
	}
	if p.mac = c.MAC; p.mac.IsZero() {
		ifi, err := net.InterfaceByIndex(p.index)
		if err != nil {
			return err
		}
		p.mac = frame.MAC(ifi.HardwareAddr)
	}
	at, err := p.placeAt(local)
	if err != nil {
		return err
	}
	if err := p.send.Bind(p.index, false); err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	if err := p.openControl(); err != nil {
		return err
	}
	for range c.Queues {
		if err := p.addQueue(); err != nil {
			return err
		}
	}
	if err := p.enter(at); err != nil {
		return err
	}
	return p.moveTo(at) // all queues are there: until now each would have got all frames
}

// openControl opens the socket for neighbours and errors, and has frames come in that are not
// to the interface's own MAC.
func (p *Packet) openControl() (err error) {
	if p.control, err = p.open(sys.PacketMode{Receive: true, Shut: true, Buffer: controlBuffer}); err != nil {
		return err
	}
	if err := p.control.Bind(p.index, true); err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	if !p.cfg.MAC.IsZero() {
		if err := p.control.Accept(p.index, p.cfg.MAC); err != nil {
			return fmt.Errorf("PacketConfig.MAC: %w", err)
		}
	}
	return nil
}

// controlBuffer is room for a burst of questions.
const controlBuffer = 256 << 10

// addQueue opens a receive queue, which takes nothing yet.
func (p *Packet) addQueue() error {
	s, err := p.open(sys.PacketMode{Receive: true, Shut: true, Vnet: true, Buffer: p.cfg.RecvBuffer})
	if err != nil {
		return err
	}
	p.queues = append(p.queues, newPacketReader(p, s))
	if err := s.Bind(p.index, true); err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	if p.cfg.Queues == 1 {
		return nil
	}
	var group *sys.PacketSocket
	if len(p.queues) > 1 {
		group = p.queues[0].sock
	}
	if err := s.Join(group); err != nil {
		return fmt.Errorf("PacketConfig.Queues %d: PACKET_FANOUT with PACKET_FANOUT_FLAG_IGNORE_OUTGOING: %w", p.cfg.Queues, err)
	}
	return nil
}

// open opens a socket that is not bound yet.
func (p *Packet) open(m sys.PacketMode) (*sys.PacketSocket, error) {
	s, err := sys.OpenPacket(m)
	if errors.Is(err, syscall.EPERM) {
		err = fmt.Errorf("needs CAP_NET_RAW: %w", err)
	}
	if err != nil || p.cfg.Control == nil {
		return s, err
	}
	if err := p.cfg.Control("packet", p.name, s.Conn); err != nil {
		s.File.Close()
		return nil, fmt.Errorf("PacketConfig.Control: %w", err)
	}
	return s, nil
}
