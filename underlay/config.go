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

// UDPConfig is how [ListenUDP] sets up its sockets. The zero value works, and nil
// stands for it.
type UDPConfig struct {
	// SrcPorts is the range of the outer source ports, 49152-65535 by default.
	// 16 ports of it are taken, one out of each sixteenth; a smaller range gives
	// fewer.
	SrcPorts PortRange `json:"srcPorts,omitzero"`

	// Mark is the SO_MARK of every socket, 0 for none; it needs CAP_NET_ADMIN.
	Mark uint32 `json:"mark,omitzero"`

	// Device is the interface that every socket is bound to (SO_BINDTODEVICE), "" for none.
	// When it is deleted and made again under the same name, the sockets follow within half
	// a second, which needs CAP_NET_RAW.
	Device string `json:"bind,omitzero"`

	// MulticastDevice is the interface on which multicast groups are joined and sent to; ""
	// is Device or, without one, the interface that has the local address (of a wildcard
	// address: what the routes say). When it is made again under the same name, or the
	// address is on another, the memberships follow within half a second.
	MulticastDevice string `json:"multicastDevice,omitzero"`

	// Control, when not nil, is called for every socket, receiving and sending,
	// before it is bound and after the options above are set. The arguments are
	// those of [net.ListenConfig]. It must not call the UDP's methods: the sockets
	// for datagrams without DF, and for runs, are opened when the first is sent.
	Control func(network, address string, c syscall.RawConn) error `json:"-"`

	// DefaultTTL is the hop limit of datagrams that name none, 1-255; 0 means 64.
	// Datagrams to a multicast group that name none leave with 1.
	DefaultTTL int `json:"-"`

	// Checksum is when the outer UDP checksum is computed.
	Checksum Checksum `json:"udpChecksum,omitzero"`

	// ZeroChecksum6RX accepts datagrams without a UDP checksum over IPv6, which
	// are otherwise dropped by the kernel (RFC 6935). Over IPv4 they always are
	// accepted.
	ZeroChecksum6RX bool `json:"udp6ZeroChecksumRx,omitzero"`

	// RecvBuffer is the size to ask for, in bytes, of each socket's receive buffer, up to
	// 1 GiB; 0 means 4 MiB. Without CAP_NET_ADMIN net.core.rmem_max bounds it ([UDP.Stats]
	// tells what was granted).
	RecvBuffer int `json:"recvBuffer,omitzero"`

	// SendBuffer is the size to ask for, in bytes, of each socket's send buffer, up to 1 GiB;
	// 0 means 4 MiB. Without CAP_NET_ADMIN net.core.wmem_max bounds it.
	SendBuffer int `json:"sendBuffer,omitzero"`

	// BusyPoll is for how long who found no packet asks again before it sleeps, at most
	// 1 ms; by default it does not. It asks again only if its last wait was shorter than four times
	// as long. It is for machines with more processors (also: GOMAXPROCS) than threads that
	// are busy; with fewer everything gets slower.
	BusyPoll time.Duration `json:"busyPoll,omitzero"`

	// MaxDatagram is the longest payload received, 64 to 65535 bytes; longer ones arrive cut, to
	// be dropped under [frame.TooBig], unless they are superframes ([UDP.Superframes]). 0 means
	// what the MTU of the local address's interface allows, between 2048 and 9216.
	MaxDatagram int `json:"maxDatagram,omitzero"`

	// NoOffload has runs sent as single datagrams instead of leaving it to the kernel or
	// the network card to cut them (UDP_SEGMENT), and received as such, without UDP_GRO.
	NoOffload bool `json:"noOffload,omitzero"`

	// Queues is the number of receive sockets (SO_REUSEPORT), at most 256; 0 means 1. Each is
	// read by a worker of the switch; the kernel spreads flows between them. Multicast groups
	// have one more. All must be read, or their flows are lost.
	Queues int `json:"queues,omitzero"`
}

const (
	maxQueues = 256
	minMax    = 2048 // receive buffers are no smaller than this by default
	maxMax    = 9216 // nor larger than this
)

// withDefaults returns a copy with the defaults filled in, except for those that
// depend on the local address, and an error that names the field.
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

// complete fills in the defaults and checks the values of a configuration, whose name is in
// the errors.
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
