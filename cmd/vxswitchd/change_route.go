package main

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/node"
)

func (s *server) postRoute(w http.ResponseWriter, r *http.Request) error {
	x, err := readChange[api.RouteChange](w, r)
	if err != nil {
		return err
	}
	row, err := s.routeRow(x)
	if err != nil {
		return err
	}
	return s.change(w, r, fmt.Sprintf("%s %v vrf %s", x.Op, row.Prefix, row.VRF), func() error { return s.changeRoute(x.Op, row, hasHop(x)) })
}

// hasHop reports whether a change has a next hop, or says that there is none.
func hasHop(x api.RouteChange) bool {
	return x.VNI != nil || x.Via != "" || x.MAC != "" || x.Dst != "" || x.Blackhole
}

// routeRow returns the row of a change.
func (s *server) routeRow(x api.RouteChange) (row control.Prefix, err error) {
	bad := func(format string, args ...any) (control.Prefix, error) {
		return row, wrong(http.StatusBadRequest, format, args...)
	}
	if err := oneOf("op", x.Op, api.Add, api.Append, api.Replace, api.Del); err != nil {
		return row, err
	}
	row.Distance = x.Metric
	if row.Prefix, err = netip.ParsePrefix(x.Prefix); err != nil {
		return bad("prefix %q: must be a prefix such as 10.0.0.0/8", x.Prefix)
	}
	switch hops := x.Via != "" || x.MAC != "" || x.Dst != "" || x.VNI != nil; {
	case row.Prefix != row.Prefix.Masked():
		return bad("prefix %q: must have no host bits, as in %v", x.Prefix, row.Prefix.Masked())
	case x.Op != api.Del && !hasHop(x):
		return bad("%s: requires a next hop or blackhole", x.Op)
	case x.Blackhole && hops:
		return bad("takes either a next hop or blackhole")
	case x.Via != "" && (x.MAC != "" || x.Dst != ""):
		return bad("via: not allowed with mac or dst")
	case x.MAC != "" && x.Dst == "":
		return bad("mac: requires dst")
	case x.Dst != "" && x.VNI == nil:
		return bad("dst: requires vni")
	case x.Tunnel != "" && x.Dst == "":
		return bad("tunnel: requires dst")
	case x.Weight != 0 && (!hops || x.Op == api.Del):
		return bad("weight: requires a next hop, and is not allowed with del")
	}
	if row.VRF, err = s.vrf(x.VRF); err != nil || !hasHop(x) || x.Blackhole {
		return row, err
	}
	row.Via.Weight = x.Weight
	if x.Via != "" {
		if row.Via.IP, err = parseHost(x.Via, hostaddr.Neighbour); err != nil {
			return bad("via %w", err)
		}
	}
	if x.MAC != "" {
		if row.Via.MAC, err = frame.ParseMAC(x.MAC); err != nil || row.Via.MAC.IsGroup() || row.Via.MAC.IsZero() {
			return bad("mac %q: must be the MAC of one host", x.MAC)
		}
	}
	if x.VNI == nil {
		row.Via.VNI, err = s.onLink(row.VRF, row.Via.IP)
		return row, err
	}
	v, err := vsiOf(s.n.Segments(), *x.VNI)
	if err != nil {
		return row, err
	}
	if x.Op != api.Del && !slices.ContainsFunc(s.n.Interfaces(), func(i *l3.Interface) bool { return i.VNI() == v.VNI() && i.VRFName() == row.VRF }) {
		return row, wrong(http.StatusNotFound, "vni %d: has no gateway of vrf %s", v.VNI(), row.VRF)
	}
	if row.Via.VNI = v.VNI(); x.Dst != "" {
		dst, err := parseHost(x.Dst, hostaddr.Check)
		if err != nil {
			return bad("dst %w", err)
		}
		row.Via.VTEP = netip.AddrPortFrom(dst, 0)
		if row.Via.Tunnel, err = tunnelFor(v, dst, x.Tunnel); err == nil && x.Op != api.Del {
			err = s.checkPlace(v, dst, row.Via.Tunnel, "")
		}
		if err != nil {
			return row, err
		}
	}
	return row, nil
}

// vrf returns the VRF that is meant: "" is the only one.
func (s *server) vrf(name string) (string, error) {
	var names []string
	for _, v := range s.n.Gateway().VRFs() {
		names = append(names, v.Name())
	}
	switch {
	case slices.Contains(names, name), name == "" && len(names) == 1:
		return cmp.Or(name, names[0]), nil
	case len(names) == 0:
		return "", wrong(http.StatusNotFound, "vrf %q: this node has no VRFs: a segment with a gateway, and its VRF, are required in its configuration", name)
	case name != "":
		return "", wrong(http.StatusNotFound, "vrf %q: no such VRF", name)
	}
	return "", wrong(http.StatusBadRequest, "vrf: required, one of %s", strings.Join(names, ", "))
}

