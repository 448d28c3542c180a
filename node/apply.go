package node

import (
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
)

// change applies a configuration that was checked and is not shared. n.updates is held.
func (n *Node) change(cfg *Config) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return fmt.Errorf("node: Apply: %w", net.ErrClosed)
	}
	if err := n.checkOwn(cfg); err != nil {
		return err
	}
	if err := n.checkTaken(cfg); err != nil {
		return err
	}
	n.dropFailed()
	defer n.settleDown()
	cfg = cfg.withShared()
	was, is := maps.Clone(n.left), cfg.left()
	// A port leaves the packets of a tunnel before that is opened, until it is closed.
	err := n.leave(both(was, is))
	if err == nil {
		err = n.changeTo(cfg)
	}
	if err != nil {
		is = was
	}
	if e := n.leave(is); e != nil {
		n.log.Warn("cannot set what a port leaves to tunnels", "err", e)
	}
	return err
}

// changeTo changes to a configuration, or back.
func (n *Node) changeTo(cfg *Config) error {
	f := opened{map[string]*tunnel{}, map[string]*device{}}
	if err := n.openFirst(cfg, f); err != nil {
		f.close()
		return err // nothing has changed
	}
	a := &attempt{from: n.cfg}
	if n.apply(cfg, f, a); a.err == nil {
		n.fit()
		return nil
	}
	f.close()
	// apply changes whatever differs from its argument, so it also undoes a change that has failed halfway.
	back := &attempt{back: true, from: cfg}
	n.closeUnused(index(n.cfg))
	if n.apply(n.cfg, opened{}, back); back.err != nil {
		return fmt.Errorf("%w; and restoring the old configuration failed: %w", a.err, back.err)
	}
	n.fit()
	return a.err
}

// An attempt is one run of apply. The first error ends it, unless it restores the old configuration.
type attempt struct {
	back bool    // it restores the old configuration
	from *Config // what is there, in whole or, when it restores, in part
	at   string  // part for errors
	err  error
}

// ends records an error that is not nil, and reports whether the attempt is over.
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

// step runs a step that can fail. Every such step comes through here, so that tests can make it fail.
func (n *Node) step(name string, f func() error) error {
	if n.fault != nil {
		if err := n.fault(name); err != nil {
			return err
		}
	}
	return f()
}

// take runs a step for a part of the node, and reports whether the attempt is over.
func (n *Node) take(a *attempt, about, name string, f func() error) bool {
	a.at = about
	over := a.ends(n.step(name, f))
	a.at = ""
	return over
}

// about returns the name of a segment for errors.
func about(vni frame.VNI) string { return fmt.Sprintf("segment %d", vni) }

// apply changes whatever differs from cfg. It takes over what openFirst has opened. n.mu is held.
func (n *Node) apply(cfg *Config, f opened, a *attempt) {
	wanted := index(cfg)
	n.prober.freeVNIs(wanted)
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
		n.vrf(cfg.VRFs[i].Name) // for routes without a gateway
	}
	list := rows(cfg)
	lacks := slices.ContainsFunc(list, func(r control.Row) bool { return n.lacksPort(wanted, r) })
	if n.take(a, "", "rows", func() error {
		return n.program(control.Update{Snapshot: true, Loose: lacks, Add: list})
	}) {
		return
	}
	n.plane.Reapply() // for parts that were recreated
	for row, err := range n.plane.Waiting(Owner) {
		if !n.lacksPort(wanted, row) && a.ends(control.RowError{Row: row, Err: err}) {
			return
		}
	}
	for i := range cfg.Segments {
		c := &cfg.Segments[i]
		if n.take(a, about(c.VNI), "cross-connect", func() error { return n.setCrossConnect(n.segments[c.VNI], c) }) {
			return
		}
	}
	if n.openGates(a); a.ends(nil) {
		return
	}
	if n.take(a, "", "datapath", func() error { return n.setDatapath(cfg.Datapath) }) {
		return
	}
	n.closeUnused(wanted)
	n.dropPortFilters(wanted)
	n.limits(cfg)
	n.prober.look()
	known := n.cfg.unshared()
	for _, x := range cfg.unshared() {
		if !slices.Contains(known, x) {
			n.log.Warn(x)
		}
	}
	n.cfg = cfg
}

// limits sets the limits of the whole node. They were checked, so that only a closed switch returns an error.
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

// wanted indexes a configuration by name.
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

// by indexes a list by name. Of two with the same name it has the first.
func by[K comparable, T any](list []T, name func(*T) K) map[K]*T {
	m := make(map[K]*T, len(list))
	for i := range list {
		if x := name(&list[i]); m[x] == nil {
			m[x] = &list[i]
		}
	}
	return m
}

// setPolicy adds a policy or changes it in place.
func (n *Node) setPolicy(c *Policy) error {
	if r := n.policies[c.Name]; r != nil && r.maxFlows == c.MaxFlows {
		return r.Update(&c.Config)
	}
	p, err := policy.New(&c.Config)
	if err == nil {
		n.noteLogged(c.Name, p)
		n.policies[c.Name] = &rules{c.MaxFlows, p}
	}
	return err
}

// vrf returns the VRF with a name, and adds it if necessary.
func (n *Node) vrf(name string) *l3.VRF {
	n.vrfs[name] = true
	return n.gateway.VRF(name)
}
