package flannel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// Defaults of a PlaneConfig.
const (
	DefaultOwner       = "flannel"
	DefaultRenewMargin = time.Hour
	DefaultMissAge     = 20 * time.Minute
)

// A Shape is what the network of a node looks like: who routes, and where pods are. A Plane calls it from one goroutine, and again
// some time after an error of Program or Routes.
type Shape interface {
	control.Programmer

	// Open makes what rows need, and says how leases become rows. The Plane fills in Network, Own, Key and Generation, 1 to 3.
	Open(n *Network, own *Own, generation int) (MapperConfig, error)

	// Routes changes the routes of the host. At first, and after an error, it gets a snapshot. What it tries again itself is no error.
	Routes(u RouteUpdate) error

	// Links tells of the prefixes on the node's own links, all of them, when they are others than Open has said or it has told before;
	// nil if nobody follows them.
	Links() <-chan []netip.Prefix

	// Misses returns the events EventNeighbourMiss and EventMACMiss of the tunnel's segment, nil for none.
	Misses() Misses

	// Close ends what Open has made. If the lease is lost, nothing may be carried any longer; else what outlives a
	// process may stay for the next one.
	Close(lost bool) error
}

// Misses are events that can be waited for, such as a vswitch.Events.
type Misses interface {
	Next(ctx context.Context) (frame.Event, error)
	Close()
}

// A PlaneConfig says who a node is.
type PlaneConfig struct {
	Store Store // needed
	Shape Shape // needed

	PublicIP   netip.Addr // needed in a network with IPv4: where other nodes send packets to
	PublicIPv6 netip.Addr // likewise, with IPv6
	MAC, MACv6 frame.MAC  // of the VTEP; zero = as in the lease that is there, or else random
	OneMAC     bool       // both families have one MAC, because one device takes what comes for both
	Previous   Subnet     // that the node had before, if it knows

	Links      []netip.Prefix // on the node's own links, until SetLinks has others; nil = those of the Shape, as they change
	Generation int            // of vxlan, 1 to 3: see MapperConfig; 0 = 3
	Owner      string         // of the rows; default "flannel"
	Margin     time.Duration  // by which a lease is renewed before it ends; 0 = 1 h, and at most two thirds of its time to live
	MissAge    time.Duration  // of a neighbour that a miss was answered with, at least 1 s; 0 = 20 min

	Log *slog.Logger // nil = none
}

// Check returns the errors in the settings as [setting.Errors].
func (c *PlaneConfig) Check() error {
	w := setting.Of("flannel: PlaneConfig")
	if c.Store == nil {
		w.Wrong("Store", nil, "it is needed")
	}
	if c.Shape == nil {
		w.Wrong("Shape", nil, "it is needed")
	}
	for _, a := range []struct {
		name string
		ip   netip.Addr
		f    family
	}{{"PublicIP", c.PublicIP, ipv4}, {"PublicIPv6", c.PublicIPv6, ipv6}} {
		if a.ip.IsValid() && !a.f.isHost(a.ip) {
			w.Want(a.name, a.ip, "the %s address of one host", a.f.name())
		}
	}
	if !c.PublicIP.IsValid() && !c.PublicIPv6.IsValid() {
		w.Wrong("PublicIP", "", "it is needed, or PublicIPv6")
	}
	for _, m := range []struct {
		name string
		mac  frame.MAC
	}{{"MAC", c.MAC}, {"MACv6", c.MACv6}} {
		if m.mac.IsGroup() {
			w.Want(m.name, m.mac, "the MAC of one host")
		}
	}
	w.Number("Generation", c.Generation, 1, 3, 3)
	w.Limit("Margin", int(c.Margin))
	if c.MissAge != 0 && c.MissAge < time.Second {
		w.Want("MissAge", c.MissAge, "1s or longer, or 0 for %v", DefaultMissAge)
	}
	return w.Err()
}

// A Plane keeps the lease of this node, and follows those of the others. Make one with NewPlane.
type Plane struct {
	cfg   PlaneConfig
	log   *slog.Logger
	ready chan struct{}
	ran   atomic.Bool

	mu     sync.Mutex // also held while the Shape takes rows and routes
	ended  bool       // nothing is passed on any longer: the Shape is closed
	mapper *Mapper    // nil before there is a lease
	listed bool       // the mapper has had all leases: routes that a former process has left may go
	lost   error      // the own lease: nothing but its withdrawal is passed on any longer
	state  Status

	named      int // bad leases that were logged since namedSince
	namedSince time.Time
}

