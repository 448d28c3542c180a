package table

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// A prefix is a prefix of a VRF: routes of peers to it, and whether we have one.
type prefix struct {
	v      *vrf
	prefix netip.Prefix
	paths  []*path
	slot   slot // in vrf.far
	late   latecomers
	on     []*ethernet // of the hosts of paths
	local  local
	here   int // hosts here that have the address
	told   []route.Key
}

// symmetric reports whether packets to hosts of other VTEPs go through the L3VNI.
func (v *vrf) symmetric() bool { return v.L3VNI != 0 && !v.RouterMAC.IsZero() && v.VTEP.Bits() != 0 }

// usePrefix adds a path of type 2 or 5 to a prefix.
func (t *Table) usePrefix(v *vrf, p *path) (left string) {
	if left := t.unfitPrefix(v, p); left != "" {
		return left
	}
	x := v.prefixes[p.prefix()]
	if x == nil || len(x.paths) == 0 {
		if !v.far.room(p.VTEP, t.cfg.MaxRoutes, func(x *prefix) { x.evict(t) }) {
			return leftVRFLimit
		}
	} else if len(x.paths) >= maxPaths {
		x.late.add(p)
		return leftVRFLimit
	}
	x = v.at(p.prefix())
	x.paths = append(x.paths, p)
	v.far.settle(&x.slot, x.paths, x)
	t.touch(x)
	return ""
}

// remove takes a path away.
func (x *prefix) remove(t *Table, p *path) {
	n := len(x.paths)
	if x.paths = remove(x.paths, p); len(x.paths) == n {
		x.late.remove(p)
		return
	}
	x.v.far.settle(&x.slot, x.paths, x)
	if len(x.paths) == 0 {
		t.roomy = x.v.far.relieve(t.cfg.MaxRoutes) || t.roomy
	}
	t.touch(x)
}

// evict makes room for a prefix at another VTEP.
func (x *prefix) evict(t *Table) {
	was := x.paths
	x.paths, x.late = nil, latecomers{}
	x.v.far.remove(&x.slot)
	for _, p := range was {
		t.leaveOut(p, leftVRFLimit)
	}
	t.touch(x)
}

const maxPaths = 256 // of a prefix

func (v *vrf) at(p netip.Prefix) *prefix {
	x := v.prefixes[p]
	if x == nil {
		x = &prefix{v: v, prefix: p}
		v.prefixes[p] = x
	}
	return x
}

// unfitPrefix returns why a path cannot be used in a VRF.
func (t *Table) unfitPrefix(v *vrf, p *path) string {
	to := p.prefix()
	a := to.Addr()
	switch {
	case !to.IsValid() || to != to.Masked() || a.Is4In6() || a.IsMulticast() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() && to.Bits() >= 8 || a == broadcast:
		return leftPrefix
	case to.IsSingleIP() && (p.IP == p.NextHop || t.own[p.IP]):
		return leftUnderlay
	case to.IsSingleIP() && v.own[a]:
		return leftOwnAddress
	case v.Accept != nil && !slices.ContainsFunc(v.Accept, func(x netip.Prefix) bool { return x.Bits() <= to.Bits() && x.Contains(a) }):
		return leftNotAccepted
	}
	if p.Kind == route.Prefix && p.Gateway.Bits() != 0 && !p.Gateway.Netip().IsUnspecified() {
		if v.own[p.Gateway.Netip()] {
			return leftOwnAddress
		}
		if v.link(p.Gateway.Netip()) == 0 {
			return leftGateway
		}
		return ""
	}
	mac, _ := p.Communities.RouterMAC()
	if !mac.IsHost() || mac == v.RouterMAC {
		return leftRouterMAC
	}
	if _, ok := label(p.routed(), v.L3VNI); !ok {
		return leftLabel
	}
	if v.VTEP.Bits() != p.NextHop.Bits() && v.VTEP.Bits() != 0 {
		return leftNextHop
	}
	return ""
}

// routed returns the label of the VRF.
func (p *path) routed() uint32 {
	if p.Kind == route.Prefix {
		return p.Labels[0]
	}
	return p.Labels[1]
}

// link returns the segment whose network an address is in, the smallest of several, 0 if there is none.
func (v *vrf) link(a netip.Addr) frame.VNI {
	for _, n := range v.networks {
		if n.prefix.Contains(a) {
			return n.vni
		}
	}
	return 0
}

// rows are next hops: that of the host's claim which counts, or those of all routes of type 5. A host that is here needs none,
// unless its address is outside of our networks: then only a route of type 5 leads to it.
func (x *prefix) rows() (rows []control.Row) {
	var best *path
	for _, p := range x.paths {
		if p.Kind == route.MACIP && !x.gone(p) && (best == nil || p.better(best)) {
			best = p
		}
	}
	if x.here > 0 && (best != nil || x.v.link(x.prefix.Addr()) != 0) || best != nil && x.ours(best) {
		return nil
	}
	for _, p := range x.paths {
		if x.gone(p) || best != nil && (p.Kind != route.MACIP || !p.beside(best) || p.MAC != best.MAC) {
			continue
		}
		if r := x.row(p); r.Via != (control.Via{}) && !slices.Contains(rows, control.Row(r)) {
			rows = append(rows, r)
		}
	}
	return rows
}

func (x *prefix) row(p *path) control.Prefix {
	r := control.Prefix{VRF: x.v.Name, Prefix: x.prefix, Distance: x.v.t.cfg.Distance}
	if gw := p.Gateway.Netip(); p.Kind == route.Prefix && gw.IsValid() && !gw.IsUnspecified() {
		if vni := x.v.link(gw); vni != 0 {
			r.Via = control.Via{VNI: vni, IP: gw}
		}
		return r
	}
	mac, _ := p.Communities.RouterMAC()
	far, _ := label(p.routed(), x.v.L3VNI)
	r.Via = control.Via{VNI: x.v.L3VNI, MAC: mac, VTEP: netip.AddrPortFrom(p.NextHop.Netip(), 0), FarVNI: far, Tunnel: x.v.Tunnel}
	return r
}

// routes is our route of type 5.
func (x *prefix) routes(t *Table) []route.Route {
	v := x.v
	if (x.local.connected == 0 || v.NoConnected) && (x.local.static == 0 || v.NoStatic) || !v.symmetric() {
		return nil
	}
	r := route.Route{Key: route.Key{Kind: route.Prefix, Bits: uint8(x.prefix.Bits()), RD: cmp.Or(v.RD, t.rd(v.Name)), IP: route.AddrFrom(x.prefix.Addr())}, NumLabels: 1, NextHop: v.VTEP,
		Communities: communities(t.exports(v.Export, v.L3VNI), route.RouterMAC(v.RouterMAC))}
	r.Labels[0] = uint32(v.L3VNI)
	return []route.Route{r}
}

func (x *prefix) was() *[]route.Key { return &x.told }

func (x *prefix) settled(*Table, time.Duration) {
	if v := x.v; len(x.paths) == 0 && x.local == (local{}) && x.here == 0 && v.prefixes[x.prefix] == x {
		delete(v.prefixes, x.prefix)
	}
}

// count counts hosts here that have addresses.
func (v *vrf) count(t *Table, addrs []route.Addr, by int) {
	if v == nil {
		return
	}
	for _, a := range addrs {
		x := v.at(netip.PrefixFrom(a.Netip(), a.Bits()))
		x.here += by
		t.touch(x)
	}
}
