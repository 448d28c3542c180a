package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/setting"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// Owner is whose rows those of the configuration are.
const Owner = "config"

// Options are what a node takes from the program around it. The zero value works.
type Options struct {
	Log    *slog.Logger // what happens on the control path, told by a handler that does not call the node; nil = silent
	Owners []string     // others who program rows, in the order of their precedence; the configuration comes first

	// Listen opens what a tunnel goes over, on its AddrPort, in place of the system's sockets: an
	// memory.Underlay in tests. It is called twice for a tunnel of both address families: each
	// time with a Tunnel that has one of them, as Local. nil = the sockets.
	Listen func(*Tunnel) (vtep.Underlay, error)
}

// A Node is a switch and everything around it. Make one with New, Apply a configuration,
// Run it.
type Node struct {
	sw      *vswitch.Switch
	gateway *l3.Gateway
	plane   *control.Plane
	capture *capture.Capture
	log     *slog.Logger
	open    openers
	fault   func(step string) error // of tests: what fails instead of a step

	updates sync.Mutex              // one change at a time; before mu
	own     map[string]vswitch.Port // of the program, by name; under updates

	mu       sync.Mutex
	cfg      *Config
	closed   bool
	tunnels  map[string]*tunnel
	ports    map[string]*device
	policies map[string]*rules
	segments map[frame.VNI]*segment
	vrfs     map[string]bool // that configurations have made
}

// rules are a Policy as it runs.
type rules struct {
	maxFlows int // the one thing a policy cannot change
	*policy.Policy
}

// New returns a node without anything. A nil o means defaults.
func New(o *Options) (*Node, error) {
	if o == nil {
		o = new(Options)
	}
	n := &Node{
		cfg: new(Config), own: map[string]vswitch.Port{}, tunnels: map[string]*tunnel{}, ports: map[string]*device{},
		policies: map[string]*rules{}, segments: map[frame.VNI]*segment{}, vrfs: map[string]bool{},
	}
	n.log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	n.open = openers{listen, n.openDevice}
	if o.Listen != nil {
		n.open.underlay = o.Listen
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
	n.plane, err = control.New(&control.Config{
		Switch: n.sw, Gateway: n.gateway, Neighbours: n.neighbours, First: n.firstTunnel,
		Owners: slices.Concat([]string{Owner}, o.Owners), Static: []string{Owner},
	})
	return n, err
}

// Run moves frames until ctx is done or Close is called; then it closes the node, and returns
// nil, or what went wrong in closing. To run a node that runs is an error, and one that is
// closed, net.ErrClosed.
func (n *Node) Run(ctx context.Context) error {
	if err := n.sw.Run(ctx); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return n.Close()
}

// Close ends Run and closes every port and tunnel. It is idempotent.
func (n *Node) Close() error {
	err := n.sw.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for _, t := range n.tunnels {
		err = errors.Join(err, t.v.Close())
	}
	for _, d := range n.ports {
		err = errors.Join(err, d.port.Close())
	}
	clear(n.tunnels)
	clear(n.ports)
	return errors.Join(err, n.capture.Close())
}

// Apply makes the node what cfg says, under traffic. When it fails, with [conf.Errors] or with
// what the system says of one part, the node is as it was before. What the system does not give
// back then is missing, and the error says so: the next Apply has it again.
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
	return n.change(cfg)
}

// neighbours returns the table of a segment, nil if it has none. The plane asks.
func (n *Node) neighbours(vni frame.VNI) *arp.Table {
	if s := n.segments[vni]; s != nil {
		return s.table
	}
	return nil
}

// firstTunnel returns the tunnel of a segment that rows without a name are about: the first
// of the configuration, whenever it was attached. The plane asks.
func (n *Node) firstTunnel(vni frame.VNI) string {
	if s := n.segments[vni]; s != nil {
		return s.first
	}
	return ""
}

// Program changes the rows of another owner than the configuration.
func (n *Node) Program(owner string, u control.Update) error {
	if owner == Owner {
		return fmt.Errorf("node: %q is the configuration's own", owner)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return fmt.Errorf("node: Program: %w", net.ErrClosed)
	}
	return n.plane.Program(owner, u)
}
