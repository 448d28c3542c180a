package snoop

import (
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// Defaults of [Config].
const (
	DefaultInterval = 125 * time.Second // RFC 3376, section 8.2
	DefaultLimit    = 8192
)

// Config holds the settings of a [Snooper]. The zero value works.
type Config struct {
	Flood     bool `json:"flood,omitzero"`     // frames to groups that nobody has joined go everywhere; default to multicast routers alone
	FastLeave bool `json:"fastLeave,omitzero"` // a host that leaves a group is the only one behind its port: nobody else there is asked; for ports alone

	Querier  bool          `json:"querier,omitzero"`  // ask hosts which groups they listen to, while no other querier wins the election
	MAC      frame.MAC     `json:"mac,omitzero"`      // source of queries, one for each node; default a random one
	Address  netip.Addr    `json:"address,omitzero"`  // IPv4 source of queries; default 0.0.0.0
	Interval time.Duration `json:"interval,omitzero"` // time between queries, 2s to 1h in whole seconds; hosts have up to 10 s, and at most half of it, to answer; default 125 s

	Limit   int `json:"limit,omitzero"`   // most listeners, each a group at a port or peer; 0 = 8192
	PerDest int `json:"perDest,omitzero"` // most listeners of one port or peer; 0 = half of Limit

	// Send sends a frame into the segment, as VSI.Send does: with Dest 0 everywhere. Querier requires it.
	Send func(to frame.Dest, f *frame.Frame) bool `json:"-"`
}

// Check returns what is wrong with the settings, as New does.
func (c *Config) Check() error {
	w := setting.Of("snoop: Config")
	if !c.MAC.IsZero() && !c.MAC.IsHost() {
		w.Want("MAC", c.MAC, "the MAC of one host")
	}
	if c.Address.IsValid() && (!c.Address.Is4() || c.Address.IsMulticast() || c.Address == netip.AddrFrom4([4]byte{255, 255, 255, 255})) {
		w.Want("Address", c.Address, "the IPv4 address of one host")
	}
	if c.Interval != 0 && (c.Interval < 2*time.Second || c.Interval > maxInterval*time.Second || c.Interval%time.Second != 0) {
		w.Want("Interval", c.Interval, "2s to 1h in whole seconds, or 0 for %v", DefaultInterval)
	}
	w.Limit("Limit", c.Limit)
	w.Limit("PerDest", c.PerDest)
	if c.Querier && c.Send == nil {
		w.Wrong("Send", nil, "required for Querier")
	}
	return w.Err()
}
