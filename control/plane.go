package control

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// Config configures a [Plane].
type Config struct {
	Switch  *vswitch.Switch // required
	Gateway *l3.Gateway     // nil = there are no VRFs

	// Neighbours returns the neighbour table of a segment, or nil: then the addresses of MAC rows are
	// not used. It must not call the Plane.
	Neighbours func(frame.VNI) *arp.Table

	// First returns the name of the VTEP for rows without a Tunnel, in a segment with several VTEPs; "" =
	// the VTEP that was attached first. It must not call the Plane.
	First func(frame.VNI) string

	Owners []string // in order of precedence, the first wins; all others follow, sorted by name
	Static []string // owners whose FDB entries and neighbours are static: hosts cannot move them, and they replace existing entries
}

// A Plane writes the rows of all control planes into the tables of a switch. It implements [Programmer].
type Plane struct {
	cfg Config

	mu sync.Mutex
	store
	updates uint64
	failed  map[ref]failure             // rows that could not be written, though their places are there
	lists   map[floodTarget]*floodList  // as they are in VTEPs
	targets map[frame.VNI][]floodTarget // of the lists of segments
	peers   map[peerKey]*peer
	gave    map[macKey]bool // keys of rows that gave way to a host that is here
	gaveIP  map[ipKey]bool
	stats   Stats

	touched  touched // empty but during an update
	reserved map[string]bool
	refusals map[string][]Refusal // by owner
	watchers map[*func(owner string, add, del []Row)]struct{}

	routeWatchers map[*func(owner string, add, del []Row)]struct{}
}

// Stats counts the writes of a [Plane].
type Stats struct {
	Rows       int    `json:"rows"`       // current rows of all owners
	Peers      uint64 `json:"peers"`      // peers, next hops and groups added to and deleted from VTEPs
	Floods     uint64 `json:"floods"`     // flood lists set
	MACs       uint64 `json:"macs"`       // FDB entries set and deleted
	Neighbours uint64 `json:"neighbours"` // set and deleted
	Routes     uint64 `json:"routes"`     // added and deleted
	GivenWay   uint64 `json:"given_way"`  // entries not written because of a local host or a static entry
	Refused    uint64 `json:"refused"`    // rows
}

// New returns a Plane without rows.
func New(cfg *Config) (*Plane, error) {
	if cfg == nil || cfg.Switch == nil {
		return nil, errors.New("control: Config.Switch: required")
	}
	c := *cfg
	c.Owners, c.Static = slices.Clone(c.Owners), slices.Clone(c.Static)
	for i, o := range c.Owners {
		if err := checkOwner(fmt.Sprintf("Config.Owners[%d]", i), o); err != nil {
			return nil, fmt.Errorf("control: %w", err)
		}
		if slices.Contains(c.Owners[:i], o) {
			return nil, fmt.Errorf("control: Config.Owners: %q: duplicate", o)
		}
	}
	for i, o := range c.Static {
		if err := checkOwner(fmt.Sprintf("Config.Static[%d]", i), o); err != nil {
			return nil, fmt.Errorf("control: %w", err)
		}
	}
	return &Plane{cfg: c, store: newStore(), failed: map[ref]failure{}, lists: map[floodTarget]*floodList{},
		targets: map[frame.VNI][]floodTarget{}, peers: map[peerKey]*peer{}, gave: map[macKey]bool{}, gaveIP: map[ipKey]bool{},
		reserved: map[string]bool{}, refusals: map[string][]Refusal{}, watchers: map[*func(string, []Row, []Row)]struct{}{},
		routeWatchers: map[*func(string, []Row, []Row)]struct{}{}}, nil
}

// Program implements [Programmer]. Errors of rows that lack something wrap [ErrNoSegment] or one of the errors
// beside it.
func (p *Plane) Program(name string, u Update) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := checkOwner("owner", name); err != nil {
		return fmt.Errorf("control: Program: %w", err)
	}
	if p.reserved[name] {
		return fmt.Errorf("control: Program: owner: %q: is reserved; must be another name", name)
	}
	return p.program(name, u)
}

