package control

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// Errors of Program wrap these if something that a row refers to does not exist.
var (
	ErrNoSegment   = errors.New("there is no such segment")
	ErrNoVTEP      = errors.New("the segment has no VTEP")
	ErrNoGroup     = errors.New("the owner has no such group on the segment")
	ErrNoPort      = errors.New("no such port is attached to the segment")
	ErrNoVRF       = errors.New("there is no such VRF")
	ErrNoInterface = errors.New("the VRF has no interface on the segment")
)

// A tunnel is what a Plane needs of a VTEP.
type tunnel interface {
	vswitch.Tunnel
	AddPeer(netip.AddrPort) (uint16, error)
	NextHop(netip.AddrPort, frame.VNI) (uint16, error)
	Group(...uint16) (uint16, error)
	DeletePeer(uint16)
	SetFlood(frame.VNI, ...netip.AddrPort) error
	Flood(frame.VNI) []netip.AddrPort
	Allow(frame.VNI, ...netip.AddrPort) error
	Disallow(frame.VNI, ...netip.AddrPort)
}

var _ tunnel = (*vtep.VTEP)(nil)

// A segment is the state of a VSI during one update.
type segment struct {
	vsi     *vswitch.VSI
	tunnels []localVTEP // in the order they were attached
	first   string      // name of the VTEP for rows without one
	ports   map[string]frame.Dest
	arp     *arp.Table
}

// A localVTEP is a VTEP of this switch that is attached to a segment.
type localVTEP struct {
	name   string
	at     *vswitch.Attachment
	tunnel tunnel
}

// vni returns the VNI of the segment on the VTEP.
func (v localVTEP) vni() frame.VNI { return frame.VNI(v.at.Tag()) }

// vtep returns the VTEP with a name, "" for the first.
func (s *segment) vtep(name string) (v localVTEP, err error) {
	if name == "" {
		name = s.first
	}
	for _, v := range s.tunnels {
		if name == "" || v.name == name {
			return v, nil
		}
	}
	if name != "" {
		return v, fmt.Errorf("VTEP %q: %w", name, ErrNoVTEP)
	}
	return v, fmt.Errorf("VTEP: %w", ErrNoVTEP)
}

// segment returns the segment with a VNI.
func (t *tx) segment(vni frame.VNI) (*segment, error) {
	if t.segments == nil {
		t.segments = map[frame.VNI]*segment{}
		for _, v := range t.p.cfg.Switch.VSIs() {
			t.segments[v.VNI()] = &segment{vsi: v}
		}
	}
	s := t.segments[vni]
	if s == nil {
		return nil, fmt.Errorf("VNI: %w", ErrNoSegment)
	}
	if s.ports == nil {
		s.ports = map[string]frame.Dest{}
		for _, a := range s.vsi.Attachments() {
			name := t.p.cfg.Switch.Name(a.Dest(0))
			if x, ok := a.Port().(tunnel); ok {
				s.tunnels = append(s.tunnels, localVTEP{name, a, x})
			} else {
				s.ports[name] = a.Dest(0)
			}
		}
		if f := t.p.cfg.Neighbours; f != nil {
			s.arp = f(vni)
		}
		if f := t.p.cfg.First; f != nil {
			s.first = f(vni)
		}
	}
	return s, nil
}

// vrf returns the VRF with a name. Unlike Gateway.VRF it makes none.
func (t *tx) vrf(name string) (*l3.VRF, error) {
	if t.vrfs == nil {
		t.vrfs = map[string]*l3.VRF{}
		if t.p.cfg.Gateway != nil {
			for _, v := range t.p.cfg.Gateway.VRFs() {
				t.vrfs[v.Name()] = v
			}
		}
	}
	if v := t.vrfs[name]; v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("VRF: %w", ErrNoVRF)
}

// known returns an error for nil and pointers, which are not rows.
func known(r Row) error {
	switch r.(type) {
	case MAC, Group, Flood, Prefix:
		return nil
	}
	return fmt.Errorf("Update: %T: must be a MAC, Group, Flood or Prefix", r)
}

// checkAll checks new and changed rows, which are staged.
func (t *tx) checkAll(owner string, diff []delta) error {
	for _, d := range diff {
		var err error
		switch r := d.new.row.(type) {
		case MAC:
			err = t.checkMAC(owner, r)
		case Group:
			if r.Name == "" {
				err = errors.New("Group.Name: required")
			} else if err = checkRemote("Group", remote{r.VTEP, r.FarVNI}); err == nil {
				err = t.reaches(r.VNI, location{remote: remote{vtep: r.VTEP}, tunnel: r.Tunnel})
			}
		case Flood:
			if !r.VTEP.Addr().IsMulticast() {
				err = checkVTEP(r.VTEP)
			}
			if err == nil {
				err = t.reaches(r.VNI, location{remote: remote{vtep: r.VTEP}, tunnel: r.Tunnel})
			}
		case Prefix:
			err = t.checkPrefix(r)
		}
		if err != nil {
			return fmt.Errorf("%v: %w", d.new.row, err)
		}
	}
	return nil
}

