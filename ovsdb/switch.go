package ovsdb

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/ovsdb/internal/rpc"
	"github.com/vxswitch/vxswitch/ovsdb/internal/table"
	"github.com/vxswitch/vxswitch/snoop"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

const (
	database     = "hardware_vtep"
	batch        = 20 * time.Millisecond // what changes meanwhile is one transaction
	firstPause   = 500 * time.Millisecond
	lastPause    = 10 * time.Second
	transactTime = 10 * time.Second
)

// Node is what a Switch needs of the node around it. A node.Node is one.
type Node interface {
	control.Programmer
	Provide(owner string, parts *node.Config) error
	Switch() *vswitch.Switch
	PortsUp() map[string]bool
	Config() *node.Config
	BFD() []node.BFDSession
	Snooper(vni frame.VNI) *snoop.Snooper
}

// A Switch is a Physical_Switch of a database.
type Switch struct {
	node Node
	cfg  Config
	sw   table.Switch
	log  *slog.Logger
	kick chan struct{} // something has changed
	ran  atomic.Bool

	reach func(context.Context) (net.Conn, error) // opens a connection with the database

	mu     sync.Mutex
	db     *table.Database // as it was said last
	client *rpc.Client     // nil without a connection that has said everything
	ours   bool            // we have the lock of the name
	dirty  bool            // db has changed
	told   bool            // the node has done what db says, once at least
	hosts  hosts
	status Status

	res      *table.Result       // what db said last; this and the next by serve only
	provided []table.Segment     // those that the node has taken
	known    map[string]bool     // ports that the node had then
	remotes  map[netip.Addr]bool // VTEPs of the rows of these
	probes   probes
	groups   map[table.Group]bool          // that hosts on ports listen to
	counted  map[table.Member]table.Counts // that the database has
	server   *embedded                     // nil without one
}

// New checks the settings. Nothing is opened before Run.
func New(n Node, c *Config) (*Switch, error) {
	if n == nil {
		return nil, errors.New("ovsdb: New: the Node is nil")
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	s := &Switch{node: n, cfg: *c, log: c.Log, kick: make(chan struct{}, 1), db: new(table.Database),
		res: new(table.Result), hosts: hosts{again: true}}
	s.sw, s.reach = s.described(c), s.connect
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.status.State, s.status.Since = Connecting, time.Now()
	return s, nil
}

// Configure changes Ports and TunnelIPs, before or while Run runs. Owner and Log stay. If another setting differs, Configure returns an
// error and changes nothing: that needs a new Switch. A port that is taken out stays in the database, where it has no effect.
func (s *Switch) Configure(c *Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	sw := s.described(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := s.cfg.fixed(c); key != "" {
		return fmt.Errorf("ovsdb: Config.%s: cannot change while the Switch runs", key)
	}
	s.cfg.Ports, s.cfg.TunnelIPs, s.sw, s.dirty = c.Ports, c.TunnelIPs, sw, true
	s.wake()
	return nil
}

// described returns what the switch says of itself.
func (s *Switch) described(c *Config) table.Switch {
	sw := table.Switch{Name: c.Name, Ports: c.Ports, Local: c.TunnelIPs}
	if len(sw.Local) > 0 {
		return sw
	}
	for _, t := range s.node.Config().Tunnels {
		if t.Name == c.Tunnel {
			sw.Local = slices.DeleteFunc([]netip.Addr{t.Local, t.Local6}, func(a netip.Addr) bool { return !ownAddr(a) })
		}
	}
	return sw
}

// look follows the addresses of the tunnel and the ports of the node, and tries again what was refused.
func (s *Switch) look() {
	s.mu.Lock()
	c := s.cfg
	s.mu.Unlock()
	sw, ports := s.described(&c), s.node.PortsUp()
	s.probes, s.groups = s.probe(), s.listened()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range c.Ports {
		_, was := s.known[p]
		_, is := ports[p]
		s.dirty = s.dirty || was != is
	}
	if !slices.Equal(sw.Local, s.sw.Local) && slices.Equal(c.TunnelIPs, s.cfg.TunnelIPs) {
		s.sw.Local, s.dirty = sw.Local, true
	}
	s.dirty = s.dirty || len(s.status.Refused) > 0 || s.status.RowErr != nil
}

// Run does what the database says until ctx is done. Then the hosts of the switch leave the database, and its segments and rows the
// node; the Physical_Switch and its bindings stay, and Status says [Stopped]. It is called once.
func (s *Switch) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errors.New("ovsdb: Switch.Run: it was called before; make a new Switch")
	}
	events := s.node.Switch().Events(heeded...)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			e, err := events.Next(ctx)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.hosts.carry(&e)
			s.mu.Unlock()
			s.wake()
		}
	})
	defer func() {
		events.Close()
		wg.Wait()
		s.node.Program(s.cfg.owner(), control.Update{Snapshot: true})
		s.node.Provide(s.cfg.owner(), nil)
		if s.server != nil {
			if err := s.server.close(); err != nil {
				s.log.Warn("the database was not closed well", "error", err)
			}
		}
		s.set(func(st *Status) {
			s.told = false
			*st = Status{State: Stopped, Since: time.Now(), Transactions: st.Transactions, Failed: st.Failed, WriteErr: st.WriteErr}
		})
	}()
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := s.serve(ctx)
		if ctx.Err() != nil {
			break
		}
		s.log.Warn("no connection with the database", "target", s.cfg.Where(), "error", err)
		s.set(func(st *Status) { st.State, st.Since, st.Err = Connecting, time.Now(), err })
		if time.Since(began) > lastPause {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
	return nil
}

