package underlay

import (
	"cmp"
	"net/netip"
	"syscall"
	"time"

	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
	"github.com/vxswitch/vxswitch/setting"
)

// A PortRange is the ports Lo to Hi, both included. The zero value stands for
// 49152-65535, the dynamic ports of RFC 6335, which RFC 7348, section 5, recommends
// for outer source ports.
type PortRange struct{ Lo, Hi uint16 }

// Checksum says when the outer UDP checksum is computed.
type Checksum uint8

// Checksum modes.
const (
	// ChecksumAuto is zero over IPv4 (RFC 7348, section 5), but computed for the datagrams
	// of a run that the kernel cuts; computed over IPv6 (RFC 8200, section 8.1).
	ChecksumAuto Checksum = iota
	ChecksumOn            // always computed
	ChecksumOff           // always zero, runs sent one by one; over IPv6 the peer must allow that (RFC 6935, RFC 6936)
)

// UDPConfig configures [ListenUDP]. The zero value is ready to use; nil means the zero value.
type UDPConfig struct {
	// SrcPorts is the range of the outer source ports, 49152-65535 by default. It is divided into
	// SrcPortCount parts, and a random port of each is used; all of them if the range is not longer.
	SrcPorts PortRange `json:"srcPorts,omitzero"`

	// SrcPortCount is the number of outer source ports in use, 1 to 1024; 0 means 16. Each is a socket, one
	// more for runs and one for datagrams without DF. With more of them, routers spread flows more evenly
	// over equal paths.
	SrcPortCount int `json:"srcPortCount,omitzero"`

	// Mark is the SO_MARK of every socket, 0 for none; it needs CAP_NET_ADMIN.
	Mark uint32 `json:"mark,omitzero"`

	// Device is the interface that every socket is bound to (SO_BINDTODEVICE), "" for none.
	// If it is deleted and another gets its name, the sockets are bound to that within half a
	// second, which needs CAP_NET_RAW.
	Device string `json:"bind,omitzero"`

	// MulticastDevice is the interface on which multicast groups are joined and sent to. By default it
	// is Device, else the interface with the local address; with a wildcard address routes decide. If
	// another interface gets its name, or the address, memberships follow within half a second.
	MulticastDevice string `json:"multicastDevice,omitzero"`

	// Control, if not nil, is called for every socket before it is bound and after the options above
	// are set, with the arguments of [net.ListenConfig]. It must not call methods of the UDP, because
	// a Send opens the sockets for datagrams without DF, and for runs.
	Control func(network, address string, c syscall.RawConn) error `json:"-"`

	// DefaultTTL is the TTL or hop limit of datagrams without their own, 1-255; 0 means 64. To a
	// multicast group the default is always 1.
	DefaultTTL int `json:"-"`

	// Checksum is when the outer UDP checksum is computed.
	Checksum Checksum `json:"udpChecksum,omitzero"`

	// ZeroChecksum6RX accepts datagrams without a UDP checksum over IPv6 (RFC 6935). By default
	// the kernel drops them. Over IPv4 they are always accepted.
	ZeroChecksum6RX bool `json:"udp6ZeroChecksumRx,omitzero"`

	// RecvBuffer is the requested size of each socket's receive buffer in bytes, up to 1 GiB; 0 means
	// 4 MiB. Without CAP_NET_ADMIN net.core.rmem_max limits it. [UDP.Stats] has the granted size.
	RecvBuffer int `json:"recvBuffer,omitzero"`

	// SendBuffer is the requested size of each socket's send buffer in bytes, up to 1 GiB; 0 means
	// 4 MiB. Without CAP_NET_ADMIN net.core.wmem_max limits it.
	SendBuffer int `json:"sendBuffer,omitzero"`

	// BusyPoll is how long a Reader without packets polls before it sleeps, at most 1 ms; by default
	// it does not poll. It polls only if its last wait was shorter than four times BusyPoll. Use it
	// only with more processors (and GOMAXPROCS) than busy threads; otherwise everything gets slower.
	BusyPoll time.Duration `json:"busyPoll,omitzero"`

	// MaxDatagram is the longest payload received, 64 to 65535 bytes. Longer ones are cut and dropped
	// as [frame.TooBig], unless they are superframes ([UDP.Superframes]). 0 means what the MTU of the
	// interface with the local address allows, between 2048 and 9216.
	MaxDatagram int `json:"maxDatagram,omitzero"`

	// NoOffload sends and receives the datagrams of a run one by one. By default the kernel or the
	// network card cuts and joins runs (UDP_SEGMENT, UDP_GRO).
	NoOffload bool `json:"noOffload,omitzero"`

	// Queues is the number of receive sockets (SO_REUSEPORT), at most 256; 0 means 1. The kernel
	// spreads flows over them. Multicast groups have one more. A worker of the switch reads each; flows
	// of a queue that is not read are lost.
	Queues int `json:"queues,omitzero"`
}

