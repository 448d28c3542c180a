package arp

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/internal/pending"
	"github.com/vxswitch/vxswitch/setting"
)

// Mode says what a [Responder] does with questions.
type Mode uint8

// Modes.
const (
	Off      Mode = iota // nothing is answered
	Suppress             // answered with the target's own MAC
	Proxy                // answered with the gateway's MAC
	Access               // all are answered with the gateway's MAC: ports let in only IP and ARP, and reach only the gateway at layer 2, isolated or not
	numModes
)

var modeNames = []string{"off", "suppress", "proxy", "access"}

// String returns the mode's word in settings.
func (m Mode) String() string { return setting.Name(modeNames, m) }

// MarshalText implements [encoding.TextMarshaler].
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (m *Mode) UnmarshalText(text []byte) error { return setting.Parse(m, modeNames, text) }

// DefaultAccessMAC is the MAC of the gateway of Calico's workloads.
var DefaultAccessMAC = frame.MAC{0xee, 0xee, 0xee, 0xee, 0xee, 0xee}

// DefaultMissTimeout is the time between two events for one unknown target.
const DefaultMissTimeout = 5 * time.Second

// Config holds the settings of a [Responder].
type Config struct {
	Table *Table `json:"-"`             // required
	Mode  Mode   `json:"mode,omitzero"` // how questions are answered

	// Locate looks a MAC up in the segment's FDB. The modes Suppress and Proxy require it.
	Locate func(frame.MAC) (frame.Dest, bool) `json:"-"`

	MAC       frame.MAC `json:"mac,omitzero"`       // the VTEP's own: the sender of questions that Proxy passes on and Refresh asks
	AccessMAC frame.MAC `json:"accessMAC,omitzero"` // the answer in mode Access; default ee:ee:ee:ee:ee:ee, or the MAC of the segment's gateway
	LocalOnly bool      `json:"localOnly,omitzero"` // keeps probes and announcements out of tunnels

	// ExposeMACs lets frames of hosts with their own MACs enter tunnels in mode Proxy: announcements and probes, whose duplicates and
	// moves other sites then see, multicast, DHCP. By default nothing does but by the gateway, and questions from MAC.
	ExposeMACs bool `json:"exposeMACs,omitzero"`

	// Refresh asks local neighbours that have been silent for three quarters of the ageing time
	// whether they are still there: from the gateway's address, or as a probe (RFC 5227). It
	// requires MAC.
	Refresh bool                    `json:"refresh,omitzero"`
	Inject  func(*frame.Frame) bool `json:"-"` // sends a frame into the segment, as Switch.Inject does; Refresh requires it, Miss uses it

	// Miss sends the event neighbour-miss for a question with an unknown target, and for a packet that the gateway has
	// no next hop for, one for each target in MissTimeout, so that a control plane can set the entry. The question is
	// still flooded, and once the entry is set it is answered, through Inject.
	Miss        bool              `json:"miss,omitzero"`
	MissTimeout time.Duration     `json:"missTimeout,omitzero"` // whole seconds; default 5 s
	Notify      func(frame.Event) `json:"-"`                    // receives these events, and must not wait
}

// Gateway is the segment's own interface.
type Gateway struct {
	IPs []netip.Addr

	// Prefixes are the segment's. A sender outside those of its family is not learned, unless it
	// is link-local or answers a question of the gateway.
	Prefixes []netip.Prefix

	MAC     frame.MAC
	VTEPMAC frame.MAC // the VTEP's own, which the gateway uses too; zero for none
	Anycast bool      // other VTEPs have the same gateway: it does not answer through tunnels

	// Solicited, if not nil, is called for each router solicitation that the gateway is to answer, with the address of the host,
	// which may be unspecified, its MAC, and where it is. It must not wait.
	Solicited func(host netip.Addr, mac frame.MAC, from frame.Dest, now frame.Tick)
}

// A Responder is the stage for a switch's slot Neighbour. Make one with NewResponder.
type Responder struct {
	*shared
	mode Mode
}

// shared is what all stages of a segment share.
type shared struct {
	cfg       Config
	table     *Table
	gateway   atomic.Pointer[Gateway]
	missing   *pending.Set[netip.Addr]
	questions questions

	missTimeout frame.Tick
	housekept   atomic.Uint64 // the tick after the last Housekeep
	counts      [2][NumOutcomes]atomic.Uint64
	asked       atomic.Uint64
}

