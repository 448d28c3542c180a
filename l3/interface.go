package l3

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gaissmai/bart"

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
	Addresses []netip.Prefix `json:"addresses,omitzero"` // its addresses with the prefix length of the segment, such as 10.1.0.1/24; none on an L3VNI

	MAC     frame.MAC `json:"mac,omitzero"`     // the gateway's MAC, required but on an IP port; on an L3VNI, the router's MAC
	VTEPMAC frame.MAC `json:"vtepMAC,omitzero"` // the VTEP's own MAC, the source of questions and of packets to neighbours behind tunnels; zero = MAC
	Anycast bool      `json:"anycast,omitzero"` // other VTEPs have the same addresses and MAC; VTEPMAC is required

	NoAsk bool `json:"noAsk,omitzero"` // never asks for neighbours: a control plane sets them, or they speak first

	RouterAdvertisements *RouterAdvertisements `json:"routerAdvertisements,omitzero"` // by which IPv6 hosts configure themselves; nil = none

	// Neighbours is the segment's ARP and ND; required with Addresses.
	Neighbours *arp.Responder `json:"-"`

	// Send sends a frame of the gateway's own, as VSI.Send does.
	Send func(to frame.Dest, f *frame.Frame) bool `json:"-"`

	// Notify, if not nil, gets events about next hops on the interface. It must not wait.
	Notify func(frame.Event) `json:"-"`

	// Port sends packets without an Ethernet header: a TUN, or a tunnel for IP, whose peers are
	// next hops. Such an interface has neither MAC nor neighbours, and its addresses are /32 or
	// /128.
	Port frame.Dest `json:"-"`

	// Tunnel is the tunnel behind Port, such as a vtep.VTEP; nil for a TUN.
	Tunnel Tunnel `json:"-"`
}

// A Tunnel carries IP packets to its peers.
type Tunnel interface {
	PeerName(peer uint16) string // "" for an unknown number
	Failed(peer uint16) bool     // reports once that peer is unreachable: the next sender gets an ICMP error
}

// An Interface is the gateway on one segment (IRB): the stage for the slot Gateway of its VSI.
// The switch hands it frames to MACs that the FDB has with Dest 0: set MAC and VTEPMAC there.
// Its PathMTU is the stage for the slot TooBig.
type Interface struct {
	cfg InterfaceConfig
	vrf *VRF

	neighbours *arp.Table // nil without
	unfollow   func()     // ends that changes of neighbours are told
	mac, own   uint64     // the MACs as numbers

	ip4 [4]byte  // its first address of each family; zero: none
	ip6 [16]byte // not link-local

	addrs []netip.Addr // all of its own

	in, out   atomic.Pointer[filter]
	filtering sync.Mutex // SetFilters

	// Under the lock of the gateway's queue.
	waiting map[netip.Addr]*waiting
	asking  shares.List[*waiting]
	rates   map[frame.Dest]rate
	closed  bool

	unresolved atomic.Uint64
	tick       atomic.Uint32 // of the last Housekeep
	advertiser advertiser    // of Housekeep
	hostMTU    atomic.Int32  // by SetHostMTU
	again      atomic.Bool   // advertise at once

	counts perworker.Set[counts]
}

