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
	ErrNoPort      = errors.New("no such port is attached to the segment")
	ErrNoVRF       = errors.New("there is no such VRF")
	ErrNoInterface = errors.New("the VRF has no interface on the segment")
)

// A tunnel is what a Plane needs of a VTEP.
type tunnel interface {
	vswitch.Tunnel
	AddPeer(netip.AddrPort) (uint16, error)
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
func known(r Route) error {
	switch r.(type) {
	case MAC, Flood, Prefix:
		return nil
	}
	return fmt.Errorf("Update: %T is no row", r)
}

// checkAll checks the rows that are new or have changed.
func (t *tx) checkAll(diff []delta) error {
	for _, d := range diff {
		var err error
		switch r := d.new.row.(type) {
		case MAC:
			err = t.checkMAC(r)
		case Flood:
			if !r.VTEP.Addr().IsMulticast() {
				err = checkVTEP(r.VTEP)
			}
			if err == nil {
				err = t.reaches(r.VNI, r.VTEP, r.Tunnel, "")
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

func (t *tx) checkMAC(r MAC) error {
	switch {
	case r.MAC.IsZero() || r.MAC.IsGroup():
		return errors.New("MAC.MAC: is not one host's")
	case r.VTEP.IsValid() == (r.Port != ""):
		return errors.New("MAC.VTEP, Port: one of them is needed")
	case r.Tunnel != "" && r.Port != "":
		return errors.New("MAC.Tunnel: is not for a port")
	case r.IP.IsValid() && hostaddr.Neighbour(r.IP) != nil:
		return errors.New("MAC.IP: is not one host's")
	}
	if r.Port == "" {
		if err := checkVTEP(r.VTEP); err != nil {
			return err
		}
	}
	return t.reaches(r.VNI, r.VTEP, r.Tunnel, r.Port)
}

// reaches reports whether a segment has a VTEP, that of a name if there is one, or the port
// that is named.
func (t *tx) reaches(vni frame.VNI, vtep netip.AddrPort, tunnel, port string) error {
	s, err := t.segment(vni)
	if err != nil {
		return err
	}
	if _, ok := s.ports[port]; port != "" && !ok {
		return fmt.Errorf("port %q: %w", port, ErrNoPort)
	}
	if vtep.IsValid() {
		_, err = s.far(tunnel)
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
	if err := checkVTEP(v.VTEP); err != nil {
		return err
	}
	return t.reaches(v.VNI, v.VTEP, v.Tunnel, "")
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