const (
	maxQueues = 256
	minMax    = 2048 // the least default of MaxDatagram
	maxMax    = 9216 // and the largest
)

// withDefaults returns a copy with the defaults that do not depend on the local address.
func (c *UDPConfig) withDefaults() (UDPConfig, error) {
	var d UDPConfig
	if c != nil {
		d = *c
	}
	return d, d.complete("UDPConfig")
}

// Check returns what [ListenUDP] refuses of a local address and its settings.
func (c *UDPConfig) Check(local netip.AddrPort) error {
	if _, err := c.withDefaults(); err != nil {
		return err
	}
	_, err := datagrams.Local("underlay", local)
	return err
}

// complete sets defaults and checks the values. Errors begin with name.
func (d *UDPConfig) complete(name string) error {
	w := setting.Of("underlay: " + name)
	var ok bool
	if d.SrcPorts, ok = d.SrcPorts.orDefault(); !ok {
		w.Want("SrcPorts", d.SrcPorts, "a range of ports from 1 to 65535")
	}
	for _, s := range []struct{ field, name string }{{"Device", d.Device}, {"MulticastDevice", d.MulticastDevice}} {
		if len(s.name) > 15 {
			w.Want(s.field, s.name, "at most 15 bytes")
		}
	}
	for _, s := range []struct {
		field              string
		n                  *int
		least, most, usual int
	}{
		{"DefaultTTL", &d.DefaultTTL, 1, 255, datagrams.DefaultTTL},
		{"RecvBuffer", &d.RecvBuffer, 1, 1 << 30, datagrams.DefaultBuffer},
		{"SendBuffer", &d.SendBuffer, 1, 1 << 30, datagrams.DefaultBuffer},
		{"Queues", &d.Queues, 1, maxQueues, 1},
		{"SrcPortCount", &d.SrcPortCount, 1, datagrams.MaxSlots, datagrams.DefaultSlots},
	} {
		w.Number(s.field, *s.n, s.least, s.most, s.usual)
		*s.n = cmp.Or(*s.n, s.usual)
	}
	if d.Checksum > ChecksumOff {
		w.Want("Checksum", uint8(d.Checksum), "ChecksumAuto, ChecksumOn or ChecksumOff")
	}
	if d.MaxDatagram != 0 && (d.MaxDatagram < 64 || d.MaxDatagram > 65535) {
		w.Want("MaxDatagram", d.MaxDatagram, "64 to 65535, or 0 for what the MTU allows")
	}
	if d.BusyPoll < 0 || d.BusyPoll > sys.MaxBusyPoll {
		w.Want("BusyPoll", d.BusyPoll, "0s to %v", sys.MaxBusyPoll)
	}
	return w.Err()
}

func (r PortRange) orDefault() (PortRange, bool) {
	if r == (PortRange{}) {
		return PortRange(datagrams.Dynamic), true
	}
	return r, r.Lo != 0 && r.Lo <= r.Hi
}
