package vswitch

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"

	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/setting"
)

// Defaults of [Config].
const (
	DefaultInjected = 1024
	DefaultEvents   = 4096
)

// maxQueue is the longest queue that can be configured.
const maxQueue = 1 << 24

// Config configures a switch. The zero value is ready to use. All fields except Log can be changed under
// traffic.
type Config struct {
	MaxMACs int `json:"maxMACs,omitzero"` // limit of learned MACs in all segments together: each may use an equal share, and what others leave unused; 0 = the limits of the segments alone

	// Injected is how many frames may wait to be sent by the switch itself for one port, for one peer,
	// or of the switch's own, up to 16,777,216; 0 = 1024. The queue has room for twice as many, and
	// nobody may hold more of it than is free.
	Injected int `json:"injected,omitzero"`

	Events int `json:"events,omitzero"` // events that may wait for a reader, 2 to 16,777,216; 0 = 4096; a change applies to readers that begin after it

	TooBig TooBigConfig `json:"tooBig,omitzero"` // how often senders get ICMP errors for packets that are too big

	Log *slog.Logger `json:"-"` // logs the control path, such as ports that go up and down; nil = silent
}

// TooBigConfig configures [Switch.TooBig]. The zero value is ready to use.
type TooBigConfig struct {
	PerSender int `json:"perSender,omitzero"` // answers to one source address of a segment in a second; 0 = 10
	Total     int `json:"total,omitzero"`     // answers in a second in all, of which one port or peer gets at most half; 0 = 1000
}

// Check returns what is wrong with the settings. [New] and [Switch.Configure] return the same error.
func (c *Config) Check() error {
	w := setting.Of("vswitch: Config")
	w.Limit("MaxMACs", c.MaxMACs)
	w.Number("Injected", c.Injected, 1, maxQueue, DefaultInjected)
	w.Number("Events", c.Events, 2, maxQueue, DefaultEvents)
	w.Add("TooBig", c.TooBig.Check())
	return w.Err()
}

// Check returns what is wrong with the settings.
func (c *TooBigConfig) Check() error {
	w := setting.Of("vswitch: TooBigConfig")
	w.Number("PerSender", c.PerSender, 1, icmperr.MaxRate, icmperr.DefaultPerSender)
	w.Number("Total", c.Total, 1, icmperr.MaxRate, icmperr.DefaultTotal)
	return w.Err()
}

// Configure changes all settings except Log, under traffic. Frames that are queued beyond a lower limit
// are still sent.
func (s *Switch) Configure(cfg Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("vswitch: Configure: %w", net.ErrClosed)
	}
	if err := cfg.Check(); err != nil {
		return err
	}
	cfg.Log = s.cfg.Log
	s.configure(cfg)
	return nil
}

// Config returns the settings that were last set.
func (s *Switch) Config() Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg
}

// configure applies settings that have been checked. s.mu is held, or s is not shared yet.
func (s *Switch) configure(c Config) {
	s.cfg = c
	s.gens.SetLimit(c.MaxMACs)
	queue := 2 * cmp.Or(c.Injected, DefaultInjected)
	s.share.resize(queue)
	s.inject.Resize(queue)
	s.events.resize(cmp.Or(c.Events, DefaultEvents))
	s.tooBig.Set(c.TooBig.PerSender, c.TooBig.Total)
}
