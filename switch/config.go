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

// maxQueue bounds what settings may ask for.
const maxQueue = 1 << 24

// Config holds a switch's settings. The zero value works. All but Log can be changed under
// traffic.
type Config struct {
	MaxMACs int `json:"maxMACs,omitzero"` // learned MACs in all, of which each segment has the same share, and what others do not use; 0 = no bound but theirs

	// Injected is how many frames that came in on one port, or from one peer, or are the
	// switch's own, may be queued to be sent by the switch itself, up to 16,777,216; 0 = 1024. All of them
	// together are twice as many, and who has more than what is free gets no more.
	Injected int `json:"injected,omitzero"`

	Events int `json:"events,omitzero"` // events that may wait for one reader, of those who come from now on, 2 to 16,777,216; 0 = 4096

	TooBig TooBigConfig `json:"tooBig,omitzero"` // how often senders of what is too long for its way out are told

	Log *slog.Logger `json:"-"` // what happens on the control path: ports up and down; nil = silent
}

// TooBigConfig holds the settings of [Switch.TooBig]. The zero value works.
type TooBigConfig struct {
	PerSender int `json:"perSender,omitzero"` // answers to one source address of one network in a second; 0 = 10
	Total     int `json:"total,omitzero"`     // answers in a second in all, half of them to one port or peer; 0 = 1000
}

// Check returns what [New] and [Switch.Configure] refuse.
func (c *Config) Check() error {
	w := setting.Of("vswitch: Config")
	w.Limit("MaxMACs", c.MaxMACs)
	w.Number("Injected", c.Injected, 1, maxQueue, DefaultInjected)
	w.Number("Events", c.Events, 2, maxQueue, DefaultEvents)
	w.Add("TooBig", c.TooBig.Check())
	return w.Err()
}

// Check returns what [Config.Check] says of it.
func (c *TooBigConfig) Check() error {
	w := setting.Of("vswitch: TooBigConfig")
	w.Number("PerSender", c.PerSender, 1, icmperr.MaxRate, icmperr.DefaultPerSender)
	w.Number("Total", c.Total, 1, icmperr.MaxRate, icmperr.DefaultTotal)
	return w.Err()
}

// Configure changes the settings of a switch, all but Log, under traffic. What is queued beyond
// a lower limit is still sent.
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

// configure sets what was checked. s.mu is held, or nobody knows s yet.
func (s *Switch) configure(c Config) {
	s.cfg = c
	s.gens.SetLimit(c.MaxMACs)
	queue := 2 * cmp.Or(c.Injected, DefaultInjected)
	s.share.resize(queue)
	s.inject.Resize(queue)
	s.events.resize(cmp.Or(c.Events, DefaultEvents))
	s.tooBig.Set(c.TooBig.PerSender, c.TooBig.Total)
}
