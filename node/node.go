package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// Owner is whose rows those of the configuration are.
const Owner = "config"

// Options are what a node takes from the program around it. The zero value works.
type Options struct {
	Log    *slog.Logger // what happens on the control path; nil = silent
	Owners []string     // others who program rows, in the order of their precedence; the configuration comes first

	// Listen opens what a tunnel goes over, on its AddrPort, in place of the system's sockets: an
	// underlay.Memory in tests. It is called twice for a tunnel of both address families: each
	// time with a Tunnel that has one of them, as Local. nil = the sockets.
	Listen func(*Tunnel) (port.Underlay, error)
}

// A Node is a switch and everything around it. Make one with New, Apply a configuration,
// Run it.
type Node struct {
	sw      *vswitch.Switch
	gateway *l3.Gateway
	plane   *control.Plane
	capture *port.Capture
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
	if n.capture, err = port.NewCapture(nil); err != nil {
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

// Apply makes the node what cfg says, under traffic. When it fails, with [Errors] or with
// what the system says of one part, the node is as it was before. What the system does not give
// back then is missing, and the error says so: the next Apply has it again.
func (n *Node) Apply(cfg *Config) error {
	if cfg == nil {
		return errors.New("node: Apply: the configuration is nil")
	}
	n.updates.Lock()
	defer n.updates.Unlock()
	cfg = clone(cfg)
	if err := cfg.Check(); err != nil {
		return err
	}
	return n.change(cfg)
}

// change is Apply of a configuration that was checked and that nobody else has. n.updates is held.
func (n *Node) change(cfg *Config) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return fmt.Errorf("node: Apply: %w", net.ErrClosed)
	}
	if err := n.lacks(cfg); err != nil {
		return err
	}
	n.dropFailed()
	f := opened{map[string]*tunnel{}, map[string]*device{}}
	if err := n.openFirst(cfg, f); err != nil {
		f.close()
		return err // and nothing was touched
	}
	a := new(attempt)
	if n.apply(cfg, f, a); a.err == nil {
		n.fit()
		return nil
	}
	f.close()
	// Every change is one from what there is to what is wanted. So this is the way back too,
	// from wherever the way there has ended.
	back := &attempt{back: true}
	n.closeUnused(index(n.cfg))
	if n.apply(n.cfg, opened{}, back); back.err != nil {
		return fmt.Errorf("%w; and what was before could not be put back: %w", a.err, back.err)
	}
	return a.err
}

// An attempt is one way through apply. The first error ends it, except on the way back, which
// goes on with all that is left.
type attempt struct {
	back bool
	at   string // what it is about
	err  error
}

// ends notes an error, if it is one, and reports whether the attempt is over.
func (a *attempt) ends(err error) bool {
	if err != nil && a.at != "" {
		err = fmt.Errorf("%s: %w", a.at, err)
	}
	switch {
	case a.err == nil:
		a.err = err
	case err != nil:
		a.err = fmt.Errorf("%w; %w", a.err, err)
	}
	return a.err != nil && !a.back
}

// step takes a step that can fail. All that can go through here, so that tests have each of
// them fail.
func (n *Node) step(name string, f func() error) error {
	if n.fault != nil {
		if err := n.fault(name); err != nil {
			return err
		}
	}
	return f()
}

// take takes a step that is about a part, and reports whether the attempt is over.
func (n *Node) take(a *attempt, about, name string, f func() error) bool {
	a.at = about
	over := a.ends(n.step(name, f))
	a.at = ""
	return over
}

// about is a segment as errors call it.
func about(vni frame.VNI) string { return fmt.Sprintf("segment %d", vni) }

// apply changes what differs from what there is; it takes over what is open already in f. n.mu is
// held.
func (n *Node) apply(cfg *Config, f opened, a *attempt) {
	wanted := index(cfg)
	if n.closeGates(wanted, a); a.ends(nil) {
		return
	}
	if n.openAll(cfg, wanted, f, a); a.ends(nil) {
		return
	}
	for _, vni := range slices.Sorted(maps.Keys(n.segments)) {
		if n.take(a, about(vni), "release", func() error { return n.release(n.segments[vni], wanted.segments[vni]) }) {
			return
		}
	}
	for i := range cfg.Policies {
		c := &cfg.Policies[i]
		if n.take(a, fmt.Sprintf("policy %q", c.Name), "policy", func() error { return n.setPolicy(c) }) {
			return
		}
	}
	for i := range cfg.Segments {
		if n.setSegment(&cfg.Segments[i], a); a.ends(nil) {
			return
		}
	}
	for i := range cfg.VRFs {
		n.vrf(cfg.VRFs[i].Name) // makes it, for routes where there is no gateway
	}
	if n.take(a, "", "rows", func() error {
		return n.plane.Program(Owner, control.Update{Snapshot: true, Add: rows(cfg)})
	}) {
		return
	}
	if err := n.plane.Reapply(); err != nil { // what was made anew has lost its rows
		if lost := (*control.LostError)(nil); errors.As(err, &lost) && lost.Owner == Owner && a.ends(lost) {
			return
		}
		n.log.Warn("rows wait", "err", err)
	}
	for i := range cfg.Segments {
		c := &cfg.Segments[i]
		if n.take(a, about(c.VNI), "wire", func() error { return n.setWire(n.segments[c.VNI], c) }) {
			return
		}
	}
	if n.openGates(a); a.ends(nil) {
		return
	}
	n.closeUnused(wanted)
	n.limits(cfg)
	n.cfg = cfg
}