func (t *tx) checkMAC(owner string, r MAC) error {
	set := 0
	for _, is := range []bool{r.VTEP.IsValid(), r.Group != "", r.Port != "", r.Filter} {
		if is {
			set++
		}
	}
	switch {
	case r.MAC.IsZero():
		return errors.New("MAC.MAC: must not be zero")
	case set != 1:
		return errors.New("MAC.VTEP, Group, Port, Filter: exactly one of them is required")
	case r.MAC.IsGroup() && (r.IP.IsValid() || r.Group != ""):
		return errors.New("MAC.MAC: must be the MAC of one host with IP or Group")
	case r.Tunnel != "" && (r.Port != "" || r.Filter):
		return errors.New("MAC.Tunnel: not allowed with Port or Filter")
	case r.FarVNI != 0 && !r.VTEP.IsValid():
		return errors.New("MAC.FarVNI: requires VTEP")
	case r.IP.IsValid() && r.Filter:
		return errors.New("MAC.IP: not allowed with Filter")
	case r.IP.IsValid() && hostaddr.Neighbour(r.IP) != nil:
		return errors.New("MAC.IP: must be the address of one host")
	}
	at := location{remote: remote{r.VTEP, r.FarVNI}, tunnel: r.Tunnel, port: r.Port}
	if r.VTEP.IsValid() {
		if err := checkRemote("MAC", at.remote); err != nil {
			return err
		}
	}
	if r.Group != "" {
		at.group = r.in(owner)
	}
	return t.reaches(r.VNI, at)
}

func checkRemote(row string, r remote) error {
	if !r.farVNI.Valid() {
		return fmt.Errorf("%s.FarVNI: %d: must be 0 to %d", row, r.farVNI, frame.MaxVNI)
	}
	return checkVTEP(r.vtep)
}

// reaches returns an error unless the segment has the local VTEP or the port of a location, and its
// owner has the group.
func (t *tx) reaches(vni frame.VNI, l location) error {
	s, err := t.segment(vni)
	if err != nil {
		return err
	}
	if _, ok := s.ports[l.port]; l.port != "" && !ok {
		return fmt.Errorf("port %q: %w", l.port, ErrNoPort)
	}
	if l.vtep.IsValid() || l.group.name != "" {
		_, err = s.vtep(l.tunnel)
	}
	if err == nil && l.group.name != "" && t.p.slots[l.group].empty() {
		return fmt.Errorf("group %q: %w", l.group.name, ErrNoGroup)
	}
	return err
}

func (t *tx) checkPrefix(r Prefix) error {
	vrf, err := t.vrf(r.VRF)
	if err != nil {
		return err
	}
	if p := r.Prefix; !p.IsValid() || p != p.Masked() || p.Addr().Is4In6() {
		return errors.New("Prefix.Prefix: must be a prefix without host bits")
	}
	v := r.Via
	if v == (Via{}) {
		return nil
	}
	if vrf.Interface(v.VNI) == nil {
		return fmt.Errorf("Prefix.Via.VNI: %w", ErrNoInterface)
	}
	if err := t.suits(vrf.Interface(v.VNI), v); err != nil {
		return err
	}
	switch {
	case v.Tunnel != "" && !v.VTEP.IsValid():
		return errors.New("Prefix.Via.Tunnel: requires VTEP")
	case v.FarVNI != 0 && (v.MAC.IsZero() || !v.VTEP.IsValid()):
		return errors.New("Prefix.Via.FarVNI: requires MAC and VTEP")
	case v.IP.IsValid() && (!v.MAC.IsZero() || v.VTEP.IsValid()):
		return errors.New("Prefix.Via.IP: not allowed with MAC or VTEP")
	case v.IP.IsValid() && v.IP.Is4() != r.Prefix.Addr().Is4():
		return errors.New("Prefix.Via.IP: is of another address family than the prefix")
	case v.MAC.IsGroup():
		return errors.New("Prefix.Via.MAC: must be the MAC of one host")
	case !v.MAC.IsZero() && !v.VTEP.IsValid():
		return errors.New("Prefix.Via.VTEP: required with MAC")
	case !v.VTEP.IsValid():
		return nil
	}
	if err := checkRemote("Prefix.Via", remote{v.VTEP, v.FarVNI}); err != nil {
		return err
	}
	return t.reaches(v.VNI, location{remote: remote{vtep: v.VTEP}, tunnel: v.Tunnel})
}

// suits checks that a next hop is of the kind of its interface: a tunnel for IP leads to peers, an
// IP port to whatever is behind it, all others to neighbours and routers.
func (t *tx) suits(i *l3.Interface, v Via) error {
	s, err := t.segment(v.VNI)
	switch {
	case err != nil:
		return err
	case i.MAC().IsZero() && v.VTEP.IsValid() != (len(s.tunnels) > 0):
		return errors.New("Prefix.Via.VTEP: required on a tunnel for IP, and only there")
	case !i.MAC().IsZero() && v.MAC.IsZero() && !v.IP.IsValid():
		return errors.New("Prefix.Via: IP or MAC is required")
	}
	return nil
}

func checkVTEP(a netip.AddrPort) error {
	if err := hostaddr.Check(a.Addr()); err != nil {
		return fmt.Errorf("VTEP: %v: %w", a.Addr(), err)
	}
	return nil
}