// NewInterface adds an interface to the VRF, with routes for its addresses and prefixes and
// answers to ARP and ND. If it fails nothing changes.
func (v *VRF) NewInterface(cfg *InterfaceConfig) (*Interface, error) {
	if cfg == nil {
		cfg = new(InterfaceConfig) // Check says what is required
	}
	i := &Interface{cfg: *cfg, vrf: v, waiting: map[netip.Addr]*waiting{}, rates: map[frame.Dest]rate{}}
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("l3: VRF %s: %w", v.name, err)
	}
	i.cfg = i.Config()
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
	if !cfg.MAC.IsZero() && i.ip6 != [16]byte{} { // the sources of its questions
		i.addrs = append(slices.Clip(own), arp.LinkLocal(i.cfg.MAC), arp.LinkLocal(i.cfg.VTEPMAC))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.interfaces[cfg.VNI] != nil {
		return nil, fmt.Errorf("l3: VRF %s: InterfaceConfig.VNI: %d has an interface already", v.name, cfg.VNI)
	}
	for _, p := range cfg.Addresses {
		for _, own := range []netip.Prefix{p.Masked(), netip.PrefixFrom(p.Addr(), p.Addr().BitLen())} {
			if old, ok := v.routes.Load().Get(own); ok && old.self != nil && old.kind != blackhole && !p.Addr().IsLinkLocalUnicast() {
				return nil, fmt.Errorf("l3: VRF %s: InterfaceConfig.Addresses: %v is on VNI %d already", v.name, own, old.self.cfg.VNI)
			}
		}
	}
	if cfg.Neighbours != nil {
		g := &arp.Gateway{IPs: own, Prefixes: prefixes, MAC: cfg.MAC, VTEPMAC: i.cfg.VTEPMAC, Anycast: cfg.Anycast}
		if cfg.RouterAdvertisements != nil {
			g.Solicited = i.solicited
		}
		if err := cfg.Neighbours.SetGateway(g); err != nil {
			return nil, err
		}
		cfg.Neighbours.Table().Watch(i.asked, i.resolved)
		i.unfollow = cfg.Neighbours.Table().Follow(v.watchers.Tell)
	}
	v.interfaces[cfg.VNI] = i
	v.chooseErrorSource()
	v.publish(i.insertBuiltIn(v.routes.Load()))
	return i, nil
}

// insertBuiltIn adds the routes of the addresses to a table. An address may be inside another interface's prefix, even
// the first or last of it.
func (i *Interface) insertBuiltIn(t *bart.Table[*route]) *bart.Table[*route] {
	for _, p := range i.cfg.Addresses {
		for _, b := range i.builtIn(p) {
			if old, ok := t.Get(b.prefix); !ok || old.self == nil || old.kind == blackhole && b.route.kind != blackhole {
				i.vrf.drop(old)
				t = t.InsertPersist(b.prefix, b.route)
			}
		}
	}
	return t
}

