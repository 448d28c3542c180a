package calico

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/calico/internal/rules"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/internal/batch"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/setting"
)

const (
	between = 20 * time.Millisecond // between two changes of what the node does
	pause   = 2 * time.Second       // before something that has failed is tried again
)

// A Node is what a Plane needs of a *node.Node.
type Node interface {
	bgp.Node
	SetPortFilters(func(port string, has policy.Filter) policy.Filter) error
	PortFilters() map[string]policy.Filter
}

// A Plane follows the datastore, and has a node do what it says. Make one with New.
type Plane struct {
	node  Node
	owner string
	log   *slog.Logger
	loop  *batch.Loop // applies

	filter           *filter     // nil without workloads
	routes, policies atomic.Bool // have changed, and are not applied
	ran              atomic.Bool

	start func(*bgp.Config) (speaker, error)

	mu       sync.Mutex
	cfg      Config
	moved    func()          // ends what follows the datastore, nil before
	store    *model.Store    // nil before it has been read
	plan     *model.Plan     // as applied, nil before
	ruled    model.NotDone   // of policies, likewise
	compiler rules.Compiler  // of policies
	vxlan    []model.Problem // of tunnels for VXLAN
	rowErr   error
	bgpErr   error
	stale    time.Time
	lastErr  string
	run      *running // nil without BGP
}

// New checks the settings. Nothing is opened before Run. From now on ports of workloads are closed, unless a Plane before this one has
// left a policy there: see [Workloads].
func New(n Node, c *Config) (*Plane, error) {
	if n == nil {
		return nil, errors.New("calico: New: the Node is nil")
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	p := &Plane{node: n, cfg: setting.Clone(*c), owner: c.Owner, log: c.Log, loop: batch.New(between, 0), stale: time.Now()}
	if p.owner == "" {
		p.owner = DefaultOwner
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.start = p.startBGP
	if w := p.cfg.Workloads; !w.none() {
		p.filter = newFilter(n, w, p.loop.Wake)
		if err := n.SetPortFilters(p.filter.of); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Configure changes the settings, before or while Run runs. Routes and sessions that stay as they are go on, also if Etcd or Datastore is another one.
// Owner and Log stay, and so do Node, NoBGP and whether there are Workloads: an error says that one of these is another one, for which a new Plane is
// needed, and nothing has changed then.
func (p *Plane) Configure(c *Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if key := p.cfg.fixed(c); key != "" {
		return fmt.Errorf("calico: Config.%s: cannot change while the Plane runs", key)
	}
	if p.filter != nil { // with the same workloads, too: Workloads.Close may have been called since
		if err := p.filter.configure(c.Workloads); err != nil {
			return err
		}
	}
	other := p.cfg.Datastore != c.Datastore || !reflect.DeepEqual(p.cfg.Etcd, c.Etcd)
	p.cfg = setting.Clone(*c)
	if other && p.moved != nil {
		p.moved()
	}
	if p.store != nil {
		p.routes.Store(true)
		p.policies.Store(true)
		p.loop.Wake()
	}
	return nil
}

// Run follows the datastore until ctx is done. Then sessions end, and rows go; policies stay as they were last, and a port that comes
// later has that of its endpoint, or is closed. It is called once.
func (p *Plane) Run(ctx context.Context) error {
	if p.ran.Swap(true) {
		return errors.New("calico: Plane.Run: it was called before; make a new Plane")
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer func() {
		cancel()
		wg.Wait()
		p.stopBGP()
		p.node.Program(p.owner, control.Update{Snapshot: true})
	}()
	wg.Go(func() { p.loop.Run(ctx, p.applier) })
	for ctx.Err() == nil {
		p.follow(ctx)
	}
	return nil
}

// follow follows the datastore until ctx is done, or there is another one.
func (p *Plane) follow(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.mu.Lock()
	p.moved = cancel
	cfg := p.cfg
	p.mu.Unlock()
	for {
		err := p.read(ctx, &cfg)
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, errAgain) {
			p.away(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// read follows the datastore until ctx is done or something fails.
func (p *Plane) read(ctx context.Context, cfg *Config) error {
	prefixes := resource.Prefixes(cfg.Node)
	if p.filter != nil {
		prefixes = append(prefixes, resource.PolicyPrefixes()...)
	}
	return cfg.datastore().Follow(ctx, prefixes, &reader{p: p})
}

// away notes that the datastore is not followed.
func (p *Plane) away(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stale.IsZero() {
		p.stale = time.Now()
	}
	if text := err.Error(); text != p.lastErr {
		p.lastErr = text
		p.log.Warn("the datastore is away: everything goes on as it was", "error", err)
	}
}

// applier applies what has changed.
func (p *Plane) applier(bool) (more bool) {
	if !p.apply() {
		time.AfterFunc(pause, p.loop.Wake)
	}
	return false
}

// apply has the node do what the datastore says, and reports whether it does.
func (p *Plane) apply() bool {
	if p.filter != nil {
		if p.policies.Swap(false) {
			p.rule()
		}
		p.filter.sync()
	}
	if !p.routes.Swap(false) || p.route() {
		return true
	}
	p.routes.Store(true)
	return false
}

// rule finds out what workloads may do.
func (p *Plane) rule() {
	p.mu.Lock()
	defer p.mu.Unlock()
	plan := p.compiler.Compile(p.cfg.Node, p.store)
	for _, x := range p.filter.set(plan) {
		plan.Note(x.Resource, "%s", x.Why)
	}
	p.named(p.ruled.Problems, plan.Problems)
	p.ruled = plan.NotDone
}

// route has the node do what is no policy, and reports whether it does.
func (p *Plane) route() bool {
	p.mu.Lock()
	plan := model.Compile(p.cfg.settings(), p.store)
	if p.plan == nil {
		p.plan = new(model.Plan)
	}
	vxlan := p.otherwise(p.cfg.VXLAN.Segment, plan)
	p.named(p.plan.Problems, plan.Problems)
	p.named(p.vxlan, vxlan)
	p.plan, p.vxlan = plan, vxlan
	p.mu.Unlock()
	rowErr := p.node.Program(p.owner, control.Update{Snapshot: true, Loose: true, Add: plan.Rows})
	bgpErr := p.setBGP(plan.BGP)
	p.mu.Lock()
	defer p.mu.Unlock()
	if rowErr != nil && p.rowErr == nil {
		p.log.Warn("rows were refused", "error", rowErr)
	}
	if bgpErr != nil && p.bgpErr == nil {
		p.log.Warn("no BGP", "error", bgpErr)
	}
	p.rowErr, p.bgpErr = rowErr, bgpErr
	return bgpErr == nil
}

// named logs problems that are new.
func (p *Plane) named(was, is []model.Problem) {
	old := map[model.Problem]bool{}
	for _, x := range was {
		old[x] = true
	}
	for _, x := range is {
		if !old[x] {
			p.log.Warn("not done", "resource", x.Resource, "why", x.Why)
		}
	}
}
