package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/discovery/internal/endp"
	"github.com/vxswitch/vxswitch/discovery/internal/hello"
	"github.com/vxswitch/vxswitch/discovery/internal/seal"
	"github.com/vxswitch/vxswitch/discovery/internal/state"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/batch"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

const (
	pause      = 10 * time.Millisecond // what changes meanwhile is advertised and written at once
	readBuffer = 4 << 20               // bytes of the socket's
)

// Node is what a Speaker needs of the switch around it. A node.Node is one.
type Node interface {
	control.Programmer
	Plane() *control.Plane
	Switch() *vswitch.Switch
	Interfaces() []*l3.Interface
	Neighbours(frame.VNI) *arp.Responder // nil if the segment has none
}

// A socket is a *net.UDPConn.
type socket interface {
	ReadFromUDPAddrPort([]byte) (int, netip.AddrPort, error)
	WriteToUDPAddrPort([]byte, netip.AddrPort) (int, error)
	Close() error
}

// A Speaker advertises what a switch has, and writes what other VTEPs advertise.
type Speaker struct {
	node   Node
	owner  string
	in     func(f func())
	log    *slog.Logger
	listen func() (socket, error)
	begun  time.Time
	loop   *batch.Loop // flushes

	fixed fixed // without mu

	mu     sync.Mutex
	cfg    Config
	keys   seal.Keys
	key    uint8     // to send with
	dated  time.Time // when the file was written
	sealer seal.Sealer
	opener seal.Opener
	socket socket // nil unless Run runs
	own    []own  // messages to ourselves

	state  *state.State
	hello  *hello.Table
	member *endp.Member
	server *endp.Server // nil unless we are one
	names  map[netip.Addr]string

	registry registry

	here   here
	ledger control.Ledger[state.Change]
	counts counts
	ran    atomic.Bool
}

// New checks the settings and reads the keys. Nothing is opened before Run.
func New(n Node, c *Config) (*Speaker, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	keys, first, err := c.keys()
	if err != nil {
		return nil, err
	}
	return newSpeaker(n, c, keys, first)
}

func newSpeaker(n Node, c *Config, keys seal.Keys, first uint8) (*Speaker, error) {
	if n == nil {
		return nil, errors.New("discovery: New: the Node is nil")
	}
	life := rand.Uint64()>>2 | 1
	s := &Speaker{node: n, cfg: *c, owner: c.owner(), in: c.In, log: c.Log, loop: batch.New(pause, time.Second), begun: time.Now(), keys: keys, key: first,
		state: state.New(c.Local, life), hello: hello.New(life), member: endp.NewMember(c.Name), registry: registry{Registry: c.Registry}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.in == nil {
		s.in = func(f func()) { f() }
	}
	s.ledger.Loose = true
	s.here.init()
	s.counts.refused = map[string]uint64{}
	s.listen = func() (socket, error) {
		conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(c.Local, c.port())))
		if err != nil {
			return nil, err
		}
		_ = conn.SetReadBuffer(readBuffer) // the system may grant less
		return conn, nil
	}
	s.settle(0, c, keys, first)
	return s, nil
}

// Configure changes the settings, before or while Run runs, and reads the keys anew. Registry, Owner, In and Log stay. If Tunnel, Local,
// Network, Name or Port is another one, Configure returns an error and changes nothing: that needs a new Speaker.
func (s *Speaker) Configure(c *Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	keys, first, err := c.keys()
	if err != nil {
		return err
	}
	s.mu.Lock()
	key := s.cfg.fixed(c)
	s.mu.Unlock()
	if key != "" {
		return fmt.Errorf("discovery: Config.%s: cannot change while the Speaker runs", key)
	}
	s.do(func(now time.Duration) { s.settle(now, c, keys, first) })
	return nil
}

// settle carries out settings that may change.
func (s *Speaker) settle(now time.Duration, c *Config, keys seal.Keys, first uint8) {
	s.cfg, s.keys, s.key = *c, keys, first
	for _, m := range s.member.SetServers(now, c.Servers) {
		s.send(m.To, m.Message)
	}
	switch {
	case !c.serves():
		s.server = nil
	case s.server == nil:
		s.server = endp.NewServer(now, rand.Uint64()|1)
	}
	s.meet(now)
}

