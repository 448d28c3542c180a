package memory

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/delay"
)

// A Link is what a [Network] does to datagrams on their way from one address to
// another. The zero value delivers all of them at once, in order. Probabilities
// are from 0 to 1; what lies outside acts as the nearer bound.
type Link struct {
	Loss      float64 // probability that a datagram is lost
	Duplicate float64 // probability that it arrives twice
	Reorder   float64 // probability that the next one of the link overtakes it

	// Delay is how long a datagram takes; Jitter is the longest time added to that
	// at random, and may change the order.
	Delay, Jitter time.Duration

	// MTU is the longest IP packet the sender's own interface takes, 0 for that of the
	// Network: a datagram with DF whose payload is longer than MTU - 28 (IPv4) or
	// MTU - 48 (IPv6) is refused. Without UDP headers it may be 8 bytes longer.
	MTU int

	// PathMTU is the longest IP packet a router on the way passes, 0 for any: a longer
	// one with DF is lost there, and the sender's PathMTU func is told after Delay, as
	// by an ICMP error. One without DF is carried, in fragments.
	PathMTU int

	Cut bool // nothing arrives
}

// NetworkConfig is how [NewNetwork] makes a network. The zero value is a perfect
// one.
type NetworkConfig struct {
	Link Link   // every link, unless SetLink says otherwise
	MTU  int    // IP MTU of the network's members, 0 means 1500
	Seed uint64 // of the chances; equal seeds and equal traffic give equal results
}

// NetworkStats counts what became of the datagrams given to a Network. Every one
// is in exactly one of Delivered, Lost, Cut, NoListener, Overflow, TooBig and TooLong,
// or still under way; a duplicate counts as one more.
type NetworkStats struct {
	Delivered  uint64 `json:"delivered"`
	Lost       uint64 `json:"lost"`        // by chance
	Cut        uint64 `json:"cut"`         // the link was cut
	NoListener uint64 `json:"no_listener"` // nobody listens there
	Overflow   uint64 `json:"overflow"`    // the receiver's inbox was full, or 16384 were under way on the link
	TooBig     uint64 `json:"too_big"`     // refused: above the MTU, told to the sender
	TooLong    uint64 `json:"too_long"`    // lost on the way: above the PathMTU

	Duplicated uint64 `json:"duplicated"` // copies made
	Reordered  uint64 `json:"reordered"`  // held back until another had overtaken them, or nothing came
	InFlight   int    `json:"in_flight"`  // under way now
}

// A Network joins in-memory underlays inside one process. It delivers in the
// sender's goroutine; only what is delayed waits for a timer. All methods are safe
// for concurrent use. Under testing/synctest delays take no real time.
type Network struct {
	mtu  int
	seed uint64
	way  int // maxWay

	mu      sync.Mutex
	def     Link
	special map[pair]Link
	links   map[pair]*linkState
	members map[frame.Endpoint]*Underlay
	groups  map[[16]byte][]*Underlay // who is in a multicast group, ordered by address
	stats   NetworkStats
	queue   delay.Queue[flight] // what is under way, for one timer
	reports int                 // in queue: errors on their way back
	timer   *time.Timer
}

type pair struct{ from, to frame.Endpoint } // hosts

// linkState is what a link remembers between datagrams.
type linkState struct {
	rng  *rand.Rand
	held *delay.Item[flight]
	way  int // datagrams under way, and errors on their way back
}

// maxWay bounds what is under way on one link, so that a long one is not a place to fill memory.
const maxWay = 1 << 14

// holdTime is how long a datagram that is to be overtaken waits for another.
const holdTime = 10 * time.Millisecond

// NewNetwork returns a network without members; nil stands for the zero config.
func NewNetwork(cfg *NetworkConfig) *Network {
	var c NetworkConfig
	if cfg != nil {
		c = *cfg
	}
	if c.MTU <= 0 {
		c.MTU = datagrams.DefaultMTU
	}
	return &Network{
		mtu:     c.MTU,
		seed:    c.Seed,
		way:     maxWay,
		def:     c.Link,
		special: make(map[pair]Link),
		links:   make(map[pair]*linkState),
		members: make(map[frame.Endpoint]*Underlay),
		groups:  make(map[[16]byte][]*Underlay),
	}
}

// SetDefault changes all links without settings of their own. What is under way
// stays as it was.
func (n *Network) SetDefault(l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.def = l
}

// SetLink gives the link from one address to another settings of its own, in this
// direction only.
func (n *Network) SetLink(from, to netip.Addr, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.special[pairOf(from, to)] = l
}

// ClearLink lets the default apply again.
func (n *Network) ClearLink(from, to netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.special, pairOf(from, to))
}

// Partition cuts the links between two addresses in both directions, and Heal
// gives them back the default.
func (n *Network) Partition(a, b netip.Addr) {
	n.SetLink(a, b, Link{Cut: true})
	n.SetLink(b, a, Link{Cut: true})
}

