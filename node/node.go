package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/setting"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// Owner is the owner of the rows of the configuration.
const Owner = "config"

// Options configures a node. The zero value works.
type Options struct {
	Log    *slog.Logger // log of the control path; its handler must not call the node; nil = none
	Owners []string     // other owners of rows, by precedence; the configuration comes first

	// Listen opens the underlay of a tunnel on its AddrPort, such as a memory.Underlay in tests. For a tunnel with
	// Local6 it is called twice, each time with one address as Local. nil = sockets of the system.
	Listen func(*Tunnel) (vtep.Underlay, error)

	// Offload has flows of the switch carried elsewhere, until it is closed, for Config.Datapath: see package offload, whose
	// New is for it. nil = there is none.
	Offload func(*vswitch.Switch) (io.Closer, error)
}

// A Node is a switch with its tunnels, ports, gateway and policies. Methods may be called concurrently.
type Node struct {
	sw      *vswitch.Switch
	gateway *l3.Gateway
	plane   *control.Plane
	program func(control.Update) error // changes the rows of the configuration
	capture *capture.Capture
	log     *slog.Logger
	prober  *prober
	offload offloader
	kick    chan struct{} // for retry
	logged  chan loggedBy // by rules with the action Log
	open    openers
	fault   func(step string) error // for tests: returns an error instead of a step

	updates sync.Mutex              // one change at a time; before mu
	own     map[string]vswitch.Port // ports of the program by name; guarded by updates

	mu       sync.Mutex
	cfg      *Config            // base with what is provided
	base     *Config            // of Apply and Update
	provided map[string]*Config // by owner
	closed   bool
	ending   func() error // not nil from it: Run ends
	tunnels  map[string]*tunnel
	ports    map[string]*device
	down     map[string]*outage // ports that are down, or were a moment ago
	home     *os.File           // network namespace in which ports are opened
	policies map[string]*rules
	segments map[frame.VNI]*segment
	vrfs     map[string]bool           // made by configurations
	roles    map[roleKey]*vswitch.Role // by SetRole; those of the map do not change
	left     map[string][]port.Address // what ports leave to tunnels, by port

	portFilter  func(string, policy.Filter) policy.Filter // by SetPortFilters
	portFilters map[string]policy.Filter                  // by port
}

// rules is a running Policy.
type rules struct {
	maxFlows int // cannot change in place
	*policy.Policy
}

// New returns an empty node; nil options mean defaults. Close it when done, or Run it.
func New(o *Options) (*Node, error) {
	if o == nil {
		o = new(Options)
	}
	for i, name := range o.Owners {
		switch {
		case name == "" || name == Owner || !printable(name):
			return nil, fmt.Errorf("node: Options.Owners[%d]: %q: must be the name of a control plane, in printable characters", i, name)
		case slices.Contains(o.Owners[:i], name):
			return nil, fmt.Errorf("node: Options.Owners[%d]: %q: duplicate", i, name)
		}
	}
	n := &Node{
		cfg: new(Config), base: new(Config), provided: map[string]*Config{}, own: map[string]vswitch.Port{}, tunnels: map[string]*tunnel{}, ports: map[string]*device{}, down: map[string]*outage{}, kick: make(chan struct{}, 1), logged: make(chan loggedBy, 64), left: map[string][]port.Address{},
		policies: map[string]*rules{}, segments: map[frame.VNI]*segment{}, vrfs: map[string]bool{}, roles: map[roleKey]*vswitch.Role{},
		portFilters: map[string]policy.Filter{},
	}
	n.log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	n.prober = newProber(n)
	n.offload.open = o.Offload
	n.open = openers{listen, n.openDevice, listenBFD}
	if o.Listen != nil {
		n.open.underlay, n.open.bfd = o.Listen, nil
	}
	var err error
	if n.sw, err = vswitch.New(&vswitch.Config{Log: o.Log}); err != nil {
		return nil, err
	}
	if n.gateway, err = l3.NewGateway(nil); err != nil {
		return nil, err
	}
	if n.capture, err = capture.New(nil); err != nil {
		return nil, err
	}
	n.capture.Segments(n.sw)
	n.plane, err = control.New(&control.Config{
		Switch: n.sw, Gateway: n.gateway, Neighbours: n.neighbours, First: n.firstTunnel,
		Owners: slices.Concat([]string{Owner}, o.Owners), Static: []string{Owner},
	})
	if err != nil {
		return nil, err
	}
	n.program, err = n.plane.Reserve(Owner)
	return n, err
}

