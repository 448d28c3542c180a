package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// A change is a parsed api.Change.
type change struct {
	op  string
	vsi *vswitch.VSI
	mac frame.MAC
	dst netip.Addr
	dev string

	tunnel string // "" if the segment has only one
}

func (s *server) postFDB(w http.ResponseWriter, r *http.Request) error {
	c, err := s.readChange(w, r)
	if err != nil {
		return err
	}
	if err := s.change(r, func() error {
		if c.mac.IsZero() {
			return s.changeFlood(c)
		}
		return s.changeMAC(c)
	}); err != nil {
		return err
	}
	return reply(w, api.Done{Done: fmt.Sprintf("%s %v vni %d", c.op, c.mac, c.vsi.VNI())})
}

func (s *server) readChange(w http.ResponseWriter, r *http.Request) (c change, err error) {
	bad := func(format string, args ...any) (change, error) {
		return c, wrong(http.StatusBadRequest, format, args...)
	}
	if _, err := query(r); err != nil {
		return c, err
	}
	var x api.Change
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		return bad("body: %w", err)
	}
	if !slices.Contains([]string{api.Add, api.Append, api.Replace, api.Del}, x.Op) {
		return bad("op %q: must be add, append, replace or del", x.Op)
	}
	c.op, c.dev = x.Op, x.Dev
	if c.mac, err = frame.ParseMAC(x.MAC); err != nil || c.mac.IsGroup() {
		return bad("mac %q: must be the MAC of one host, or 00:00:00:00:00:00 for the flood list", x.MAC)
	}
	if x.Dst != "" {
		if c.dst, err = netip.ParseAddr(x.Dst); err != nil || hostaddr.Check(c.dst) != nil && !(c.dst.IsMulticast() && c.mac.IsZero()) {
			return bad("dst %q: must be the address of one host, or for the flood list a multicast group", x.Dst)
		}
		c.dst = c.dst.Unmap()
	}
	switch to := x.Dst != "" || x.Dev != ""; {
	case x.Dst != "" && x.Dev != "":
		return bad("takes either dst or dev")
	case x.Tunnel != "" && x.Dst == "":
		return bad("tunnel: requires dst")
	case !to && (x.Op != api.Del || c.mac.IsZero()):
		return bad("%s: requires dst or dev", x.Op)
	case c.mac.IsZero() && !c.dst.IsValid():
		return bad("mac 00:00:00:00:00:00: the flood list requires dst")
	case c.mac.IsZero() && x.Op == api.Replace:
		return bad("replace: requires the MAC of one host; use append and del for the flood list")
	case !c.mac.IsZero() && x.Op == api.Append:
		return bad("append: requires 00:00:00:00:00:00, the flood list; use add or replace for one host")
	}
	for _, v := range segments(s.n) {
		if v.VNI() != x.VNI {
			continue
		}
		c.vsi = v
		c.tunnel, err = tunnelFor(v, c.dst, x.Tunnel)
		return c, err
	}
	return c, wrong(http.StatusNotFound, "vni %d: no such segment", x.VNI)
}

// tunnelFor returns the tunnel of a segment to a peer: the one with a name, or the only one with the family of the address.
// It returns "" if the segment has no other.
func tunnelFor(vsi *vswitch.VSI, dst netip.Addr, name string) (string, error) {
	var names, fit []string
	for a := range floodsOf(vsi) {
		v := a.Port().(*vtep.VTEP)
		names = append(names, v.Name())
		if slices.ContainsFunc(v.Local(), func(l netip.Addr) bool { return l.Is4() == dst.Is4() }) {
			fit = append(fit, v.Name())
		}
	}
	switch {
	case name != "" && !slices.Contains(names, name):
		return "", wrong(http.StatusNotFound, "tunnel %q: vni %d has no such tunnel", name, vsi.VNI())
	case len(names) < 2 || !dst.IsValid():
		return "", nil
	case name != "":
		return name, nil
	case len(fit) == 0:
		return "", wrong(http.StatusConflict, "dst %v: no tunnel of vni %d has an address of this family", dst, vsi.VNI())
	case len(fit) > 1:
		return "", wrong(http.StatusConflict, "dst %v: vni %d has several tunnels for this family; tunnel must be one of %s", dst, vsi.VNI(), strings.Join(fit, ", "))
	}
	return fit[0], nil
}

// changeFlood adds a peer to a flood list, or removes one that the socket added.
func (s *server) changeFlood(c change) error {
	row := control.Flood{VNI: c.vsi.VNI(), VTEP: netip.AddrPortFrom(c.dst, 0), Tunnel: c.tunnel}
	own := s.own(row)
	there, any := s.floods(c)
	switch {
	case c.op == api.Del && own:
		return s.program(control.Update{Del: []control.Row{row}})
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

// floods reports whether a flood list has a peer, and whether it has any.
func (s *server) floods(c change) (there, any bool) {
	for a, list := range floodsOf(c.vsi) {
		if c.tunnel != "" && c.tunnel != a.Port().(*vtep.VTEP).Name() {
			continue
		}
		return slices.ContainsFunc(list, func(p vtep.FloodPeer) bool { return p.Addr.Addr() == c.dst }), len(list) > 0
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

// changeMAC adds or removes an entry. The entries are sticky: learning does not move them.
func (s *server) changeMAC(c change) error {
	row := control.MAC{VNI: c.vsi.VNI(), MAC: c.mac, Port: c.dev, Sticky: true}
	if c.dst.IsValid() {
		row.VTEP, row.Tunnel = netip.AddrPortFrom(c.dst, 0), c.tunnel
	}
	own := s.own(control.MAC{VNI: row.VNI, MAC: row.MAC})
	e, there := c.vsi.FDB().Get(c.mac)
	static := there && e.Origin == fdb.OriginStatic
	switch {
	case c.op == api.Add && (there || own):
		return wrong(http.StatusConflict, "%v already has an entry in vni %d: use replace", c.mac, row.VNI)
	case c.op == api.Del && own:
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
	return s.program(control.Update{Add: []control.Row{row}})
}

// own reports whether the socket added a row; for a MAC it compares the key only.
func (s *server) own(row control.Row) bool {
	for r := range s.n.Plane().Rows(owner) {
		if m, ok := r.(control.MAC); ok {
			r = control.MAC{VNI: m.VNI, MAC: m.MAC}
		}
		if r == row {
			return true
		}
	}
	return false
}

func (s *server) program(u control.Update) error {
	err := s.n.Program(owner, u)
	for _, no := range []error{control.ErrNoPort, control.ErrNoVTEP, control.ErrNoSegment} {
		if errors.Is(err, no) {
			return failure{http.StatusNotFound, err}
		}
	}
	if err != nil {
		return failure{http.StatusConflict, err}
	}
	return nil
}
