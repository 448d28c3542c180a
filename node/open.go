package node

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"

	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// opened is what was opened before anything was touched.
type opened struct {
	tunnels map[string]*tunnel
	ports   map[string]*device
}

// close closes what nobody has taken over.
func (f opened) close() {
	for _, t := range f.tunnels {
		t.v.Close()
	}
	for _, d := range f.ports {
		if d.cfg.Type != PortOwn {
			d.port.Close()
		}
	}
}

// openFirst opens into f what is new or differs, except for what an open one is in the way of: the
// address and port of a tunnel, the device of a port. Addresses that a tunnel moves to are
// tried.
func (n *Node) openFirst(cfg *Config, f opened) (err error) {
	for i := range cfg.Tunnels {
		c := &cfg.Tunnels[i]
		switch {
		case n.stays(c):
			err = n.try(c)
		case !slices.ContainsFunc(c.ats(), n.has):
			err = n.openTunnel(c, f.tunnels)
		}
		if err != nil {
			return err
		}
	}
	for i := range cfg.Ports {
		c := &cfg.Ports[i]
		if d := n.ports[c.Name]; n.gone(c) || d != nil && !d.elsewhere(c) {
			continue
		}
		if err := n.openPort(c, f.ports); err != nil {
			return err
		}
	}
	return nil
}

// openAll moves tunnels, closes what differs or is in the way, takes over f and opens the rest.
func (n *Node) openAll(cfg *Config, w wanted, f opened, a *attempt) {
	needed := map[netip.AddrPort]bool{}
	for i := range cfg.Tunnels {
		c := &cfg.Tunnels[i]
		for _, at := range c.ats() {
			needed[at] = true
		}
		if !n.stays(c) {
			continue
		}
		if err := n.move(c); err != nil && !a.back { // one that does not move back is made anew
			a.ends(err)
			return
		}
	}
	for name, t := range n.tunnels {
		c := w.tunnels[name]
		if c != nil && !t.cfg.same(c) || c == nil && slices.ContainsFunc(t.cfg.ats(), func(at netip.AddrPort) bool { return needed[at] }) {
			n.closeTunnel(name)
		}
	}
	for name, d := range n.ports {
		if c := w.ports[name]; c != nil && !d.is(c) {
			n.closePort(name)
		}
	}
	maps.Copy(n.tunnels, f.tunnels)
	maps.Copy(n.ports, f.ports)
	clear(f.tunnels)
	clear(f.ports)
	for i := range cfg.Tunnels {
		c := &cfg.Tunnels[i]
		if n.tunnels[c.Name] == nil && a.ends(n.openTunnel(c, n.tunnels)) {
			return
		}
	}
	for i := range cfg.Ports {
		c := &cfg.Ports[i]
		if n.ports[c.Name] == nil && !n.gone(c) && a.ends(n.openPort(c, n.ports)) {
			return
		}
	}
}

// dropFailed closes ports and tunnels that the switch has let go because they failed, so that
// they are opened anew.
func (n *Node) dropFailed() {
	for _, s := range n.segments {
		here := s.vsi.Attachments()
		for name, a := range s.far {
			if !slices.Contains(here, a) {
				n.closeTunnel(name)
			}
		}
		for name, a := range s.members {
			if !slices.Contains(here, a) {
				n.closePort(name)
			}
		}
	}
}

// closeUnused closes what the configuration has no longer.
func (n *Node) closeUnused(w wanted) {
	for name := range n.tunnels {
		if w.tunnels[name] == nil {
			n.closeTunnel(name)
		}
	}
	for name := range n.ports {
		if w.ports[name] == nil {
			n.closePort(name)
		}
	}
	maps.DeleteFunc(n.policies, func(name string, _ *rules) bool { return w.policies[name] == nil })
	maps.DeleteFunc(n.vrfs, func(name string, _ bool) bool { return w.vrfs[name] == nil && n.gateway.DeleteVRF(name) })
}

// openers ask the system for what a node needs of it.
type openers struct {
	underlay func(*Tunnel) (vtep.Underlay, error)
	device   func(*Port) (vswitch.Port, error)
}

// convert returns the settings of a kind out of c, a pointer to a Tunnel or a Port: the fields
// of the same name.
func convert[T any](c any) *T {
	to := new(T)
	from, into := reflect.ValueOf(c).Elem(), reflect.ValueOf(to).Elem()
	for _, f := range reflect.VisibleFields(into.Type()) {
		if x := from.FieldByName(f.Name); x.IsValid() && x.Type() == f.Type {
			into.FieldByIndex(f.Index).Set(x)
		}
	}
	return to
}
