package main

import (
	"fmt"
	"net/http"
	"net/netip"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
)

// postNeigh changes a neighbour with a row that has its place, too, as route type 2 of EVPN has.
func (s *server) postNeigh(w http.ResponseWriter, r *http.Request) error {
	x, err := readChange[api.NeighbourChange](w, r)
	if err != nil {
		return err
	}
	row, err := s.neighbourRow(x)
	if err != nil {
		return err
	}
	return s.change(w, r, fmt.Sprintf("%s %v vni %d", x.Op, row.IP, row.VNI), func() error { return s.changeNeighbour(x.Op, row) })
}

// neighbourRow returns the row of a change. It has no place if the change has none.
func (s *server) neighbourRow(x api.NeighbourChange) (row control.MAC, err error) {
	bad := func(format string, args ...any) (control.MAC, error) {
		return row, wrong(http.StatusBadRequest, format, args...)
	}
	if err := oneOf("op", x.Op, api.Add, api.Replace, api.Del); err != nil {
		return row, err
	}
	row = control.MAC{VNI: x.VNI, Port: x.Dev, Sticky: true, Router: x.Router}
	if row.IP, err = parseHost(x.IP, hostaddr.Neighbour); err != nil {
		return bad("ip %w", err)
	}
	if x.Op == api.Del {
		if x.MAC != "" || x.Dst != "" || x.Dev != "" || x.Tunnel != "" || x.Router {
			return bad("del: takes only vni and ip")
		}
		_, err = vsiOf(s.n.Segments(), x.VNI)
		return row, err
	}
	if row.MAC, err = frame.ParseMAC(x.MAC); err != nil || row.MAC.IsGroup() || row.MAC.IsZero() {
		return bad("mac %q: must be the MAC of one host", x.MAC)
	}
	var dst netip.Addr
	if x.Dst != "" {
		if dst, err = parseHost(x.Dst, hostaddr.Check); err != nil {
			return bad("dst %w", err)
		}
		row.VTEP = netip.AddrPortFrom(dst, 0)
	}
	switch {
	case x.Dst != "" && x.Dev != "":
		return bad("takes either dst or dev")
	case x.Tunnel != "" && x.Dst == "":
		return bad("tunnel: requires dst")
	case x.Router && row.IP.Is4():
		return bad("router: requires an IPv6 address")
	}
	v, err := vsiOf(s.n.Segments(), x.VNI)
	if err != nil {
		return row, err
	}
	row.Tunnel, err = tunnelFor(v, dst, x.Tunnel)
	return row, err
}

func (s *server) changeNeighbour(op string, row control.MAC) error {
	responder := s.n.Neighbours(row.VNI)
	if responder == nil {
		return wrong(http.StatusConflict, `vni %d: has no neighbours: "neighbours" or a "gateway" with a MAC is required in its configuration`, row.VNI)
	}
	rows := own(s, func(r control.MAC) bool { return r.VNI == row.VNI && r.IP == row.IP })
	e, there := responder.Table().Lookup(row.IP)
	snooped := there && e.Origin == arp.Snooped && len(rows) == 0
	var u control.Update
	for _, r := range rows {
		if r.MAC != row.MAC { // else it is replaced
			u.Del = append(u.Del, r)
		}
	}
	switch {
	case op == api.Add && (there || len(rows) > 0):
		return wrong(http.StatusConflict, "%v already has an entry in vni %d: use replace", row.IP, row.VNI)
	case there && e.Origin == arp.Static:
		return wrong(http.StatusConflict, "the entry of %v in vni %d is from the file: change the file", row.IP, row.VNI)
	case op == api.Del && len(rows) > 0:
		return s.program(u)
	case op == api.Del && !there:
		return wrong(http.StatusNotFound, "%v has no entry in vni %d", row.IP, row.VNI)
	case op == api.Del && !snooped:
		return wrong(http.StatusConflict, "the entry of %v in vni %d is from a control plane: withdraw it there", row.IP, row.VNI)
	case op == api.Del:
		responder.Table().Delete(row.IP)
		return nil
	}
	v, err := vsiOf(s.n.Segments(), row.VNI)
	if err == nil {
		err = s.checkPlace(v, row.VTEP.Addr(), row.Tunnel, row.Port)
	}
	if err != nil {
		return err
	}
	if err := s.place(&row); err != nil {
		return err
	}
	if snooped {
		responder.Table().Delete(row.IP) // which a host of this node would keep
	}
	u.Add = append(u.Add, row)
	err = s.program(u)
	if err != nil && snooped {
		responder.Table().Learn(&arp.Claim{IP: e.IP, MAC: e.MAC, Flags: e.Flags, From: e.From}, e.Seen)
	}
	return err
}

// place gives a row without a place that of another of its MAC, with which it must agree.
func (s *server) place(row *control.MAC) error {
	none := !row.VTEP.IsValid() && row.Port == ""
	rows := own(s, func(r control.MAC) bool { return r.VNI == row.VNI && r.MAC == row.MAC && r.IP != row.IP })
	tunnel := s.tunnelOf(row.VNI)
	switch {
	case none && len(rows) == 0:
		return wrong(http.StatusBadRequest, "dst or dev is required: no entry of %v in vni %d was added here", row.MAC, row.VNI)
	case len(rows) == 0: // it has the place that it says
	case !none && (row.VTEP != rows[0].VTEP || tunnel(row.Tunnel) != tunnel(rows[0].Tunnel) || row.Port != rows[0].Port):
		return wrong(http.StatusConflict, "%v is elsewhere in vni %d%s: move it with fdb replace", row.MAC, row.VNI, placeOf(rows[0]))
	default:
		row.VTEP, row.Tunnel, row.Port = rows[0].VTEP, rows[0].Tunnel, rows[0].Port
	}
	return s.routed(row.VNI, row.MAC, row.VTEP, row.Tunnel, nil)
}

// placeOf returns the place of a row in the words of a change.
func placeOf(r control.MAC) string {
	if r.Port != "" {
		return fmt.Sprintf(", dev %q", r.Port)
	}
	return fmt.Sprint(", dst ", r.VTEP.Addr())
}
