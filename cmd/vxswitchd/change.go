package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// readChange reads the body of a change.
func readChange[T any](w http.ResponseWriter, r *http.Request) (x T, err error) {
	if _, err := query(r); err != nil {
		return x, err
	}
	return decodeChange[T](http.MaxBytesReader(w, r.Body, maxBody))
}

func decodeChange[T any](body io.Reader) (x T, err error) {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	err = d.Decode(&x)
	if big := (*http.MaxBytesError)(nil); errors.As(err, &big) {
		return x, wrong(http.StatusRequestEntityTooLarge, "body: larger than %d bytes", maxBody)
	}
	if err != nil {
		return x, wrong(http.StatusBadRequest, "body: %w", err)
	}
	return x, nil
}

func checkOp(op string, allowed ...string) error {
	if !slices.Contains(allowed, op) {
		last := len(allowed) - 1
		return wrong(http.StatusBadRequest, "op %q: must be %s or %s", op, strings.Join(allowed[:last], ", "), allowed[last])
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

// vsi returns a segment.
func (s *server) vsi(vni frame.VNI) (*vswitch.VSI, error) {
	for _, v := range segments(s.n) {
		if v.VNI() == vni {
			return v, nil
		}
	}
	return nil, wrong(http.StatusNotFound, "vni %d: no such segment", vni)
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
		why = rows[0]
	}
	for _, no := range []error{control.ErrNoPort, control.ErrNoVTEP, control.ErrNoSegment, control.ErrNoVRF, control.ErrNoInterface} {
		if errors.Is(err, no) {
			return failure{http.StatusNotFound, why}
		}
	}
	return failure{http.StatusConflict, why}
}
