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

// A Link configures the way of datagrams from one address to another. The zero value delivers all of them at once and in
// order. Probabilities below 0 count as 0, above 1 as 1.
type Link struct {
	Loss      float64 // probability that a datagram is lost
	Duplicate float64 // probability that it arrives twice
	Reorder   float64 // probability that the next datagram of the link overtakes it

	// Delay is the latency. Jitter is the maximum of a random time added to it, which can change the order.
	Delay, Jitter time.Duration

	// MTU is the longest IP packet that the sender's interface takes, 0 for that of the Network. A datagram with DF is refused
	// if its payload is longer than MTU - 28 (IPv4) or MTU - 48 (IPv6); 8 bytes more are allowed without UDP header.
	MTU int

	// PathMTU is the longest IP packet that a router on the way passes, 0 for any. A longer one with DF is lost there, and
	// after Delay the sender's PathMTU function is called, as for an ICMP error. One without DF is fragmented.
	PathMTU int

	Cut bool // nothing arrives
}

// NetworkConfig configures a Network. The zero value is a perfect network.
type NetworkConfig struct {
	Link Link   // settings of every link without SetLink
	MTU  int    // IP MTU of the network's members, 0 means 1500
	Seed uint64 // of random choices; equal seeds and equal traffic give equal results
}

// NetworkStats counts the datagrams sent on a Network. Each is in exactly one of Delivered, Lost, Cut, NoListener,
// Overflow, TooBig, TooLong and InFlight; a duplicate counts as another datagram.
type NetworkStats struct {
	Delivered  uint64 `json:"delivered"`
	Lost       uint64 `json:"lost"`        // at random
	Cut        uint64 `json:"cut"`         // the link was cut
	NoListener uint64 `json:"no_listener"` // nobody listens there
	Overflow   uint64 `json:"overflow"`    // the receiver's inbox was full, or 16384 datagrams were in flight on the link
	TooBig     uint64 `json:"too_big"`     // refused: above the MTU; the sender knows
	TooLong    uint64 `json:"too_long"`    // above the PathMTU

	Duplicated uint64 `json:"duplicated"` // copies made
	Reordered  uint64 `json:"reordered"`  // held back until another datagram had overtaken them, or for too long
	InFlight   int    `json:"in_flight"`  // in flight now
}

// A Network connects underlays in memory. It delivers in the sender's goroutine; only delayed datagrams wait for a timer.
// All methods are safe for concurrent use. Under testing/synctest delays take no real time.
type Network struct {
	mtu  int
	seed uint64
	way  int // maxWay

	mu      sync.Mutex
	def     Link
	special map[pair]Link
	links   map[pair]*linkState
	members map[frame.Endpoint]*Underlay
	groups  map[[16]byte][]*Underlay // members of multicast groups, in the order of addresses
	stats   NetworkStats
	queue   delay.Queue[flight] // in flight, for one timer
	reports int                 // errors in queue
	timer   *time.Timer
}

type pair struct{ from, to frame.Endpoint } // hosts

// linkState is the state of a link.
type linkState struct {
	rng  *rand.Rand
	held *delay.Item[flight]
	way  int // datagrams and errors in flight
}

// maxWay bounds what is in flight on one link, and so its memory.
const maxWay = 1 << 14

// holdTime is how long a datagram waits to be overtaken.
const holdTime = 10 * time.Millisecond

// NewNetwork returns a network without members. A nil cfg means the zero value.
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

// SetDefault changes all links without settings of their own, except for datagrams in flight.
func (n *Network) SetDefault(l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.def = l
}

// SetLink sets the link from one address to another, in this direction only.
func (n *Network) SetLink(from, to netip.Addr, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.special[pairOf(from, to)] = l
}

// ClearLink makes a link use the default again.
func (n *Network) ClearLink(from, to netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.special, pairOf(from, to))
}

// Partition cuts the links between two addresses in both directions. Heal returns them to the default.
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

// Close closes all members and drops what is in flight.
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

// send sends a datagram of size bytes from a member to an endpoint. The sender learns what a socket would tell: that it is
// longer than the interface's MTU, and that MTU.
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

// copies sends a datagram over a link, once or twice.
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

// carry sends one copy over a link.
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
		// Each link has its own random numbers, so that other traffic does not change them.
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

// chance returns true with probability p.
func (s *linkState) chance(p float64) bool { return p > 0 && s.rng.Float64() < p }

// deliver puts a datagram into the receiver's inbox.
func (n *Network) deliver(m meta, parts ...[]byte) {
	at := m.at
	if at == (frame.Endpoint{}) {
		at = frame.Endpoint{IP: m.dst.IP, Port: m.dst.Port}
	}
	to := n.members[at]
	if to == nil || to.ip != m.ip() { // port 0 means IP
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