// NewResponder returns a stage.
func NewResponder(c *Config) (*Responder, error) {
	if c == nil || c.Table == nil {
		return nil, errors.New("arp: Config.Table: required")
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	cfg := *c
	cfg.AccessMAC = cmp.Or(cfg.AccessMAC, DefaultAccessMAC)
	s := &shared{cfg: cfg, table: cfg.Table}
	if cfg.Miss {
		s.missTimeout = ticks(cmp.Or(cfg.MissTimeout, DefaultMissTimeout))
		s.missing, s.questions.byTarget = pending.New[netip.Addr](uint32(s.missTimeout)), map[netip.Addr]missedQuestion{}
		answer := s.answerLate
		s.table.answer.Store(&answer)
	}
	return &Responder{s, cfg.Mode}, nil
}

// Check returns what is wrong with the settings, as NewResponder does, a missing Table aside.
func (cfg *Config) Check() error {
	w := setting.Of("arp: Config")
	if cfg.Mode >= numModes {
		w.Want("Mode", uint8(cfg.Mode), "one of %s", strings.Join(modeNames, ", "))
	}
	if cfg.Locate == nil && (cfg.Mode == Suppress || cfg.Mode == Proxy) {
		w.Wrong("Locate", nil, "required in mode %v", cfg.Mode)
	}
	if cfg.MAC.IsGroup() || cfg.MAC.IsZero() && (cfg.Mode == Proxy || cfg.Refresh) {
		w.Want("MAC", cfg.MAC, "the MAC of one host")
	}
	if cfg.AccessMAC.IsGroup() {
		w.Want("AccessMAC", cfg.AccessMAC, "the MAC of one host")
	}
	if cfg.Refresh && cfg.Inject == nil {
		w.Wrong("Inject", nil, "required for Refresh")
	}
	if cfg.Miss && cfg.Notify == nil {
		w.Wrong("Notify", nil, "required for Miss")
	}
	if cfg.MissTimeout != 0 && cfg.MissTimeout < time.Second || cfg.MissTimeout > maxTime {
		w.Want("MissTimeout", cfg.MissTimeout, "1s to %v, or 0 for %v", maxTime, DefaultMissTimeout)
	}
	return w.Err()
}

// With returns the stage of an attachment with a mode of its own. It shares table, gateway and
// counters with r.
func (r *Responder) With(m Mode) (*Responder, error) {
	cfg := r.cfg
	cfg.Mode = m
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Responder{r.shared, m}, nil
}

// Confines reports whether the mode is Access: ports with this stage reach only the gateway.
func (r *Responder) Confines() bool { return r.mode == Access }

// Shares returns what all stages of a segment share. The switch uses it to replace the segment's
// stage by an attachment's.
func (r *Responder) Shares() any { return r.shared }

// State iterates over the snooped neighbours, as the events that would tell of them.
func (r *Responder) State(yield func(frame.Event) bool) {
	for e := range r.table.All() {
		if e.Origin == Snooped && !yield(frame.Event{Kind: frame.EventNeighbourLearned, VNI: r.table.cfg.VNI, IP: e.IP, MAC: e.MAC, Dest: e.From}) {
			return
		}
	}
}

// Table returns the table of neighbours.
func (r *Responder) Table() *Table { return r.table }

// Mode returns the mode.
func (r *Responder) Mode() Mode { return r.mode }

// SetGateway sets the segment's own addresses; nil for none. It takes effect with the next
// message.
func (r *Responder) SetGateway(g *Gateway) error {
	if g == nil {
		r.gateway.Store(nil)
		return nil
	}
	if !g.MAC.IsHost() {
		return fmt.Errorf("arp: Gateway.MAC: %v: must be the MAC of one host", g.MAC)
	}
	for _, ip := range g.IPs {
		if err := hostaddr.Neighbour(ip); err != nil {
			return fmt.Errorf("arp: Gateway.IPs: %v: %w", ip, err)
		}
	}
	c := *g
	c.IPs, c.Prefixes = slices.Clone(g.IPs), slices.Clone(g.Prefixes)
	r.gateway.Store(&c)
	return nil
}

// Stats counts messages by outcome.
type Stats struct {
	ARP   Counts     `json:"arp"`
	ND    Counts     `json:"nd"`
	Asked uint64     `json:"asked"` // neighbours asked by Refresh
	Table TableStats `json:"table"`
}

// Stats returns the counters of all stages of the segment.
func (r *Responder) Stats() Stats {
	st := Stats{Asked: r.asked.Load(), Table: r.table.Stats()}
	for b := range NumOutcomes {
		st.ARP[b], st.ND[b] = r.counts[0][b].Load(), r.counts[1][b].Load()
	}
	return st
}

// Process learns the sender and answers questions in place: frame.Reply. It passes other
// messages on with frame.Continue, or frame.FloodLocal if no tunnel needs them, and all frames
// that are neither ARP nor ND with frame.Continue.
func (r *Responder) Process(f *frame.Frame, at frame.At) frame.Verdict {
	if f.Kind != frame.Ethernet {
		return frame.Continue
	}
	var m message
	b, ok := m.parse(f)
	v := frame.Continue
	if ok {
		b, v = r.decide(f, &m, at)
	} else if b == NumOutcomes {
		return frame.Continue
	} else if r.mode == Access && !f.Tunnel {
		v = frame.Drop(frame.NotGateway)
	}
	family := 0
	if m.V6 {
		family = 1
	}
	r.counts[family][b].Add(1)
	return v
}
