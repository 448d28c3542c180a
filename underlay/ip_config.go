package underlay

import (
	"net/netip"
	"syscall"
	"time"

	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// IPConfig is how [ListenIP] sets up its sockets. The zero value works, and nil stands for
// it.
type IPConfig struct {
	// Mark is the SO_MARK of every socket, 0 for none; it needs CAP_NET_ADMIN.
	Mark uint32 `json:"mark,omitzero"`

	// Device is as in [UDPConfig].
	Device string `json:"bind,omitzero"`

	// Control, when not nil, is called for every socket, receiving and sending, before it
	// is bound and after the options above are set. The arguments are those of
	// [net.ListenConfig]. It must not call the IP's methods.
	Control func(network, address string, c syscall.RawConn) error `json:"-"`

	// DefaultTTL is the hop limit of packets that name none, 1-255; 0 means 64. Packets to a
	// multicast group that name none leave with 1.
	DefaultTTL int `json:"-"`

	// RecvBuffer is as in [UDPConfig].
	RecvBuffer int `json:"recvBuffer,omitzero"`

	// SendBuffer is as in [UDPConfig].
	SendBuffer int `json:"sendBuffer,omitzero"`

	// BusyPoll is as in [UDPConfig].
	BusyPoll time.Duration `json:"busyPoll,omitzero"`

	// Queues is the number of receive queues, at most 256; 0 means 1. Each has two Readers, and
	// packets are spread between them by their inner addresses; those of a queue that is not
	// read are lost. The kernel makes a copy of each packet for every socket and only then
	// asks whose it is: a queue costs all others something.
	Queues int `json:"queues,omitzero"`
}

// withDefaults is that of UDPConfig, for the fields there are.
func (c *IPConfig) withDefaults() (UDPConfig, error) {
	if c == nil {
		c = new(IPConfig)
	}
	d := UDPConfig{
		Mark: c.Mark, Device: c.Device, Control: c.Control, DefaultTTL: c.DefaultTTL, RecvBuffer: c.RecvBuffer,
		SendBuffer: c.SendBuffer, BusyPoll: c.BusyPoll, Queues: c.Queues,
		MaxDatagram: 1<<16 - 1, // what arrives may be many packets of the sender's, joined on the way
	}
	return d, d.complete("IPConfig")
}

// Check returns what [ListenIP] refuses of a local address and its settings.
func (c *IPConfig) Check(local netip.Addr) error {
	if _, err := c.withDefaults(); err != nil {
		return err
	}
	_, err := datagrams.Local("underlay", netip.AddrPortFrom(local, 0))
	return err
}
