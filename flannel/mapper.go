package flannel

import (
	"cmp"
	"errors"
	"hash/maphash"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// A Mapper is the table of a node's plane: leases in, rows of package control out, in any order and with the same result.
// It has no clock and does no I/O.
//
//	Set, Delete, Reset  -->  which leases count  -->  Flush: rows for the switch
//	Neighbour, MAC      -->  generations 1, 2         FlushRoutes: routes for the host
//
// Of leases that contradict each other the oldest counts, by the revision with which its key came, but for one that would not
// count alone. A younger lease may have a larger subnet around those of older ones, which keep their addresses, but no part of
// an older one's. It is not safe for concurrent use.
type Mapper struct {
	cfg   MapperConfig
	links []netip.Prefix

	seed    maphash.Seed
	leases  map[string]*mapped       // keys are cut after maxName bytes: longer ones are refused anyway
	byMAC   map[frame.MAC][]*mapped  // the oldest first, which decides about the others
	byFirst map[netip.Addr][]*mapped // by the first address of a subnet, which is the next hop to it: likewise, and only the oldest can count
	lengths map[length]int           // how many subnets have it
	newest  int64                    // the highest revision with which a key came
	nested  bool                     // leases inside of others are to be decided about, before the change is over

	rows    control.Ledger[rowKey]
	before  map[string][]Route // by key: the routes that FlushRoutes has passed, of leases whose routes have changed since
	routed  bool               // FlushRoutes has passed all routes, and did not fail since
	refused [reasons]int       // leases, by reason
	missing bool               // there is room for some that were TooMany
	news    []*Refusal         // since the last News
	asked   map[netip.Addr]*asked
	queue   []*asked // the longest ago first
}

// A rowKey is what rows are of: a lease, or an address that was asked for.
type rowKey struct {
	lease string
	ip    netip.Addr
}

// A MapperConfig says what a node has, and how leases become rows.
type MapperConfig struct {
	Network *Network // needed
	Own     Lease    // needed: its subnet, public addresses and MACs are nobody else's

	// Key is that of the own lease's Record; "" = that of its subnet.
	Key string

	// Generation is that of flannel's vxlan backend: what is known before it is needed.
	//
	//	3   a route, a neighbour and an FDB entry for each lease
	//	2   an FDB entry for each lease; a neighbour for each address that a packet goes to
	//	1   both for each address that a packet goes to
	//
	// 0 is 3. The others need a gateway on the tunnel's segment with the whole network on it, and events of misses.
	Generation int

	// Host says that the host's kernel routes, over a TAP in the tunnel's segment: a lease is a MAC row for the next hop, and one
	// of the Routes. Else the switch routes, and a lease is a Prefix row.
	Host bool

	VRF    string    // needed without Host: of routes
	VNI    frame.VNI // segment of the tunnel; 0 = that of the network
	Tunnel string    // name of the VTEP, if the segment has several
	Direct frame.VNI // segment in which nodes on our links are neighbours; 0 = none, and then only the host routes directly

	Links []netip.Prefix // on the node's own links, until SetLinks has others
}

// A mapped is a lease, and whether it is followed.
type mapped struct {
	key        string
	created    int64
	sum        uint64 // a hash of the value: what others write is not kept
	lease      Lease
	wrong      *Refusal   // by the parser: the lease is zero
	unfit      []*Refusal // of one or both families, whatever other leases and links there are
	refused    []*Refusal // all of them as things are now, with wrong and unfit
	routes     []Route
	ipv4, ipv6 bool // the families for which it counts, unless an older one has its subnet or MAC
	unroutable bool // the switch has refused its rows
}

// claims returns the subnets for which a lease counts, unless an older one has them or its MAC.
func (l *mapped) claims() (s Subnet) {
	if l.ipv4 {
		s.IPv4 = l.lease.Subnet.IPv4
	}
	if l.ipv6 {
		s.IPv6 = l.lease.Subnet.IPv6
	}
	return s
}

// An asked is an address that a packet went to.
type asked struct {
	ip   netip.Addr
	at   time.Time
	gone bool
}

// maxLeases is how many leases a Mapper keeps: as many as a network of /8 has subnets of /24. The older ones keep their places.
const maxLeases = 1 << 16

// maxAsked is how many addresses a Mapper keeps rows for.
const maxAsked = 4096

// Check returns the errors in the settings as [setting.Errors].
func (c *MapperConfig) Check() error {
	w := setting.Of("flannel: MapperConfig")
	if c.Network == nil {
		w.Wrong("Network", nil, "it is needed")
		return w.Err()
	}
	b := &c.Network.Backend
	if err := b.Supported(); err != nil {
		w.Wrong("Network", b.Type, "%v", err)
	}
	if !c.Network.Contains(c.Own.Subnet) {
		w.Want("Own.Subnet", c.Own.Subnet, "in the network %v", c.Network)
	}
	w.Number("Generation", c.Generation, 1, 3, 3)
	if b.Type != "vxlan" && c.Generation != 0 && c.Generation != 3 {
		w.Want("Generation", c.Generation, "0 or 3 with backend %s", b.Type)
	}
	switch {
	case !c.Host && c.VRF == "":
		w.Wrong("VRF", "", "it is needed without Host")
	case c.Host && (b.Type == "ipip" || b.Type == "udp"):
		w.Want("Host", true, "false with backend %s", b.Type)
	case !c.Host && b.Type == "host-gw" && c.Direct == 0:
		w.Wrong("Direct", 0, "it is needed with backend host-gw")
	}
	return w.Err()
}

// NewMapper makes a Mapper without leases.
func NewMapper(cfg *MapperConfig) (*Mapper, error) {
	if cfg == nil {
		cfg = new(MapperConfig)
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	m := &Mapper{cfg: *cfg, links: slices.Clone(cfg.Links), seed: maphash.MakeSeed(), leases: map[string]*mapped{}, byMAC: map[frame.MAC][]*mapped{}, byFirst: map[netip.Addr][]*mapped{},
		lengths: map[length]int{}, before: map[string][]Route{}, asked: map[netip.Addr]*asked{}}
	m.cfg.Generation = cmp.Or(cfg.Generation, 3)
	m.cfg.Key = cmp.Or(cfg.Key, cfg.Own.Subnet.Key())
	m.cfg.VNI = cmp.Or(cfg.VNI, cfg.Network.Backend.VNI)
	m.rows.Loose = true // a lease may come before its segment
	return m, nil
}

// Set takes a lease that has come or changed. It ignores the node's own.
func (m *Mapper) Set(r Record) {
	m.set(r)
	m.finish()
}

func (m *Mapper) set(r Record) {
	if r.Key == m.cfg.Key {
		return
	}
	key, sum := clip(r.Key, maxName+1), r.sum(m.seed)
	if old := m.leases[key]; old != nil {
		if old.created == r.Created && old.sum == sum {
			return // renewed
		}
		m.remove(old)
	} else if len(m.leases) >= maxLeases {
		if m.refused[TooMany]++; m.refused[TooMany] == 1 && len(m.news) < maxNews {
			m.news = append(m.news, refusal(r.Key, TooMany, "and others: the node keeps the %d oldest", maxLeases))
		}
		return
	}
	l := &mapped{key: key, created: r.Created, sum: sum}
	lease, err := r.Lease()
	if errors.As(err, &l.wrong); err == nil {
		l.lease = lease
		m.fit(l)
	}
	m.leases[key] = l
	m.index(l)
	m.settle(l)
	m.newest = max(m.newest, l.created)
}

// Delete forgets a lease that has gone, by the Key of its Record.
func (m *Mapper) Delete(key string) {
	m.gone(key)
	m.finish()
}

// finish decides what depends on all leases, after some have changed.
func (m *Mapper) finish() {
	m.decideNested()
	m.reply()
}

// gone removes a lease that has gone from the store, if it is there: another one may have its room.
func (m *Mapper) gone(key string) {
	if l := m.leases[clip(key, maxName+1)]; l != nil {
		m.remove(l)
		m.missing = m.missing || m.refused[TooMany] > 0
	}
}

// Missing reports whether there is room for leases that were [TooMany]: a Reset with all leases fills it.
func (m *Mapper) Missing() bool { return m.missing }

// Reset takes all leases: those that are not among them have gone.
func (m *Mapper) Reset(records []Record) {
	m.refused[TooMany], m.missing = 0, false
	records = slices.SortedFunc(slices.Values(records), func(a, b Record) int { return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Key, b.Key)) })
	keep := map[string]bool{}
	for _, r := range records[:min(len(records), maxLeases+1)] { // and the node's own
		keep[clip(r.Key, maxName+1)] = true
	}
	for key, l := range m.leases {
		if !keep[key] {
			m.remove(l)
		}
	}
	for _, r := range records {
		m.set(r)
	}
	m.finish()
}

