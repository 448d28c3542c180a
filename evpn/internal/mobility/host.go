package mobility

import (
	"cmp"
	"time"
)

// Config says when a MAC moves too often. The zero value is RFC 7432's, section 15.1.
type Config struct {
	Moves  int           // so many moves make a duplicate, at most 16; 0 = DefaultMoves
	Window time.Duration // within this time; 0 = DefaultWindow
	Hold   time.Duration // a MAC that is gone keeps its sequence for this time; 0 = DefaultHold
}

// Defaults of a Config.
const (
	DefaultMoves  = 5
	DefaultWindow = 180 * time.Second
	DefaultHold   = 300 * time.Second
)

// MaxMoves is the limit of Config.Moves.
const MaxMoves = 16

func (c *Config) withDefaults() Config {
	return Config{cmp.Or(c.Moves, DefaultMoves), cmp.Or(c.Window, DefaultWindow), cmp.Or(c.Hold, DefaultHold)}
}

// A Host is what a VTEP remembers of a MAC. The zero value is one that was never seen. Times are since any moment, the same for all.
type Host struct {
	sequence  uint32
	claimed   bool // sequence is ours, or was seen
	duplicate bool
	n         uint8 // moves, the last ones
	moves     [MaxMoves]time.Duration
	gone      time.Duration
}

// Here says that the host speaks on a local port. Until now the claim theirs of another VTEP counted; nil is none, or ours. It returns
// the sequence to claim the host with, behind all that were seen, and whether to claim it: not a duplicate, nor a host that cannot
// move. A host that comes from elsewhere has moved.
func (h *Host) Here(now time.Duration, theirs *Claim, c Config) (sequence uint32, ok bool) {
	c = c.withDefaults()
	if h.claimed && theirs == nil && h.gone != 0 && now-h.gone > c.Hold {
		*h = Host{duplicate: h.duplicate}
	}
	h.gone = 0
	if theirs == nil {
		h.claimed = true
		return h.sequence, !h.duplicate
	}
	if theirs.Fixed() {
		return 0, false
	}
	h.moved(now, c)
	if h.duplicate {
		return 0, false
	}
	h.sequence, h.claimed = max(h.sequence, theirs.Sequence), true
	if h.sequence < MaxSequence { // one that is gone may have had the last
		h.sequence++
	}
	return h.sequence, true
}

// Beside says that the host speaks on a local port of an Ethernet segment, at another VTEP of which theirs is: it has not moved. Sequence
// and ok are those of Here.
func (h *Host) Beside(theirs *Claim) (sequence uint32, ok bool) {
	h.gone = 0
	h.sequence, h.claimed = max(h.sequence, theirs.Sequence), true
	return h.sequence, !h.duplicate
}

// There says that a claim of another VTEP counts now, after the host was here or elsewhere: it has moved.
func (h *Host) There(now time.Duration, theirs *Claim, c Config) {
	h.gone = 0
	if h.claimed && theirs.Sequence > h.sequence {
		h.moved(now, c.withDefaults())
	}
	h.sequence, h.claimed = max(h.sequence, theirs.Sequence), true
}

// Gone says that nobody claims the MAC. Its sequence is remembered for a while, so that a slow withdrawal does not meet a new claim with
// an old number.
func (h *Host) Gone(now time.Duration) { h.gone = max(now, 1) }

// Forgotten reports whether nothing of a Host needs to be remembered.
func (h *Host) Forgotten(now time.Duration, c Config) bool {
	return !h.duplicate && (!h.claimed || h.gone != 0 && (h.sequence == 0 && h.n == 0 || now-h.gone > c.withDefaults().Hold))
}

// Duplicate reports whether the MAC has moved too often: then it is claimed here no more, until Clear.
func (h *Host) Duplicate() bool { return h.duplicate }

// Clear forgets the moves: an operator, or time, has settled whose MAC it is.
func (h *Host) Clear() { h.duplicate, h.n = false, 0 }

// moved counts a move, and finds out whether there were too many.
func (h *Host) moved(now time.Duration, c Config) {
	copy(h.moves[1:], h.moves[:])
	h.moves[0] = now
	h.n = min(h.n+1, MaxMoves)
	if int(h.n) >= c.Moves && now-h.moves[c.Moves-1] <= c.Window {
		h.duplicate = true
	}
}
