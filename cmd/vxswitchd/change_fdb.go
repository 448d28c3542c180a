package main

import (
	"fmt"
	"iter"
	"net/http"
	"net/netip"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// A change is a parsed api.FDBChange.
type change struct {
	op  string
	vsi *vswitch.VSI
	mac frame.MAC
	dst netip.Addr
	dev string

	tunnel string // "" if the segment has only one
}

// floods reports whether the change is one of a flood list.
func (c *change) floods() bool { return c.mac.IsZero() || c.mac.IsGroup() }

func (s *server) postFDB(w http.ResponseWriter, r *http.Request) error {
	c, err := s.readFDBChange(w, r)
	if err != nil {
		return err
	}
	return s.change(w, r, fmt.Sprintf("%s %v vni %d", c.op, c.mac, c.vsi.VNI()), func() error {
		if c.floods() {
			return s.changeFlood(c)
		}
		return s.changeMAC(c)
	})
}

func (s *server) readFDBChange(w http.ResponseWriter, r *http.Request) (c change, err error) {
	bad := func(format string, args ...any) (change, error) {
		return c, wrong(http.StatusBadRequest, format, args...)
	}
	x, err := readChange[api.FDBChange](w, r)
	if err != nil {
		return c, err
	}
	if err := oneOf("op", x.Op, api.Add, api.Append, api.Replace, api.Del); err != nil {
		return c, err
	}
	c.op, c.dev = x.Op, x.Dev
	if c.mac, err = frame.ParseMAC(x.MAC); err != nil {
		return bad("mac %q: must be the MAC of one host, or for the flood list 00:00:00:00:00:00 or that of a group", x.MAC)
	}
	if x.Dst != "" {
		if c.dst, err = netip.ParseAddr(x.Dst); err != nil || hostaddr.Check(c.dst) != nil && !(c.dst.IsMulticast() && c.floods()) {
			return bad("dst %q: must be the address of one host, or for the flood list a multicast group", x.Dst)
		}
		c.dst = c.dst.Unmap()
	}
	switch to := x.Dst != "" || x.Dev != ""; {
	case x.Dst != "" && x.Dev != "":
		return bad("takes either dst or dev")
	case x.Tunnel != "" && x.Dst == "":
		return bad("tunnel: requires dst")
	case c.floods() && !c.dst.IsValid():
		return bad("mac %v: the flood list requires dst", c.mac)
	case !to && x.Op != api.Del:
		return bad("%s: requires dst or dev", x.Op)
	case c.floods() && x.Op == api.Replace:
		return bad("replace: requires the MAC of one host; use append and del for the flood list")
	case !c.floods() && x.Op == api.Append:
		return bad("append: requires 00:00:00:00:00:00 or the MAC of a group, the flood list; use add or replace for one host")
	}
	if c.vsi, err = vsiOf(s.n.Segments(), x.VNI); err != nil {
		return c, err
	}
	if c.tunnel, err = tunnelFor(c.vsi, c.dst, x.Tunnel); err == nil && x.Op != api.Del {
		err = s.checkPlace(c.vsi, c.dst, c.tunnel, c.dev)
	}
	return c, err
}

// where returns the place of a change in its words, "" if it has none.
func (c *change) where() string {
	switch {
	case c.dst.IsValid():
		return fmt.Sprint(" with dst ", c.dst)
	case c.dev != "":
		return fmt.Sprintf(" with dev %q", c.dev)
	}
	return ""
}

// at reports whether an entry is at the place of a change: anywhere if it has none.
func (s *server) at(c *change, e fdb.Entry) bool {
	place := placesOf(s.n.Switch(), c.vsi)
	name := place(e.Dest)
	switch {
	case c.dst.IsValid():
		peer, err := netip.ParseAddrPort(name)
		if err != nil { // of IP-in-IP
			a, _ := netip.ParseAddr(name)
			peer = netip.AddrPortFrom(a, 0)
		}
		return peer.Addr() == c.dst
	case c.dev != "":
		return place(frame.NewDest(e.Dest.Port(), 0)) == c.dev
	}
	return true
}

// changeFlood adds a peer to a flood list, or removes one that the socket added.
func (s *server) changeFlood(c change) error {
	row := control.Flood{VNI: c.vsi.VNI(), VTEP: netip.AddrPortFrom(c.dst, 0), MAC: c.mac, Tunnel: c.tunnel}
	var u control.Update
	tunnel := s.tunnelOf(row.VNI)
	for _, r := range own(s, func(r control.Flood) bool {
		return r.VNI == row.VNI && r.VTEP == row.VTEP && r.MAC == row.MAC && tunnel(r.Tunnel) == tunnel(row.Tunnel)
	}) {
		u.Del = append(u.Del, r)
	}
	own := len(u.Del) > 0
	there, any := s.floods(c)
	switch {
	case c.op == api.Del && own:
		return s.program(u)
	case c.op == api.Del && there:
		return wrong(http.StatusConflict, "dst %v is in the flood list of the file: change the file", c.dst)
	case c.op == api.Del:
		return wrong(http.StatusNotFound, "dst %v is not in the flood list of vni %d", c.dst, row.VNI)
	case there || own:
		return wrong(http.StatusConflict, "dst %v is already in the flood list", c.dst)
	case c.op == api.Add && any:
		return wrong(http.StatusConflict, "vni %d has a flood list: use append", row.VNI)
	}
	return s.program(control.Update{Add: []control.Row{row}})
}

// floods reports whether a flood list has a peer for the MAC of a change, and whether it has any.
func (s *server) floods(c change) (there, any bool) {
	for a, list := range floodsOf(c.vsi) {
		if c.tunnel != "" && c.tunnel != a.Port().(*vtep.VTEP).Name() {
			continue
		}
		for _, p := range list {
			any = any || p.MAC == c.mac
			there = there || p.MAC == c.mac && p.Addr.Addr() == c.dst
		}
		return there, any
	}
	return false, false
}

// floodsOf iterates over a segment's attachments to tunnels and their flood lists.
func floodsOf(vsi *vswitch.VSI) iter.Seq2[*vswitch.Attachment, []vtep.FloodPeer] {
	return func(yield func(*vswitch.Attachment, []vtep.FloodPeer) bool) {
		for _, a := range vsi.Attachments() {
			if v, ok := a.Port().(*vtep.VTEP); ok && !yield(a, v.FloodPeers(frame.VNI(a.Tag()))) {
				return
			}
		}
	}
}

// samePlace reports whether a row has the place of a change, if that has one.
func samePlace(c change, r control.MAC) bool {
	return (!c.dst.IsValid() || r.VTEP.Addr() == c.dst) && (c.dev == "" || r.Port == c.dev)
}

// changeMAC adds or removes an entry. The entries are sticky: learning does not move them.
func (s *server) changeMAC(c change) error {
	row := control.MAC{VNI: c.vsi.VNI(), MAC: c.mac, Port: c.dev, Sticky: true}
	if c.dst.IsValid() {
		row.VTEP, row.Tunnel = netip.AddrPortFrom(c.dst, 0), c.tunnel
	}
	rows := own(s, func(r control.MAC) bool { return r.VNI == row.VNI && r.MAC == row.MAC })
	e, there := c.vsi.FDB().Get(c.mac)
	static := there && e.Origin == fdb.OriginStatic
	switch {
	case c.op == api.Add && (there || len(rows) > 0):
		return wrong(http.StatusConflict, "%v already has an entry in vni %d: use replace", c.mac, row.VNI)
	case c.op == api.Del && (len(rows) > 0 && !samePlace(c, rows[0]) || len(rows) == 0 && there && !static && !s.at(&c, e)):
		return wrong(http.StatusNotFound, "%v has no entry%s in vni %d", c.mac, c.where(), row.VNI)
	case c.op == api.Del && len(rows) > 0:
		for _, r := range rows {
			if r.IP.IsValid() {
				return wrong(http.StatusConflict, "%v has the neighbour %v in vni %d: delete that", c.mac, r.IP, row.VNI)
			}
		}
		return s.program(control.Update{Del: []control.Row{row}})
	case static:
		return wrong(http.StatusConflict, "the entry of %v in vni %d is from the file: change the file", c.mac, row.VNI)
	case c.op == api.Del && !there:
		return wrong(http.StatusNotFound, "%v has no entry in vni %d", c.mac, row.VNI)
	case c.op == api.Del && e.Origin == fdb.OriginLearned:
		c.vsi.FDB().Delete(c.mac)
		return nil
	case c.op == api.Del:
		return wrong(http.StatusConflict, "the entry of %v in vni %d is from a control plane: withdraw it there", c.mac, row.VNI)
	}
	if err := s.routed(row.VNI, row.MAC, row.VTEP, row.Tunnel, nil); err != nil {
		return err
	}
	u := control.Update{Add: []control.Row{row}}
	for _, r := range rows { // its neighbours move with it
		if r.IP.IsValid() {
			r.VTEP, r.Tunnel, r.Port = row.VTEP, row.Tunnel, row.Port
			u.Add = append(u.Add, r)
		}
	}
	return s.program(u)
}
