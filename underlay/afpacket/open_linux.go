package afpacket

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/sys"
	"github.com/vxswitch/vxswitch/internal/wire"
	"github.com/vxswitch/vxswitch/underlay"
)

// Listen opens an underlay on an Ethernet interface, cfg.Device, with a local address and port. The interface is
// not changed, and may be down.
//
// The host should not have the local address; then the underlay answers for it. If the host has it, its stack
// answers, and sends "port unreachable" to peers unless a UDP socket has the port or a rule drops the packets
// ("nft add rule inet filter input udp dport 4789 drop"). A host that forwards IP packets forwards packets to its own
// MAC for an address that it does not have: there the underlay needs its own MAC.
//
// Errors name the field and the value of cfg that is out of range or that the system refuses. They wrap
// os.ErrPermission without CAP_NET_RAW, [syscall.ENODEV] if the interface does not exist, and
// errors.ErrUnsupported on systems other than Linux. The caller closes the underlay, or gives it to a VTEP.
func Listen(local netip.AddrPort, cfg *Config) (*Underlay, error) {
	if err := needPort(local); err != nil {
		return nil, err
	}
	return open(local, cfg)
}

// ListenIP opens an underlay of IP-in-IP, as Listen does one of UDP: IPv4 inside is protocol 4 (RFC 2003), IPv6 protocol 41
// (RFC 2473, RFC 4213). It is for a VTEP of type encap.TypeIPIP.
//
// A virtio header cannot describe a superframe in IP, so each of its segments is sent as a packet of its own. Over IPv6,
// destination options in front of the inner packet are ignored, such as the tunnel encapsulation limit that
// Linux adds by default.
func ListenIP(local netip.Addr, cfg *Config) (*Underlay, error) {
	return open(netip.AddrPortFrom(local, 0), cfg)
}

// open opens an underlay, of IP-in-IP with port 0.
func open(local netip.AddrPort, cfg *Config) (*Underlay, error) {
	local, c, err := cfg.check(local)
	if err != nil {
		return nil, err
	}
	p := &Underlay{
		dev: sys.NewPacketInterface("afpacket", "Config", c.Device, c.Control), is4: local.Addr().Is4(), cfg: c,
		raw: local.Port() == 0, udp: wire.UDPLen, eth: wire.EthernetLen,
		groups:   make(map[[16]byte]*membership),
		sendmmsg: sys.Sendmmsg,
	}
	if p.raw {
		p.udp = 0
	}
	if c.VLAN != 0 {
		p.eth += wire.VLANLen
	}
	if g := c.Gateway; g.IsValid() {
		p.via = g.As16()
	}
	p.hops = newHops(p.ask, p.emit, &p.late.Lost)
	if !c.NoOffload {
		p.head, p.runs = gso.VirtioLen, !p.raw && sys.PacketUSO()
	}
	if _, err := p.sets.Number(underlay.TxConfig{SrcPorts: c.SrcPorts, Checksum: c.Checksum}, p.newSet); err != nil {
		return nil, err
	}
	if err := p.attach(local); err != nil {
		p.Close()
		return nil, p.dev.Wrap(err)
	}
	p.announce()
	p.dev.Follow()
	p.dev.Go(p.listen)
	p.dev.Go(p.tend)
	return p, nil
}

// attach opens the sockets, in the namespace of the calling thread.
func (p *Underlay) attach(local netip.AddrPort) (err error) {
	c := &p.cfg
	if p.send, err = p.dev.Open(sys.PacketMode{Vnet: p.head > 0, Buffer: c.SendBuffer}); err != nil {
		return err
	}
	if err := p.dev.Find(p.send); err != nil {
		return fmt.Errorf("Config.Device: %w", err)
	}
	if p.mac = c.MAC; p.mac.IsZero() {
		ifi, err := net.InterfaceByIndex(p.dev.Index)
		if err != nil {
			return err
		}
		p.mac = frame.MAC(ifi.HardwareAddr)
	}
	x, err := p.setLocal(local)
	if err != nil {
		return err
	}
	if err := p.send.Bind(p.dev.Index, false); err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	if err := p.openControl(); err != nil {
		return err
	}
	for range c.Queues {
		s, err := p.dev.Receive(sys.PacketMode{Shut: true, Vnet: true, Buffer: c.RecvBuffer}, c.Queues)
		if err != nil {
			return err
		}
		p.queues = append(p.queues, newReader(p, s))
	}
	if err := p.joinSolicited(); err != nil {
		return err
	}
	return p.setRules(x) // now that all queues are open: before, each would have got all frames
}

// openControl opens the socket for neighbours and errors, and accepts frames to a MAC other than the
// interface's.
func (p *Underlay) openControl() (err error) {
	if p.control, err = p.dev.Open(sys.PacketMode{Receive: true, Shut: true, Buffer: controlBuffer}); err != nil {
		return err
	}
	if err := p.control.Bind(p.dev.Index, true); err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	if !p.cfg.MAC.IsZero() {
		if err := p.control.Accept(p.dev.Index, p.cfg.MAC); err != nil {
			return fmt.Errorf("Config.MAC: %w", err)
		}
	}
	return nil
}

// controlBuffer has room for a burst of requests.
const controlBuffer = 256 << 10
