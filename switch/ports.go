package vswitch

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
	"github.com/vxswitch/vxswitch/internal/index"
	"github.com/vxswitch/vxswitch/internal/mix"
)

// ErrTooMany is returned when all 65,535 port numbers are in use.
var ErrTooMany = errors.New("vswitch: no port number left")

// port is an attached Port. Its number is what Dests refer to.
type port struct {
	num      uint16
	of       *port   // itself, or the port of a sub-port
	p        Port    // nil for the switch itself
	tunnel   Tunnel  // p, if it is one
	flooder  Flooder // likewise
	grouper  Grouper // likewise
	leader   Leader  // likewise
	sender   Sender  // likewise
	takes    frame.Offloads
	byVNI    bool // the tag comes in Frame.VNI, not in a VLAN tag
	keepOpen bool
	name     string
	alias    atomic.Pointer[string] // name of a sub-port
	readers  []frame.Reader
	gone     atomic.Bool
	broken   atomic.Bool // a Write has failed as a whole, and the log has it

	circuits index.Map[tagKey, *circuit]
	matching atomic.Pointer[[]*circuit] // those with a Matcher; nil if there are none
	members  []*Attachment              // under Switch.mu; of a port those at its sub-ports, too
	workers  []*worker                  // under Switch.mu
	rx       ledger
	carried  atomic.Pointer[counters] // in rx, of frames that an Offload carried
	tx       counters
	tallies  []*tally // of members; under Switch.tallies.mu
	past     traffic  // of members that have gone; likewise
}

// has reports whether the port has this peer; 0 is the port itself.
func (p *port) has(peer uint16) bool {
	return peer == 0 || p.tunnel != nil && p.tunnel.PeerName(peer) != ""
}

// longest returns the length of the longest frame like f that fits to peer.
func (e *circuit) longest(f *frame.Frame, peer uint16) int {
	mtu := e.port.p.MTU(peer)
	if peer == 0 {
		mtu, _ = e.floodMTU()
	}
	return e.room(f, mtu)
}

// hasGroup reports whether e is a tunnel with peers for the group of f alone.
func (e *circuit) hasGroup(f *frame.Frame) bool {
	return e.port.grouper != nil && e.port.grouper.HasGroup(e.tag, frame.MAC(f.Bytes()))
}

// floodMTU returns the length of the longest frame that some receivers of a flood at e take, and of the
// longest that all take.
func (e *circuit) floodMTU() (some, all int) {
	if e.port.flooder != nil {
		return e.port.flooder.FloodMTU(e.tag)
	}
	m := e.port.p.MTU(0)
	return m, m
}

type tagKey uint32

// Hash implements [index.Key]. Tags come from the configuration, so no key is needed.
func (k tagKey) Hash(*mix.Key) uint64 { return uint64(k) }

// failure is a port whose Read returned an error.
type failure struct {
	p   *port
	err error
}

// add gives p a number. s.mu is held.
func (s *Switch) add(p Port, keep bool) (*port, error) {
	readers := p.Readers()
	if len(readers) == 0 || slices.ContainsFunc(readers, func(r frame.Reader) bool { return absent.Is(r) }) {
		return nil, errors.New("port: Readers returned no receive queue, at least one is needed; was the port made by its constructor?")
	}
	num, err := s.number()
	if err != nil {
		return nil, err
	}
	x := &port{num: num, p: p, keepOpen: keep, readers: readers}
	x.of = x
	x.tunnel, x.byVNI = p.(Tunnel)
	x.flooder, _ = p.(Flooder)
	x.grouper, _ = p.(Grouper)
	x.leader, _ = p.(Leader)
	x.sender, _ = p.(Sender)
	if o, ok := p.(Offloader); ok {
		x.takes = o.Offloads()
	}
	x.name = fmt.Sprintf("port%d", x.num)
	if n, ok := p.(interface{ Name() string }); ok && n.Name() != "" {
		x.name = n.Name()
	}
	if r, ok := p.(Pauser); ok {
		r.Resume() // it may have been detached with KeepOpen
	}
	s.byPort[p] = x
	s.setPort(x.num, x)
	return x, nil
}

