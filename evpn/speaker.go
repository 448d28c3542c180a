package evpn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/evpn/internal/bgp"
	"github.com/vxswitch/vxswitch/evpn/internal/engine"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/evpn/internal/table"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/batch"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/setting"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// Node is what a Speaker needs of the switch around it. A node.Node is one.
type Node interface {
	control.Programmer
	Plane() *control.Plane
	Switch() *vswitch.Switch
	Tunnels() map[string]*vtep.VTEP
	Interfaces() []*l3.Interface
	Neighbours(frame.VNI) *arp.Responder // nil if the segment has none
	SetRole(port string, vni frame.VNI, r vswitch.Role) error
	Carrier(port string) bool
}

// pause is the time between two Flushes: what changes meanwhile is written at once.
const pause = 2 * time.Millisecond

// A Speaker advertises what a switch has, and writes what other VTEPs advertise.
type Speaker struct {
	node   Node
	owner  string
	log    *slog.Logger
	engine engine.Engine
	begun  time.Time
	loop   *batch.Loop // flushes

	configuring sync.Mutex // around changes of cfg as a whole; taken before mu

	mu    sync.Mutex
	cfg   Config // written with configuring held too, so that either is enough to read it
	table *table.Table
	seen  seen

	malformed map[string]uint64 // routes and UPDATEs that the engine left out, by reason

	rows   rows // of other owners; it has a mutex of its own
	prober bfd.Prober
	ran    atomic.Bool
}

// New checks the settings. Nothing is opened before Run.
func New(n Node, c *Config) (*Speaker, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	b, err := c.bgp()
	if err != nil {
		return nil, err
	}
	e, err := bgp.New(b)
	if err != nil {
		return nil, err
	}
	return newSpeaker(n, c, e)
}

func newSpeaker(n Node, c *Config, e engine.Engine) (*Speaker, error) {
	if n == nil {
		return nil, errors.New("evpn: New: the Node is nil")
	}
	s := &Speaker{node: n, cfg: setting.Clone(*c), owner: cmp.Or(c.Owner, DefaultOwner), log: c.Log, engine: e, begun: time.Now(), loop: batch.New(pause, time.Second), malformed: map[string]uint64{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	t := c.table()
	t.Forget, t.Role = s.forget, s.role
	t.Duplicated = func(vni frame.VNI, mac frame.MAC) {
		s.log.Warn("a MAC moves too often, and stays where it was last", "vni", vni, "mac", mac)
	}
	s.table = table.New(t)
	s.prober.In = c.In
	if b, ok := e.(*bgp.BGP); ok {
		s.prober.Dead = func(peer netip.Addr) {
			s.log.Warn("the path to a peer is dead", "peer", peer)
			b.Reset(peer)
		}
	}
	s.seen.init()
	return s, s.prober.Set(probed(c.Peers))
}

// Configure changes the settings, before or while Run runs. Sessions with peers that stay as they are go on; those with others end,
// and begin anew. AS, RouterID, Listen, Owner, In and Log stay: an error says that one of the first three is another one, for which a
// new Speaker is needed, and nothing has changed then.
func (s *Speaker) Configure(c *Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	b, err := c.bgp()
	if err != nil {
		return err
	}
	s.configuring.Lock()
	defer s.configuring.Unlock()
	if key := s.cfg.fixed(c); key != "" {
		return fmt.Errorf("evpn: Config.%s: cannot change while the Speaker runs", key)
	}
	s.do(func(now time.Duration) {
		s.cfg = setting.Clone(*c) // the caller may change its own
		s.table.Configure(c.table())
		s.ethernets(now)
		s.settleAll(now)
	})
	if e, ok := s.engine.(*bgp.BGP); ok {
		err = e.SetPeers(b.Peers, b.MaxRoutes)
	}
	return errors.Join(err, s.prober.Set(probed(c.Peers)))
}

// Restarts reports whether [Speaker.Configure] refuses to change c into next.
func (c *Config) Restarts(next *Config) bool { return c.fixed(next) != "" }

// fixed returns the first field that is another one in next and cannot change.
func (c *Config) fixed(next *Config) string {
	switch {
	case c.AS != next.AS:
		return "AS"
	case c.RouterID != next.RouterID:
		return "RouterID"
	case !slices.Equal(c.Listen, next.Listen):
		return "Listen"
	}
	return ""
}

// Run advertises and imports until ctx is done. Then peers are told that the session ends, and the rows go. It does the same, and returns
// [net.ErrClosed], when the switch is closed. It is called once.
func (s *Speaker) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errors.New("evpn: Speaker.Run: it was called before; make a new Speaker")
	}
	asked := ctx
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer func() {
		cancel()
		wg.Wait()
		s.mu.Lock()
		s.table.SetEthernets(s.now(), nil) // ends the roles of ports
		s.mu.Unlock()
		s.node.Program(s.owner, control.Update{Snapshot: true})
	}()
	events := s.node.Switch().Events(heeded...)
	defer events.Close()
	defer s.watchRows()()
	s.do(func(now time.Duration) {
		s.ethernets(now)
		s.list(now)
	})
	var closed atomic.Bool
	wg.Go(func() {
		closed.Store(errors.Is(s.watch(ctx, events), net.ErrClosed))
		cancel()
	})
	wg.Go(func() { s.loop.Run(ctx, s.flush) })
	wg.Go(func() { s.carriers(ctx) })
	defer s.prober.Stop()
	if err := s.prober.Start(); err != nil {
		return err
	}
	err := s.engine.Run(ctx, handler{s})
	if closed.Load() && asked.Err() == nil {
		return fmt.Errorf("evpn: Speaker.Run: the switch: %w", net.ErrClosed)
	}
	return err
}