func (s *Switch) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

func (s *Switch) set(f func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.status)
}

// lock is the server's lock of our name, an <id> of RFC 7047.
func (s *Switch) lock() string { return "vxswitch_" + hex.EncodeToString([]byte(s.cfg.Name)) }

// serve uses one connection until it ends.
func (s *Switch) serve(ctx context.Context) error {
	conn, err := s.reach(ctx)
	if err != nil {
		return err
	}
	c := rpc.New(conn)
	running, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the end needs it still
	ended := make(chan error, 1)
	go func() { ended <- c.Run(running) }()
	defer func() {
		cancel()
		<-ended
		s.mu.Lock()
		s.client, s.ours = nil, false
		s.mu.Unlock()
	}()
	fresh := new(table.Database) // what is there replaces what was, at once
	if err := c.Monitor(ctx, database, table.Columns, func(t rpc.Tables) { s.heard(c, fresh, t) }); err != nil {
		return err
	}
	if err := c.Lock(ctx, s.lock(), s.locked); err != nil {
		return err
	}
	tick := time.NewTicker(2 * time.Second) // for what was refused, and ports that go down
	defer tick.Stop()
	stats := time.NewTicker(statsPause)
	defer stats.Stop()
	s.counted, s.probes, s.groups = nil, s.probe(), s.listened()
	for {
		select {
		case <-ctx.Done():
			s.leave(c)
			return ctx.Err()
		case err := <-ended:
			ended <- err
			return err
		case <-s.kick:
		case <-tick.C:
			s.look()
		case <-stats.C:
			s.count(ctx, c)
			continue
		}
		s.apply()
		s.say(ctx, c)
		select {
		case <-ctx.Done():
		case <-time.After(batch):
		}
	}
}

// locked notes whether the lock is ours.
func (s *Switch) locked(ours bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ours && s.ours {
		return // ovsdb-server says it again when one that has waited goes
	}
	s.ours, s.dirty = ours, true
	s.status.Since = time.Now()
	if s.status.State, s.status.Err = Connected, nil; ours {
		s.log.Info("connected with the database", "target", s.cfg.Where())
	} else {
		s.status.State, s.status.Err = Waiting, fmt.Errorf("another client of the database has the name %q", s.cfg.Name)
		s.log.Warn("the node waits", "target", s.cfg.Where(), "error", s.status.Err)
	}
	s.wake()
}

// heard takes over what a server says: at first all that the database has. What the switch writes itself is not read anew.
func (s *Switch) heard(c *rpc.Client, db *table.Database, t rpc.Tables) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty = s.dirty || s.db != db
	for name, rows := range t {
		s.dirty = s.dirty || !table.Written(name)
		for id, r := range rows {
			db.Set(name, id, r)
		}
	}
	s.db, s.client = db, c
	s.wake()
}

// apply has the node do what the database says. Without the lock, another switch has the name, and nothing changes.
func (s *Switch) apply() {
	s.mu.Lock()
	if !s.dirty || !s.ours {
		s.mu.Unlock()
		return
	}
	s.dirty = false
	res := s.db.Read(&s.sw)
	local := s.sw.Local
	again, before, told := s.status.Refused, s.status.RowErr, s.told
	s.mu.Unlock()
	s.known = s.node.PortsUp()
	for i := range res.Segments { // a port may come later
		x := &res.Segments[i]
		x.Members = slices.DeleteFunc(x.Members, func(m table.Member) bool {
			_, known := s.known[m.Port]
			return !known
		})
	}

	refused := map[string]error{}
	if len(again) > 0 || !told || !reflect.DeepEqual(res.Plan, s.res.Plan) {
		s.provide(&res.Plan, refused)
	}
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		if err := refused[name]; another(err, again[name]) {
			s.log.Warn("a Logical_Switch is refused", "name", name, "error", err)
		}
	}
	res.Rows = s.within(res.Rows)
	s.remotes = vteps(res.Rows, local)
	u := control.Update{Snapshot: true, Loose: true, Add: res.Rows}
	if told {
		u.Del = arrivals(res.Rows, s.res.Rows) // which are given twice, and so count for more than what was learned here before
	}
	s.res = res
	err := s.node.Program(s.cfg.owner(), u)
	if another(err, before) {
		s.log.Warn("rows were refused", "error", err)
	}
	s.set(func(st *Status) {
		s.told = true
		st.Segments, st.Rows, st.Left, st.LeftOut = len(s.provided), len(res.Rows), res.Left, res.Counts
		st.Refused, st.RowErr = refused, err
	})
}

// another reports whether err is to be logged after the error before: what is tried again for hours is said once.
func another(err, before error) bool {
	return err != nil && (before == nil || before.Error() != err.Error())
}

// arrivals returns the rows whose MACs were not in the rows before. Both are in order.
func arrivals(rows, before []control.Row) (list []control.Row) {
	order := func(a control.Row, b control.MAC) int {
		x, ok := a.(control.MAC)
		if !ok {
			return -1 // those of VTEPs are first
		}
		return cmp.Or(cmp.Compare(x.VNI, b.VNI), cmp.Compare(x.MAC.Uint64(), b.MAC.Uint64()))
	}
	for _, r := range rows {
		m, ok := r.(control.MAC)
		if !ok {
			continue
		}
		for len(before) > 0 && order(before[0], m) < 0 {
			before = before[1:]
		}
		if len(before) == 0 || order(before[0], m) != 0 {
			list = append(list, r)
		}
	}
	return list
}

// String says who it is.
func (s *Switch) String() string { return fmt.Sprintf("%s at %s", s.cfg.Name, s.cfg.Where()) }