// number takes a port number. s.mu is held.
func (s *Switch) number() (uint16, error) {
	if s.nums.next-len(s.nums.free) >= 1<<16-1 {
		return 0, ErrTooMany
	}
	return uint16(s.nums.take()), nil
}

// setPort publishes the port of a number. s.mu is held.
func (s *Switch) setPort(num uint16, p *port) {
	old := *s.ports.Load()
	ports := make([]*port, max(len(old), int(num)+1))
	copy(ports, old)
	ports[num] = p
	s.ports.Store(&ports)
}

// start starts a worker for each receive queue of p. s.mu is held.
func (s *Switch) start(p *port) {
	for _, r := range p.readers {
		w := &worker{
			epoch: newEpoch(), sw: s, port: p, id: s.ids.take() - 1, in: r, batch: frame.NewBatch(&s.arenas),
			done: make(chan struct{}), rx: p.rx.join(), vsis: map[*VSI]*counters{},
		}
		w.batch.Clock = &s.clock
		w.at.Worker = w.id
		p.workers = append(p.workers, w)
		s.workers[w] = struct{}{}
		go func() {
			defer close(w.done)
			if err := w.run(); !p.gone.Load() {
				s.fail(p, err)
			}
		}()
	}
}

// stop waits for the workers of p to end. Their Reads must return by now. s.mu is held.
func (s *Switch) stop(p *port) {
	for _, w := range p.workers {
		<-w.done
		w.retire()
		delete(s.workers, w)
		s.ids.give(w.id + 1)
	}
	p.workers = nil
}

// fail passes a port whose Read failed to the housekeeping, which detaches it. The worker must not do
// so, since that waits for the other workers.
func (s *Switch) fail(p *port, err error) {
	s.failMu.Lock()
	s.failed = append(s.failed, failure{p, err})
	s.failMu.Unlock()
	s.wake()
}

func (s *Switch) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// removeFailed detaches ports that have failed.
func (s *Switch) removeFailed() {
	s.failMu.Lock()
	failed := s.failed
	s.failed = nil
	s.failMu.Unlock()
	for _, f := range failed {
		s.mu.Lock()
		if !f.p.gone.Load() {
			s.remove(f.p, f.err)
		}
		s.mu.Unlock()
	}
}

// remove takes p out of the switch: it unlinks it, waits until no worker can know it, flushes its
// entries, closes it, and only then frees its number. s.mu is held.
func (s *Switch) remove(p *port, cause error) {
	p.gone.Store(true)
	members := slices.Clone(p.members)
	for _, a := range members {
		a.err = cause
		a.port.gone.Store(true)
		a.unlink()
	}
	if p.tunnel != nil {
		p.tunnel.Control().Tell(nil)
	}
	delete(s.byPort, p.p)
	s.leaving.Store(p)
	s.setPort(p.num, nil)
	s.version.Add(1)
	s.grace()
	for _, a := range members {
		s.tallies.shut(a, s.closed)
	}
	s.beforeBump()
	s.gens.KillPort(p.num)
	for _, a := range members {
		if a.port != p {
			s.gens.KillPort(a.port.num)
		}
	}
	if p.keepOpen {
		p.p.(Pauser).Pause()
	} else if err := p.p.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		s.log.Warn("close", "port", p.name, "err", err)
	}
	s.stop(p)
	for _, a := range members {
		a.left()
		if a.port != p {
			s.dropSub(a.port)
		}
	}
	s.events.emit(frame.Event{Kind: frame.EventPortDown, Dest: frame.NewDest(p.num, 0), Err: cause})
	s.log.Info("port down", "port", p.name, "err", cause)
	s.leaving.Store(nil)
	s.nums.give(int(p.num))
}
