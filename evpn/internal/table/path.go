package table

import (
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/mobility"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// A path is a route of one peer.
type path struct {
	route.Route
	mobility.Claim
	left  string // why it is used nowhere, "" if it is
	stale bool   // of a session before, and not said again yet
	late  bool   // it may be among the latecomers of a place
}

// Reasons for which a route is used nowhere, or not where one of its targets says.
const (
	leftTarget        = "target"        // nothing here imports one of its route targets
	leftEncapsulation = "encapsulation" // not VXLAN
	leftNextHop       = "next-hop"      // no address of a VTEP, or of another family than ours
	leftOwn           = "own"           // we are the next hop
	leftMAC           = "mac"           // a group, or zero
	leftOwnMAC        = "own-mac"       // that of our gateway
	leftAddress       = "host-address"  // of no host: loopback, multicast, unspecified
	leftOwnAddress    = "own-address"   // that of our gateway
	leftUnderlay      = "underlay"      // a route to a VTEP, which would lead a tunnel into itself
	leftLabel         = "label"         // no VNI
	leftTunnel        = "tunnel"        // flooding by other means than copies to each VTEP
	leftRouterMAC     = "router-mac"    // none, a group, or ours
	leftGateway       = "gateway"       // an overlay index on none of our networks
	leftPrefix        = "prefix"        // never routed: loopback, multicast, link-local
	leftNotAccepted   = "not-accepted"  // outside of what the VRF accepts
	leftSegmentLimit  = "segment-limit" // the segment has as many MACs of peers as it may
	leftFloodLimit    = "flood-limit"   // the flood list of the segment has as many VTEPs as it may
	leftAddressLimit  = "address-limit" // the MAC has as many routes as it may
	leftVRFLimit      = "vrf-limit"     // the VRF has as many prefixes of peers as it may
	leftESI           = "esi"           // an Ethernet segment that is none, or reserved
	leftESILabel      = "esi-label"     // of a type 1 about an Ethernet segment: nothing says whether one VTEP forwards, or all
	leftESImport      = "es-import"     // a route target of another Ethernet segment
	leftTag           = "ethernet-tag"  // of a type 1: neither none nor all
	leftESLimit       = "es-limit"      // there are as many Ethernet segments of peers as there may be, or VTEPs on one
)

// Learned takes a route of a peer, in place of one with the same key.
func (t *Table) Learned(now time.Duration, peer netip.Addr, r *route.Route) {
	in := t.peers[peer]
	if in == nil {
		if len(t.peers) == 0 {
			t.met(now)
		}
		in = map[route.Key]*path{}
		t.peers[peer] = in
	}
	p := in[r.Key]
	if p == nil {
		p = &path{}
		in[r.Key] = p
	} else {
		if p.stale = false; p.Route == *r {
			return
		}
		t.unuse(now, p)
	}
	p.Route = *r
	p.VTEP = r.NextHop
	p.Sequence, p.Sticky = r.Communities.Mobility()
	t.use(now, p)
}

// Withdrawn forgets a route of a peer.
func (t *Table) Withdrawn(now time.Duration, peer netip.Addr, k *route.Key) {
	if p := t.peers[peer][*k]; p != nil {
		t.unuse(now, p)
		delete(t.peers[peer], *k)
	}
}

// Stale says that the session of a peer is lost, and its routes stay until it has said all it has (graceful restart).
func (t *Table) Stale(peer netip.Addr) {
	for _, p := range t.peers[peer] {
		p.stale = true
	}
}

// Ended says that a peer has said all it has: what it has not said again is forgotten.
func (t *Table) Ended(now time.Duration, peer netip.Addr) {
	for k, p := range t.peers[peer] {
		if p.stale {
			t.unuse(now, p)
			delete(t.peers[peer], k)
		}
	}
}

// Down forgets all routes of a peer.
func (t *Table) Down(now time.Duration, peer netip.Addr) {
	for _, p := range t.peers[peer] {
		t.unuse(now, p)
	}
	delete(t.peers, peer)
}

// again imports all paths anew: first those in use, so that they keep their room.
func (t *Table) again(now time.Duration) {
	claimed := map[*host]bool{}
	for _, s := range t.segments {
		s.far, s.flooded = shared[*host]{}, shared[*flood]{}
		for _, f := range s.floods {
			f.paths, f.slot, f.late = nil, slot{}, latecomers{}
			t.touch(f)
		}
		for _, h := range s.hosts {
			h.late = latecomers{}
			if len(h.claims) > 0 {
				h.claims, h.slot = nil, slot{}
				claimed[h] = true
				t.touch(h)
			}
		}
	}
	t.far = shared[*ethernet]{}
	for _, e := range t.ethernets {
		e.emptied()
		t.stir(e)
	}
	for _, v := range t.vrfs {
		v.far = shared[*prefix]{}
		for _, x := range v.prefixes {
			x.paths, x.slot, x.late = nil, slot{}, latecomers{}
			t.touch(x)
		}
	}
	clear(t.left)
	var left []*path
	for _, in := range t.peers {
		for _, p := range in {
			if p.left != "" {
				left = append(left, p)
				continue
			}
			t.use(now, p)
		}
	}
	for _, p := range left {
		t.use(now, p)
	}
	for h := range claimed {
		h.fewer(t, now)
	}
	t.anew, t.roomy = false, false
}

// use puts a path where it belongs.
func (t *Table) use(now time.Duration, p *path) {
	p.late = false
	used, left := false, leftTarget
	note := func(why string) {
		if used = used || why == ""; why != "" {
			left = why
		}
	}
	switch why := t.unfit(p); {
	case why != "":
		left = why
	case p.Kind == route.Multicast:
		t.importers(p.Communities, func(s *segment) { note(t.useFlood(s, p)) }, func(*vrf) {})
	case p.Kind == route.MACIP:
		t.importers(p.Communities, func(s *segment) { note(t.useHost(now, s, p)) }, func(v *vrf) {
			if p.NumLabels == 2 && p.IP.Bits() > 0 && !v.NoHostRoutes && !p.IP.Netip().IsLinkLocalUnicast() {
				note(t.usePrefix(v, p))
			}
		})
	case p.Kind == route.Prefix:
		t.importers(p.Communities, func(*segment) {}, func(v *vrf) { note(t.usePrefix(v, p)) })
	case p.Kind == route.Segment:
		note(t.useRival(p))
	case p.Tag == route.AllTags:
		whole := false
		if t.importers(p.Communities, func(*segment) { whole = true }, func(*vrf) {}); whole {
			note(t.useWhole(p))
		}
	default:
		t.importers(p.Communities, func(s *segment) { note(t.useNet(s, p)) }, func(*vrf) {})
	}
	p.left = ""
	if !used {
		p.left = left
		t.left[left]++
	}
}

// unuse takes a path away from where it is used.
func (t *Table) unuse(now time.Duration, p *path) {
	if p.left != "" {
		if t.left[p.left]--; t.left[p.left] == 0 {
			delete(t.left, p.left)
		}
		if !p.late {
			return
		}
	}
	if p.Kind == route.AutoDiscovery || p.Kind == route.Segment {
		t.unuseEthernet(p)
		return
	}
	t.importers(p.Communities, func(s *segment) { t.leave(now, s, p) }, func(v *vrf) {
		if x := v.prefixes[p.prefix()]; x != nil {
			x.remove(t, p)
		}
	})
}

// leaveOut notes that a path has had to make room, unless it is used elsewhere.
func (t *Table) leaveOut(p *path, why string) {
	if !t.uses(p) {
		p.left = why
		t.left[why]++
	}
}

// uses reports whether a path is used anywhere.
func (t *Table) uses(p *path) (is bool) {
	if p.Kind == route.AutoDiscovery || p.Kind == route.Segment {
		return t.usesEthernet(p)
	}
	t.importers(p.Communities, func(s *segment) {
		switch p.Kind {
		case route.MACIP:
			h := s.hosts[p.MAC]
			is = is || h != nil && slices.Contains(h.claims, p)
		case route.Multicast:
			f := s.floods[p.Tunnel]
			is = is || f != nil && slices.Contains(f.paths, p)
		}
	}, func(v *vrf) {
		x := v.prefixes[p.prefix()]
		is = is || x != nil && slices.Contains(x.paths, p)
	})
	return is
}

// leave takes a path away from where a segment uses it.
func (t *Table) leave(now time.Duration, s *segment, p *path) {
	switch p.Kind {
	case route.Multicast:
		if f := s.floods[p.Tunnel]; f != nil {
			f.paths = remove(f.paths, p)
			f.late.remove(p)
			s.flooded.settle(&f.slot, f.paths, f)
			t.roomy = s.flooded.relieve(t.cfg.MaxVTEPs) || t.roomy
			t.touch(f)
		}
	case route.MACIP:
		if h := s.hosts[p.MAC]; h != nil {
			h.remove(t, now, p)
		}
	}
}

func remove(list []*path, p *path) []*path {
	if i := slices.Index(list, p); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// unfit returns why a path cannot be used at all.
func (t *Table) unfit(p *path) string {
	hop := p.NextHop.Netip()
	switch {
	case (p.Kind == route.AutoDiscovery || p.Kind == route.Segment) && !p.Segment.Shared():
		return leftESI
	case !p.Communities.Encapsulated():
		return leftEncapsulation
	case t.own[p.NextHop]:
		return leftOwn
	case !hop.IsValid() || hop.IsUnspecified() || hop.IsMulticast() || hop.IsLoopback() || hop.IsLinkLocalUnicast() || hop == broadcast || odd(hop):
		return leftNextHop
	}
	return ""
}

// odd reports whether an address is no host's: one of 0.0.0.0/8, or IPv4-mapped, which would be the IPv4 address itself in a row.
func odd(a netip.Addr) bool { return a.Is4In6() || a.Is4() && a.As4()[0] == 0 }

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// prefix returns that of a path of type 2 or 5.
func (p *path) prefix() netip.Prefix {
	if p.Kind == route.Prefix {
		return netip.PrefixFrom(p.IP.Netip(), int(p.Bits))
	}
	return netip.PrefixFrom(p.IP.Netip(), p.IP.Bits())
}

// label returns the VNI of the network that a path leads to, and 0 in place of ours.
func label(n uint32, ours frame.VNI) (far frame.VNI, ok bool) {
	if v := frame.VNI(n); v != ours {
		return v, v != 0 && v.Valid()
	}
	return 0, true
}
