package node

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// A tunnel is a Tunnel as it runs.
type tunnel struct {
	cfg   Tunnel
	v     *vtep.VTEP
	under []port.Underlay            // by locals
	sets  map[underlay.TxConfig]bool // that peers have had
}

// A device is a Port as it runs.
type device struct {
	cfg  Port
	raw  port.Port    // as it was opened
	port vswitch.Port // the same, as the switch has it
	used bool         // it has been attached
}

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

// is reports whether c has the same settings. The program's own ports have none, only what is said
// of them.
func (d *device) is(c *Port) bool {
	return d.cfg.Type == PortOwn && c.Type == PortOwn || reflect.DeepEqual(d.cfg, *c)
}

// elsewhere reports whether c is for another network namespace, where d is not in its way.
func (d *device) elsewhere(c *Port) bool {
	if d.cfg.Namespace == c.Namespace {
		return false
	}
	was, err := os.Stat(namespace(d.cfg.Namespace))
	is, failed := os.Stat(namespace(c.Namespace))
	return err != nil || failed != nil || !os.SameFile(was, is)
}

// namespace returns the file of a network namespace as ports name it.
func namespace(name string) string {
	switch {
	case name == "":
		return "/proc/thread-self/ns/net"
	case !strings.Contains(name, "/"):
		return "/run/netns/" + name
	}
	return name
}

// stays reports whether the open tunnel of its name becomes c without being made anew: they
// differ in nothing but local addresses, which nobody has, and settings of peers.
func (n *Node) stays(c *Tunnel) bool {
	t := n.tunnels[c.Name]
	if t == nil || t.cfg.Local.Is4() != c.Local.Is4() || t.cfg.Local6.IsValid() != c.Local6.IsValid() || !t.room(c) {
		return false
	}
	x := t.cfg
	x.Local, x.Local6, x.PeerSettings = c.Local, c.Local6, c.PeerSettings
	return x.same(c) && !slices.ContainsFunc(t.news(c), n.has)
}

// news returns the addresses of c that the tunnel has not.
func (t *tunnel) news(c *Tunnel) []netip.AddrPort {
	return slices.DeleteFunc(c.ats(), func(a netip.AddrPort) bool { return slices.Contains(t.cfg.ats(), a) })
}

// same reports whether c has the same settings. Functions are the same if their code is.
func (t Tunnel) same(c *Tunnel) bool {
	other := *c
	if reflect.ValueOf(t.Control).Pointer() != reflect.ValueOf(other.Control).Pointer() {
		return false
	}
	t.Control, other.Control = nil, nil
	return reflect.DeepEqual(t, other)
}

// move makes an open tunnel that stays what c says.
func (n *Node) move(c *Tunnel) error {
	t := n.tunnels[c.Name]
	own := []*netip.Addr{&t.cfg.Local, &t.cfg.Local6}
	for i, to := range c.locals() {
		if *own[i] == to {
			continue
		}
		if err := n.step("address of a tunnel", func() error { return t.v.SetLocal(to) }); err != nil {
			return fmt.Errorf("tunnel %q: %w", c.Name, err)
		}
		*own[i] = to
	}
	if !reflect.DeepEqual(t.cfg.PeerSettings, c.PeerSettings) {
		if err := n.step("peers of a tunnel", func() error { return t.setPeers(c.PeerSettings) }); err != nil {
			return fmt.Errorf("tunnel %q: %w", c.Name, err)
		}
		t.cfg.PeerSettings = c.PeerSettings
	}
	return nil
}

// has reports whether a tunnel that is open has an address.
func (n *Node) has(a netip.AddrPort) bool {
	for _, t := range n.tunnels {
		if slices.Contains(t.cfg.ats(), a) {
			return true
		}
	}
	return false
}

