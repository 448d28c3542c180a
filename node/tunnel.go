package node

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/underlay/afpacket"
	"github.com/vxswitch/vxswitch/vtep"
)

// A tunnel is a running Tunnel.
type tunnel struct {
	cfg   Tunnel
	v     *vtep.VTEP
	under []vtep.Underlay     // by locals
	sets  []underlay.TxConfig // that peers have had: each underlay has all, under the same numbers
	udp   *bfd.UDP            // for BFD beside IP-in-IP; nil without
	udpOn []netip.Addr        // its addresses, which may not be those of cfg after a step that failed

	failed error // of its port of the switch; the log says so
}

// A link is what else of a tunnel over packet sockets can change in place.
type link struct {
	mac               frame.MAC
	prefix, prefix6   netip.Prefix
	gateway, gateway6 netip.Addr
	shared            bool
}

func (t *Tunnel) link() link {
	return link{t.MAC, t.Prefix, t.Prefix6, t.Gateway, t.Gateway6, t.shared}
}

func (t *Tunnel) setLink(l link) {
	t.MAC, t.Prefix, t.Prefix6, t.Gateway, t.Gateway6, t.shared = l.mac, l.prefix, l.prefix6, l.gateway, l.gateway6, l.shared
}

// stays reports whether the open tunnel can change to c in place: only its local addresses, to ones not in use, its
// peer settings, and over packet sockets its link differ.
func (n *Node) stays(c *Tunnel) bool {
	t := n.tunnels[c.Name]
	if t == nil || t.cfg.Local.Is4() != c.Local.Is4() || t.cfg.Local6.IsValid() != c.Local6.IsValid() || !t.room(c) {
		return false
	}
	x := t.cfg
	x.Local, x.Local6, x.PeerSettings, x.BFD = c.Local, c.Local6, c.PeerSettings, c.BFD
	x.setLink(c.link())
	return x.same(c) && !slices.ContainsFunc(t.news(c), n.has)
}

// news returns the addresses of c that the tunnel does not have.
func (t *tunnel) news(c *Tunnel) []netip.AddrPort {
	return slices.DeleteFunc(c.ats(), func(a netip.AddrPort) bool { return slices.Contains(t.cfg.ats(), a) })
}

// same reports whether c has the same settings. It compares functions by their code.
func (t Tunnel) same(c *Tunnel) bool {
	other := *c
	if reflect.ValueOf(t.Control).Pointer() != reflect.ValueOf(other.Control).Pointer() {
		return false
	}
	t.Control, other.Control = nil, nil
	return reflect.DeepEqual(t, other)
}

// move changes an open tunnel to c in place.
func (n *Node) move(c *Tunnel) error {
	t := n.tunnels[c.Name]
	if !reflect.DeepEqual(t.cfg.BFD, c.BFD) || t.udp != nil || c.BFD != nil {
		if err := n.step("BFD of a tunnel", func() error { return n.setBFD(t, c) }); err != nil {
			return fmt.Errorf("tunnel %q: %w", c.Name, err)
		}
		t.cfg.BFD = c.BFD
	}
	own, same := []*netip.Addr{&t.cfg.Local, &t.cfg.Local6}, t.cfg.link() == c.link()
	if !same {
		t.cfg.MAC = frame.Broadcast // of no configuration, in case only one of two addresses moves
	}
	for i, to := range c.locals() {
		if *own[i] == to && same {
			continue
		}
		if err := n.step("address of a tunnel", func() error { return n.swap(t, i, c.on(to)) }); err != nil {
			return fmt.Errorf("tunnel %q: %w", c.Name, err)
		}
		*own[i] = to
	}
	t.cfg.setLink(c.link())
	if !reflect.DeepEqual(t.cfg.PeerSettings, c.PeerSettings) {
		if err := n.step("peers of a tunnel", func() error { return t.setPeers(c.PeerSettings) }); err != nil {
			return fmt.Errorf("tunnel %q: %w", c.Name, err)
		}
		t.cfg.PeerSettings = c.PeerSettings
	}
	return nil
}

// swap gives a tunnel another underlay i, set up as c.
func (n *Node) swap(t *tunnel, i int, c *Tunnel) error {
	u, err := n.listen(c)
	if err != nil {
		return err
	}
	for _, x := range t.sets {
		if _, err = sockets(u, x); err != nil {
			break
		}
	}
	if err == nil {
		err = t.v.SetUnderlay(n.capture.Tunnel(c.Name, u))
	}
	if err != nil {
		u.Close()
		return err
	}
	t.under[i] = u
	if _, err := t.v.FollowMTU(); err != nil { // that of the interface with the new address
		n.log.Warn("node: the MTU of a tunnel does not follow the underlay", "tunnel", c.Name, "err", err)
	}
	return nil
}