// now is the time for the table, whose clock begins with the Speaker.
func (s *Speaker) now() time.Duration { return time.Since(s.begun) }

// do changes what is known, and has it flushed.
func (s *Speaker) do(f func(now time.Duration)) {
	s.mu.Lock()
	f(s.now())
	pending := s.table.Pending()
	s.mu.Unlock()
	if pending {
		s.loop.Wake()
	}
}

// flush reports whether there is more to flush. No route is taken meanwhile, so that the work for peers keeps one processor busy at most:
// Go lets a goroutine that is ready wait 10 ms for a busy one, and those of the data path should find another.
func (s *Speaker) flush(tick bool) (more bool) {
	s.engine.Between(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		now := s.now()
		if tick { // tunnels that are in no segment come and go without an event
			s.table.SetLocals(s.locals())
		}
		s.takeRows(now)
		if err := s.table.Flush(now, s.owner, s.node, s.engine); err != nil {
			s.log.Warn("rows were refused", "error", err)
		}
		more = s.table.More()
	})
	return more
}

// forget forgets where the switch has learned a MAC and its addresses.
func (s *Speaker) forget(vni frame.VNI, mac frame.MAC, addrs []netip.Addr) {
	if r := s.node.Neighbours(vni); r != nil {
		for _, ip := range addrs {
			r.Table().DeleteIf(ip, func(e arp.Entry) bool { return e.MAC == mac && e.Origin == arp.Snooped && e.From.Local() })
		}
	}
	for _, v := range s.node.Switch().VSIs() {
		if v.VNI() == vni {
			v.FDB().DeleteIf(mac, func(e fdb.Entry) bool { return e.Origin == fdb.OriginLearned && e.Dest.Local() })
		}
	}
}

// ClearDuplicate lets a MAC move again that has moved too often, and reports whether it had.
func (s *Speaker) ClearDuplicate(vni frame.VNI, mac frame.MAC) (ok bool) {
	s.do(func(now time.Duration) { ok = s.table.Clear(now, vni, mac) })
	return ok
}

// handler hears peers for a Speaker.
type handler struct{ *Speaker }

func (h handler) Learned(peer netip.Addr, r *route.Route) {
	h.do(func(now time.Duration) { h.table.Learned(now, peer, r) })
}

func (h handler) Withdrawn(peer netip.Addr, k *route.Key) {
	h.do(func(now time.Duration) { h.table.Withdrawn(now, peer, k) })
}

func (h handler) Up(peer netip.Addr) { h.log.Info("session established", "peer", peer) }

func (h handler) Down(peer netip.Addr, err error) {
	h.lost("session down", peer, err)
	h.do(func(now time.Duration) { h.table.Down(now, peer) })
}

// lost logs the end of a session: a warning, unless Run ends.
func (h handler) lost(what string, peer netip.Addr, err error) {
	level := slog.LevelWarn
	if errors.Is(err, context.Canceled) {
		level = slog.LevelInfo
	}
	h.log.Log(context.Background(), level, what, "peer", peer, "error", err)
}

func (h handler) Ended(peer netip.Addr) {
	h.do(func(now time.Duration) { h.table.Ended(now, peer) })
}

func (h handler) Stale(peer netip.Addr, err error) {
	h.lost("session lost, its routes stay for now", peer, err)
	h.do(func(time.Duration) { h.table.Stale(peer) })
}

func (h handler) Malformed(_ netip.Addr, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.malformed[reason]++
}
