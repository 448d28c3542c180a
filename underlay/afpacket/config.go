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

// Config configures [Listen] and [ListenIP]. Device is required; the zero values of all other fields are their defaults.
// IP-in-IP has neither SrcPorts, Checksum nor ZeroChecksum6RX.
type Config struct {
	// Device is the name of the Ethernet interface. It is required.
	Device string `json:"bind,omitzero"`

	// Prefix contains the addresses that are reached without a router. By default it is the prefix of
	// an address of the interface: of the local address, else of one whose prefix contains the local
	// address.
	Prefix netip.Prefix `json:"prefix,omitzero"`

	// Gateway is the router to all other addresses. It is in Prefix or link-local. Without one,
	// packets to them are dropped as [frame.Unreachable].
	Gateway netip.Addr `json:"gateway,omitzero"`

	// MAC is the MAC of the underlay; by default that of the interface when it is opened.
	//
	// The host's stack ignores all frames to another MAC than the interface's. Network cards have room
	// for a few such MACs; with more they receive all frames.
	MAC frame.MAC `json:"mac,omitzero"`

	// VLAN is the ID of the 802.1Q tag that all packets have on the wire, 1-4094; by default they have none. The MTU stays that
	// of the interface, since a tag is not part of it. A network card that drops unknown VLANs needs a
	// VLAN device with the ID, or "ethtool -K eth0 rx-vlan-filter off". There are no multicast groups, for the kernel
	// would report the membership without the tag.
	VLAN uint16 `json:"vlan,omitzero"`

	// Shared is set if the interface of a gateway has the local address and the MAC, on a port.Packet on the
	// same network interface that leaves the underlay's packets to it. The gateway then answers ARP, neighbour
	// discovery and pings, and the underlay does not. It still asks for its next hops itself, announces the
	// address once, and reads ICMP errors.
	Shared bool `json:"-"`

	// SrcPorts is the range of the outer source ports, 49152-65535 by default. All of them are used.
	SrcPorts underlay.PortRange `json:"srcPorts,omitzero"`

	// DefaultTTL is the TTL or hop limit of datagrams without their own, 1-255; 0 means 64.
	DefaultTTL int `json:"-"`

	// Checksum is when the outer UDP checksum is computed.
	Checksum underlay.Checksum `json:"udpChecksum,omitzero"`

	// ZeroChecksum6RX accepts datagrams without a UDP checksum over IPv6 (RFC 6935). By default they
	// are dropped as [frame.BadChecksum].
	ZeroChecksum6RX bool `json:"udp6ZeroChecksumRx,omitzero"`

	// Queues is the number of receive queues, at most 256; 0 means 1. The kernel spreads flows over them
	// (PACKET_FANOUT). Flows of a queue that is not read are lost. More than one queue needs a kernel
	// with PACKET_FANOUT_FLAG_IGNORE_OUTGOING.
	Queues int `json:"queues,omitzero"`

	// NoOffload sends every datagram by itself, with its checksum. By default the kernel or the network
	// card cuts runs (Linux 6.2) and completes checksums. Received runs are split in both cases.
	NoOffload bool `json:"noOffload,omitzero"`

	// RecvBuffer is the requested size of each receive queue in bytes, up to 1 GiB; 0 means 4 MiB.
	RecvBuffer int `json:"recvBuffer,omitzero"`

	// SendBuffer is the requested size of the send buffer of all Senders in bytes, up to 1 GiB; 0 means 4 MiB.
	SendBuffer int `json:"sendBuffer,omitzero"`

	// BusyPoll is how long a Reader without packets polls before it sleeps, at most 1 ms; by default it does not poll.
	BusyPoll time.Duration `json:"busyPoll,omitzero"`

	// Control, if not nil, is called for every socket before it is bound and after the options above
	// are set. The network is "packet", the address is the name of the interface.
	Control func(network, address string, c syscall.RawConn) error `json:"-"`
}

// maxVLAN is the last ID of a VLAN; 4095 is reserved (IEEE 802.1Q, section 9.6).
const maxVLAN = 4094

// withDefaults returns a copy with the defaults that do not depend on the interface, for IP-in-IP if raw is set.
func (c *Config) withDefaults(local netip.Addr, raw bool) (Config, error) {
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
	if raw {
		for _, x := range []struct {
			field string
			set   bool
		}{
			{"SrcPorts", d.SrcPorts != underlay.PortRange{}},
			{"Checksum", d.Checksum != underlay.ChecksumAuto},
			{"ZeroChecksum6RX", d.ZeroChecksum6RX},
		} {
			if x.set {
				w.Wrong(x.field, nil, "IP-in-IP has no UDP header")
			}
		}
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
	if d.VLAN > maxVLAN {
		w.Want("VLAN", d.VLAN, "1 to %d, or 0 for none", maxVLAN)
	}
	if d.VLAN != 0 && d.Shared {
		w.Wrong("Shared", nil, "an address with a VLAN cannot be shared")
	}
	if d.MAC.IsGroup() {
		w.Want("MAC", d.MAC, "the MAC of one host")
	}
	switch p := d.Prefix; {
	case p != (netip.Prefix{}) && !p.IsValid():
		return d, bad("Prefix", p, "is not a prefix")
	case !local.IsValid():
	case p.IsValid() && p.Addr().Is4() != local.Is4():
		return d, bad("Prefix", p, "is of another address family than %v", local)
	case d.Gateway.IsValid() && d.Gateway.Is4() != local.Is4():
		return d, bad("Gateway", d.Gateway, "is of another address family than %v", local)
	case hostaddr.In(p, local) != nil:
		return d, bad("Prefix", p, "%v: %v", local, hostaddr.In(p, local))
	case d.Gateway == local:
		return d, bad("Gateway", d.Gateway, "is the local address")
	case d.Gateway.IsValid() && hostaddr.In(p, d.Gateway) != nil:
		return d, bad("Gateway", d.Gateway, "%v", hostaddr.In(p, d.Gateway))
	case p.IsValid() && d.Gateway.IsValid() && !onLink(p, d.Gateway):
		return d, bad("Gateway", d.Gateway, "is not in %v", p)
	}
	return d, w.Err()
}

// Check returns what is wrong with the settings for a local address. Listen returns the same error, and ListenIP with
// port 0.
func (c *Config) Check(local netip.AddrPort) error {
	_, _, err := c.check(local)
	return err
}

// check returns the address as Listen uses it, and the settings with their defaults.
func (c *Config) check(local netip.AddrPort) (netip.AddrPort, Config, error) {
	local, err := checkLocal(local)
	d, wrong := c.withDefaults(local.Addr(), local.Port() == 0)
	if wrong != nil {
		err = wrong
	}
	return local, d, err
}

// onLink reports whether an address is reached without a router.
func onLink(p netip.Prefix, a netip.Addr) bool {
	return p.Contains(a) || a.Is6() && a.IsLinkLocalUnicast()
}

// checkLocal checks a local address, and returns it unmapped and without a zone.
func checkLocal(local netip.AddrPort) (netip.AddrPort, error) {
	local, err := datagrams.Local("afpacket", local)
	if err != nil {
		return local, err
	}
	a := local.Addr().WithZone("")
	switch {
	case a.IsUnspecified() || a.IsLoopback():
		return local, fmt.Errorf("afpacket: local address %v: is not valid on a network; must be the address of one host", local)
	}
	return netip.AddrPortFrom(a, local.Port()), nil
}

// needPort refuses a local address without a port.
func needPort(local netip.AddrPort) error {
	if local.Port() == 0 {
		return fmt.Errorf("afpacket: local address %v: requires a port", local)
	}
	return nil
}
