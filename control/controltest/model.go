package controltest

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

// A Model is a [control.Programmer] in plain maps: the rows of every owner, and functions that
// work out, each time they are asked, what tables would show. It knows no ports of VTEPs and
// no hosts that move.
type Model struct {
	VNIs   []frame.VNI             // segments, all with a VTEP
	Ports  map[frame.VNI][]string  // local ports
	VRFs   map[string][]frame.VNI  // and their interfaces
	Owners []string                // by precedence; others after them, by name
	Refuse func(control.Row) error // nil; errors that only writing shows

	mu   sync.Mutex
	rows []row // in the order in which they were added or changed
}

type row struct {
	owner string
	key   control.Row
	is    control.Row
}

// Program implements [control.Programmer].
func (m *Model) Program(owner string, u control.Update) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if owner == "" {
		return fmt.Errorf("model: no owner")
	}
	var refused control.RowErrors
	refuse := func(r control.Row, err error) {
		if err != nil && (!u.Loose || errors.Is(err, errMalformed)) {
			refused = append(refused, control.RowError{Row: r, Err: err})
			m.remove(owner, key(r))
		}
	}
	again, keep := map[control.Row]bool{}, map[control.Row]bool{}
	for _, r := range u.Del {
		again[key(r)] = true
	}
	var changed []control.Row
	for _, r := range u.Add {
		keep[key(r)] = true
		i := slices.IndexFunc(m.rows, func(x row) bool { return x.owner == owner && x.is == r })
		if i >= 0 && !again[key(r)] {
			continue
		}
		m.remove(owner, key(r))
		if err := m.check(owner, r); errors.Is(err, errMalformed) {
			refuse(r, err)
			continue
		}
		m.rows = append(m.rows, row{owner, key(r), r})
		changed = append(changed, r)
	}
	m.rows = slices.DeleteFunc(m.rows, func(x row) bool {
		return x.owner == owner && !keep[x.key] && (u.Snapshot || again[x.key])
	})
	for _, groups := range []bool{true, false} {
		for _, r := range changed {
			there := slices.ContainsFunc(m.rows, func(x row) bool { return x.owner == owner && x.is == r })
			if _, ok := r.(control.Group); ok == groups && there {
				refuse(r, m.check(owner, r))
			}
		}
	}
	if len(refused) > 0 {
		return refused
	}
	return nil
}

func (m *Model) remove(owner string, key control.Row) {
	m.rows = slices.DeleteFunc(m.rows, func(x row) bool { return x.owner == owner && x.key == key })
}

// errMalformed is what is wrong with a row whatever there is.
var errMalformed = errors.New("is malformed")

// Forget withdraws all rows of an owner.
func (m *Model) Forget(owner string) { m.Program(owner, control.Update{Snapshot: true}) }

func key(r control.Row) control.Row {
	switch x := r.(type) {
	case control.MAC:
		return control.MAC{VNI: x.VNI, MAC: x.MAC, IP: x.IP}
	case control.Flood:
		return control.Flood{VNI: x.VNI, VTEP: x.VTEP, MAC: x.MAC, Tunnel: x.Tunnel}
	}
	return r
}

