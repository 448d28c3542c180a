package bgp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/bgp/internal/gobgp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/batch"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// Node is what a Speaker needs of the switch around it. A node.Node is one.
type Node interface {
	control.Programmer
	Plane() *control.Plane
	Switch() *vswitch.Switch
	Interfaces() []*l3.Interface
}

// pause is the time between two flushes: what changes meanwhile is written at once.
const pause = 2 * time.Millisecond

// A Speaker announces what a node has, and makes routes of what its peers announce.
type Speaker struct {
	node   Node
	owner  string
	log    *slog.Logger
	engine engine.Engine
	loop   *batch.Loop // flushes

	configuring sync.Mutex // around mu

	inbox inbox // what peers have said

	mu     sync.Mutex
	cfg    Config // written with configuring too
	table  *table
	peers  []engine.Peer               // of cfg
	said   map[netip.Prefix]netip.Addr // announced
	rowErr error
	more   bool // the last flush did not pass all

	stale  atomic.Bool // what is to be announced may have changed
	others routes      // of other owners, without mu
	prober bfd.Prober
	ran    atomic.Bool
}

// New checks the settings. Nothing is opened before Run.
func New(n Node, c *Config) (*Speaker, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	e := gobgp.New(engine.Config{AS: c.AS, RouterID: c.RouterID, Listen: c.Listen, Port: cmp.Or(c.Port, DefaultPort)})
	return newSpeaker(n, c, e)
}

func newSpeaker(n Node, c *Config, e engine.Engine) (*Speaker, error) {
	if n == nil {
		return nil, errors.New("bgp: New: the Node is nil")
	}
	peers, err := c.peers()
	if err != nil {
		return nil, err
	}
	s := &Speaker{peers: peers, node: n, owner: cmp.Or(c.Owner, DefaultOwner), log: c.Log, engine: e, loop: batch.New(pause, 0), cfg: *c, table: newTable(c), said: map[netip.Prefix]netip.Addr{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.prober.Dead = s.dead
	return s, errors.Join(e.SetPeers(s.table.rules.peers(peers)), s.prober.Set(probed(c.Peers)))
}

// Configure changes the settings, before or while Run runs. Sessions with peers that stay as they are go on; those with others end,
// and begin anew. Owner and Log stay, and so do AS, RouterID, Listen, Port and VRF: an error says that one of these is another one,
// for which a new Speaker is needed, and nothing has changed then.
func (s *Speaker) Configure(c *Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	peers, err := c.peers()
	if err != nil {
		return err
	}
	s.configuring.Lock()
	defer s.configuring.Unlock()
	if key := s.cfg.fixed(c); key != "" {
		return fmt.Errorf("bgp: Config.%s: cannot change while the Speaker runs", key)
	}
	s.do(func() {
		s.cfg, s.peers = *c, peers
		s.table.configure(&s.cfg, s.gateways()...)
	})
	s.wake()
	err = s.engine.SetPeers(s.table.rules.peers(peers))
	s.do(func() { s.keep(c.Peers) })
	return errors.Join(err, s.prober.Set(probed(c.Peers)))
}

// keep forgets who is no longer a peer.
func (s *Speaker) keep(peers []Peer) {
	for addr := range s.table.peers {
		if !slices.ContainsFunc(peers, func(p Peer) bool { return p.Addr == addr || p.Prefix.Contains(addr) }) {
			s.table.forget(addr)
		}
	}
}

// Run announces and imports until ctx is done. Then the sessions end, and the rows go. It is called once.
func (s *Speaker) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errors.New("bgp: Speaker.Run: it was called before; make a new Speaker")
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer func() {
		cancel()
		wg.Wait()
		s.node.Program(s.owner, control.Update{Snapshot: true})
	}()
	events := s.node.Switch().Events(frame.EventGatewayUp, frame.EventGatewayDown)
	defer events.Close()
	defer s.watchRoutes()()
	s.networked()
	wg.Go(func() { s.watch(ctx, events) })
	wg.Go(func() { s.loop.Run(ctx, func(bool) bool { return s.flush() }) })
	s.wake()
	defer s.prober.Stop()
	if err := s.prober.Start(); err != nil {
		return err
	}
	return s.engine.Run(ctx, handler{s})
}

// dead ends the session with a peer, and takes its routes away before that is done.
func (s *Speaker) dead(peer netip.Addr) {
	s.log.Warn("the path to a peer is dead", "peer", peer)
	n := 0
	s.do(func() {
		s.table.down(peer)
		n = s.table.dirty.Len()
	})
	for ; n > 0; n -= batch.Most {
		s.flush()
	}
	s.engine.Reset(peer)
}

// watch follows the addresses of gateways.
func (s *Speaker) watch(ctx context.Context, events *vswitch.Events) {
	for {
		if _, err := events.Next(ctx); err != nil {
			return
		}
		s.networked()
	}
}

// networked reads the addresses of the gateways of links, and which peers are on them.
func (s *Speaker) networked() {
	s.configuring.Lock()
	defer s.configuring.Unlock()
	s.do(func() {
		s.table.configure(&s.cfg, s.gateways()...)
	})
	if r := s.table.rules; r.differ {
		if err := s.engine.SetPeers(r.peers(s.peers)); err != nil {
			s.log.Warn("peers", "error", err)
		}
	}
}

// gateways returns the addresses of the gateway of each link.
func (s *Speaker) gateways() (list [][]netip.Prefix) {
	all := s.node.Interfaces()
	for _, l := range s.cfg.links() {
		list = append(list, nil)
		for _, i := range all {
			if i.VNI() == l.Segment && l.Segment != 0 && i.VRFName() == s.cfg.VRF {
				list[len(list)-1] = i.Config().Addresses
			}
		}
	}
	return list
}

// lock locks mu, and puts what peers have said into the table.
func (s *Speaker) lock() {
	s.mu.Lock()
	s.inbox.take(s.table)
}

// do changes what is known, and has it flushed.
func (s *Speaker) do(f func()) {
	s.lock()
	f()
	s.mu.Unlock()
	s.loop.Wake()
}

// wake has what is to be announced looked at.
func (s *Speaker) wake() {
	s.stale.Store(true)
	s.loop.Wake()
}

// flush announces what has changed, writes some of the rows that have, and reports whether there are more.
func (s *Speaker) flush() (more bool) {
	s.lock()
	defer s.mu.Unlock()
	if stale := s.stale.Swap(false); stale || !s.more { // not with each part, since it looks at all routes
		s.announce()
	}
	if s.table.hungry() {
		for _, p := range s.engine.Paths() {
			s.table.learned(p)
		}
	}
	var err error
	if s.more, err = s.table.flush(s.owner, s.node); err != nil {
		s.rowErr = err
		s.log.Warn("rows were refused", "error", err)
	}
	return s.more
}

// handler hears peers for a Speaker.
type handler struct{ *Speaker }

func (h handler) Learned(list []engine.Path) { h.say(list, false) }

func (h handler) Withdrawn(list []engine.Path) { h.say(list, true) }

func (h handler) say(list []engine.Path, withdrawn bool) {
	h.inbox.put(list, withdrawn)
	h.loop.Wake()
}

func (h handler) Session(peer netip.Addr, up bool, why string) {
	if up {
		h.log.Info("session established", "peer", peer)
		return
	}
	h.log.Warn("session down", "peer", peer, "reason", why)
	h.inbox.end(peer)
	h.loop.Wake()
}
