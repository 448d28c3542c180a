package underlay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

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
	is4 := local.Addr().Is4()
	p := &Packet{
		name: c.Device, local: local, cfg: c, group: -1, done: make(chan struct{}), senders: make(map[int]*packetSender),
		rules:    packetRules{is4: is4, ip: local.Addr().As16(), port: local.Port(), zero6: c.ZeroChecksum6RX},
		configs:  []TxConfig{{c.SrcPorts, c.Checksum}},
		sendmmsg: sys.Sendmmsg,
	}
	p.hops = newHops(p.ask, p.emit, &p.late.lost)
	if !c.NoOffload {
		p.head, p.canRun = vnetLen, sys.PacketUSO()
	}
	p.addSet(0)
	p.SetOffload(true)
	if err := p.attach(); err != nil {
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
func (p *Packet) attach() (err error) {
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
	if err := p.learnInterface(); err != nil {
		return err
	}
	if err := p.send.Bind(p.index, false); err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	if err := p.openControl(); err != nil {
		return err
	}
	filter, err := p.rules.filter()
	if err != nil {
		return err
	}
	for range c.Queues {
		if err := p.addQueue(); err != nil {
			return err
		}
	}
	for _, r := range p.queues { // all there: until now each would have got all frames
		if err := r.sock.Filter(filter); err != nil {
			return fmt.Errorf("SO_ATTACH_FILTER: %w", err)
		}
	}
	return nil
}

// learnInterface finds out our MAC and who is on the link.
func (p *Packet) learnInterface() error {
	ifi, err := net.InterfaceByIndex(p.index)
	if err != nil {
		return err
	}
	mac := p.cfg.MAC
	if mac.IsZero() {
		mac = frame.MAC(ifi.HardwareAddr)
	}
	prefix := p.cfg.Prefix
	if !prefix.IsValid() {
		if prefix = prefixOf(ifi, p.local.Addr()); !prefix.IsValid() {
			return fmt.Errorf("PacketConfig.Prefix: needed, for no address of the interface has %v in its prefix", p.local.Addr())
		}
		if g := p.cfg.Gateway; g.IsValid() && !onLink(prefix, g) {
			return fmt.Errorf("PacketConfig.Gateway: %v is not in %v", g, prefix)
		}
	}
	p.rules.mac = mac
	p.who = messenger{is4: p.rules.is4, mac: mac, ip: p.rules.ip}
	p.near, p.mask = words(prefix)
	if g := p.cfg.Gateway; g.IsValid() {
		p.via = g.As16()
	}
	if a := p.local.Addr(); a.Is6() && a.IsLinkLocalUnicast() {
		p.local = netip.AddrPortFrom(a.WithZone(strconv.Itoa(p.index)), p.local.Port())
	}
	return nil
}

// prefixOf returns the prefix of the interface's address that is a, else of one in whose
// prefix a is.
func prefixOf(ifi *net.Interface, a netip.Addr) (best netip.Prefix) {
	addrs, _ := ifi.Addrs()
	for _, x := range addrs {
		n, ok := x.(*net.IPNet)
		if !ok {
			continue
		}
		y, _ := netip.AddrFromSlice(n.IP)
		ones, _ := n.Mask.Size()
		if q := netip.PrefixFrom(y.Unmap(), ones); q.Contains(a) && (!best.IsValid() || q.Addr() == a) {
			best = q.Masked()
			if q.Addr() == a {
				break
			}
		}
	}
	return best
}

// openControl opens the socket for neighbours and errors, and has frames come in that are not
// to the interface's own MAC.
func (p *Packet) openControl() (err error) {
	if p.control, err = p.open(sys.PacketMode{Receive: true, Shut: true, Buffer: controlBuffer}); err != nil {
		return err
	}
	filter, err := p.rules.controlFilter()
	if err == nil {
		err = p.control.Filter(filter)
	}
	if err != nil {
		return fmt.Errorf("SO_ATTACH_FILTER: %w", err)
	}
	if err := p.control.Bind(p.index, true); err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	if !p.cfg.MAC.IsZero() {
		if err := p.control.Accept(p.index, p.cfg.MAC); err != nil {
			return fmt.Errorf("PacketConfig.MAC: %w", err)
		}
	}
	if p.rules.is4 {
		return nil
	}
	group := solicitedNode(p.rules.ip)
	if err := p.control.Accept(p.index, groupMAC(group)); err != nil {
		return fmt.Errorf("PACKET_ADD_MEMBERSHIP: %w", err)
	}
	// Switches that look out for it want a report (MLD), which the kernel sends for a socket.
	// Where IPv6 is off for this host there is none.
	if p.group, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		p.group = -1
		return nil
	}
	_ = unix.SetsockoptIPv6Mreq(p.group, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &unix.IPv6Mreq{Multiaddr: group, Interface: uint32(p.index)})
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