// Heal ends a Partition.
func (n *Network) Heal(a, b netip.Addr) {
	n.ClearLink(a, b)
	n.ClearLink(b, a)
}

func pairOf(from, to netip.Addr) pair {
	return pair{frame.Endpoint{IP: from.As16()}, frame.Endpoint{IP: to.As16()}}
}

// Stats returns a snapshot of the counters.
func (n *Network) Stats() NetworkStats {
	n.mu.Lock()
	defer n.mu.Unlock()
	st := n.stats
	st.InFlight = n.queue.Len() - n.reports
	return st
}

// Close closes all members and stops what is under way.
func (n *Network) Close() error {
	n.mu.Lock()
	var all []*Underlay
	for _, m := range n.members {
		all = append(all, m)
	}
	n.mu.Unlock()
	for _, m := range all {
		m.Close()
	}
	return nil
}

// send takes one datagram of size bytes from one of its members to one endpoint. It tells
// the sender only what a socket would: that it is above the interface's MTU, and that MTU.
func (n *Network) send(from *Underlay, m meta, df bool, parts [][]byte, size int) (why frame.Reason, mtu int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := pair{m.src.Host(), m.dst.Host()}
	l, ok := n.special[p]
	if !ok {
		l = n.def
	}
	if mtu = l.MTU; mtu <= 0 {
		mtu = n.mtu
	}
	outer := datagrams.UDPHeaders(m.src.Is4())
	if m.ip() {
		outer = datagrams.IPHeader(m.src.Is4())
	}
	st := n.link(p)
	switch {
	case df && size > mtu-outer:
		n.stats.TooBig++
		return frame.TooBig, mtu
	case m.dst.IsMulticast() && !m.ip():
		n.sendToGroup(from, m, df, parts, size+outer)
		return 0, 0
	case l.Cut:
		n.stats.Cut++
		return 0, 0
	case st.chance(l.Loss):
		n.stats.Lost++
		return 0, 0
	case df && l.PathMTU > 0 && size > l.PathMTU-outer:
		n.stats.TooLong++
		n.returnError(from, m, l.PathMTU, parts, max(l.Delay, 0))
		return 0, 0
	}
	n.copies(st, &l, m, parts)
	return 0, 0
}

// copies takes a datagram over a link, once or twice.
func (n *Network) copies(st *linkState, l *Link, m meta, parts [][]byte) {
	copies := 1
	if st.chance(l.Duplicate) {
		n.stats.Duplicated++
		copies = 2
	}
	for range copies {
		n.carry(st, l, m, parts)
	}
}

// carry takes one copy over a link.
func (n *Network) carry(st *linkState, l *Link, m meta, parts [][]byte) {
	wait := max(l.Delay, 0)
	if l.Jitter > 0 {
		wait += time.Duration(st.rng.Int64N(int64(l.Jitter) + 1))
	}
	if st.way >= n.way {
		n.stats.Overflow++
		return
	}
	if st.held == nil && st.chance(l.Reorder) {
		n.stats.Reordered++
		st.held = n.fly(st, m, parts, wait+holdTime)
		st.held.V.link = st
		return
	}
	held := st.held
	if wait > 0 {
		n.fly(st, m, parts, wait)
	} else {
		n.deliver(m, parts...)
	}
	if held != nil {
		n.release(held, wait)
	}
}

func (n *Network) link(p pair) *linkState {
	st := n.links[p]
	if st == nil {
		// Each link has chances of its own, so that traffic elsewhere does not
		// change them.
		h := uint64(14695981039346656037) // FNV-1a
		for _, e := range [2]frame.Endpoint{p.from, p.to} {
			for _, b := range e.IP {
				h = (h ^ uint64(b)) * 1099511628211
			}
		}
		st = &linkState{rng: rand.New(rand.NewPCG(n.seed, h))}
		n.links[p] = st
	}
	return st
}

// chance is true with probability p.
func (s *linkState) chance(p float64) bool { return p > 0 && s.rng.Float64() < p }

// deliver puts a datagram into the receiver's inbox.
func (n *Network) deliver(m meta, parts ...[]byte) {
	at := m.at
	if at == (frame.Endpoint{}) {
		at = frame.Endpoint{IP: m.dst.IP, Port: m.dst.Port}
	}
	to := n.members[at]
	if to == nil || to.ip != m.ip() { // a port of 0 is no port
		n.stats.NoListener++
		if from := n.members[m.src]; from != nil && m.ip() {
			n.returnError(from, m, 0, parts, 0)
		}
		return
	}
	switch to.put(m, parts) {
	case frame.NotDropped:
		n.stats.Delivered++
	case frame.PortFull:
		n.stats.Overflow++
	default:
		n.stats.NoListener++
	}
}