// group returns the members of the group that a row names, in order, each as MAC shows it.
func (m *Model) group(owner string, x control.MAC) (list []string) {
	for _, r := range m.rows {
		g, ok := r.is.(control.Group)
		if ok && r.owner == owner && g.VNI == x.VNI && g.Tunnel == x.Tunnel && g.Name == x.Group {
			list = append(list, Behind(g.VNI, g.VTEP.Addr(), g.FarVNI))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Behind returns what Tables.MAC returns of a MAC behind a VTEP. What the far end calls as this one
// does is not said.
func Behind(vni frame.VNI, vtep netip.Addr, far frame.VNI) string {
	if far == 0 || far == vni {
		return vtep.String()
	}
	return fmt.Sprintf("%v vni %d", vtep, far)
}

func (m *Model) check(owner string, r control.Row) error {
	segment := func(vni frame.VNI) error {
		if !slices.Contains(m.VNIs, vni) {
			return fmt.Errorf("model: %v: %w", r, control.ErrNoSegment)
		}
		return nil
	}
	var err error
	switch r := r.(type) {
	case control.MAC:
		switch err = segment(r.VNI); {
		case places(r) != 1 || r.MAC.IsZero() || r.IP.IsValid() && (r.Filter || r.MAC.IsGroup()) ||
			r.MAC.IsGroup() && r.Group != "" || r.FarVNI != 0 && !r.VTEP.IsValid() || !r.FarVNI.Valid():
			err = fmt.Errorf("model: %v: %w", r, errMalformed)
		case err != nil:
		case r.Group != "" && len(m.group(owner, r)) == 0:
			err = fmt.Errorf("model: %v: %w", r, control.ErrNoGroup)
		case r.Port != "" && !slices.Contains(m.Ports[r.VNI], r.Port):
			err = fmt.Errorf("model: %v: %w", r, control.ErrNoPort)
		}
	case control.Group:
		if err = segment(r.VNI); r.Name == "" || !r.VTEP.IsValid() || !r.FarVNI.Valid() {
			err = fmt.Errorf("model: %v: %w", r, errMalformed)
		}
	case control.Flood:
		if err = segment(r.VNI); !r.MAC.IsZero() && (!r.MAC.IsGroup() || r.NoUnknown) {
			err = fmt.Errorf("model: %v: %w", r, errMalformed)
		}
	case control.Prefix:
		vnis, ok := m.VRFs[r.VRF]
		switch {
		case r.Prefix != r.Prefix.Masked():
			err = fmt.Errorf("model: %v: %w", r, errMalformed)
		case !ok:
			err = fmt.Errorf("model: %v: %w", r, control.ErrNoVRF)
		case r.Via != (control.Via{}) && !slices.Contains(vnis, r.Via.VNI):
			err = fmt.Errorf("model: %v: %w", r, control.ErrNoInterface)
		}
	default:
		err = fmt.Errorf("model: %v: %w", r, errMalformed)
	}
	if err == nil && m.Refuse != nil {
		err = m.Refuse(r)
	}
	return err
}

func places(r control.MAC) (n int) {
	for _, is := range []bool{r.VTEP.IsValid(), r.Group != "", r.Port != "", r.Filter} {
		if is {
			n++
		}
	}
	return n
}

// winner returns the row that counts among those for which claims is true: of the first
// owner, the last that was added or changed.
func (m *Model) winner(claims func(control.Row) bool) (w row, ok bool) {
	for r := range m.present() {
		if claims(r.is) && (!ok || m.rank(r.owner, w.owner) <= 0) {
			w, ok = r, true
		}
	}
	return w, ok
}

// present iterates over the rows that do not wait.
func (m *Model) present() iter.Seq[row] {
	return func(yield func(row) bool) {
		for _, r := range m.rows {
			if m.check(r.owner, r.is) == nil && !yield(r) {
				return
			}
		}
	}
}

func (m *Model) rank(a, b string) int {
	at := func(o string) int {
		if i := slices.Index(m.Owners, o); i >= 0 {
			return i
		}
		return len(m.Owners)
	}
	return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a, b))
}

// MAC returns where a MAC is, as [Tables] says.
func (m *Model) MAC(vni frame.VNI, mac frame.MAC) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, ok := m.at(vni, mac)
	if !ok {
		return ""
	}
	x, host := w.is.(control.MAC)
	if !host {
		return m.router(w.owner, vni, mac)
	}
	switch {
	case x.Port != "":
		return x.Port
	case x.Filter:
		return "filter"
	case x.Group != "":
		return strings.Join(m.group(w.owner, x), ", ")
	default:
		return Behind(vni, x.VTEP.Addr(), x.FarVNI)
	}
}

// Entry returns what the entry of a MAC names: what MAC returns, but of a group its owner and name, which stay as VTEPs come and go.
func (m *Model) Entry(vni frame.VNI, mac frame.MAC) string {
	m.mu.Lock()
	w, ok := m.at(vni, mac)
	m.mu.Unlock()
	if x, host := w.is.(control.MAC); ok && host && x.Group != "" {
		return fmt.Sprintf("group %q of %q", x.Group, w.owner)
	}
	return m.MAC(vni, mac)
}

// at returns the row that says where a MAC is: of a host, or of a prefix behind a router.
func (m *Model) at(vni frame.VNI, mac frame.MAC) (w row, ok bool) {
	w, ok = m.winner(func(r control.Row) bool {
		x, ok := r.(control.MAC)
		return ok && x.VNI == vni && x.MAC == mac
	})
	router, other := m.winner(func(r control.Row) bool {
		x, ok := r.(control.Prefix)
		return ok && x.Via.VNI == vni && x.Via.MAC == mac
	})
	if other && (!ok || m.rank(router.owner, w.owner) < 0) {
		return router, true
	}
	return w, ok
}