// Reserve gives an owner to the caller alone, and returns what changes its rows. Program refuses the owner from then on, and
// Forget leaves it as it is. Nobody else can reserve it.
func (p *Plane) Reserve(owner string) (program func(Update) error, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := checkOwner("owner", owner); err != nil {
		return nil, fmt.Errorf("control: Reserve: %w", err)
	}
	if p.reserved[owner] {
		return nil, fmt.Errorf("control: Reserve: owner: %q: is reserved; must be another name", owner)
	}
	p.reserved[owner] = true
	return func(u Update) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.program(owner, u)
	}, nil
}

// checkOwner checks the name of an owner, which must be there.
func checkOwner(field, name string) error {
	if name == "" {
		return fmt.Errorf("%s: a name is required", field)
	}
	return checkName(field, name)
}

// program is Program for an owner that was checked. p.mu is held.
func (p *Plane) program(name string, u Update) error {
	t := p.begin()
	t.loose = u.Loose
	o := p.owner(name)
	fresh := t.change(o, &u)
	t.settle(fresh)
	t.write()
	for _, n := range fresh {
		p.at(n).flags &^= advanced
	}
	p.shrink()
	if o.rows == 0 {
		delete(p.owners, name)
		p.sorted = slices.DeleteFunc(p.sorted, func(x *owner) bool { return x == o })
	}
	t.tell(name)
	if len(t.refused) > 0 {
		p.keep(name, t.refused)
		return fmt.Errorf("control: owner %s: %w", name, t.refused)
	}
	return nil
}

// owner returns the owner with a name, and makes it if necessary.
func (p *Plane) owner(name string) *owner {
	o := p.owners[name]
	if o == nil {
		o = &owner{name: name, rank: slices.Index(p.cfg.Owners, name), static: slices.Contains(p.cfg.Static, name), places: map[Row]*place{}}
		if o.rank < 0 {
			o.rank = len(p.cfg.Owners)
		}
		p.owners[name] = o
		i, _ := slices.BinarySearchFunc(p.sorted, o, compareOwners)
		p.sorted = slices.Insert(p.sorted, i, o)
	}
	return o
}

// Forget removes all rows of an owner.
func (p *Plane) Forget(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if checkOwner("owner", owner) == nil && !p.reserved[owner] {
		p.program(owner, Update{Snapshot: true}) // cannot fail, since no row is new
		delete(p.refusals, owner)
	}
}

// Reapply compares all rows with the tables, and writes what is missing. It leaves everything else as it is.
func (p *Plane) Reapply() {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.begin()
	t.again = true
	t.touchPlaces(func(*place) bool { return true })
	t.retry()
	t.write()
}

// Events are the kinds of events that [Plane.Handle] heeds.
var Events = []frame.EventKind{
	frame.EventSegmentUp, frame.EventSegmentDown, frame.EventAttached, frame.EventDetached, frame.EventPeerDown, frame.EventFlushed,
	frame.EventMACMoved, frame.EventMACAged, frame.EventMACEvicted, frame.EventMACDeleted,
	frame.EventNeighbourMoved, frame.EventNeighbourAged, frame.EventNeighbourDeleted,
	frame.EventGatewayUp, frame.EventGatewayDown,
}

