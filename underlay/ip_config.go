package underlay

import (
	"net/netip"
	"syscall"
	"time"

	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// IPConfig configures [ListenIP]. The zero value is ready to use; nil means the zero value.
type IPConfig struct {
	// Mark is the SO_MARK of every socket, 0 for none; it needs CAP_NET_ADMIN.
	Mark uint32 `json:"mark,omitzero"`

	// Device is as in [UDPConfig].
	Device string `json:"bind,omitzero"`

	// Control is as in [UDPConfig].
	Control func(network, address string, c syscall.RawConn) error `json:"-"`

	// DefaultTTL is as in [UDPConfig].
	DefaultTTL int `json:"-"`

	// RecvBuffer is as in [UDPConfig].
	RecvBuffer int `json:"recvBuffer,omitzero"`

	// SendBuffer is as in [UDPConfig].
	SendBuffer int `json:"sendBuffer,omitzero"`

	// BusyPoll is as in [UDPConfig].
	BusyPoll time.Duration `json:"busyPoll,omitzero"`

	// Queues is the number of receive queues, at most 256; 0 means 1. Each has two Readers. Inner
	// addresses select the queue; packets of a queue that is not read are lost. The kernel copies
	// each packet for every socket before its filter runs, so each queue slows down all others.
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
		MaxDatagram: 1<<16 - 1, // a frame may be many packets, joined by GRO
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
