package l3

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/internal/neighbour"
	"github.com/vxswitch/vxswitch/internal/wire"
	"github.com/vxswitch/vxswitch/setting"
)

// RouterAdvertisements holds the settings of router advertisements (RFC 4861, section 6.2), from which IPv6 hosts learn that the
// gateway is their router, and the interface's networks. From a /64 they make addresses of their own (RFC 4862). An anycast gateway
// sends them to local ports only: every VTEP has one.
type RouterAdvertisements struct {
	Interval  time.Duration `json:"interval,omitzero"`  // longest time between two that nobody has asked for, 4s to 30m; default 10m
	Lifetime  time.Duration `json:"lifetime,omitzero"`  // for which hosts keep the gateway as router, Interval to 2h30m; default three intervals
	NoDefault bool          `json:"noDefault,omitzero"` // hosts learn the networks only, and no router

	MTU         int          `json:"mtu,omitzero"`         // MTU of the hosts, 1280 to 65535; default what fits the tunnels of the segment, where a node knows them
	DNS         []netip.Addr `json:"dns,omitzero"`         // IPv6 addresses of DNS servers (RFC 8106)
	Managed     bool         `json:"managed,omitzero"`     // hosts get addresses by DHCPv6 (flag M)
	OtherConfig bool         `json:"otherConfig,omitzero"` // hosts get other settings by DHCPv6 (flag O)
}

// Limits and times of RFC 4861, sections 6.2.1 and 10, and RFC 8106.
const (
	minAdvertise      = 4 * time.Second
	maxAdvertise      = 30 * time.Minute
	defaultAdvertise  = 10 * time.Minute
	maxRouterLifetime = 9000 * time.Second

	firstAdvertisements = 3 // come soon, for those who wait
	firstInterval       = 16 * time.Second

	validLifetime     = 30 * 24 * 3600 // seconds
	preferredLifetime = 7 * 24 * 3600

	minInterval = 3 * time.Second // between two to all hosts
)

// MinHostMTU is the smallest MTU of IPv6 (RFC 8200, section 5).
const MinHostMTU = 1280

func (c *RouterAdvertisements) interval() time.Duration { return cmp.Or(c.Interval, defaultAdvertise) }

func (c *RouterAdvertisements) lifetime() time.Duration {
	return cmp.Or(c.Lifetime, min(3*c.interval(), maxRouterLifetime))
}

// check adds what is wrong to w.
func (c *RouterAdvertisements) check(w *setting.Check, in *InterfaceConfig) {
	const at = "RouterAdvertisements"
	switch {
	case in.Port != 0:
		w.Wrong(at, nil, "an IP port has no hosts that could hear them")
	case len(in.networks6()) == 0:
		w.Wrong(at, nil, "requires an IPv6 network among the addresses, such as 2001:db8::1/64")
	}
	if c.Interval != 0 && (c.Interval < minAdvertise || c.Interval > maxAdvertise) {
		w.Want(at+".Interval", c.Interval, "%v to %v, or 0 for %v", minAdvertise, maxAdvertise, defaultAdvertise)
	} else if c.Lifetime != 0 && (c.Lifetime < c.interval() || c.Lifetime > maxRouterLifetime) {
		w.Want(at+".Lifetime", c.Lifetime, "%v to %v, or 0 for %v", c.interval(), maxRouterLifetime, min(3*c.interval(), maxRouterLifetime))
	}
	if c.MTU != 0 && (c.MTU < MinHostMTU || c.MTU > 65535) {
		w.Want(at+".MTU", c.MTU, "%d to 65535, or 0", MinHostMTU)
	}
	if n := c.size(in); n > MinHostMTU {
		w.Wrong(at, nil, "takes %d bytes with %d networks and %d DNS servers; at most %d fit every link", n, len(in.networks6()), len(c.DNS), MinHostMTU)
	}
	for i, a := range c.DNS {
		if !a.Is6() || a.Zone() != "" || !hostaddr.Is6(a.As16()) {
			w.Want(fmt.Sprintf("%s.DNS[%d]", at, i), a, "the IPv6 address of one host, without a zone")
		}
	}
}

// size returns the length of the IP packet of an advertisement with an MTU.
func (c *RouterAdvertisements) size(in *InterfaceConfig) int {
	n := wire.IPv6Len + 16 + 8 + 8 + 32*len(in.networks6())
	if len(c.DNS) > 0 {
		n += 8 + 16*len(c.DNS)
	}
	return n
}

