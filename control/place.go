package control

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
)

// A place is what several rows of an owner have in common: where hosts are, or a next hop.
type place struct {
	owner *owner
	row   Row // without the addresses of hosts and the prefix

	target
	found uint64 // the update that looked for the target last
	err   error  // why its rows wait

	held   []held
	n      int32      // its rows
	used   int32      // entries in tables that need it
	dest   frame.Dest // for FDB entries; the peer is also that of a next hop
	ready  bool       // the numbers are there
	routes bool       // the MAC of the router is in the FDB
}

// A target is where a place is now.
type target struct {
	table  *fdb.Table
	arp    *arp.Table
	tunnel tunnel // nil = the port itself
	vrf    *l3.VRF
	iface  *l3.Interface
	port   frame.Dest
	tag    frame.VNI // of the segment on the tunnel
}

// A mistake is an error that will not go away by itself.
type mistake struct{ error }

func (e mistake) Unwrap() error { return e.error }

// router returns the key of the FDB entry of a router.
func (p *place) router() (k macKey, ok bool) {
	r, ok := p.row.(Prefix)
	return macKey{r.Via.VNI, r.Via.MAC}, ok && !r.Via.MAC.IsZero()
}

// in returns the group that a row names.
func (p *place) in() (k groupKey, ok bool) {
	r, ok := p.row.(MAC)
	return groupKey{p.owner, r.VNI, r.Tunnel, r.Group}, ok && r.Group != ""
}

// via returns the segment and the VTEP of a place, in the terms of a next hop.
func (p *place) via() Via {
	switch r := p.row.(type) {
	case MAC:
		return Via{VNI: r.VNI, VTEP: r.VTEP, FarVNI: r.FarVNI, Tunnel: r.Tunnel}
	case Group:
		return Via{VNI: r.VNI, VTEP: r.VTEP, FarVNI: r.FarVNI, Tunnel: r.Tunnel}
	case Flood:
		return Via{VNI: r.VNI, VTEP: r.VTEP, Tunnel: r.Tunnel}
	}
	return p.row.(Prefix).Via
}

func (p *place) remote() remote {
	v := p.via()
	return remote{v.VTEP, v.FarVNI}
}

// comparePlaces orders the places of routers with one MAC.
func comparePlaces(a, b *place) int {
	x, y := a.remote(), b.remote()
	return cmp.Or(compareOwners(a.owner, b.owner), x.vtep.Compare(y.vtep), cmp.Compare(x.farVNI, y.farVNI))
}

// flags returns the flags of FDB entries.
func (p *place) flags() fdb.Flags {
	r, host := p.row.(MAC)
	f := fdb.Control
	if p.owner.static {
		f = fdb.Static
	}
	if f != fdb.Static && (!host || r.Sticky) {
		f |= fdb.Sticky
	}
	if r.Filter {
		f |= fdb.Filter
	}
	return f
}

// find looks for the target of a place, once in an update, and returns why its rows wait. If the target
// has changed, or they waited, the entries of all its rows are compared.
func (t *tx) find(p *place) error {
	if p.found == t.n {
		return p.err
	}
	p.found = t.n
	now, err := t.target(p)
	if err != nil {
		now = target{}
	} else if p.err != nil {
		t.touchRows(p)
	}
	if p.err = err; now != p.target {
		t.touchRows(p)
		t.unused = append(t.unused, p.held...)
		p.target, p.ready, p.held = now, false, nil
	}
	return p.err
}

func (t *tx) target(p *place) (to target, err error) {
	via := p.via()
	if r, ok := p.row.(Prefix); ok {
		if to.vrf, err = t.vrf(r.VRF); err != nil || r.Via == (Via{}) {
			return to, err
		}
		if to.iface = to.vrf.Interface(via.VNI); to.iface == nil {
			return to, fmt.Errorf("Prefix.Via.VNI: %w", ErrNoInterface)
		}
		if err := t.suits(to.iface, via); err != nil {
			return to, err
		}
		if !via.VTEP.IsValid() {
			return to, nil
		}
	}
	s, err := t.segment(via.VNI)
	if err != nil {
		return to, err
	}
	to.table, to.arp = s.vsi.FDB(), s.arp
	if r, ok := p.row.(MAC); ok && r.Group == "" && !r.VTEP.IsValid() {
		if to.port = frame.Filter; !r.Filter {
			to.port, err = s.port(r.Port)
		}
		return to, err
	}
	f, err := s.vtep(via.Tunnel)
	if err != nil {
		return to, err
	}
	to.port, to.tunnel, to.tag = f.at.Dest(0), f.tunnel, f.vni()
	if k, ok := p.in(); ok {
		_, err := t.members(k)
		return to, err
	}
	a, local := via.VTEP.Addr(), f.tunnel.Local()
	if a.IsLoopback() && !slices.ContainsFunc(local, netip.Addr.IsLoopback) {
		return to, mistake{fmt.Errorf("VTEP: %v: must not be a loopback address, because the local VTEP has none", a)}
	}
	if _, flood := p.row.(Flood); flood {
		return to, f.tunnel.CheckFlood(via.VTEP)
	}
	if slices.Contains(local, a) {
		return to, mistake{fmt.Errorf("VTEP: %v: must not be the address of the local VTEP", a)}
	}
	return to, nil
}

// need gets what entries of a place need: the numbers of its VTEPs.
func (t *tx) need(p *place) error {
	if err := t.find(p); err != nil || p.ready {
		return err
	}
	p.dest = p.port
	if _, flood := p.row.(Flood); p.tunnel != nil && !flood {
		var num uint16
		if k, ok := p.in(); ok {
			nums, _ := t.members(k)
			num, p.held, p.err = t.holdGroup(p.tunnel, p.tag, k, nums)
		} else {
			num, p.held, p.err = t.holdRemote(p.tunnel, p.tag, p.remote())
		}
		p.dest = frame.NewDest(p.port.Port(), num)
	}
	if p.err != nil {
		t.lose(p, p.err)
		return p.err
	}
	p.ready = true
	t.idle = append(t.idle, p)
	return nil
}

// lose has the rows of a place wait, without its numbers.
func (t *tx) lose(p *place, err error) {
	t.unused = append(t.unused, p.held...)
	p.err, p.ready, p.held = err, false, nil
	t.touchRows(p)
}

// use counts the entries in tables that need a place.
func (t *tx) use(p *place, on bool) {
	if on {
		p.used++
	} else if p.used--; p.used == 0 {
		t.idle = append(t.idle, p)
	}
}

// tidy releases what no entry needs any longer.
func (t *tx) tidy() {
	for _, p := range t.idle {
		if _, member := p.row.(Group); p.ready && p.used == 0 && (!member || p.n == 0) {
			t.unused = append(t.unused, p.held...)
			p.ready, p.held = false, nil
		}
	}
	for _, h := range t.unused {
		t.release(h)
	}
}

// touchRows has the entries of all rows of a place compared.
func (t *tx) touchRows(p *place) {
	for n := range t.p.places.all(&t.p.store, p) {
		t.touch(n)
	}
}

// isMistake reports whether an error is one of the row, whatever the switch has.
func isMistake(err error) bool {
	var m mistake
	return errors.As(err, &m)
}
