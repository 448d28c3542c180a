package l3

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/internal/perworker"
	"github.com/vxswitch/vxswitch/internal/shares"
	"github.com/vxswitch/vxswitch/internal/wire"
	"github.com/vxswitch/vxswitch/setting"
)

// InterfaceConfig holds the settings of an [Interface].
type InterfaceConfig struct {
	VNI       frame.VNI      `json:"-"`                  // the segment
	Addresses []netip.Prefix `json:"addresses,omitzero"` // its addresses, such as 10.1.0.1/24, with the length of the segment's prefix; none on an L3VNI

	MAC     frame.MAC `json:"mac,omitzero"`     // what hosts know the gateway by, needed where there is Ethernet; on an L3VNI, the router's MAC
	VTEPMAC frame.MAC `json:"vtepMAC,omitzero"` // the VTEP's own: what questions are asked with, and packets for neighbours behind tunnels are from; zero = MAC
	Anycast bool      `json:"anycast,omitzero"` // other VTEPs have the same addresses and MAC; VTEPMAC is needed then

	// Neighbours is the segment's ARP and ND; needed with Addresses.
	Neighbours *arp.Responder `json:"-"`

	// Send has the switch send a frame that the gateway has made: VSI.Send.
	Send func(to frame.Dest, f *frame.Frame) bool `json:"-"`

	// Port is what packets leave through without an Ethernet header: a TUN, or a tunnel for
	// IP, whose peers are next hops. It has neither MAC nor neighbours; its addresses are the
	// gateway's alone, without a prefix of hosts around them.
	Port frame.Dest `json:"-"`

	// Tunnel is what Port is, where that is a tunnel for IP: a vtep.VTEP.
	Tunnel Tunnel `json:"-"`
}

// A Tunnel carries IP packets to its peers.
type Tunnel interface {
	PeerName(peer uint16) string // "" for a number that is none
	Failed(peer uint16) bool     // the next sender is to be told that peer is not reached
}

// An Interface is the gateway on one segment (IRB): the stage for the slot Gateway of its
// VSI. The switch hands it frames whose destination MAC the FDB has with Dest 0: MAC and
// VTEPMAC have to be set there. Its PathMTU is for the slot of that name.
type Interface struct {
	cfg InterfaceConfig
	vrf *VRF

	neighbours *arp.Table // nil without
	mac, own   uint64     // the MACs as numbers

	ip4 [4]byte  // its first address of each family; zero: none
	ip6 [16]byte // not link-local

	addrs []netip.Addr // all of its own

	// Of the gateway's lot, under its lock.
	waiting map[netip.Addr]*waiting
	asking  shares.List[*waiting]
	rates   map[frame.Dest]rate
	closed  bool

	unresolved atomic.Uint64

	counts perworker.Set[counts]
}

