package node

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/bfd"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// opened has the tunnels and ports opened before any change.
type opened struct {
	tunnels map[string]*tunnel
	ports   map[string]*device
}

// close closes those that were not taken over.
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

// openFirst opens new and changed tunnels and ports into f, unless an open one has the same address and port, or the
// same device. It tests the addresses that a tunnel moves to.
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
		switch err := n.openPort(c, f.ports); {
		case err == nil:
		case n.isDown(c.Name):
			n.down[c.Name].err = err // it stays down
		case c.Owner == "": // else openAll tries again
			return err
		}
	}
	return nil
}

// openAll moves tunnels, closes tunnels and ports that differ or conflict, takes over f and opens the rest.
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
		if err := n.move(c); err != nil {
			if !a.back {
				a.ends(err)
				return
			}
			n.shutWith(c.Name, a) // a tunnel that does not move back is recreated
		}
	}
	for name, t := range n.tunnels {
		c := w.tunnels[name]
		if c != nil && !t.cfg.same(c) || c == nil && slices.ContainsFunc(t.cfg.ats(), func(at netip.AddrPort) bool { return needed[at] }) {
			n.closeTunnel(name)
		}
	}
	for name, d := range n.ports {
		c := w.ports[name]
		if c != nil && d.resized(c) && a.ends(n.resize(d, c)) {
			return
		}
		if c != nil && !d.is(c) {
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
		if n.ports[c.Name] != nil || n.isDown(c.Name) {
			continue
		}
		if n.gone(c) {
			if a.back {
				n.goesDown(c, nil, errors.New("the change that failed had closed it"))
			}
			continue
		}
		err := n.openPort(c, n.ports)
		if err != nil && (a.back || c.Owner != "") {
			n.goesDown(c, nil, err)
		}
		if (a.back || c.Owner == "") && a.ends(err) {
			return
		}
	}
}

// dropFailed closes ports and tunnels that have failed, so that they are reopened. n.mu is held.
func (n *Node) dropFailed() {
	for _, s := range n.segments {
		here := s.vsi.Attachments()
		for name, a := range s.tunnels {
			if !slices.Contains(here, a) {
				n.closeTunnel(name)
			}
		}
		for _, a := range slices.Collect(maps.Values(s.members)) {
			if !slices.Contains(here, a.Attachment) {
				n.failed(a.port, a.Err())
				n.closePort(a.port)
			}
		}
	}
}

// closeUnused closes what is not in the configuration.
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

// openers open the underlays and devices of a node.
type openers struct {
	underlay func(*Tunnel) (vtep.Underlay, error)
	device   func(*Port) (vswitch.Port, error)
	bfd      func(*bfd.Speaker, *Tunnel) (*bfd.UDP, error) // nil if the underlays are not sockets of the host
}

// listenBFD opens the host's sockets for BFD beside an IP-in-IP tunnel.
func listenBFD(s *bfd.Speaker, c *Tunnel) (*bfd.UDP, error) {
	lc := net.ListenConfig{Control: c.Control}
	return bfd.ListenUDP(s, &bfd.UDPConfig{
		Local: c.locals(),
		Listen: func(network, address string) (net.PacketConn, error) {
			return lc.ListenPacket(context.Background(), network, address)
		},
	})
}

// convert copies the fields of a Tunnel or Port, which c points to, to settings with fields of the same names.
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