// Apply is Reset, or Set and Delete, as a Change says.
func (m *Mapper) Apply(c Change) {
	if c.Snapshot {
		m.Reset(c.Set)
		return
	}
	for _, k := range c.Deleted {
		m.gone(k)
	}
	for _, r := range c.Set {
		m.set(r)
	}
	m.finish()
}

// SetLinks says which prefixes are on the node's own links: to the nodes there the backends host-gw and, with DirectRouting,
// others send without a tunnel.
func (m *Mapper) SetLinks(links []netip.Prefix) {
	if slices.Equal(links, m.links) {
		return
	}
	m.links = slices.Clone(links)
	for _, l := range m.leases {
		m.decide(l)
	}
	m.reply()
}

// index adds what a lease claims to byFirst and byMAC. What it cannot use it does not take from others.
func (m *Mapper) index(l *mapped) {
	for _, p := range l.claims().prefixes() {
		add(m.byFirst, p.Addr(), l)
		m.lengths[lengthOf(p)]++
	}
	for _, mac := range l.macs() {
		add(m.byMAC, mac, l)
	}
}

// place returns where a lease is in a set, or belongs.
func place(set []*mapped, l *mapped) int {
	i, _ := slices.BinarySearchFunc(set, l, (*mapped).age)
	return i
}

