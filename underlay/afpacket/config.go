package afpacket

import (
	"cmp"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/underlay"
)

// Config is how [Listen] sets up its sockets. Device is needed; of all other fields the zero value
// works.
type Config struct {
	// Device is needed: the name of the Ethernet interface that packets come in and leave through.
	Device string `json:"bind,omitzero"`

	// Prefix is the addresses that are reached without a router. By default it is that of
	// an address of the interface: of the local address if the interface has it, else of
	// one in whose prefix the local address lies.
	Prefix netip.Prefix `json:"prefix,omitzero"`

	// Gateway is the router to all other addresses, itself in Prefix or link-local. Without
	// one, packets to them are dropped under [frame.Unreachable].
	Gateway netip.Addr `json:"gateway,omitzero"`

	// MAC is the source of frames, and where frames to us go to. Zero is that of the
	// interface when it is opened.
	//
	// With another than the interface's the stack of this host takes no part in anything: it
	// looks at no frame to a MAC that is not its own. Network cards have a few places for
	// such MACs, and receive all frames when these are taken.
	MAC frame.MAC `json:"mac,omitzero"`

	// SrcPorts is the range of the outer source ports, 49152-65535 by default. All of it is
	// taken.
	SrcPorts underlay.PortRange `json:"srcPorts,omitzero"`

	// DefaultTTL is the hop limit of datagrams that name none, 1-255; 0 means 64.
	DefaultTTL int `json:"-"`

	// Checksum is when the outer UDP checksum is computed.
	Checksum underlay.Checksum `json:"udpChecksum,omitzero"`

	// ZeroChecksum6RX accepts datagrams without a UDP checksum over IPv6, which are otherwise
	// dropped as [frame.BadChecksum] (RFC 6935).
	ZeroChecksum6RX bool `json:"udp6ZeroChecksumRx,omitzero"`

	// Queues is the number of receive queues, at most 256; 0 is 1. The kernel spreads flows
	// over them (PACKET_FANOUT). All of them must be read, or the flows of the others are
	// lost. More than one needs a kernel with PACKET_FANOUT_FLAG_IGNORE_OUTGOING.
	Queues int `json:"queues,omitzero"`

	// NoOffload has every datagram go out by itself, with a checksum of our own making.
	// Without it the kernel or the network card cuts runs (Linux 6.2) and completes
	// checksums. What comes in as a run comes in as one either way.
	NoOffload bool `json:"noOffload,omitzero"`

	// RecvBuffer is the size to ask for, in bytes, of each receive queue, up to 1 GiB; 0 means 4 MiB.
	RecvBuffer int `json:"recvBuffer,omitzero"`

	// SendBuffer is the size to ask for, in bytes, of the buffer of all Senders together, up to 1 GiB; 0 means 4 MiB.
	SendBuffer int `json:"sendBuffer,omitzero"`

	// BusyPoll is how long a queue that found no packet asks again before it sleeps, at most 1 ms; by default it does not.
	BusyPoll time.Duration `json:"busyPoll,omitzero"`

	// Control, when not nil, is called for every socket, receiving and sending, before it is
	// bound and after the options above are set. The network is "packet", the address the
	// name of the interface.
	Control func(network, address string, c syscall.RawConn) error `json:"-"`
}

// withDefaults returns a copy with the defaults filled in, except for those that depend on
// the interface, and an error that names the field.
func (c *Config) withDefaults(local netip.Addr) (Config, error) {
	var d Config
	if c != nil {
		d = *c
	}
	w := setting.Of("afpacket: Config")
	bad := func(field string, value any, format string, args ...any) error {
		w.Wrong(field, value, format, args...)
		return w.Err()
	}
	if d.Device == "" {
		w.Wrong("Device", nil, "the name of an interface is required")
	}
	same := underlay.UDPConfig{
		SrcPorts: d.SrcPorts, Device: d.Device, DefaultTTL: d.DefaultTTL, Checksum: d.Checksum, RecvBuffer: d.RecvBuffer,
		SendBuffer: d.SendBuffer, BusyPoll: d.BusyPoll, Queues: d.Queues,
	}
	w.Add("", same.Check(netip.AddrPortFrom(netip.IPv4Unspecified(), 0)))
	d.SrcPorts = cmp.Or(d.SrcPorts, underlay.PortRange(datagrams.Dynamic))
	d.DefaultTTL, d.Queues = cmp.Or(d.DefaultTTL, datagrams.DefaultTTL), cmp.Or(d.Queues, 1)
	d.RecvBuffer, d.SendBuffer = cmp.Or(d.RecvBuffer, datagrams.DefaultBuffer), cmp.Or(d.SendBuffer, datagrams.DefaultBuffer)
	d.Gateway = d.Gateway.Unmap().WithZone("")
	if d.MAC.IsGroup() {
		w.Want("MAC", d.MAC, "the MAC of one host")
	}
	switch p := d.Prefix; {
	case p != (netip.Prefix{}) && !p.IsValid():
		return d, bad("Prefix", p, "not a prefix")
	case !local.IsValid():
	case p.IsValid() && p.Addr().Is4() != local.Is4():
		return d, bad("Prefix", p, "is of another address family than %v", local)
	case d.Gateway.IsValid() && d.Gateway.Is4() != local.Is4():
		return d, bad("Gateway", d.Gateway, "is of another address family than %v", local)
	case hostaddr.In(p, local) != nil:
		return d, bad("Prefix", p, "%v %v", local, hostaddr.In(p, local))
	case d.Gateway == local:
		return d, bad("Gateway", d.Gateway, "is the local address")
	case d.Gateway.IsValid() && hostaddr.In(p, d.Gateway) != nil:
		return d, bad("Gateway", d.Gateway, "%v", hostaddr.In(p, d.Gateway))
	case p.IsValid() && d.Gateway.IsValid() && !onLink(p, d.Gateway):
		return d, bad("Gateway", d.Gateway, "is not in %v", p)
	}
	return d, w.Err()
}

// Check returns what [Listen] refuses of a local address and its settings.
func (c *Config) Check(local netip.AddrPort) error {
	local, err := checkLocal(local)
	if _, wrong := c.withDefaults(local.Addr()); wrong != nil {
		return wrong
	}
	return err
}

// onLink reports whether an address is reached without a router.
func onLink(p netip.Prefix, a netip.Addr) bool {
	return p.Contains(a) || a.Is6() && a.IsLinkLocalUnicast()
}

// checkLocal checks a local address for a AF_PACKET underlay, and returns it unmapped and
// without a zone.
func checkLocal(local netip.AddrPort) (netip.AddrPort, error) {
	local, err := datagrams.Local("afpacket", local)
	if err != nil {
		return local, err
	}
	a := local.Addr().WithZone("")
	switch {
	case a.IsUnspecified() || a.IsLoopback():
		return local, fmt.Errorf("afpacket: local address %v is no address of one host on a network", local)
	case local.Port() == 0:
		return local, fmt.Errorf("afpacket: local address %v: a port is needed, for nobody chooses one", local)
	}
	return netip.AddrPortFrom(a, local.Port()), nil
}
