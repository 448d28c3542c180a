package flannel

import (
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/setting"
)

// A Phase is what a Plane does.
type Phase uint8

// Phases.
const (
	Waiting   Phase = iota // for a network in the store
	Acquiring              // a lease
	Following              // the leases of others
	Lost                   // its own lease is lost, and it has ended
	Stopped                // it has ended
)

var phaseWords = []string{Waiting: "waiting", Acquiring: "acquiring", Following: "following", Lost: "lost", Stopped: "stopped"}

// String returns the name of a phase.
func (p Phase) String() string { return setting.Name(phaseWords, p) }

// MarshalText implements [encoding.TextMarshaler].
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// A Status is what a Plane does and has.
type Status struct {
	Phase   Phase
	Network *Network  // nil before it is read
	Own     Lease     // zero before there is one
	Until   time.Time // when the lease ends if it is not renewed; zero for a reservation
	Renewed time.Time // when it was acquired or renewed last

	// Stale is since when the store is away. The rows stay as they were then. Zero while it is followed.
	Stale     time.Time
	LastError string // of the store, "" for none since it was followed last

	Leases     int            // of other nodes
	Refused    map[Reason]int // of them, not followed
	Snapshots  uint64         // that were read
	Misses     uint64         // that were heard
	Unanswered uint64         // of them, without a lease
}

// Status returns what the plane does.
func (p *Plane) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.state
	if p.mapper != nil {
		s.Leases, s.Refused = p.mapper.Len(), p.mapper.Refused()
	}
	return s
}

// Remotes returns the leases of other nodes, sorted by key.
func (p *Plane) Remotes() []Remote {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mapper == nil {
		return nil
	}
	return slices.Collect(p.mapper.Remotes())
}

// stale notes that the store is away.
func (p *Plane) stale(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.LastError = err.Error()
	if p.state.Stale.IsZero() {
		p.state.Stale = time.Now()
		p.log.Warn("flannel: the store is away, the rows stay", "err", err)
	}
}

// fresh notes that all leases are known. p.mu is held.
func (p *Plane) fresh() {
	if !p.state.Stale.IsZero() {
		p.log.Warn("flannel: the store is back", "after", time.Since(p.state.Stale).Round(time.Millisecond), "leases", p.mapper.Len())
	}
	p.state.Stale, p.state.LastError = time.Time{}, ""
	p.state.Snapshots++
}
