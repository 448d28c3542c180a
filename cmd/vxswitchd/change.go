package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/setting/conf"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// readChange reads the body of a change.
func readChange[T any](w http.ResponseWriter, r *http.Request) (x T, err error) {
	text, err := readBody(w, r, maxBody)
	if err != nil {
		return x, err
	}
	return decodeChange[T](text)
}

// decodeChange reads a change as a file is read, and refuses it in the same words.
func decodeChange[T any](text []byte) (x T, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return x, wrong(http.StatusBadRequest, "body: empty; must be an object with op")
	}
	r, err := conf.Read(text, &x, nil)
	if err == nil {
		err = r.Err()
	}
	if errs := (setting.Errors{}); errors.As(err, &errs) {
		return x, wrong(http.StatusBadRequest, "%s", keyErrors(errs))
	}
	return x, err
}

// keyErrors returns errors with the keys of a body that is one line. What is wrong with the body as a whole has a position.
func keyErrors(errs setting.Errors) string {
	lines := make([]string, len(errs))
	for i, e := range errs {
		if lines[i] = "body:" + e.Error(); e.Path != "" {
			x := *e
			x.Line = 0
			lines[i] = x.Error()
		}
	}
	return strings.Join(lines, "; ")
}

// oneOf checks the word that a change has for a key.
func oneOf(key, word string, allowed ...string) error {
	if !slices.Contains(allowed, word) {
		return wrong(http.StatusBadRequest, "%s %q: must be %s", key, word, setting.Or(allowed...))
	}
	return nil
}

// parseHost reads an address that check takes.
func parseHost(s string, check func(netip.Addr) error) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if a = a.Unmap(); err != nil || check(a) != nil {
		return a, fmt.Errorf("%q: must be the address of one host", s)
	}
	return a, nil
}

// vsiOf returns the VSI with a VNI.
func vsiOf(list []*vswitch.VSI, vni frame.VNI) (*vswitch.VSI, error) {
	if vni > frame.MaxVNI {
		return nil, wrong(http.StatusBadRequest, "vni %d: must be 0 to %d", vni, frame.MaxVNI)
	}
	i := slices.IndexFunc(list, func(v *vswitch.VSI) bool { return v.VNI() == vni })
	if i < 0 {
		return nil, wrong(http.StatusNotFound, "vni %d: no such segment", vni)
	}
	return list[i], nil
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

// checkPlace refuses a peer that a segment cannot have, and a port that is not in it, in the words of a change.
func (s *server) checkPlace(vsi *vswitch.VSI, dst netip.Addr, tunnel, dev string) error {
	switch {
	case dev != "":
		return checkDev(vsi, dev)
	case !dst.IsValid():
		return nil
	}
	var local []netip.Addr
	which := fmt.Sprintf("no tunnel of vni %d has an", vsi.VNI())
	if tunnel != "" {
		which = fmt.Sprintf("tunnel %q has no", tunnel)
	}
	for a := range floodsOf(vsi) {
		if v := a.Port().(*vtep.VTEP); tunnel == "" || tunnel == v.Name() {
			tunnel, local = v.Name(), v.Local()
		}
	}
	loopback := func(l netip.Addr) bool { return l.IsLoopback() }
	switch {
	case tunnel == "":
		return wrong(http.StatusNotFound, "dst %v: vni %d has no tunnel", dst, vsi.VNI())
	case slices.Contains(local, dst):
		return wrong(http.StatusConflict, "dst %v: is this node's own address", dst)
	case len(local) == 0: // a wildcard address: all families of the host
		return nil
	case !slices.ContainsFunc(local, func(l netip.Addr) bool { return l.Is4() == dst.Is4() }):
		return wrong(http.StatusConflict, "dst %v: %s address of this family", dst, which)
	case dst.IsLoopback() && !slices.ContainsFunc(local, loopback):
		return wrong(http.StatusConflict, "dst %v: must not be a loopback address, because %v, the local address of tunnel %q, is none", dst, local[0], tunnel)
	}
	return nil
}

// checkDev refuses a name that does not stand for one member of a segment.
func checkDev(vsi *vswitch.VSI, dev string) error {
	members := vsi.Named(dev)
	switch {
	case len(members) == 1:
		return nil
	case len(members) > 1:
		names := make([]string, len(members))
		for i, a := range members {
			names[i] = vswitch.AttachmentName(dev, a.Tag())
		}
		return wrong(http.StatusConflict, "dev %q: must be one of its members in vni %d, by the tag: %s", dev, vsi.VNI(), strings.Join(names, ", "))
	case slices.ContainsFunc(vsi.Attachments(), func(a *vswitch.Attachment) bool { return a.PortName() == dev }):
		return wrong(http.StatusConflict, "dev %q: is a tunnel: use dst with the address of the peer", dev)
	}
	return wrong(http.StatusNotFound, "dev %q: no such port in vni %d", dev, vsi.VNI())
}

// tunnelOf returns a function for the tunnel of a row of a segment: the one with the name in the row, or without a name the first.
func (s *server) tunnelOf(vni frame.VNI) func(name string) string {
	first := ""
	for _, g := range s.n.Running().Segments {
		if g.VNI == vni {
			if first = g.Tunnel; len(g.Tunnels) > 0 {
				first = g.Tunnels[0].Tunnel
			}
		}
	}
	return func(name string) string { return cmp.Or(name, first) }
}

// own returns the rows of a type that the socket added, of those that match.
func own[T control.Row](s *server, match func(T) bool) (rows []T) {
	for r := range s.n.Plane().Rows(owner) {
		if x, ok := r.(T); ok && match(x) {
			rows = append(rows, x)
		}
	}
	return rows
}

// program changes the rows of the socket. An error changes nothing.
func (s *server) program(u control.Update) error {
	old := slices.Collect(s.n.Plane().Rows(owner))
	err := s.n.Program(owner, u)
	if err == nil {
		return nil
	}
	s.n.Program(owner, control.Update{Snapshot: true, Loose: true, Add: old}) // they were there
	why := err
	if rows := control.Refused(err); len(rows) > 0 {
		why = rows[0].Err
	}
	why = saidAs{fieldWords.Replace(why.Error()), why}
	for _, no := range []error{control.ErrNoPort, control.ErrNoVTEP, control.ErrNoSegment, control.ErrNoVRF, control.ErrNoInterface} {
		if errors.Is(err, no) {
			return failure{http.StatusNotFound, why}
		}
	}
	return failure{http.StatusConflict, why}
}

// fieldWords turns the fields of rows into those of changes.
var fieldWords = strings.NewReplacer("Prefix.Via: IP or MAC", "via, or mac (lladdr) of a router,", "Prefix.Via.IP", "via", "Prefix.Via.MAC", "mac", "Prefix.Via.VTEP", "dst",
	"Prefix.Via.VNI", "vni", "Prefix.Via.", "", "Prefix.Prefix", "prefix", "Prefix.VRF", "vrf", "VTEP: vtep: peer ", "dst ", "vtep: peer ", "dst ", "VTEP: ", "dst: ", "VRF: ", "vrf: ", "MAC.MAC", "mac",
	"required with MAC", "required with mac", `port "`, `dev "`)

// A saidAs is an error in other words.
type saidAs struct {
	text string
	error
}

func (s saidAs) Error() string { return s.text }

func (s saidAs) Unwrap() error { return s.error }