// NewInterface adds an interface to the VRF: routes for its addresses and prefixes, answers
// to ARP and ND for them. Nothing is changed when it fails.
func (v *VRF) NewInterface(cfg InterfaceConfig) (*Interface, error) {
	i := &Interface{cfg: cfg, vrf: v, waiting: map[netip.Addr]*waiting{}, rates: map[frame.Dest]rate{}}
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("l3: VRF %s: %w", v.name, err)
	}
	i.cfg.Addresses = slices.Clone(cfg.Addresses)
	if cfg.Neighbours != nil {
		i.neighbours = cfg.Neighbours.Table()
	}
	if i.cfg.VTEPMAC.IsZero() {
		i.cfg.VTEPMAC = cfg.MAC
	}
	i.mac, i.own = i.cfg.MAC.Uint64(), i.cfg.VTEPMAC.Uint64()
	var prefixes []netip.Prefix
	for _, p := range cfg.Addresses {
		i.addrs = append(i.addrs, p.Addr())
		if !p.Addr().IsLinkLocalUnicast() {
			prefixes = append(prefixes, p)
		}
		switch a := p.Addr(); {
		case a.Is4() && i.ip4 == [4]byte{}:
			i.ip4 = a.As4()
		case a.Is6() && i.ip6 == [16]byte{} && !a.IsLinkLocalUnicast():
			i.ip6 = a.As16()
		}
	}
	own := i.addrs
	if !cfg.MAC.IsZero() && i.ip6 != [16]byte{} { // what it asks from, too
		i.addrs = append(slices.Clip(own), arp.LinkLocal(i.cfg.MAC), arp.LinkLocal(i.cfg.VTEPMAC))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.interfaces[cfg.VNI] != nil {
		return nil, fmt.Errorf("l3: VRF %s: InterfaceConfig.VNI: %d has an interface", v.name, cfg.VNI)
	}
	for _, p := range cfg.Addresses {
		if old, ok := v.routes.Load().Get(p.Masked()); ok && old.self != nil && !p.Addr().IsLinkLocalUnicast() {
			return nil, fmt.Errorf("l3: VRF %s: InterfaceConfig.Addresses: %v is on VNI %d", v.name, p.Masked(), old.self.cfg.VNI)
		}
	}
	if cfg.Neighbours != nil {
		if err := cfg.Neighbours.SetGateway(&arp.Gateway{IPs: own, Prefixes: prefixes, MAC: cfg.MAC, VTEPMAC: i.cfg.VTEPMAC, Anycast: cfg.Anycast}); err != nil {
			return nil, err
		}
		cfg.Neighbours.Table().Watch(i.asked, i.resolved)
	}
	v.interfaces[cfg.VNI] = i
	v.chooseErrorSource()
	t := v.routes.Load()
	for _, p := range cfg.Addresses {
		for _, b := range i.builtIn(p) {
			t = t.InsertPersist(b.prefix, b.route)
		}
	}
	v.routes.Store(t)
	return i, nil
}

// Check returns what [VRF.NewInterface] refuses, whatever else is in the VRF.
func (c *InterfaceConfig) Check() error {
	w := setting.Of("InterfaceConfig")
	if !c.VNI.Valid() {
		w.Want("VNI", c.VNI, "0 to %d", frame.MaxVNI)
	}
	if c.Tunnel != nil && absent.Is(c.Tunnel) {
		w.Wrong("Tunnel", nil, "contains a nil %T", c.Tunnel)
	} else if c.Tunnel != nil && c.Port == 0 {
		w.Wrong("Tunnel", nil, "requires Port")
	}
	if c.Send == nil {
		w.Wrong("Send", nil, "required")
	}
	switch {
	case c.Port != 0:
		if c.Neighbours != nil || !c.MAC.IsZero() || !c.VTEPMAC.IsZero() || c.Anycast {
			w.Wrong("Port", nil, "an IP port has neither neighbours nor MACs")
		}
	default:
		if !c.MAC.IsHost() {
			w.Want("MAC", c.MAC, "the MAC of one host")
		}
		if c.VTEPMAC.IsGroup() {
			w.Want("VTEPMAC", c.VTEPMAC, "the MAC of one host")
		} else if c.Anycast && (c.VTEPMAC.IsZero() || c.VTEPMAC == c.MAC) {
			w.Wrong("VTEPMAC", nil, "required for an anycast gateway, and different from MAC")
		}
		if len(c.Addresses) > 0 && c.Neighbours == nil {
			w.Wrong("Neighbours", nil, "required with Addresses")
		}
	}
	for i, p := range c.Addresses {
		field := fmt.Sprintf("Addresses[%d]", i)
		if !p.IsValid() {
			w.Wrong(field, nil, "an address with a prefix length is required")
		} else if c.Port != 0 && !p.IsSingleIP() {
			w.Want(field, p, "a /32 or /128 on an IP port")
		} else if err := hostIn(p, p.Addr()); err != nil {
			w.Wrong(field, p, "%v", err)
		}
	}
	return w.Err()
}

var errNoHost = errors.New("is no address of a host on a network; allowed are addresses of hosts, with the length of their prefix")

// hostIn says why a is not the address of a host that may be on the network p.
func hostIn(p netip.Prefix, a netip.Addr) error {
	switch err := hostaddr.In(p, a); {
	case err != nil:
		return err
	case !p.IsValid() || a.Is4In6() || a.Zone() != "" || a.Is4() && !hostaddr.Is4(a.As4()) || a.Is6() && !hostaddr.Is6(a.As16()):
		return errNoHost
	}
	return nil
}

