package sys

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A PacketInterface is an Ethernet interface that a Packet has its sockets on, be it a port or
// an underlay: it opens and closes them, follows the interface, and has everybody who reads
// return when there is a reason to.
//
//	nothing --Open, Find--> found --Follow--> in use --> broken: the interface is gone
//	                                             \-----> closed
type PacketInterface struct {
	Name  string
	Index int          // since Find
	MTU   atomic.Int64 // since Find; a change is seen at once

	Carrier atomic.Bool // likewise: it is up, and has a carrier

	owner   string // the package, as in errors
	config  string // its type of settings, likewise
	control func(network, address string, c syscall.RawConn) error
	paused  atomic.Bool
	closed  atomic.Bool
	done    chan struct{} // closed by Close
	link    *LinkWatch
	running sync.WaitGroup

	mu     sync.Mutex
	all    []*PacketSocket
	queues []*PacketSocket // of all, those that Receive opened
	lost   error           // what broke it
}

// NewPacketInterface returns an interface without sockets. Its errors begin with the name of the
// owner's package, and name fields of its config; control may be nil.
func NewPacketInterface(owner, config, name string, control func(network, address string, c syscall.RawConn) error) *PacketInterface {
	return &PacketInterface{Name: name, owner: owner, config: config, control: control, done: make(chan struct{})}
}

// Open opens a socket that is not bound yet, in the network namespace of the calling thread.
func (p *PacketInterface) Open(m PacketMode) (*PacketSocket, error) {
	s, err := OpenPacket(m)
	if errors.Is(err, syscall.EPERM) {
		err = fmt.Errorf("needs CAP_NET_RAW: %w", err)
	}
	if err != nil {
		return nil, err
	}
	p.all = append(p.all, s)
	if p.control != nil {
		if err := p.control("packet", p.Name, s.Conn); err != nil {
			return nil, fmt.Errorf("%s.Control: %w", p.config, err)
		}
	}
	return s, nil
}

// Find finds the interface, which s is to be bound to, and what it is like. It must be Ethernet.
func (p *PacketInterface) Find(s *PacketSocket) (err error) {
	if p.Index, err = s.Index(p.Name); err != nil {
		return err
	}
	if p.link, err = WatchLink(p.Index); err != nil {
		return following(err)
	}
	switch s, err := p.link.Next(); {
	case err != nil:
		return following(err)
	case s.Gone:
		return errGone
	case !s.Ethernet:
		return errors.New("not an Ethernet interface")
	default:
		p.MTU.Store(int64(s.MTU))
		p.Carrier.Store(s.Carrier)
	}
	return nil
}

// Receive opens one of so many receive queues, and binds it. With several nothing comes in
// before Filter: until all are there, each would get all frames.
func (p *PacketInterface) Receive(m PacketMode, queues int) (*PacketSocket, error) {
	m.Receive = true
	m.Shut = m.Shut || queues > 1
	s, err := p.Open(m)
	if err != nil {
		return nil, err
	}
	if err := s.Bind(p.Index, true); err != nil {
		return nil, fmt.Errorf("binding: %w", err)
	}
	var group *PacketSocket
	if len(p.queues) > 0 {
		group = p.queues[0]
	}
	p.queues = append(p.queues, s)
	if queues == 1 {
		return s, nil
	}
	if err := s.Join(group); err != nil {
		return nil, fmt.Errorf("%s.Queues: %d: PACKET_FANOUT with PACKET_FANOUT_FLAG_IGNORE_OUTGOING: %w", p.config, queues, err)
	}
	return s, nil
}

// Follow begins to follow the interface, until it is closed or broken.
func (p *PacketInterface) Follow() { p.Go(p.follow) }

// Go runs f, which ends when Done is closed; Close waits for it.
func (p *PacketInterface) Go(f func()) { p.running.Go(f) }

// Done is closed by Close.
func (p *PacketInterface) Done() <-chan struct{} { return p.done }

func (p *PacketInterface) follow() {
	for {
		switch s, err := p.link.Next(); {
		case p.closed.Load():
			return
		case err != nil:
			p.fail(following(err))
			return
		case s.Gone:
			p.fail(errGone)
			return
		default:
			p.MTU.Store(int64(s.MTU))
			p.Carrier.Store(s.Carrier)
		}
	}
}

func following(err error) error { return fmt.Errorf("following the interface: %w", err) }

// errGone is what is said of an interface that is gone.
var errGone = fmt.Errorf("it was deleted, or moved to another network namespace: %w", syscall.ENODEV)

// Pause has every Read of a queue return, those that wait and those to come, or lets them wait.
func (p *PacketInterface) Pause(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused.Store(on)
	p.interrupt()
}

// fail breaks the interface. The first error counts.
func (p *PacketInterface) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost == nil {
		p.lost = err
	}
	p.interrupt()
}

// interrupt makes every Read return if there is a reason to, and lets them wait if not.
// Nothing else wakes a Reader whose interface is deleted: the kernel reports an error to a
// packet socket only when an interface that is up goes down (Linux 6.18).
func (p *PacketInterface) interrupt() {
	var at time.Time
	if p.paused.Load() || p.lost != nil {
		at = time.Unix(1, 0)
	}
	for _, s := range p.queues {
		_ = s.File.SetReadDeadline(at) // fails only after Close
	}
}

// Closed reports whether Close was called.
func (p *PacketInterface) Closed() bool { return p.closed.Load() }

// Stopped returns what a Read returns that has no need to ask its socket.
func (p *PacketInterface) Stopped() error {
	switch {
	case p.closed.Load():
		return net.ErrClosed
	case p.paused.Load():
		return frame.ErrPaused
	}
	return nil
}

// Ended returns what is said of a Read or a Send that ends with err: that it was paused or
// closed, what broke the interface, or err.
func (p *PacketInterface) Ended(err error) error {
	if p.closed.Load() {
		return net.ErrClosed // at once: Close holds the lock for 50 ms
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed.Load(): // meanwhile
		return net.ErrClosed
	case p.lost != nil:
		err = p.lost
	case errors.Is(err, os.ErrDeadlineExceeded): // Resume may have been faster
		return frame.ErrPaused
	case errors.Is(err, syscall.ENXIO): // of a socket whose interface is gone
		err = errGone
	}
	return p.Wrap(err)
}

// Wrap names the interface in an error.
func (p *PacketInterface) Wrap(err error) error {
	return fmt.Errorf("%s: interface %q: %w", p.owner, p.Name, err)
}

// Close closes all sockets, and waits for what Go runs. It reports false when that was done
// before.
func (p *PacketInterface) Close() (err error, first bool) {
	if p.closed.Swap(true) {
		p.running.Wait()
		return nil, false
	}
	close(p.done)
	p.mu.Lock()
	for _, s := range p.all {
		err = errors.Join(err, s.File.Close())
	}
	if p.link != nil {
		p.link.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
	return err, true
}