// meet has the neighbours be those that servers and the registry list, and those of the settings.
func (s *Speaker) meet(now time.Duration) {
	s.names = s.member.List()
	maps.Copy(s.names, s.registry.list)
	want := map[netip.Addr]bool{}
	for _, a := range s.cfg.Neighbours {
		want[a] = false
	}
	for a := range s.names {
		if a != s.cfg.Local && a.Is4() == s.cfg.Local.Is4() {
			want[a] = true
		}
	}
	s.hello.Set(now, want)
}

// Run advertises and imports until ctx is done. Then others are told that we go, and the rows go. It is called once.
func (s *Speaker) Run(ctx context.Context) (err error) {
	if s.ran.Swap(true) {
		return errors.New("discovery: Speaker.Run: it was called before; make a new Speaker")
	}
	var conn socket
	if s.in(func() { conn, err = s.listen() }); err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	events := s.node.Switch().Events(heeded...)
	stop := s.watchRows()
	s.do(func(now time.Duration) {
		s.socket = conn
		s.here.again = true
	})
	var wg sync.WaitGroup
	wg.Go(func() { s.watch(ctx, events) })
	wg.Go(func() { s.loop.Run(ctx, s.flush) })
	if s.registry.Registry != nil {
		wg.Go(func() { s.follow(ctx) })
	}
	wg.Go(func() {
		<-ctx.Done()
		s.leave()
		conn.Close()
	})
	err = s.reader(ctx, conn)
	cancel()
	wg.Wait()
	stop()
	events.Close()
	s.node.Program(s.owner, control.Update{Snapshot: true})
	return err
}

// leave tells others that we have nothing any more, and go.
func (s *Speaker) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.state.Leave(s.now()) {
		s.send(m.To, m.Message)
	}
	for _, m := range s.member.Leave() {
		s.send(m.To, m.Message)
	}
	s.socket = nil
}

func (s *Speaker) now() time.Duration { return time.Since(s.begun) }

// do changes what is known, and has it flushed.
func (s *Speaker) do(f func(now time.Duration)) {
	s.mu.Lock()
	f(s.now())
	s.mu.Unlock()
	s.loop.Wake()
}

// flush does what has changed, and every second what is due. What that changes waits for the next time.
func (s *Speaker) flush(due bool) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.takeRows(now)
	s.read(now)
	if due {
		s.tick(now)
	}
	s.hearOwn(now)
	s.poll(now)
	if s.write(); s.state.Changed() {
		s.loop.Wake()
	}
	return false
}

// tick does what is due every second.
func (s *Speaker) tick(now time.Duration) {
	for _, m := range s.member.Poll(now) {
		s.send(m.To, m.Message)
	}
	if s.server != nil {
		s.server.Poll(now)
	}
	for _, m := range s.hello.Poll(now) {
		s.send(m.To, m.Hello)
	}
	s.here.forgetMoves(now)
	s.retryCrowded()
	s.reread()
}

// reread takes the keys of the file if it has been written since. What is wrong with it is logged once, and changes nothing.
func (s *Speaker) reread() {
	var dated time.Time // there is no file
	info, err := os.Stat(s.cfg.KeyFile)
	if err == nil {
		dated = info.ModTime()
	}
	if dated.Equal(s.dated) {
		return
	}
	s.dated = dated
	keys, first, err := s.cfg.keys()
	if err != nil {
		s.log.Warn("the keys stay as they are", "error", err)
		return
	}
	s.keys, s.key = keys, first
}

// poll carries out what has changed of neighbours, and sends what is due.
func (s *Speaker) poll(now time.Duration) {
	if s.member.Changed() {
		s.meet(now)
	}
	for _, c := range s.hello.Changes() {
		s.log.Info("neighbour", "address", c.Addr, "up", c.Up)
		if c.Up {
			s.state.Adjacent(now, c.Addr, c.Mesh)
		} else {
			s.state.Lost(c.Addr)
		}
	}
	for _, m := range s.state.Poll(now) {
		s.send(m.To, m.Message)
	}
}