// onLink returns the VNI of the gateway of a VRF that has a prefix with an address.
func (s *server) onLink(vrf string, ip netip.Addr) (frame.VNI, error) {
	var networks []string
	open := ip.Is6() && ip.IsLinkLocalUnicast() // or a gateway has no network of this family, and takes any next hop
	for _, g := range s.n.Interfaces() {
		if g.VRFName() != vrf {
			continue
		}
		before := len(networks)
		for _, p := range g.Config().Addresses {
			switch {
			case p.Contains(ip):
				return g.VNI(), nil
			case p.Addr().Is4() == ip.Is4() && !p.IsSingleIP() && !(p.Addr().Is6() && p.Addr().IsLinkLocalUnicast()):
				networks = append(networks, p.Masked().String())
			}
		}
		open = open || len(networks) == before
	}
	if open || len(networks) == 0 {
		return 0, wrong(http.StatusBadRequest, "via %v: is in no prefix of a gateway of vrf %s: vni is required", ip, vrf)
	}
	return 0, wrong(http.StatusBadRequest, "via %v: must be in a prefix of a gateway of vrf %s, one of %s", ip, vrf, strings.Join(networks, ", "))
}

// changeRoute adds, replaces or deletes routes with the prefix and the metric of a row; Del, with a next hop, deletes that alone.
func (s *server) changeRoute(op string, row control.Prefix, hop bool) error {
	same := func(r control.Prefix) bool {
		return r.VRF == row.VRF && r.Prefix == row.Prefix && r.Distance == row.Distance
	}
	tunnel := s.tunnelOf(row.Via.VNI)
	key := func(v control.Via) control.Via {
		if v.Weight = 0; v.VNI == row.Via.VNI && v.VTEP.IsValid() {
			v.Tunnel = tunnel(v.Tunnel)
		}
		return v
	}
	rows := own(s, same)
	var u control.Update
	for _, r := range rows {
		if op == api.Replace && r != row || op == api.Del && (!hop || key(r.Via) == key(row.Via)) {
			u.Del = append(u.Del, r)
		}
	}
	file := false
	for r := range s.n.Plane().Rows(node.Owner) {
		x, ok := r.(control.Prefix)
		file = file || ok && same(x)
	}
	there := fmt.Sprintf("%v in vrf %s", row.Prefix, row.VRF)
	switch {
	case op == api.Del && len(u.Del) > 0:
		return s.program(u)
	case file:
		return wrong(http.StatusConflict, "the route to %s is from the file: change the file, or use another metric", there)
	case op == api.Del && len(rows) > 0:
		return wrong(http.StatusNotFound, "the route to %s has no next hop %v", there, row.Via)
	case op == api.Del:
		if from := proto(s.n, control.Prefix{VRF: row.VRF, Prefix: row.Prefix}); from != "" && from != owner {
			return wrong(http.StatusConflict, "the route to %s is from %s: withdraw it there", there, from)
		}
		return wrong(http.StatusNotFound, "there is no route to %s with metric %d", there, row.Distance)
	case op == api.Add && len(rows) > 0:
		return wrong(http.StatusConflict, "there is a route to %s: use append or replace", there)
	case op == api.Append && slices.ContainsFunc(rows, func(r control.Prefix) bool { return key(r.Via) == key(row.Via) }):
		return wrong(http.StatusConflict, "the route to %s already has the next hop %v: use replace", there, key(row.Via))
	}
	if !row.Via.MAC.IsZero() {
		at, macs := row.Via, own(s, func(r control.MAC) bool { return r.VNI == row.Via.VNI && r.MAC == row.Via.MAC })
		if len(macs) > 0 && (macs[0].VTEP != at.VTEP || macs[0].Tunnel != at.Tunnel) {
			return wrong(http.StatusConflict, "%v is elsewhere in vni %d%s: move it with fdb replace", at.MAC, at.VNI, placeOf(macs[0]))
		}
		if v, err := vsiOf(s.n.Segments(), at.VNI); err == nil {
			if e, there := v.FDB().Get(at.MAC); there && e.Origin == fdb.OriginStatic && !s.at(&change{vsi: v, dst: at.VTEP.Addr()}, e) {
				return wrong(http.StatusConflict, "%v is elsewhere in vni %d: the file has an entry of it", at.MAC, at.VNI)
			}
		}
		if err := s.routed(at.VNI, at.MAC, at.VTEP, at.Tunnel, u.Del); err != nil {
			return err
		}
	}
	u.Add = []control.Row{row}
	return s.program(u)
}

// routed refuses a place for a MAC if a route of the socket or of the file, other than those that go, has it as a router elsewhere:
// an FDB has one place for each MAC.
func (s *server) routed(vni frame.VNI, mac frame.MAC, vtep netip.AddrPort, tunnel string, gone []control.Row) error {
	for _, o := range []string{owner, node.Owner} {
		for r := range s.n.Plane().Rows(o) {
			x, ok := r.(control.Prefix)
			same := x.Via.VTEP.Addr() == vtep.Addr() && (x.Via.Tunnel == tunnel || x.Via.Tunnel == "" || tunnel == "")
			if ok && x.Via.VNI == vni && x.Via.MAC == mac && !same && !slices.Contains(gone, r) {
				return wrong(http.StatusConflict, "%v is elsewhere in vni %d, dst %v: it is the router of the route to %v", mac, vni, x.Via.VTEP.Addr(), x.Prefix)
			}
		}
	}
	return nil
}