// ats returns what a tunnel has for itself, with each of its addresses.
func (t *Tunnel) ats() (list []netip.AddrPort) {
	for _, a := range t.locals() {
		list = append(list, netip.AddrPortFrom(a, t.port()))
	}
	return list
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

// closeTunnel takes a tunnel out of every segment and closes it.
func (n *Node) closeTunnel(name string) {
	for _, s := range n.segments {
		if s.far[name] != nil {
			s.detach(s.far, name)
		}
	}
	if t := n.tunnels[name]; t != nil {
		t.v.Close()
		delete(n.tunnels, name)
	}
}

// closePort takes a port out of every segment and closes it. One of the program's that was never
// attached is still the program's.
func (n *Node) closePort(name string) {
	for _, s := range n.segments {
		if s.members[name] != nil {
			s.detachMember(name)
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

// lacks returns an error if cfg has ports of the program that it has not given, or that it would
// have to give again.
func (n *Node) lacks(cfg *Config) error {
	had, wants := index(n.cfg).ports, index(cfg).segments
	for _, p := range cfg.Ports {
		if p.Type != PortOwn {
			continue
		}
		if was := had[p.Name]; n.own[p.Name] == nil && (was == nil || was.Type != PortOwn) {
			return fmt.Errorf("port %q: the program has none of that name", p.Name)
		}
		if n.closes(p.Name, wants) {
			return fmt.Errorf("port %q: it cannot be paused, and is closed if it has not one place in common with those that it has now; Remove it, and Add another one", p.Name)
		}
	}
	return nil
}

// closes reports whether the switch closes a port on the way to segments: one that is no Pauser, when it
// leaves the last place that it has now.
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
		a := s.members[name]
		if a == nil {
			continue
		}
		member = true
		if c := wants[vni]; c != nil && c.Refuse == s.vsi.Config().Refuse {
			if m := c.member(name); m != nil && m.VLAN == int(a.Tag()) {
				return false
			}
		}
	}
	return member
}

// gone reports whether a port is one of the program's that has failed: it cannot be opened again.
func (n *Node) gone(c *Port) bool { return c.Type == PortOwn && n.own[c.Name] == nil }

// fit sets the MTU of TAPs and TUNs that have none of their own to what fits the tunnels they
// are in segments with. Where that cannot be, senders are told of it by packet.
func (n *Node) fit() {
	for name, d := range n.ports {
		x, ok := d.raw.(interface{ Fit(int) error })
		if !ok {
			continue
		}
		fits := 0
		for i := range n.cfg.Segments {
			c := &n.cfg.Segments[i]
			if c.member(name) == nil {
				continue
			}
			for _, in := range c.in() {
				if t := n.tunnels[in.Tunnel]; t != nil && (fits == 0 || c.Fits(t.v) < fits) {
					fits = c.Fits(t.v)
				}
			}
		}
		if fits == 0 {
			continue
		}
		if err := x.Fit(fits); err != nil {
			n.log.Warn("the MTU of a port is not what fits its tunnels", "port", name, "err", err)
		}
	}
}

// Fits returns the length of the longest frame on a port that fits a tunnel of the segment.
func (c *Segment) Fits(t *vtep.VTEP) int {
	if c.InnerVLAN == vswitch.VLANPass {
		return t.MTU(0) - encap.VLANTagLen // a VLAN device on top has the same MTU
	}
	return t.MTU(0)
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
	underlay func(*Tunnel) (port.Underlay, error)
	device   func(*Port) (port.Port, error)
}

func listen(c *Tunnel) (port.Underlay, error) {
	switch {
	case c.Type == encap.TypeIPIP:
		return underlay.ListenIP(c.Local, convert[underlay.IPConfig](c))
	case c.Underlay == UnderlayPacket:
		return underlay.ListenPacket(c.AddrPort(), convert[underlay.PacketConfig](c))
	}
	return underlay.ListenUDP(c.AddrPort(), &c.UDPConfig)
}

func (n *Node) openDevice(c *Port) (port.Port, error) {
	switch c.Type {
	case PortOwn:
		return n.own[c.Name], nil
	case PortTUN:
		return port.OpenTUN(c.Name, &c.DeviceConfig)
	case PortPacket:
		return port.OpenPacket(c.Name, convert[port.PacketConfig](c))
	}
	return port.OpenTAP(c.Name, &c.DeviceConfig)
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

// openTunnel opens a tunnel, and puts it in to.
func (n *Node) openTunnel(c *Tunnel, to map[string]*tunnel) error {
	t := &tunnel{cfg: *c, sets: map[underlay.TxConfig]bool{}}
	err := n.step("tunnel", func() (err error) {
		var captured []vtep.Underlay
		for _, a := range c.locals() {
			u, err := n.listen(c.on(a))
			if err != nil {
				t.shut()
				return err
			}
			t.under, captured = append(t.under, u), append(captured, n.capture.Underlay(u))
		}
		if t.v, err = vtep.New(&c.Config, captured...); err != nil {
			t.shut()
			return err
		}
		if err = t.setPeers(c.PeerSettings); err != nil {
			t.v.Close()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("tunnel %q: %w", c.Name, err)
	}
	to[c.Name] = t
	return nil
}

// listen opens an underlay, which a program's function may say it has done and return none.
func (n *Node) listen(c *Tunnel) (port.Underlay, error) {
	u, err := n.open.underlay(c)
	if err == nil && absent.Is(u) {
		err = fmt.Errorf("the underlay is a %T that is nil", u)
	}
	return u, err
}

// shut closes the underlays of what has not become a tunnel.
func (t *tunnel) shut() {
	for _, u := range t.under {
		u.Close()
	}
}

// try opens the addresses that a tunnel is to move to, and closes them again.
func (n *Node) try(c *Tunnel) error {
	for _, a := range n.tunnels[c.Name].news(c) {
		err := n.step("tunnel", func() error {
			u, err := n.listen(c.on(a.Addr()))
			if err == nil {
				err = u.Close()
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("tunnel %q: %w", c.Name, err)
		}
	}
	return nil
}

// room reports whether the tunnel's underlays have room for the transmit sockets of c's peers:
// those that were made stay until the end.
func (t *tunnel) room(c *Tunnel) bool {
	n := len(t.sets)
	for _, x := range c.PeerSettings {
		if x.TxConfig != (underlay.TxConfig{}) && !t.sets[x.TxConfig] {
			n++
		}
	}
	return n < underlay.MaxSets
}

// A transmitter is an underlay that has transmit sockets with settings of their own.
type transmitter interface {
	Sockets(underlay.TxConfig) (uint8, error)
}

// setPeers sets what is different towards single peers.
func (t *tunnel) setPeers(list []PeerSetting) error {
	peers := make([]vtep.PeerConfig, len(list))
	for i, x := range list {
		peers[i] = x.PeerConfig
		if x.TxConfig == (underlay.TxConfig{}) {
			continue
		}
		u := any(t.under[0])
		if x.Address.Is4() != t.cfg.Local.Is4() {
			u = t.under[1]
		}
		s, ok := u.(transmitter)
		for w, wraps := u.(interface{ Unwrap() any }); !ok && wraps; w, wraps = u.(interface{ Unwrap() any }) {
			u = w.Unwrap()
			s, ok = u.(transmitter)
		}
		if !ok {
			return fmt.Errorf("peer %v: the underlay has one set of transmit sockets: %w", x.Address, errors.ErrUnsupported)
		}
		var err error
		if peers[i].Set, err = s.Sockets(x.TxConfig); err != nil {
			return fmt.Errorf("peer %v: %w", x.Address, err)
		}
		t.sets[x.TxConfig] = true
	}
	return t.v.SetPeers(peers)
}

// openPort opens a port, and puts it in to.
func (n *Node) openPort(c *Port, to map[string]*device) error {
	d := &device{cfg: *c}
	err := n.step("port", func() (err error) {
		if d.raw, err = n.open.device(c); err != nil {
			return err
		}
		if d.port, err = n.capture.Port(d.raw); err != nil && c.Type != PortOwn {
			d.raw.Close()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("port %q: %w", c.Name, err)
	}
	to[c.Name] = d
	return nil
}