type builtIn struct {
	prefix netip.Prefix
	route  *route
}

// builtIn returns the routes that go with an address: itself, its prefix, and what
// broadcasts to the prefix go to (RFC 2644: not routed).
func (i *Interface) builtIn(p netip.Prefix) (list []builtIn) {
	if p.Addr().IsLinkLocalUnicast() {
		return nil // not routed
	}
	hops := []nextHop{{out: i}}
	if !p.IsSingleIP() {
		list = append(list, builtIn{p.Masked(), &route{kind: connected, self: i, nextHops: hops}})
	}
	if last, ok := hostaddr.Broadcast(p); ok {
		for _, x := range []netip.Addr{p.Masked().Addr(), last} {
			list = append(list, builtIn{netip.PrefixFrom(x, 32), &route{kind: blackhole, self: i}})
		}
	}
	return append(list, builtIn{netip.PrefixFrom(p.Addr(), p.Addr().BitLen()), &route{kind: local, self: i}})
}

// Close removes the interface, the routes of its addresses, and the next hops that are on
// it; routes that have no other go with them.
func (i *Interface) Close() error { return i.close(false) }

// Hold is Close, but for packets to the prefixes that the interface was the only way to: they are
// dropped, instead of going where a shorter prefix leads, until there is another route or
// [VRF.Release] is called. So who puts another interface in its place sends nothing astray.
func (i *Interface) Hold() error { return i.close(true) }

func (i *Interface) close(hold bool) error {
	v := i.vrf
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.interfaces[i.cfg.VNI] != i {
		return nil
	}
	delete(v.interfaces, i.cfg.VNI)
	v.chooseErrorSource()
	all := v.routes.Load()
	t := all
	for p, r := range all.All() {
		switch left := r.without(i); {
		case left == nil && hold:
			t = t.InsertPersist(p, &route{kind: blackhole, held: true})
			v.held = append(v.held, p)
		case left == nil:
			t = t.DeletePersist(p)
		case left != r:
			t = t.InsertPersist(p, left)
		}
	}
	v.routes.Store(t)
	if i.cfg.Neighbours != nil {
		i.cfg.Neighbours.Table().Watch(nil, nil)
		i.cfg.Neighbours.SetGateway(nil)
	}
	i.drain()
	return nil
}

// MAC returns what hosts know the gateway by.
func (i *Interface) MAC() frame.MAC { return i.cfg.MAC }

// VNI returns the segment.
func (i *Interface) VNI() frame.VNI { return i.cfg.VNI }

// VRF returns the VRF it is of.
func (i *Interface) VRF() *VRF { return i.vrf }

// Process routes a packet that is for the gateway's MAC, or came in on an IP port.
//
// What goes on is frame.Reenter, in the segment that f.VNI says from then on, or
// frame.Forward to an IP port. What the gateway answers is frame.Reply; what waits for its
// next hop, or is answered otherwise, frame.Consume. Frames that are for others, flooded
// ones among them, are frame.Continue, and are not routed.
func (i *Interface) Process(f *frame.Frame, at frame.At) frame.Verdict {
	ip := 0
	kind := f.Kind
	if kind == frame.Ethernet {
		e, ok := wire.ParseEthernet(f.Bytes())
		if !ok {
			return frame.Drop(frame.Short)
		}
		if m := binary.BigEndian.Uint64(e) >> 16; m != i.mac && m != i.own {
			return frame.Continue
		}
		ip = wire.EthernetLen
		switch e.Type() {
		case wire.TypeIPv4:
			kind = frame.IPv4
		case wire.TypeIPv6:
			kind = frame.IPv6
		default:
			return frame.Drop(frame.NoRoute)
		}
	} else if f.Headroom() < wire.EthernetLen {
		*f = f.Clone() // readers leave room, or nearly always
	}
	if kind == frame.IPv4 {
		return i.forward4(f, at, ip)
	}
	return i.forward6(f, at, ip)
}