// NewPlane makes a plane, which [Plane.Run] runs.
func NewPlane(cfg *PlaneConfig) (*Plane, error) {
	if cfg == nil {
		cfg = new(PlaneConfig)
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	p := &Plane{cfg: *cfg, log: cfg.Log, ready: make(chan struct{})}
	p.cfg.Generation = cmp.Or(cfg.Generation, 3)
	p.cfg.Owner = cmp.Or(cfg.Owner, DefaultOwner)
	p.cfg.Margin = cmp.Or(cfg.Margin, DefaultRenewMargin)
	p.cfg.MissAge = cmp.Or(cfg.MissAge, DefaultMissAge)
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	return p, nil
}

// Ready is closed once the leases that are there have been passed to the switch.
func (p *Plane) Ready() <-chan struct{} { return p.ready }

// Run gets a lease and follows the others until ctx ends, and then returns nil. The lease stays in the store, so that the node
// gets it again. Run waits for a network and for the store as long as it takes. It returns an error
//
//	that wraps ErrLost   somebody has taken or removed the lease: the switch carries nothing any longer
//	that wraps ErrFull   no subnet is free
//	else                 the network is one that this node cannot be in, or the Shape cannot be opened
//
// It is called once.
func (p *Plane) Run(ctx context.Context) (err error) {
	if p.ran.Swap(true) {
		return errors.New("flannel: Plane.Run: it was called before; make a new Plane")
	}
	err = p.run(ctx)
	if ctx.Err() != nil && !errors.Is(err, ErrLost) {
		err = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Phase = Stopped
	if errors.Is(err, ErrLost) {
		p.state.Phase = Lost
	}
	return err
}

func (p *Plane) run(ctx context.Context) error {
	n, err := p.network(ctx)
	if err != nil {
		return err
	}
	own, err := p.acquire(ctx, n)
	if err != nil {
		return err
	}
	p.log.Info("flannel: lease", "subnet", own.Subnet.String(), "network", n.String(), "until", own.Until)
	mc, err := p.cfg.Shape.Open(n, own, p.cfg.Generation)
	if err != nil {
		return fmt.Errorf("flannel: %w", err)
	}
	mc.Network, mc.Own, mc.Key, mc.Generation = n, own.Lease, own.Record.Key, p.cfg.Generation
	m, err := NewMapper(&mc)
	if err != nil {
		return errors.Join(err, p.cfg.Shape.Close(true))
	}
	if p.cfg.Links != nil {
		m.SetLinks(p.cfg.Links)
	}
	p.mu.Lock()
	p.mapper, p.state.Phase = m, Following
	p.mu.Unlock()
	f := &follower{p: p, changes: make(chan Change, 16), ended: make(chan error), misses: make(chan frame.Event, 64), renewed: make(chan renewal), relist: make(chan struct{})}
	err = f.run(ctx, own)
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	return errors.Join(err, p.cfg.Shape.Close(errors.Is(err, ErrLost)))
}

// network reads the network, as soon as it is there.
func (p *Plane) network(ctx context.Context) (n *Network, err error) {
	err = p.insist(ctx, "network", func() (err error) {
		n, err = p.cfg.Store.Network(ctx)
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	if err := n.Backend.Supported(); err != nil {
		return nil, err
	}
	for _, x := range []struct {
		on           bool
		name, family string
		ip           netip.Addr
		network      netip.Prefix
	}{{n.IPv4.IsValid(), "PublicIP", "IPv4", p.cfg.PublicIP, n.IPv4.Network}, {n.IPv6.IsValid(), "PublicIPv6", "IPv6", p.cfg.PublicIPv6, n.IPv6.Network}} {
		if x.on && !x.ip.IsValid() {
			return nil, fmt.Errorf("flannel: %s: the node has no %s address, and the network %v needs one", x.name, x.family, n)
		}
		if x.network.Contains(x.ip) { // flanneld does not mind
			p.log.Warn("flannel: the public address is in the network: nodes of vxswitch do not follow such a lease", "address", x.ip, "network", x.network)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Network, p.state.Phase = n, Acquiring
	return n, nil
}

// acquire gets the lease.
func (p *Plane) acquire(ctx context.Context, n *Network) (own *Own, err error) {
	r := Request{Previous: p.cfg.Previous, OneMAC: p.cfg.OneMAC, Attrs: Attrs{Type: n.Backend.Type}}
	if n.IPv4.IsValid() {
		r.IPv4.PublicIP = p.cfg.PublicIP
	}
	if n.IPv6.IsValid() {
		r.IPv6.PublicIP = p.cfg.PublicIPv6
	}
	if r.Type == "vxlan" {
		for _, x := range []struct {
			e   *End
			mac frame.MAC
		}{{&r.IPv4, p.cfg.MAC}, {&r.IPv6, p.cfg.MACv6}} {
			if x.e.PublicIP.IsValid() {
				x.e.VNI, x.e.MAC = n.Backend.VNI, x.mac
			}
		}
	}
	err = p.insist(ctx, "lease", func() (err error) {
		own, err = p.cfg.Store.Acquire(ctx, n, r)
		return err
	}, ErrFull)
	if err == nil {
		p.setOwn(own)
	}
	return own, err
}

// setOwn makes a lease the node's in the status.
func (p *Plane) setOwn(own *Own) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Own, p.state.Until, p.state.Renewed = own.Lease, own.Until, time.Now()
	if p.state.Stale.IsZero() { // the store is there, too
		p.state.LastError = ""
	}
}

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// insist calls f until it succeeds, ctx ends or the error is final.
func (p *Plane) insist(ctx context.Context, what string, f func() error, final error) error {
	said := ""
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := f()
		if err == nil || final != nil && errors.Is(err, final) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		text := err.Error()
		if text != said {
			p.log.Warn("flannel: no "+what+" yet", "err", err)
			said = text
		}
		p.mu.Lock()
		p.state.LastError = text
		p.mu.Unlock()
		if sleep(ctx, wait) != nil {
			return ctx.Err()
		}
	}
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// SetLinks says which prefixes are on the node's own links, until it is called again or the Shape has others: see [Mapper.SetLinks].
// It may be called at any time once the plane is Ready.
func (p *Plane) SetLinks(links []netip.Prefix) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.mapper == nil:
		return errors.New("flannel: SetLinks: there is no lease yet")
	case p.ended:
		return errors.New("flannel: SetLinks: the plane has ended")
	}
	p.mapper.SetLinks(links)
	return p.flush()
}
