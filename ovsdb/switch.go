package ovsdb

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/ovsdb/internal/rpc"
	"github.com/vxswitch/vxswitch/ovsdb/internal/table"
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
}

// A Switch is a Physical_Switch of a database.
type Switch struct {
	node Node
	cfg  Config
	sw   table.Switch
	log  *slog.Logger
	kick chan struct{} // something has changed

	mu     sync.Mutex
	db     *table.Database // as it was said last
	client *rpc.Client     // nil without a connection that has said everything
	ours   bool            // we have the lock of the name
	dirty  bool            // db has changed
	hosts  hosts
	status Status

	provided []table.Segment // for the node, by apply only
	asked    []table.Segment // what these were made of
}

// New checks the settings. Nothing is opened before Run.
func New(n Node, c *Config) (*Switch, error) {
	if n == nil {
		return nil, errors.New("ovsdb: New: the Node is nil")
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	s := &Switch{node: n, cfg: *c, log: c.Log, kick: make(chan struct{}, 1), db: new(table.Database), hosts: hosts{again: true}}
	s.sw = table.Switch{Name: c.Name, Ports: c.Ports, Local: c.TunnelIPs}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.status.State, s.status.Since = Connecting, time.Now()
	return s, nil
}

// Run does what the database says until ctx is done. Then the hosts of the switch leave the database, and its segments and rows the
// node; the Physical_Switch and its bindings stay. It is called once.
func (s *Switch) Run(ctx context.Context) error {
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
	}()
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := s.serve(ctx)
		if ctx.Err() != nil {
			break
		}
		s.log.Warn("no connection with the database", "target", s.cfg.Target, "error", err)
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
	conn, err := s.cfg.dial(ctx)
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
	err = c.Monitor(ctx, database, table.Columns, func(t rpc.Tables) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for name, rows := range t {
			for id, r := range rows {
				fresh.Set(name, id, r)
			}
		}
		s.db, s.client, s.dirty = fresh, c, true
		s.wake()
	})
	if err != nil {
		return err
	}
	err = c.Lock(ctx, s.lock(), func(ours bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ours, s.dirty = ours, true
		if s.status.State, s.status.Since, s.status.Err = Waiting, time.Now(), nil; ours {
			s.status.State = Connected
		}
		s.wake()
	})
	if err != nil {
		return err
	}
	tick := time.NewTicker(2 * time.Second) // for what was refused, and ports that go down
	defer tick.Stop()
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
			s.set(func(st *Status) { s.dirty = s.dirty || len(st.Refused) > 0 })
		}
		s.apply()
		s.say(ctx, c)
		select {
		case <-ctx.Done():
		case <-time.After(batch):
		}
	}
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
	again := len(s.status.Refused) > 0
	s.mu.Unlock()

	refused := map[string]error{}
	if again || !reflect.DeepEqual(res.Segments, s.asked) {
		s.asked = res.Segments
		s.provide(res.Segments, refused)
	}
	err := s.node.Program(s.cfg.owner(), control.Update{Snapshot: true, Loose: true, Add: res.Rows})
	if err != nil {
		s.log.Warn("rows were refused", "error", err)
	}
	s.set(func(st *Status) {
		st.Segments, st.Rows, st.Left, st.LeftOut = len(s.provided), len(res.Rows), res.Left, res.Counts
		st.Refused, st.RowErr = refused, err
	})
}

// provide gives the node its segments: all, or if it refuses them, those that it takes.
func (s *Switch) provide(segments []table.Segment, refused map[string]error) {
	if s.node.Provide(s.cfg.owner(), s.parts(segments)) == nil {
		s.provided = segments
		return
	}
	s.provided = nil
	for _, x := range segments {
		next := append(s.provided[:len(s.provided):len(s.provided)], x)
		if err := s.node.Provide(s.cfg.owner(), s.parts(next)); err != nil {
			refused[x.Name] = err
			s.log.Warn("a Logical_Switch is refused", "name", x.Name, "error", err)
			continue
		}
		s.provided = next
	}
	if len(s.provided) == 0 {
		s.node.Provide(s.cfg.owner(), nil)
	}
}

// parts makes segments out of networks. MACs behind the tunnel are the controller's, and neighbours are snooped.
func (s *Switch) parts(segments []table.Segment) *node.Config {
	c := new(node.Config)
	for _, x := range segments {
		seg := node.Segment{VNI: x.VNI, Neighbours: &node.Neighbours{Config: arp.Config{Mode: arp.Suppress}},
			Tunnels: []node.SegmentTunnel{{Tunnel: s.cfg.Tunnel, AttachConfig: vswitch.AttachConfig{NoLearn: true}}}}
		for _, m := range x.Members {
			seg.Members = append(seg.Members, node.Member{Port: m.Port, VLAN: m.VLAN})
		}
		c.Segments = append(c.Segments, seg)
	}
	return c
}

// say writes what the switch is and has, if the database says otherwise.
func (s *Switch) say(ctx context.Context, c *rpc.Client) {
	faults := s.faults()
	s.mu.Lock()
	if s.client != c || !s.ours {
		s.mu.Unlock()
		return
	}
	s.hosts.read(s.node.Switch())
	hosts := s.hosts.in(s.provided)
	ops := s.db.Write(&s.sw, faults, s.provided, hosts)
	s.status.Hosts = len(hosts)
	s.mu.Unlock()
	s.transact(ctx, c, ops)
}

// transact carries out operations while the lock is ours.
func (s *Switch) transact(ctx context.Context, c *rpc.Client, ops []table.Op) {
	if len(ops) == 0 {
		return
	}
	all := []rpc.Op{{"op": "assert", "lock": s.lock()}}
	for _, op := range ops {
		all = append(all, op)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), transactTime) // what is under way at the end is waited for
	defer cancel()
	_, err := c.Transact(ctx, database, all...)
	if err != nil {
		s.log.Warn("a transaction has failed", "error", err)
	}
	s.set(func(st *Status) {
		st.WriteErr = err
		if st.Transactions++; err != nil {
			st.Failed++
		}
	})
}

// faults returns what is wrong with ports, by name.
func (s *Switch) faults() map[string][]string {
	up := s.node.PortsUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := map[string][]string{}
	works := map[string]int{}
	for _, x := range s.provided {
		for _, m := range x.Members {
			works[m.Port]++
		}
	}
	for _, p := range s.cfg.Ports {
		if s.db.Bindings(&s.sw, p) > works[p] {
			faults[p] = append(faults[p], table.InvalidVLANMap)
		}
		if !up[p] {
			faults[p] = append(faults[p], table.Unspecified)
		}
	}
	return faults
}

// leave takes our hosts out of the database.
func (s *Switch) leave(c *rpc.Client) {
	s.mu.Lock()
	ops := s.db.Write(&s.sw, nil, nil, nil)
	ours := s.client == c && s.ours
	s.mu.Unlock()
	if ours {
		s.transact(context.Background(), c, ops)
	}
}

// String says who it is.
func (s *Switch) String() string { return fmt.Sprintf("%s at %s", s.cfg.Name, s.cfg.Target) }
