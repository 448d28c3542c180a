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

// maxWaiting is far more next hops than a segment has.
const maxWaiting = 1 << 24

// GatewayConfig holds the settings of a [Gateway]. The zero value works. All can be changed
// under traffic.
type GatewayConfig struct {
	PerSender int `json:"perSender,omitzero"` // ICMP errors to one source address of one network in a second; 0 = 10
	Total     int `json:"total,omitzero"`     // ICMP errors in a second in all, half of them about packets from one port or peer; 0 = 1000

	PerNeighbour int `json:"perNeighbour,omitzero"` // packets that wait for the MAC of one next hop; 0 = 3
	Waiting      int `json:"waiting,omitzero"`      // next hops that are asked, or do not answer, at a time on one interface; 0 = 1024

	// Queued is the bytes of packets that wait for MACs of next hops, in all; 0 = 1 MiB. What is
	// beyond this limit or the two before is dropped as frame.Unresolved, or takes the place of
	// what has been waiting longer: each port and peer that packets come from has a share.
	Queued int `json:"queued,omitzero"`

	// Fragments is the bytes of packets for the gateway itself that are not complete yet, with
	// 256 more for each and for each fragment; 0 = 256 KiB. They are shared likewise.
	Fragments int `json:"fragments,omitzero"`
}

// A Gateway routes between the segments of a switch. It is made of VRFs, each with routes
// and interfaces of its own. Make one with NewGateway.
type Gateway struct {
	limits atomic.Pointer[GatewayConfig] // with the defaults filled in
	limit  icmperr.Limiter
	seed   mix.Key // of flow hashes
	queue waitQueue

	fragments fragments

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

// Configure changes the settings of a gateway under traffic. What waits stays: what is beyond a
// lower limit goes in its time, or when something else comes.
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

// Check returns what [NewGateway] and [Gateway.Configure] refuse.
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

// A VRF is a table of routes, and the interfaces whose packets are routed by it. Addresses
// in two VRFs have nothing to do with each other.
type VRF struct {
	gateway *Gateway
	name    string
	routes  atomic.Pointer[bart.Table[*route]]
	errorSource   atomic.Pointer[errorSource]

	mu         sync.Mutex
	interfaces map[frame.VNI]*Interface
	held       []netip.Prefix // of routes that Release looks at
}

// VRF returns the VRF of a name, making it if there is none.
func (g *Gateway) VRF(name string) *VRF {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.vrfs[name]
	if v == nil {
		v = &VRF{gateway: g, name: name, interfaces: map[frame.VNI]*Interface{}}
		v.routes.Store(new(bart.Table[*route]))
		v.errorSource.Store(new(errorSource))
		g.vrfs[name] = v
	}
	return v
}

// DeleteVRF forgets a VRF with its routes, if it has no interface, and reports whether it has.
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
