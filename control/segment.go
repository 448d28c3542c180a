package control

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// A tunnel is what a Plane needs of a VTEP.
type tunnel interface {
	vswitch.Tunnel
	Local() []netip.Addr
	CheckFlood(netip.AddrPort) error
	AddPeer(netip.AddrPort) (uint16, error)
	NextHop(netip.AddrPort, frame.VNI) (uint16, error)
	Group(...uint16) (uint16, error)
	SetGroup(uint16, ...uint16) error
	DeletePeer(uint16)
	SetFloodPeers(frame.VNI, ...vtep.FloodPeer) error
	FloodPeers(frame.VNI) []vtep.FloodPeer
	Allow(frame.VNI, ...netip.AddrPort) error
	Disallow(frame.VNI, ...netip.AddrPort)
}

var _ tunnel = (*vtep.VTEP)(nil)

// A segment is the state of a VSI during one update.
type segment struct {
	vsi     *vswitch.VSI
	tunnels []localVTEP           // in the order they were attached
	first   string                // name of the VTEP for rows without one
	ports   map[string]frame.Dest // found so far
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
		return v, fmt.Errorf("VTEP: %w named %q", ErrNoVTEP, name)
	}
	return v, fmt.Errorf("VTEP: %w", ErrNoVTEP)
}

// port returns where the port, or one of several attachments of a port, with a name is.
func (s *segment) port(name string) (frame.Dest, error) {
	if d, ok := s.ports[name]; ok {
		return d, nil
	}
	list := s.vsi.Named(name)
	switch len(list) {
	case 0:
		return 0, fmt.Errorf("port %q: %w", name, ErrNoPort)
	case 1:
		s.ports[name] = list[0].Dest(0)
		return s.ports[name], nil
	}
	return 0, fmt.Errorf("port %q: has %d attachments in the segment, only the name of one is allowed, such as %s", name, len(list), vswitch.AttachmentName(name, list[0].Tag()))
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
			if x, ok := a.Port().(tunnel); ok {
				s.tunnels = append(s.tunnels, localVTEP{a.PortName(), a, x})
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
	case v.MAC == i.MAC() && !v.MAC.IsZero():
		return mistake{fmt.Errorf("Prefix.Via.MAC: %v: is the MAC of the local interface", v.MAC)}
	}
	return nil
}