func add[K comparable](index map[K][]*mapped, k K, l *mapped) {
	index[k] = slices.Insert(index[k], place(index[k], l), l)
}

func drop[K comparable](index map[K][]*mapped, k K, l *mapped) {
	if i := place(index[k], l); len(index[k]) > 1 {
		index[k] = slices.Delete(index[k], i, i+1)
	} else {
		delete(index, k)
	}
}

// macs returns the MACs of the VTEP that a lease claims, each once; none without vxlan.
func (l *mapped) macs() (list []frame.MAC) {
	for _, f := range families {
		if e := l.lease.end(f); l.claims().prefix(f).IsValid() && e.MAC.IsHost() && !slices.Contains(list, e.MAC) {
			list = append(list, e.MAC)
		}
	}
	return list
}

// remove takes a lease out, and lets those count that had to stand back.
func (m *Mapper) remove(l *mapped) {
	m.count(l, -1)
	delete(m.leases, l.key)
	m.setRoutes(l, nil)
	m.rows.Set(rowKey{lease: l.key})
	for _, p := range l.claims().prefixes() {
		drop(m.byFirst, p.Addr(), l)
		if n := lengthOf(p); m.lengths[n] > 1 {
			m.lengths[n]--
		} else {
			delete(m.lengths, n)
		}
	}
	for _, mac := range l.macs() {
		drop(m.byMAC, mac, l)
	}
	l.refused = nil
	m.settle(l)
}

// settle decides about a lease, if it is there, and those that stand back behind it.
func (m *Mapper) settle(l *mapped) {
	if m.leases[l.key] == l {
		m.decide(l)
	}
	for _, p := range l.claims().prefixes() {
		m.decideYounger(l, m.byFirst[p.Addr()])
		m.nested = m.nested || m.hasNested(l, p)
	}
	for _, mac := range l.macs() {
		m.decideYounger(l, m.byMAC[mac])
	}
}

// decideYounger decides about those of a set behind a lease, which is its oldest or was.
func (m *Mapper) decideYounger(l *mapped, set []*mapped) {
	if len(set) > 0 && set[0].older(l) {
		return
	}
	for _, x := range set {
		if x != l {
			m.decide(x)
		}
	}
}

// count adds by to the numbers of leases that are refused for the reasons of a lease.
func (m *Mapper) count(l *mapped, by int) {
	for i, r := range l.refused {
		if !slices.ContainsFunc(l.refused[:i], func(x *Refusal) bool { return x.Reason == r.Reason }) {
			m.refused[r.Reason] += by
		}
	}
}

// decide finds out whether a lease is followed now, and sets its rows and routes.
func (m *Mapper) decide(l *mapped) {
	was := l.refused
	m.count(l, -1)
	l.refused = nil
	var rows []control.Row
	var routes []Route
	if l.wrong != nil {
		l.refused = []*Refusal{l.wrong}
	} else {
		rows, routes = m.carry(l)
	}
	if l.unroutable && len(was) > 0 && slices.Equal(rows, m.rows.Rows(rowKey{lease: l.key})) { // the switch has refused them, and nothing has changed
		l.refused = was
	} else {
		l.unroutable = false
	}
	m.count(l, 1)
	if !slices.EqualFunc(was, l.refused, func(a, b *Refusal) bool { return a.Reason == b.Reason }) {
		m.tell(l)
	}
	m.rows.Set(rowKey{lease: l.key}, rows...)
	m.setRoutes(l, routes)
}

// Flush passes what has changed to the switch. Rows that it refuses make a lease [Unroutable]; the error is another one, after
// which the next Flush passes all rows.
func (m *Mapper) Flush(owner string, p control.Programmer) error {
	err := m.rows.Flush(owner, p)
	refused := control.Refused(err)
	if refused == nil {
		return err
	}
	byRow := map[control.Row]error{}
	for _, e := range refused {
		byRow[e.Row] = e.Err
	}
	for _, l := range m.leases {
		for _, r := range m.rows.Rows(rowKey{lease: l.key}) {
			if err := byRow[r]; err != nil {
				m.count(l, -1)
				l.unroutable = true
				l.refused = []*Refusal{refusal(l.key, Unroutable, "%v", err)}
				m.count(l, 1)
				m.tell(l)
			}
		}
	}
	return nil
}

// Resync has the next Flush pass all rows, as a snapshot, those too that the switch has refused.
func (m *Mapper) Resync() {
	for _, l := range m.leases {
		if l.unroutable {
			l.unroutable = false
			m.decide(l)
		}
	}
	m.rows.Resync()
}

// age compares leases: those that count before others are less.
func (l *mapped) age(x *mapped) int {
	return cmp.Or(cmp.Compare(l.created, x.created), cmp.Compare(l.key, x.key))
}

func (l *mapped) older(x *mapped) bool { return l.age(x) < 0 }
