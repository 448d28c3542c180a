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

// What rows need and do not find. Errors of Program wrap them, for errors.Is.
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

// segment is a VSI as it is during one update.
type segment struct {
	vsi     *vswitch.VSI
	tunnels []far  // in the order they were attached
	first   string // that rows without a name are about
	ports   map[string]frame.Dest
	arp     *arp.Table
}

// far is a VTEP that a segment is in.
type far struct {
	name   string
	at     *vswitch.Attachment
	tunnel tunnel
}

// vni returns what the VTEP calls the segment.
func (f far) vni() frame.VNI { return frame.VNI(f.at.Tag()) }

// far returns the VTEP of a name, "" for the first.
func (s *segment) far(name string) (f far, err error) {
	if name == "" {
		name = s.first
	}
	for _, f := range s.tunnels {
		if name == "" || f.name == name {
			return f, nil
		}
	}
	if name != "" {
		return f, fmt.Errorf("VTEP %q: %w", name, ErrNoVTEP)
	}
	return f, fmt.Errorf("VTEP: %w", ErrNoVTEP)
}

// segment returns the segment of a VNI.
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
				s.tunnels = append(s.tunnels, far{name, a, x})
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

// vrf returns the VRF of a name, and never makes one.
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

// known reports what is not a row at all: a nil, or a pointer to one.
func known(r Row) error {
	switch r.(type) {
	case MAC, Group, Flood, Prefix:
		return nil
	}
	return fmt.Errorf("Update: %T is no row", r)
}

// checkAll checks the rows that are new or have changed, which are staged.
func (t *tx) checkAll(owner string, diff []delta) error {
	for _, d := range diff {
		var err error
		switch r := d.new.row.(type) {
		case MAC:
			err = t.checkMAC(owner, r)
		case Group:
			if r.Name == "" {
				err = errors.New("Group.Name: is needed")
			} else if err = checkHop("Group", hop{r.VTEP, r.FarVNI}); err == nil {
				err = t.reaches(r.VNI, location{hop: hop{vtep: r.VTEP}, tunnel: r.Tunnel})
			}
		case Flood:
			if !r.VTEP.Addr().IsMulticast() {
				err = checkVTEP(r.VTEP)
			}
			if err == nil {
				err = t.reaches(r.VNI, location{hop: hop{vtep: r.VTEP}, tunnel: r.Tunnel})
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
	places := 0
	for _, is := range []bool{r.VTEP.IsValid(), r.Group != "", r.Port != "", r.Filter} {
		if is {
			places++
		}
	}
	switch {
	case r.MAC.IsZero():
		return errors.New("MAC.MAC: is not one host's")
	case places != 1:
		return errors.New("MAC.VTEP, Group, Port, Filter: one of them is needed")
	case r.MAC.IsGroup() && (r.IP.IsValid() || r.Group != ""):
		return errors.New("MAC.MAC: is not one host's, as IP and Group need it")
	case r.Tunnel != "" && (r.Port != "" || r.Filter):
		return errors.New("MAC.Tunnel: is not for a port, nor for a filter")
	case r.FarVNI != 0 && !r.VTEP.IsValid():
		return errors.New("MAC.FarVNI: needs a VTEP")
	case r.IP.IsValid() && r.Filter:
		return errors.New("MAC.IP: is not for a filter")
	case r.IP.IsValid() && hostaddr.Neighbour(r.IP) != nil:
		return errors.New("MAC.IP: is not one host's")
	}
	at := location{hop: hop{r.VTEP, r.FarVNI}, tunnel: r.Tunnel, port: r.Port}
	if r.VTEP.IsValid() {
		if err := checkHop("MAC", at.hop); err != nil {
			return err
		}
	}
	if r.Group != "" {
		at.group = r.in(owner)
	}
	return t.reaches(r.VNI, at)
}

func checkHop(row string, h hop) error {
	if !h.far.Valid() {
		return fmt.Errorf("%s.FarVNI: %d, allowed are 1 to %d, and 0 for none", row, h.far, frame.MaxVNI)
	}
	return checkVTEP(h.vtep)
}

// reaches reports whether a segment has the VTEP that a location needs, that of a name if there is
// one, or the port that is named; and its owner the group.
func (t *tx) reaches(vni frame.VNI, l location) error {
	s, err := t.segment(vni)
	if err != nil {
		return err
	}
	if _, ok := s.ports[l.port]; l.port != "" && !ok {
		return fmt.Errorf("port %q: %w", l.port, ErrNoPort)
	}
	if l.vtep.IsValid() || l.group.name != "" {
		_, err = s.far(l.tunnel)
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
		return errors.New("Prefix.Prefix: is none, or has bits beyond its length")
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
		return errors.New("Prefix.Via.Tunnel: needs a VTEP")
	case v.FarVNI != 0 && (v.MAC.IsZero() || !v.VTEP.IsValid()):
		return errors.New("Prefix.Via.FarVNI: needs a MAC and a VTEP")
	case v.IP.IsValid() && (!v.MAC.IsZero() || v.VTEP.IsValid()):
		return errors.New("Prefix.Via.IP: is not for a tunnel")
	case v.IP.IsValid() && v.IP.Is4() != r.Prefix.Addr().Is4():
		return errors.New("Prefix.Via.IP: is of the other family")
	case v.MAC.IsGroup():
		return errors.New("Prefix.Via.MAC: is not one host's")
	case !v.MAC.IsZero() && !v.VTEP.IsValid():
		return errors.New("Prefix.Via.VTEP: needed with MAC")
	case !v.VTEP.IsValid():
		return nil
	}
	if err := checkHop("Prefix.Via", hop{v.VTEP, v.FarVNI}); err != nil {
		return err
	}
	return t.reaches(v.VNI, location{hop: hop{vtep: v.VTEP}, tunnel: v.Tunnel})
}

// suits reports whether a next hop is of the kind that its interface has: a tunnel for IP leads
// to peers, an IP port to whatever is behind it, all others to neighbours and routers.
func (t *tx) suits(i *l3.Interface, v Via) error {
	s, err := t.segment(v.VNI)
	switch {
	case err != nil:
		return err
	case i.MAC().IsZero() && v.VTEP.IsValid() != (len(s.tunnels) > 0):
		return errors.New("Prefix.Via.VTEP: is for a tunnel for IP, and needed there")
	case !i.MAC().IsZero() && v.MAC.IsZero() && !v.IP.IsValid():
		return errors.New("Prefix.Via.IP, MAC: one of them is needed")
	}
	return nil
}

func checkVTEP(a netip.AddrPort) error {
	if err := hostaddr.Check(a.Addr()); err != nil {
		return fmt.Errorf("VTEP: %v %w", a.Addr(), err)
	}
	return nil
}
