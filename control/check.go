package control

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
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

// check returns what is wrong with a row, whatever the switch has.
func check(r Row) error {
	switch r := r.(type) {
	case MAC:
		err := cmp.Or(checkVNI("MAC.VNI", r.VNI), checkName("MAC.Group", r.Group), checkName("MAC.Tunnel", r.Tunnel), checkName("MAC.Port", r.Port))
		if err != nil {
			return err
		}
		return r.check()
	case Group:
		if err := checkVNI("Group.VNI", r.VNI); err != nil {
			return err
		}
		if r.Name == "" {
			return errors.New("Group.Name: required")
		}
		if err := cmp.Or(checkName("Group.Name", r.Name), checkName("Group.Tunnel", r.Tunnel)); err != nil {
			return err
		}
		return checkRemote("Group", remote{r.VTEP, r.FarVNI})
	case Flood:
		if err := cmp.Or(checkVNI("Flood.VNI", r.VNI), checkName("Flood.Tunnel", r.Tunnel)); err != nil {
			return err
		}
		switch {
		case !r.MAC.IsZero() && !r.MAC.IsGroup():
			return fmt.Errorf("Flood.MAC: %v: must be the MAC of a group, or zero", r.MAC)
		case !r.MAC.IsZero() && r.NoUnknown:
			return errors.New("Flood.NoUnknown: not allowed with MAC")
		case r.VTEP.Addr().IsMulticast():
			return nil
		}
		return checkVTEP(r.VTEP)
	case Prefix:
		if r.VRF == "" {
			return errors.New(`Prefix.VRF: "": must be the name of a VRF`)
		}
		err := cmp.Or(checkVNI("Prefix.Via.VNI", r.Via.VNI), checkName("Prefix.VRF", r.VRF), checkName("Prefix.Via.Tunnel", r.Via.Tunnel))
		if err != nil {
			return err
		}
		return r.check()
	}
	return nil
}

func checkVNI(field string, vni frame.VNI) error {
	if !vni.Valid() {
		return fmt.Errorf("%s: %d: must be 0 to %d", field, vni, frame.MaxVNI)
	}
	return nil
}

// checkName checks a name, which may be shown in a line of text. There may be none.
func checkName(field, name string) error {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return fmt.Errorf("%s: %q: must be printable characters", field, name)
	}
	return nil
}

func (r MAC) check() error {
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
	case r.MAC == frame.Broadcast:
		return fmt.Errorf("MAC.MAC: %v: must be the MAC of one host or of a multicast group", r.MAC)
	case r.MAC.IsGroup() && (r.IP.IsValid() || r.Group != ""):
		return fmt.Errorf("MAC.MAC: %v: must be the MAC of one host with IP or Group", r.MAC)
	case r.Tunnel != "" && (r.Port != "" || r.Filter):
		return errors.New("MAC.Tunnel: not allowed with Port or Filter")
	case r.FarVNI != 0 && !r.VTEP.IsValid():
		return errors.New("MAC.FarVNI: requires VTEP")
	case r.IP.IsValid() && r.Filter:
		return errors.New("MAC.IP: not allowed with Filter")
	case r.IP.IsValid() && hostaddr.Neighbour(r.IP) != nil:
		return fmt.Errorf("MAC.IP: %v: must be the address of one host", r.IP)
	case r.VTEP.IsValid():
		return checkRemote("MAC", remote{r.VTEP, r.FarVNI})
	}
	return nil
}

func (r Prefix) check() error {
	v := r.Via
	switch p := r.Prefix; {
	case !p.IsValid():
		return errors.New("Prefix.Prefix: required")
	case p.Addr().Is4In6():
		return fmt.Errorf("Prefix.Prefix: %v: must be an IPv4 or IPv6 prefix, not an IPv4-mapped one", p)
	case p != p.Masked():
		return fmt.Errorf("Prefix.Prefix: %v: must have no host bits, as in %v", p, p.Masked())
	case hostaddr.Routed(p) != nil:
		return fmt.Errorf("Prefix.Prefix: %v: %w", p, hostaddr.Routed(p))
	case v.Weight != 0 && v == Via{Weight: v.Weight}:
		return errors.New("Prefix.Via.Weight: requires a next hop")
	case v.Tunnel != "" && !v.VTEP.IsValid():
		return errors.New("Prefix.Via.Tunnel: requires VTEP")
	case v.FarVNI != 0 && (v.MAC.IsZero() || !v.VTEP.IsValid()):
		return errors.New("Prefix.Via.FarVNI: requires MAC and VTEP")
	case v.IP.IsValid() && (!v.MAC.IsZero() || v.VTEP.IsValid()):
		return errors.New("Prefix.Via.IP: not allowed with MAC or VTEP")
	case v.IP.IsValid() && hostaddr.Neighbour(v.IP) != nil:
		return fmt.Errorf("Prefix.Via.IP: %v: must be the address of one host", v.IP)
	case v.IP.IsValid() && v.IP.Is4() != p.Addr().Is4():
		return fmt.Errorf("Prefix.Via.IP: %v: must be of the address family of the prefix, %v", v.IP, p)
	case v.MAC.IsGroup():
		return fmt.Errorf("Prefix.Via.MAC: %v: must be the MAC of one host", v.MAC)
	case !v.MAC.IsZero() && !v.VTEP.IsValid():
		return errors.New("Prefix.Via.VTEP: required with MAC")
	case v.VTEP.IsValid():
		return checkRemote("Prefix.Via", remote{v.VTEP, v.FarVNI})
	}
	return nil
}

func checkRemote(row string, r remote) error {
	if !r.farVNI.Valid() {
		return fmt.Errorf("%s.FarVNI: %d: must be 0 to %d", row, r.farVNI, frame.MaxVNI)
	}
	return checkVTEP(r.vtep)
}

func checkVTEP(a netip.AddrPort) error {
	if !a.IsValid() {
		return errors.New("VTEP: required")
	}
	if err := hostaddr.Check(a.Addr()); err != nil {
		return fmt.Errorf("VTEP: %v: %w", a.Addr(), err)
	}
	return nil
}