// networks6 returns the IPv6 networks of the addresses, without duplicates.
func (c *InterfaceConfig) networks6() (list []netip.Prefix) {
	seen := map[netip.Prefix]bool{}
	for _, p := range c.Addresses {
		if n := p.Masked(); p.Addr().Is6() && !p.IsSingleIP() && !p.Addr().IsLinkLocalUnicast() && !seen[n] {
			seen[n] = true
			list = append(list, n)
		}
	}
	return list
}

// advertisement returns a router advertisement in a frame to all nodes. A router that ends has lifetime 0.
func (i *Interface) advertisement(ends bool) []byte {
	c, ra := &i.cfg, i.cfg.RouterAdvertisements
	lifetime := uint32(0)
	if !ra.NoDefault && !ends {
		lifetime = uint32(ra.lifetime() / time.Second)
	}
	m := []byte{wire.RouterAdvertisement, 0, 0, 0, defaultHopLimit, 0}
	if ra.Managed {
		m[5] |= 0x80
	}
	if ra.OtherConfig {
		m[5] |= 0x40
	}
	m = binary.BigEndian.AppendUint16(m, uint16(lifetime))
	m = append(m, 0, 0, 0, 0, 0, 0, 0, 0) // reachable time and retransmission timer: hosts keep theirs
	m = append(append(m, wire.SourceLinkLayer, 1), c.MAC[:]...)
	if mtu := cmp.Or(uint32(ra.MTU), uint32(i.hostMTU.Load())); mtu != 0 {
		m = binary.BigEndian.AppendUint32(append(m, optionMTU, 1, 0, 0), mtu)
	}
	for _, p := range c.networks6() {
		flags := byte(0x80) // on-link
		if p.Bits() == 64 {
			flags |= 0x40 // addresses are made of it
		}
		m = append(m, optionPrefix, 4, byte(p.Bits()), flags)
		m = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(m, validLifetime), preferredLifetime)
		m = append(append(m, 0, 0, 0, 0), p.Addr().AsSlice()...)
	}
	if len(ra.DNS) > 0 {
		m = binary.BigEndian.AppendUint32(append(m, optionDNS, byte(1+2*len(ra.DNS)), 0, 0), uint32(ra.lifetime()/time.Second))
		for _, a := range ra.DNS {
			m = append(m, a.AsSlice()...)
		}
	}
	return neighbour.ToAllNodes(m, arp.LinkLocal(c.MAC), c.MAC)
}

const (
	optionPrefix    = 3
	optionMTU       = 5
	optionDNS       = 25
	defaultHopLimit = 64
)

// advertiser sends an interface's router advertisements.
type advertiser struct {
	sent int        // without being asked
	next frame.Tick // when the next one is due; 0: at once
}

// due reports whether an advertisement is due, and sets the time of the next one: between a third of the interval, but at least
// minInterval, and all of it.
func (a *advertiser) due(now frame.Tick, c *RouterAdvertisements) bool {
	if a.next != 0 && int32(now-a.next) < 0 {
		return false
	}
	longest := c.interval()
	if a.sent++; a.sent < firstAdvertisements {
		longest = min(longest, firstInterval)
	}
	least := max(longest/3, minInterval)
	a.next = now + frame.Tick((least+rand.N(longest-least))/time.Second)
	return true
}

// SetHostMTU sets what is advertised as MTU if the settings do not say it; 0 is none. Hosts hear of a change within a second.
func (i *Interface) SetHostMTU(mtu int) {
	if i.hostMTU.Swap(int32(mtu)) != int32(mtu) {
		i.again.Store(true)
	}
}

// Retire tells hosts that the gateway is their router no longer, if it advertises itself and no other VTEP has it. Close does so,
// and after a Hold it is for those that no gateway with this MAC follows that advertises itself.
func (i *Interface) Retire() {
	if i.cfg.RouterAdvertisements != nil && !i.cfg.Anycast {
		i.advertise(true)
	}
}

// advertise sends a router advertisement to all hosts.
func (i *Interface) advertise(ends bool) {
	f := frame.Make(i.advertisement(ends))
	i.cfg.Send(0, &f)
}

// solicited answers a router solicitation of a host at a place: to the host alone, or if it has no address yet, to all at the place.
func (i *Interface) solicited(host netip.Addr, mac frame.MAC, from frame.Dest, now frame.Tick) {
	src := host.As16()
	if !i.vrf.gateway.limit.Allow(src[:], i.cfg.VNI, from, now) {
		return
	}
	b := i.advertisement(false)
	if !host.IsUnspecified() {
		neighbour.Readdress(b, mac, host)
	}
	f := frame.Make(b)
	i.cfg.Send(from, &f)
}