// Check returns what is wrong with the settings, whatever else is in the VRF.
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
	if c.Port != 0 {
		if c.Neighbours != nil || !c.MAC.IsZero() || !c.VTEPMAC.IsZero() || c.Anycast || c.NoAsk {
			w.Wrong("Port", nil, "an IP port has neither neighbours nor MACs")
		}
	} else {
		if c.MAC.IsZero() {
			w.Wrong("MAC", nil, "required")
		} else if !c.MAC.IsHost() {
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
	if c.RouterAdvertisements != nil {
		c.RouterAdvertisements.check(w, c)
	}
	return w.Err()
}

var errNoHost = errors.New("is not valid on a network; must be the address of one host")

// hostIn returns why a cannot be the address of a host on the network p.
func hostIn(p netip.Prefix, a netip.Addr) error {
	switch err := hostaddr.In(p, a); {
	case err != nil:
		return err
	case a.Zone() != "":
		return errors.New("has a zone; must be the address alone")
	case !a.IsValid() || a.Is4In6() || a.Is4() && !hostaddr.Is4(a.As4()) || a.Is6() && !hostaddr.Is6(a.As16()):
		return errNoHost
	}
	return nil
}

type builtIn struct {
	prefix netip.Prefix
	route  *route
}

// builtIn returns the routes that an address brings: to itself, to its prefix, and blackholes for
// broadcasts to the prefix (RFC 2644).
func (i *Interface) builtIn(p netip.Prefix) (list []builtIn) {
	if p.Addr().IsLinkLocalUnicast() {
		return nil // not routed
	}
	neighbour := &nextHop{out: i}
	if !p.IsSingleIP() {
		list = append(list, builtIn{p.Masked(), &route{kind: connected, self: i, one: neighbour, paths: []path{{neighbour, 1}}}})
	}
	if last, ok := hostaddr.Broadcast(p); ok {
		for _, x := range []netip.Addr{p.Masked().Addr(), last} {
			list = append(list, builtIn{netip.PrefixFrom(x, 32), &route{kind: blackhole, self: i}})
		}
	}
	return append(list, builtIn{netip.PrefixFrom(p.Addr(), p.Addr().BitLen()), &route{kind: local, self: i}})
}

// Close removes the interface, the routes of its addresses, the next hops on it, and routes that
// have no other next hop. Hosts hear that they have lost their router, unless other VTEPs have the same gateway.
func (i *Interface) Close() error {
	if i.vrf.Interface(i.cfg.VNI) == i { // another may have followed it
		i.Retire()
	}
	return i.close(false)
}

// Hold is Close, except that packets to prefixes that only this interface led to are dropped,
// instead of following a shorter prefix, until another route is added or [VRF.Release] is
// called. Use it to replace an interface without sending packets astray.
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
	rest := map[*route]*route{} // of those that lead elsewhere too
	for p, r := range all.All() {
		left, ok := rest[r]
		if !ok {
			left = v.without(r, i)
			rest[r] = left
		}
		switch {
		case left == nil && hold:
			t = t.InsertPersist(p, &route{kind: blackhole, held: true})
			v.held = append(v.held, p)
		case left == nil:
			t = t.DeletePersist(p)
		case left != r:
			t = t.InsertPersist(p, left)
		}
	}
	for _, other := range v.interfaces { // this one may have had its network or broadcast address
		overlaps := func(p netip.Prefix) bool { return slices.ContainsFunc(i.cfg.Addresses, p.Overlaps) }
		if slices.ContainsFunc(other.cfg.Addresses, overlaps) {
			t = other.insertBuiltIn(t)
		}
	}
	v.publish(t)
	v.nextHops.close(i)
	if i.cfg.Neighbours != nil {
		i.cfg.Neighbours.Table().Watch(nil, nil)
		i.unfollow()
		i.cfg.Neighbours.SetGateway(nil)
	}
	i.drain()
	i.SetFilters(nil, nil)
	return nil
}

// MAC returns the gateway's MAC.
func (i *Interface) MAC() frame.MAC { return i.cfg.MAC }

// Config returns the settings, with their addresses and MACs, for instance for a control plane to advertise.
func (i *Interface) Config() InterfaceConfig {
	c := i.cfg
	c.Addresses = slices.Clone(c.Addresses)
	if c.RouterAdvertisements != nil {
		ra := *c.RouterAdvertisements
		ra.DNS = slices.Clone(ra.DNS)
		c.RouterAdvertisements = &ra
	}
	return c
}

// VNI returns the segment.
func (i *Interface) VNI() frame.VNI { return i.cfg.VNI }

// State tells the switch which next hops on the interface are dead: it implements vswitch.Stateful.
func (i *Interface) State(yield func(frame.Event) bool) {
	for _, h := range i.vrf.nextHops.dead(i) {
		if !yield(h.event(frame.EventNextHopDown)) {
			return
		}
	}
}

// VRFName returns the name of the interface's VRF: it implements vswitch.Router.
func (i *Interface) VRFName() string { return i.vrf.name }

// VRF returns the interface's VRF.
func (i *Interface) VRF() *VRF { return i.vrf }

// Process routes a packet to the gateway's MAC, or from an IP port.
//
// It returns frame.Reenter for a routed packet, whose segment f.VNI then names, or
// frame.Forward to an IP port; frame.Reply for one that it answers; frame.Consume for one that
// waits for its next hop or is answered in a new frame; and frame.Continue for frames to
// others, flooded ones among them.
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
		*f = f.Clone() // rare: readers leave room
	}
	x := packet{f: f, ip: ip, tick: at.Tick, worker: at.Worker}
	if kind == frame.IPv4 {
		return i.forward4(&x)
	}
	x.v6 = true
	return i.forward6(&x)
}