// Handle writes what events of the switch let be written: rows whose port, VTEP, segment or gateway has come, and those
// that gave way to a host that has gone. Rows whose place has gone make room for others; so do those for a MAC that a
// gateway has now. After an EventOverflow it does what Reapply does.
func (p *Plane) Handle(events ...frame.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.begin()
	t.again = true
	moved, gateways := map[uint16]bool{}, map[frame.VNI]bool{} // moved are ports
	all, places, hosts := false, false, false
	for _, e := range events {
		switch k, ip := (macKey{e.VNI, e.MAC}), (ipKey{e.VNI, e.IP.As16()}); e.Kind {
		case frame.EventOverflow:
			all = true
		case frame.EventFlushed:
			hosts = true
		case frame.EventSegmentUp, frame.EventSegmentDown, frame.EventPeerDown:
			places = true
		case frame.EventGatewayUp, frame.EventGatewayDown:
			places, gateways[e.VNI] = true, true
		case frame.EventAttached, frame.EventDetached:
			places, moved[e.Dest.Port()] = true, true
			hosts = hosts || e.Kind == frame.EventDetached
		case frame.EventMACMoved:
			switch {
			case e.Pinned && p.has(k):
				p.gave[k] = true
			case e.Dest.Peer() != 0 && p.gave[k]: // it is no longer here
				t.touchMAC(k)
			}
		case frame.EventNeighbourMoved:
			switch {
			case e.Pinned && p.hasIP(ip):
				p.gaveIP[ip] = true
			case e.Dest.Peer() != 0 && p.gaveIP[ip]:
				t.touchIP(ip)
			}
		case frame.EventMACAged, frame.EventMACEvicted, frame.EventMACDeleted:
			if p.gave[k] {
				t.touchMAC(k)
			}
		case frame.EventNeighbourAged, frame.EventNeighbourDeleted:
			if p.gaveIP[ip] {
				t.touchIP(ip)
			}
		}
	}
	if hosts {
		for k := range p.gave {
			t.touchMAC(k)
		}
		for k := range p.gaveIP {
			t.touchIP(k)
		}
	}
	if all || places {
		t.touchPlaces(func(x *place) bool {
			_, flood := x.row.(Flood)
			return all || flood || gateways[x.via().VNI] || x.port != 0 && moved[x.port.Port()]
		})
		t.retry()
	}
	t.write()
}

// has reports whether a row or router is for a MAC.
func (p *Plane) has(k macKey) bool {
	for range p.claims(k) {
		return true
	}
	return false
}

func (p *Plane) hasIP(k ipKey) bool {
	for range p.ips.all(&p.store, k) {
		return true
	}
	return false
}

// retry has all rows tried again that could not be written.
func (t *tx) retry() {
	for n := range t.p.failed {
		t.touch(n)
		delete(t.p.failed, n)
	}
}

// touchPlaces looks for the targets of all places, and has the entries compared of rows of some.
func (t *tx) touchPlaces(some func(*place) bool) {
	for _, o := range t.p.owners {
		for _, x := range o.places {
			if some(x) {
				t.touchRows(x)
			}
			t.find(x)
		}
	}
}

// Waiting iterates over the rows of an owner that cannot be written now, as they were when the iteration
// began, in the order of Rows, each with the reason.
func (p *Plane) Waiting(owner string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var list []RowError
		p.mu.Lock()
		for n, r := range p.of(p.owners[owner]) {
			err := r.place.err
			if f, ok := p.failed[n]; ok && err == nil {
				err = f.err
			}
			if err != nil {
				list = append(list, RowError{r.row(), err})
			}
		}
		p.mu.Unlock()
		slices.SortFunc(list, func(a, b RowError) int { return compare(a.Row, b.Row) })
		for _, e := range list {
			if !yield(e.Row, e.Err) {
				return
			}
		}
	}
}

// Rows iterates over an owner's rows as they were when the iteration began: MACs, groups,
// floods, prefixes, each in order of their keys.
func (p *Plane) Rows(owner string) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		p.mu.Lock()
		var rows []Row
		for _, r := range p.of(p.owners[owner]) {
			rows = append(rows, r.row())
		}
		p.mu.Unlock()
		slices.SortFunc(rows, compare)
		for _, r := range rows {
			if !yield(r) {
				return
			}
		}
	}
}

// Owners returns the owners of rows, by precedence.
func (p *Plane) Owners() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := make([]string, len(p.sorted))
	for i, o := range p.sorted {
		names[i] = o.name
	}
	return names
}

// Stats returns a snapshot.
func (p *Plane) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	for _, o := range p.owners {
		s.Rows += o.rows
	}
	return s
}
