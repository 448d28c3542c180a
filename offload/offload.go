package offload

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// Defaults of Config.
const (
	DefaultFlows = 16384
	DefaultIdle  = 10 * time.Second
)

// Config configures an Offload. The zero value is ready to use.
type Config struct {
	Flows int           // limit of flows, both directions together; default 16384
	Idle  time.Duration // time without a frame after which a flow is removed, at least 1s; default 10s
	Log   *slog.Logger  // nil is silent

	// Unverified also carries received packets with an outer UDP checksum that no network card has verified, without verifying it
	// (RFC 7348, section 5). By default they go to user space, but for packets of this machine, which have met no card.
	Unverified bool
}

func (c *Config) complete() error {
	if c.Flows < 0 || c.Flows > 1<<20 {
		return fmt.Errorf("offload: Config: Flows is %d; must be 1 to %d, or 0 for %d", c.Flows, 1<<20, DefaultFlows)
	}
	if c.Idle != 0 && c.Idle < time.Second {
		return fmt.Errorf("offload: Config: Idle is %v; must be 1s or more, or 0 for %v", c.Idle, DefaultIdle)
	}
	c.Flows, c.Idle = cmp.Or(c.Flows, DefaultFlows), cmp.Or(c.Idle, DefaultIdle)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// An Entry is a flow that is carried.
type Entry struct {
	VNI     frame.VNI     `json:"vni"`
	From    frame.Dest    `json:"from"`
	Tag     uint32        `json:"tag"`
	Src     frame.MAC     `json:"src"`
	Dst     frame.MAC     `json:"dst"`
	Tuple   frame.Tuple   `json:"tuple,omitzero"` // where stages look at packets, and of routed ones; zero: all of the pair
	Hop     frame.Hop     `json:"hop,omitzero"`   // of routed packets
	To      frame.Dest    `json:"to"`
	Carried frame.Count   `json:"carried"` // frames as they entered: a superframe is one
	Age     time.Duration `json:"age"`     // since it was put
	Idle    time.Duration `json:"idle"`    // since the last frame, to a second
	Valid   bool          `json:"valid"`   // false while the switch is asked again
}

// Stats is what an Offload has done.
type Stats struct {
	Flows   int         `json:"flows"`   // entries now
	Carried frame.Count `json:"carried"` // by all flows so far
	Added   uint64      `json:"added"`   // flows
	Removed uint64      `json:"removed"`
	Renewed uint64      `json:"renewed"` // times that a flow was void, and the decision the same

	// Pairs that were hinted and not put, by cause: those of vswitch.Switch.Flow and vtep.VTEP.Path, and of the Offload itself.
	// docs/flows.md has all causes, and those of Misses. A pair is counted once a second, with each of its tuples if it was hinted with them.
	Refused map[string]uint64 `json:"refused"`

	// Frames that the programs have left to user space, by cause, and as "lost" those that they have dropped, since the kernel failed half-way.
	Misses map[string]uint64 `json:"misses"`

	HintsLost uint64 `json:"hints_lost"` // hints that came too fast
}