// limits sets what concerns the node as a whole. All of it has been checked; only a switch that
// was closed meanwhile takes nothing, and needs nothing.
func (n *Node) limits(cfg *Config) {
	if cfg.Config != n.cfg.Config {
		n.sw.Configure(cfg.Config)
	}
	if cfg.Gateway != n.cfg.Gateway {
		n.gateway.Configure(cfg.Gateway)
	}
	if cfg.Capture != n.cfg.Capture {
		n.capture.Configure(cfg.Capture)
	}
}

// wanted is a configuration by name.
type wanted struct {
	tunnels  map[string]*Tunnel
	ports    map[string]*Port
	segments map[frame.VNI]*Segment
	policies map[string]*Policy
	vrfs     map[string]*VRF
}

func index(cfg *Config) wanted {
	return wanted{
		tunnels:  by(cfg.Tunnels, func(t *Tunnel) string { return t.Name }),
		ports:    by(cfg.Ports, func(p *Port) string { return p.Name }),
		segments: by(cfg.Segments, func(s *Segment) frame.VNI { return s.VNI }),
		policies: by(cfg.Policies, func(p *Policy) string { return p.Name }),
		vrfs:     by(cfg.VRFs, func(v *VRF) string { return v.Name }),
	}
}

// by returns what is in a list by its name. Of two with one name it has the first.
func by[K comparable, T any](list []T, name func(*T) K) map[K]*T {
	m := make(map[K]*T, len(list))
	for i := range list {
		if x := name(&list[i]); m[x] == nil {
			m[x] = &list[i]
		}
	}
	return m
}

// setPolicy makes a policy, or changes it in place.
func (n *Node) setPolicy(c *Policy) error {
	if r := n.policies[c.Name]; r != nil && r.maxFlows == c.MaxFlows {
		return r.Update(&c.Config)
	}
	p, err := policy.New(&c.Config)
	if err == nil {
		n.policies[c.Name] = &rules{c.MaxFlows, p}
	}
	return err
}

// vrf returns the VRF of a name, making it if there is none.
func (n *Node) vrf(name string) *l3.VRF {
	n.vrfs[name] = true
	return n.gateway.VRF(name)
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

// Config returns a copy of what was applied last, with what Tunnel, Segment and the like added.
func (n *Node) Config() *Config {
	n.mu.Lock()
	defer n.mu.Unlock()
	return clone(n.cfg)
}

// Switch returns the node's switch.
func (n *Node) Switch() *vswitch.Switch { return n.sw }

// Plane returns what writes the node's tables. Apply and other owners' updates do not meet:
// use [Node.Program].
func (n *Node) Plane() *control.Plane { return n.plane }

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

// Gateway returns the node's gateway.
func (n *Node) Gateway() *l3.Gateway { return n.gateway }

// Capture returns the capture that all ports and tunnels pass through. It is off.
func (n *Node) Capture() *port.Capture { return n.capture }

// Tunnels returns the VTEPs by name.
func (n *Node) Tunnels() map[string]*vtep.VTEP {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := make(map[string]*vtep.VTEP, len(n.tunnels))
	for name, t := range n.tunnels {
		m[name] = t.v
	}
	return m
}

// Policies returns the policies by name.
func (n *Node) Policies() map[string]*policy.Policy {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := make(map[string]*policy.Policy, len(n.policies))
	for name, r := range n.policies {
		m[name] = r.Policy
	}
	return m
}

// Interfaces returns the gateway's interfaces in the order of their VNIs.
func (n *Node) Interfaces() (list []*l3.Interface) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, vni := range slices.Sorted(maps.Keys(n.segments)) {
		if i := n.segments[vni].iface; i != nil {
			list = append(list, i)
		}
	}
	return list
}

// Neighbours returns the responder of a segment, nil if it has none.
func (n *Node) Neighbours(vni frame.VNI) *arp.Responder {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.segments[vni]; s != nil {
		return s.responder
	}
	return nil
}

// A Place is a port in a segment.
type Place struct {
	VNI  frame.VNI
	Port string
}

// Guards returns the guards of members.
func (n *Node) Guards() map[Place]*policy.Guard {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := map[Place]*policy.Guard{}
	for vni, s := range n.segments {
		for port, g := range s.guards {
			m[Place{vni, port}] = g
		}
	}
	return m
}