// Run forwards frames until ctx is done or Close is called. It then closes the node and returns the error of Close. It
// returns an error if the node is already running, and net.ErrClosed if it is closed.
func (n *Node) Run(ctx context.Context) error {
	n.mu.Lock()
	if n.ending == nil {
		n.ending = ctx.Err
	}
	n.mu.Unlock()
	events := n.sw.Events(slices.Concat(control.Events, []frame.EventKind{frame.EventPortDown})...)
	following, stop := context.WithCancel(ctx)
	var follower sync.WaitGroup
	follower.Go(func() { n.follow(following, events) })
	follower.Go(func() { n.prober.run(following) })
	follower.Go(func() { n.retry(following) })
	follower.Go(func() { n.followMTUs(following) })
	follower.Go(func() { n.writeLogged(following) })
	err := n.sw.Run(ctx)
	stop()
	follower.Wait()
	events.Close()
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return n.Close()
}

// follow has the rows of control planes follow ports, segments and hosts, and looks for ports that have failed.
func (n *Node) follow(ctx context.Context, events *vswitch.Events) {
	n.mu.Lock()
	n.plane.Reapply() // for what has happened before
	n.lookForFailed()
	n.mu.Unlock()
	for {
		list, err := events.NextAll(ctx)
		if err != nil {
			return
		}
		n.mu.Lock()
		n.plane.Handle(list...)
		n.passOver(list)
		if slices.ContainsFunc(list, func(e frame.Event) bool {
			return e.Kind == frame.EventPortDown && e.Err != nil || e.Kind == frame.EventOverflow
		}) {
			n.lookForFailed()
		}
		n.mu.Unlock()
		n.prober.look()
		pause := 10 * time.Millisecond // so that many events are handled together
		if slices.ContainsFunc(list, func(e frame.Event) bool { return e.Kind == frame.EventOverflow }) {
			pause = time.Second // hosts can cause these, and all rows are compared
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// Close stops Run and closes all ports and tunnels. It is idempotent.
func (n *Node) Close() error {
	err := n.sw.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	err = errors.Join(err, n.offload.close())
	n.prober.close()
	for _, t := range n.tunnels {
		err = errors.Join(err, t.close())
	}
	for _, d := range n.ports {
		err = errors.Join(err, d.port.Close())
	}
	clear(n.tunnels)
	clear(n.ports)
	n.home = nil // closed when no port is from there: one may be on its way
	return errors.Join(err, n.capture.Close())
}

// Apply changes the node to a configuration under traffic. On an error, [setting.Errors] or one of the system, it
// restores the old configuration. If the system refuses a part of that, the error says so and the part is missing
// until the next Apply, except for a port: it is down, and the node opens it again as soon as it can. See [Node.Down].
func (n *Node) Apply(cfg *Config) error {
	if cfg == nil {
		return errors.New("node: Apply: the configuration is nil")
	}
	n.updates.Lock()
	defer n.updates.Unlock()
	cfg = setting.Clone(cfg)
	if err := cfg.Check(); err != nil {
		return err
	}
	_, provided, err := n.parts()
	if err != nil {
		return err
	}
	return n.changeParts(cfg, provided, checker{begun: true})
}

// neighbours returns the neighbour table of a segment for the plane, nil if it has none.
func (n *Node) neighbours(vni frame.VNI) *arp.Table {
	if s := n.segments[vni]; s != nil {
		return s.table
	}
	return nil
}

// firstTunnel returns the first tunnel of a segment in the configuration for the plane. Rows without the name of a
// tunnel use it.
func (n *Node) firstTunnel(vni frame.VNI) string {
	if s := n.segments[vni]; s != nil {
		return s.first
	}
	return ""
}

// Program changes the rows of an owner other than the configuration.
func (n *Node) Program(owner string, u control.Update) error {
	if owner == Owner {
		return fmt.Errorf("node: owner %q is reserved for the configuration", owner)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return fmt.Errorf("node: Program: %w", net.ErrClosed)
	}
	defer n.prober.look()
	err := n.plane.Program(owner, u)
	if n.offload.on != nil {
		n.sw.Settle()
	}
	return err
}
