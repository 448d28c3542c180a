package l3

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gaissmai/bart"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/follow"
	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/internal/mix"
	"github.com/vxswitch/vxswitch/internal/neighbour"
	"github.com/vxswitch/vxswitch/setting"
)

// Defaults of [GatewayConfig].
const (
	DefaultPerSender    = icmperr.DefaultPerSender
	DefaultTotal        = icmperr.DefaultTotal
	DefaultPerNeighbour = neighbour.Held
	DefaultWaiting      = 1024
	DefaultQueued       = neighbour.Queued
	DefaultFragments    = 1 << 18
)

// maxWaiting is the limit of GatewayConfig.Waiting.
const maxWaiting = 1 << 24

// GatewayConfig holds the settings of a [Gateway]. The zero value works. Configure changes them
// under traffic.
type GatewayConfig struct {
	PerSender int `json:"perSender,omitzero"` // ICMP errors to one source address of one network in a second; 0 = 10
	Total     int `json:"total,omitzero"`     // ICMP errors in a second in all, at most half of them about packets from one port or peer; 0 = 1000

	PerNeighbour int `json:"perNeighbour,omitzero"` // packets that wait for the MAC of one next hop; 0 = 3
	Waiting      int `json:"waiting,omitzero"`      // next hops of one interface that are being resolved or did not answer; 0 = 1024

	// Queued limits the bytes of all packets that wait for MACs of next hops; 0 = 1 MiB. A packet
	// beyond this limit or the two before is dropped as frame.Unresolved, or replaces one that
	// has waited longer: each port and peer that sends packets has a share.
	Queued int `json:"queued,omitzero"`

	// Fragments limits the bytes of incomplete packets for the gateway itself, plus 256 for each
	// packet and each fragment; 0 = 256 KiB. Ports and peers have shares of it too.
	Fragments int `json:"fragments,omitzero"`
}

// A Gateway routes between the segments of a switch. Each of its VRFs has its own routes and
// interfaces. Make one with NewGateway.
type Gateway struct {
	limits atomic.Pointer[GatewayConfig] // with the defaults filled in
	limit  icmperr.Limiter
	seed   mix.Key // of flow hashes
	queue  waitQueue

	fragments fragments
	listeners atomic.Pointer[listeners]

	mu   sync.Mutex
	cfg  GatewayConfig // as it was set
	vrfs map[string]*VRF
}

// NewGateway returns a gateway without VRFs. A nil cfg means defaults.
func NewGateway(cfg *GatewayConfig) (*Gateway, error) {
	g := &Gateway{vrfs: map[string]*VRF{}, seed: mix.New(), fragments: newFragments()}
	g.limit.Init(0, 0)
	var c GatewayConfig
	if cfg != nil {
		c = *cfg
	}
	if err := g.Configure(c); err != nil {
		return nil, err
	}
	return g, nil
}

// Configure changes the settings of a gateway under traffic. Packets that wait stay: those beyond
// a lower limit go when they expire or others need the room.
func (g *Gateway) Configure(cfg GatewayConfig) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cfg = cfg
	g.limit.Set(cfg.PerSender, cfg.Total)
	cfg.PerNeighbour = cmp.Or(cfg.PerNeighbour, DefaultPerNeighbour)
	cfg.Waiting = cmp.Or(cfg.Waiting, DefaultWaiting)
	cfg.Queued = cmp.Or(cfg.Queued, DefaultQueued)
	cfg.Fragments = cmp.Or(cfg.Fragments, DefaultFragments)
	g.limits.Store(&cfg)
	return nil
}

// Config returns the settings that were last set.
func (g *Gateway) Config() GatewayConfig {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cfg
}

// Check returns what is wrong with the settings, as [NewGateway] and [Gateway.Configure] do.
func (c *GatewayConfig) Check() error {
	w := setting.Of("l3: GatewayConfig")
	w.Number("PerSender", c.PerSender, 1, icmperr.MaxRate, DefaultPerSender)
	w.Number("Total", c.Total, 1, icmperr.MaxRate, DefaultTotal)
	w.Limit("PerNeighbour", c.PerNeighbour)
	w.Number("Waiting", c.Waiting, 1, maxWaiting, DefaultWaiting)
	w.Limit("Queued", c.Queued)
	w.Limit("Fragments", c.Fragments)
	return w.Err()
}

// A VRF is a routing table and the interfaces that use it. Two VRFs may have the same addresses.
type VRF struct {
	gateway     *Gateway
	name        string
	routes      atomic.Pointer[bart.Table[*route]]
	errorSource atomic.Pointer[errorSource]
	nextHops    nextHops
	watchers    follow.List[frame.MAC] // of next hops with a MAC; the zero MAC is any

	mu         sync.Mutex
	interfaces map[frame.VNI]*Interface
	held       []netip.Prefix    // prefixes that Release deletes
	made       map[uint64]*route // added ones, by the hash of their next hops
}

// VRF returns the VRF with a name. It makes one if there is none.
func (g *Gateway) VRF(name string) *VRF {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.vrfs[name]
	if v == nil {
		v = &VRF{gateway: g, name: name, interfaces: map[frame.VNI]*Interface{}, made: map[uint64]*route{}}
		v.routes.Store(new(bart.Table[*route]))
		v.nextHops = nextHops{byKey: map[NextHop]*nextHop{}, ill: map[*nextHop]struct{}{}}
		v.errorSource.Store(new(errorSource))
		g.vrfs[name] = v
	}
	return v
}

// DeleteVRF deletes a VRF without interfaces, and its routes. It reports whether it did.
func (g *Gateway) DeleteVRF(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.vrfs[name]
	if v == nil {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.interfaces) > 0 {
		return false
	}
	delete(g.vrfs, name)
	return true
}

// VRFs returns the VRFs in the order of their names.
func (g *Gateway) VRFs() []*VRF {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.SortedFunc(maps.Values(g.vrfs), func(a, b *VRF) int { return cmp.Compare(a.name, b.name) })
}

// Name returns the VRF's name.
func (v *VRF) Name() string { return v.name }

// Interface returns the VRF's interface on a segment, nil if there is none.
func (v *VRF) Interface(vni frame.VNI) *Interface {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.interfaces[vni]
}