// Origin returns the owners of an entry, as [control.Plane.Origin] does.
func (m *Model) Origin(key control.Row) (owners []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var w row
	var ok bool
	switch x := key.(type) {
	case control.MAC:
		if w, ok = m.at(x.VNI, x.MAC); x.IP.IsValid() {
			w, ok = m.neighbour(x.VNI, x.IP)
		}
	case control.Prefix:
		w, ok = m.route(x.VRF, x.Prefix)
	case control.Flood:
		for r := range m.present() {
			f, ok := r.is.(control.Flood)
			if ok && f.VNI == x.VNI && f.VTEP.Addr() == x.VTEP.Addr() && f.MAC == x.MAC && !slices.Contains(owners, r.owner) {
				owners = append(owners, r.owner)
			}
		}
		slices.SortFunc(owners, m.rank)
	}
	if ok {
		owners = []string{w.owner}
	}
	return owners
}

// router returns the VTEP of a router: the lowest of those that an owner names.
func (m *Model) router(owner string, vni frame.VNI, mac frame.MAC) string {
	var best netip.AddrPort
	for r := range m.present() {
		x, ok := r.is.(control.Prefix)
		if ok && r.owner == owner && x.Via.VNI == vni && x.Via.MAC == mac && (!best.IsValid() || x.Via.VTEP.Compare(best) < 0) {
			best = x.Via.VTEP
		}
	}
	return best.Addr().String()
}

// Neighbour returns the MAC of an address, zero if there is none.
func (m *Model) Neighbour(vni frame.VNI, ip netip.Addr) frame.MAC {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, ok := m.neighbour(vni, ip)
	if !ok {
		return frame.MAC{}
	}
	return w.is.(control.MAC).MAC
}

func (m *Model) neighbour(vni frame.VNI, ip netip.Addr) (w row, ok bool) {
	return m.winner(func(r control.Row) bool {
		x, ok := r.(control.MAC)
		return ok && x.VNI == vni && x.IP == ip
	})
}

// Flood returns a flood list, as [Tables] says.
func (m *Model) Flood(vni frame.VNI) (list []control.Flood) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range m.present() {
		x, ok := r.is.(control.Flood)
		if !ok || x.VNI != vni {
			continue
		}
		x.VTEP, x.Tunnel = netip.AddrPortFrom(x.VTEP.Addr(), 0), ""
		i := slices.IndexFunc(list, func(y control.Flood) bool { return y.VTEP == x.VTEP && y.MAC == x.MAC })
		if i < 0 {
			list = append(list, x)
			continue
		}
		list[i].NoBroadcast = list[i].NoBroadcast && x.NoBroadcast
		list[i].NoUnknown = list[i].NoUnknown && x.NoUnknown
	}
	slices.SortFunc(list, func(a, b control.Flood) int {
		return cmp.Or(a.VTEP.Compare(b.VTEP), cmp.Compare(a.MAC.Uint64(), b.MAC.Uint64()))
	})
	return list
}

// Prefix returns the next hops of a route, in any order, and whether there is one.
func (m *Model) Prefix(vrf string, p netip.Prefix) (list []control.Via, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, ok := m.route(vrf, p)
	for r := range m.present() {
		if ok && r.owner == w.owner && leads(r.is, vrf, p) && distance(r) == distance(w) && r.is.(control.Prefix).Via != (control.Via{}) {
			list = append(list, r.is.(control.Prefix).Via)
		}
	}
	return list, ok
}

// route returns a row of those that are a route.
func (m *Model) route(vrf string, p netip.Prefix) (w row, ok bool) {
	for r := range m.present() {
		if leads(r.is, vrf, p) && (!ok || cmp.Or(cmp.Compare(distance(r), distance(w)), m.rank(r.owner, w.owner)) < 0) {
			w, ok = r, true
		}
	}
	return w, ok
}

func leads(r control.Row, vrf string, p netip.Prefix) bool {
	x, ok := r.(control.Prefix)
	return ok && x.VRF == vrf && x.Prefix == p
}

func distance(r row) uint8 { return r.is.(control.Prefix).Distance }

// Rows returns an owner's rows, in any order.
func (m *Model) Rows(owner string) (list []control.Row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.rows {
		if r.owner == owner {
			list = append(list, r.is)
		}
	}
	return list
}
