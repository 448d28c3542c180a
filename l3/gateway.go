package l3

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gaissmai/bart"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/mix"
)

// Defaults of [GatewayConfig].
const (
	DefaultPerNeighbour = 3
	DefaultWaiting      = 1024
	DefaultQueued       = 1 << 20
	DefaultFragments    = 1 << 18
)

// GatewayConfig holds the settings of a [Gateway]. The zero value works.
type GatewayConfig struct {
	PerSender int // ICMP errors to one source address of one network in a second; 0 = DefaultPerSender
	Total     int // ICMP errors in a second in all, half of them about packets from one port or peer; 0 = DefaultTotal

	// Packets wait for their next hop's MAC. What is beyond a limit is dropped as
	// frame.Unresolved, or takes the place of what has been waiting longer: each port and peer
	// that packets come from has a share.
	PerNeighbour int // packets that wait for one next hop; 0 = DefaultPerNeighbour
	Waiting      int // next hops that are asked, or do not answer, at a time on one interface; 0 = DefaultWaiting
	Queued       int // bytes that wait in all; 0 = DefaultQueued

	// Fragments is the bytes of packets for the gateway itself that are not complete yet, with
	// 256 more for each and for each fragment; 0 = DefaultFragments. They are shared likewise.
	Fragments int
}

// A Gateway routes between the segments of a switch. It is made of VRFs, each with routes
// and interfaces of its own. Make one with NewGateway.
type Gateway struct {
	cfg    GatewayConfig
	limit  limiter
	seed   mix.Key // of flow hashes
	parked lot

	fragments fragments

	mu   sync.Mutex
	vrfs map[string]*VRF
}

// NewGateway returns a gateway without VRFs. A nil cfg means defaults.
func NewGateway(cfg *GatewayConfig) (*Gateway, error) {
	g := &Gateway{vrfs: map[string]*VRF{}, seed: mix.New(), parked: lot{shares: newShares[*parked]()}, fragments: newFragments()}
	if cfg != nil {
		g.cfg = *cfg
	}
	c := &g.cfg
	if err := g.limit.set(c.PerSender, c.Total); err != nil {
		return nil, fmt.Errorf("l3: GatewayConfig.%w", err)
	}
	for _, s := range []struct {
		name  string
		n     *int
		usual int
	}{{"PerNeighbour", &c.PerNeighbour, DefaultPerNeighbour}, {"Waiting", &c.Waiting, DefaultWaiting}, {"Queued", &c.Queued, DefaultQueued}, {"Fragments", &c.Fragments, DefaultFragments}} {
		if *s.n < 0 {
			return nil, fmt.Errorf("l3: GatewayConfig.%s: %d is negative", s.name, *s.n)
		}
		*s.n = cmp.Or(*s.n, s.usual)
	}
	return g, nil
}

// A VRF is a table of routes, and the interfaces whose packets are routed by it. Addresses
// in two VRFs have nothing to do with each other.
type VRF struct {
	gateway *Gateway
	name    string
	routes  atomic.Pointer[bart.Table[*route]]
	voice   atomic.Pointer[voice]

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
		v.voice.Store(new(voice))
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