// has reports whether an open tunnel has an address.
func (n *Node) has(a netip.AddrPort) bool {
	for _, t := range n.tunnels {
		if slices.Contains(t.cfg.ats(), a) {
			return true
		}
	}
	return false
}

// ats returns the addresses of a tunnel with its port.
func (t *Tunnel) ats() (list []netip.AddrPort) {
	for _, a := range t.locals() {
		list = append(list, netip.AddrPortFrom(a, t.port()))
	}
	return list
}

// closeTunnel detaches a tunnel everywhere and closes it.
func (n *Node) closeTunnel(name string) {
	for _, s := range n.segments {
		if s.tunnels[name] != nil {
			s.detachTunnel(name)
		}
	}
	if t := n.tunnels[name]; t != nil {
		n.prober.closing(t)
		t.close()
		delete(n.tunnels, name)
	}
}

func (t *tunnel) close() error {
	if t.udp != nil {
		t.udp.Close()
	}
	return t.v.Close()
}

func listen(c *Tunnel) (vtep.Underlay, error) {
	switch {
	case c.Underlay == UnderlayPacket:
		cfg := convert[afpacket.Config](c)
		if cfg.Shared = c.shared; c.Type == encap.TypeIPIP {
			return afpacket.ListenIP(c.Local, cfg)
		}
		return afpacket.Listen(c.AddrPort(), cfg)
	case c.Type == encap.TypeIPIP:
		return underlay.ListenIP(c.Local, convert[underlay.IPConfig](c))
	}
	return underlay.ListenUDP(c.AddrPort(), &c.UDPConfig)
}

// openTunnel opens a tunnel into to.
func (n *Node) openTunnel(c *Tunnel, to map[string]*tunnel) error {
	t := &tunnel{cfg: *c}
	err := n.step("tunnel", func() (err error) {
		var captured []vtep.Underlay
		for _, a := range c.locals() {
			u, err := n.listen(c.on(a))
			if err != nil {
				t.shut()
				return err
			}
			t.under, captured = append(t.under, u), append(captured, n.capture.Tunnel(c.Name, u))
		}
		if t.v, err = vtep.New(&c.Config, captured...); err != nil {
			t.shut()
			return err
		}
		if err = t.setPeers(c.PeerSettings); err == nil {
			err = n.setBFD(t, c)
		}
		if err != nil {
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

// listen opens an underlay. The program's function may return nil without an error.
func (n *Node) listen(c *Tunnel) (vtep.Underlay, error) {
	u, err := n.open.underlay(c)
	if err == nil && absent.Is(u) {
		err = fmt.Errorf("the underlay is a %T that is nil", u)
	}
	return u, err
}

// shut closes the underlays of a tunnel that was not opened completely.
func (t *tunnel) shut() {
	for _, u := range t.under {
		u.Close()
	}
}

// try tests whether the addresses that a tunnel moves to can be opened.
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

// room reports whether the underlays have room for the transmit sockets of c's peers. Sockets stay open until the tunnel
// is closed.
func (t *tunnel) room(c *Tunnel) bool {
	n := len(t.sets)
	for _, x := range c.PeerSettings {
		if x.TxConfig != (underlay.TxConfig{}) && !slices.Contains(t.sets, x.TxConfig) {
			n++
		}
	}
	return n < underlay.MaxSets
}

// sockets returns the number of a set of transmit sockets of an underlay, which it opens if it is new.
func sockets(u vtep.Underlay, x underlay.TxConfig) (uint8, error) {
	if s, ok := u.(interface {
		Sockets(underlay.TxConfig) (uint8, error)
	}); ok {
		return s.Sockets(x)
	}
	return 0, fmt.Errorf("the underlay has one set of transmit sockets: %w", errors.ErrUnsupported)
}

// setPeers sets the settings of single peers.
func (t *tunnel) setPeers(list []PeerSetting) error {
	peers := make([]vtep.PeerConfig, len(list))
	for i, x := range list {
		peers[i] = x.PeerConfig
		if x.TxConfig == (underlay.TxConfig{}) {
			continue
		}
		for _, u := range t.under {
			var err error
			if peers[i].Sockets, err = sockets(u, x.TxConfig); err != nil {
				return fmt.Errorf("peer %v: %w", x.Address, err)
			}
		}
		if !slices.Contains(t.sets, x.TxConfig) {
			t.sets = append(t.sets, x.TxConfig)
		}
	}
	return t.v.SetPeers(peers)
}
