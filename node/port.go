package node

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// A device is a running Port.
type device struct {
	cfg  Port
	raw  vswitch.Port // as it was opened
	port vswitch.Port // with the capture, as attached
	used bool         // has been attached
	from origin
}

// is reports whether c has the same settings. Ports of the program have none to compare.
func (d *device) is(c *Port) bool {
	return d.cfg.Type == PortOwn && c.Type == PortOwn || reflect.DeepEqual(d.cfg, *c)
}

// resized reports whether c has the same settings but for another MTU, which a device changes in place.
func (d *device) resized(c *Port) bool {
	if _, ok := d.raw.(interface{ SetMTU(int) error }); !ok || d.cfg.MTU == c.MTU {
		return false
	}
	was := d.cfg
	was.MTU = c.MTU
	return reflect.DeepEqual(was, *c)
}

// resize sets the MTU of a port that is resized. Without one, fit does so.
func (n *Node) resize(d *device, c *Port) error {
	x := d.raw.(interface{ SetMTU(int) error })
	if err := n.step("MTU of a port", func() error { return x.SetMTU(c.MTU) }); err != nil {
		return fmt.Errorf("port %q: %w", c.Name, err)
	}
	d.cfg = *c
	return nil
}

// elsewhere reports whether c is in another network namespace, so that it does not conflict with d.
func (d *device) elsewhere(c *Port) bool {
	if d.cfg.Namespace == c.Namespace {
		return false
	}
	was, err := os.Stat(namespace(d.cfg.Namespace))
	is, failed := os.Stat(namespace(c.Namespace))
	return err != nil || failed != nil || !os.SameFile(was, is)
}

// namespace returns the file of a network namespace.
func namespace(name string) string {
	switch {
	case name == "":
		return "/proc/thread-self/ns/net"
	case !strings.Contains(name, "/"):
		return "/run/netns/" + name
	}
	return name
}

// closePort detaches a port everywhere and closes it, except for a port of the program that was never attached.
func (n *Node) closePort(name string) {
	for _, s := range n.segments {
		for _, key := range slices.Sorted(maps.Keys(s.members)) {
			if s.members[key].port == name {
				s.detachMember(key)
			}
		}
	}
	if d := n.ports[name]; d != nil {
		if d.used || d.cfg.Type != PortOwn {
			d.port.Close()
		}
		delete(n.ports, name)
		delete(n.own, name)
	}
}

// checkOwn returns an error if cfg has a port of the program that was not added, or that the change would close.
func (n *Node) checkOwn(cfg *Config) error {
	had, wants := index(n.cfg).ports, index(cfg).segments
	for _, p := range cfg.Ports {
		if p.Type != PortOwn {
			continue
		}
		if was := had[p.Name]; n.own[p.Name] == nil && (was == nil || was.Type != PortOwn) {
			return fmt.Errorf("port %q: the program has not added a port with this name", p.Name)
		}
		if n.closes(p.Name, wants) {
			return fmt.Errorf("port %q: cannot be paused and would be closed, because it leaves all of its segments; use Remove, and Add a new port", p.Name)
		}
	}
	return nil
}

// closes reports whether a change to segments closes a port: one that is not a Pauser and leaves all its attachments.
func (n *Node) closes(name string, wants map[frame.VNI]*Segment) bool {
	d := n.ports[name]
	if d == nil {
		return false
	}
	if _, ok := d.port.(vswitch.Pauser); ok {
		return false
	}
	member := false
	for vni, s := range n.segments {
		for _, a := range s.members {
			if a.port != name {
				continue
			}
			member = true
			if c := wants[vni]; c != nil && c.Refuse == s.vsi.Config().Refuse && a.stays(c) {
				return false
			}
		}
	}
	return member
}

// gone reports whether a port of the program has failed. The node cannot reopen it.
func (n *Node) gone(c *Port) bool { return c.Type == PortOwn && n.own[c.Name] == nil }

// fit sets the MTU of TAPs, TUNs and veth pairs without a configured MTU to the one that fits the tunnels of their segments, and has
// gateways advertise it. If that fails, senders of longer packets get ICMP errors.
func (n *Node) fit() {
	for name, d := range n.ports {
		n.fitPort(name, d)
	}
	for i := range n.cfg.Segments {
		c := &n.cfg.Segments[i]
		if s := n.segments[c.VNI]; s != nil {
			s.advertiseMTU(n.hostMTU(c))
		}
	}
}

func (n *Node) fitPort(name string, d *device) {
	x, ok := d.raw.(interface{ Fit(int) error })
	if !ok {
		return
	}
	fits := 0
	for i := range n.cfg.Segments {
		c := &n.cfg.Segments[i]
		if c.member(name) == nil {
			continue
		}
		for _, in := range c.in() {
			if t := n.tunnels[in.Tunnel]; t != nil {
				if most := c.Fits(t.v); fits == 0 || most < fits {
					fits = most
				}
			}
		}
	}
	if fits == 0 {
		return
	}
	if err := x.Fit(fits); err != nil {
		n.log.Warn("cannot set the MTU of a port to fit its tunnels", "port", name, "err", err)
	}
}

// Fits returns the length of the longest frame from a port that fits a tunnel of the segment.
func (c *Segment) Fits(t *vtep.VTEP) int {
	if c.InnerVLAN == vswitch.VLANPass {
		return t.MTU(0) - encap.VLANTagLen // a VLAN device on top has the same MTU
	}
	return t.MTU(0)
}

func (n *Node) openDevice(c *Port) (vswitch.Port, error) {
	switch c.Type {
	case PortOwn:
		return n.own[c.Name], nil
	case PortPacket:
		cfg := convert[port.PacketConfig](c)
		cfg.Leave = n.left[c.Name]
		return port.OpenPacket(c.Name, cfg)
	case PortVeth:
		return port.OpenVeth(c.Name, &c.DeviceConfig)
	case PortInterface:
		return port.OpenInterface(c.Name, &c.DeviceConfig)
	}
	return openTAP(c)
}

// openPort opens a port into to. n.mu is held.
func (n *Node) openPort(c *Port, to map[string]*device) error {
	o := n.down[c.Name]
	d, err := n.openAs(c, origin{existed: o.isDown() && o.from.existed && reflect.DeepEqual(o.cfg, *c)})
	if err == nil {
		d.from.home = n.here()
		to[c.Name] = d
	}
	return err
}

// openAs opens a port, from where its device came before.
func (n *Node) openAs(c *Port, from origin) (*device, error) {
	d, as := &device{cfg: *c, from: from}, *c
	as.Existing = from.existed && !c.Persistent || c.Owner != ""
	as.Down = c.Down || c.Owner != ""
	switch {
	case c.Type == PortVeth:
		as.Home = from.away()
	case c.Namespace == "":
		as.Namespace = from.away()
	}
	err := n.step("port", func() (err error) {
		if d.raw, err = n.open.device(&as); err != nil {
			return err
		}
		if d.port, err = n.capture.Port(d.raw); err != nil && c.Type != PortOwn {
			d.raw.Close()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("port %q: %w", c.Name, err)
	}
	x, ok := d.raw.(interface{ Existed() bool })
	d.from.existed = ok && x.Existed()
	return d, nil
}
