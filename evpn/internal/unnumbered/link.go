package unnumbered

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	interval = 10 * time.Second         // between advertisements
	tick     = time.Second              // between looks at the interface, and the first advertisements
	first    = 4                        // so many advertisements
	patience = interval + 2*time.Second // with a router that is silent and has no session
	pace     = 10 * time.Millisecond    // between two that are read; what comes faster is lost in the socket's buffer
)

// Config says where a router is looked for, and who wants to know.
type Config struct {
	Interface string
	In        func(f func()) // runs f where sockets are to be opened

	Found   func(netip.Addr) // the router, with Interface as its zone
	Lost    func(error)      // it is no longer to be reached
	Session func() bool      // whether there is a session with it
}

// A Link looks for the router of an interface.
type Link struct {
	Config
	open func(*Config) (socket, error)

	mu      sync.Mutex // around calls of Found and Lost
	near    neighbour
	trouble error         // why there is no router
	poke    chan struct{} // an advertisement is to be sent soon
}

// socket sends and receives on one interface, from when it is up until it is down.
type socket interface {
	state() error                    // nil while the interface is what it was: there, up, and with this name
	changed() <-chan struct{}        // state may be another one
	send(counts time.Duration) error // an advertisement
	solicit() error                  // asks others for theirs
	read(b []byte) (n, hops int, from netip.Addr, err error)
	own(netip.Addr) bool // reports whether an address is one of the interface's own
	Close() error
}

// New makes a Link. Nothing is opened before Run.
func New(c Config) *Link {
	return &Link{Config: c, open: open, poke: make(chan struct{}, 1)}
}

var errSilent = errors.New("no router was heard yet")

// Status returns why there is no router, or what is to say of the link.
func (l *Link) Status() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.near.ignored(time.Now()); other.IsValid() {
		return fmt.Sprintf("%s: another router, %v, is ignored", l.Interface, other)
	}
	if l.trouble == nil {
		return ""
	}
	return fmt.Sprintf("%s: %v", l.Interface, l.trouble)
}

// Run looks for the router until ctx is done. The interface may come and go.
func (l *Link) Run(ctx context.Context) {
	for ctx.Err() == nil {
		l.lost(l.watch(ctx))
		select {
		case <-ctx.Done():
		case <-time.After(tick):
		}
	}
}

func (l *Link) lost(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.near.addr.IsValid() {
		l.Lost(fmt.Errorf("%s: %w", l.Interface, err))
	}
	l.near, l.trouble = neighbour{}, err
}

// watch advertises us and listens until the interface is no longer what it was. It returns why that is.
func (l *Link) watch(ctx context.Context) error {
	s, err := l.open(&l.Config)
	if err != nil {
		return err
	}
	var reading sync.WaitGroup
	defer func() {
		s.Close()
		reading.Wait()
	}()
	l.note(errSilent)
	reading.Go(func() { l.listen(s) })
	t := time.NewTicker(tick)
	defer t.Stop()
	sent := 0
	var last, next time.Time
	for {
		if now := time.Now(); !now.Before(next) {
			err := s.send(lifetime)
			if last, next = now, now.Add(tick); err == nil {
				if sent++; sent >= first {
					next = now.Add(interval)
				} else if l.alone() {
					s.solicit()
				}
				err = errSilent // if there is no router, this is why
			}
			l.note(err)
		}
		select {
		case <-ctx.Done():
			s.send(0) // RFC 4861, section 6.2.5
			return context.Cause(ctx)
		case <-l.poke:
			next = last.Add(tick) // a router that has just come need not wait for us
		case <-s.changed():
		case <-t.C:
		}
		if err := s.state(); err != nil {
			return err
		}
	}
}

// alone reports whether no router is known.
func (l *Link) alone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.near.addr.IsValid()
}

// note notes why there is no router, as long as there is none.
func (l *Link) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trouble = err; l.near.addr.IsValid() && err == errSilent {
		l.trouble = nil
	}
}

// listen takes advertisements until the socket is closed.
func (l *Link) listen(s socket) {
	b := make([]byte, 1500)
	for {
		n, hops, from, err := s.read(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			if counts, ok := parse(b[:n], from, hops); ok {
				l.hear(s, from, counts)
			} else if solicits(b[:n], hops) {
				l.wake()
			}
		}
		time.Sleep(pace)
	}
}

func (l *Link) hear(s socket, from netip.Addr, counts time.Duration) {
	from = from.WithZone(l.Interface)
	now, session := time.Now(), l.Session()
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.near.addr
	if from != was && (l.near.busy(now, session) || s.own(from)) || !l.near.hear(now, from, counts, session) {
		return
	}
	if was.IsValid() {
		l.Lost(fmt.Errorf("%s: the router %v is gone, and there is %v", l.Interface, was, from))
	}
	l.trouble = nil
	l.Found(from)
	l.wake()
}

// wake has an advertisement sent soon.
func (l *Link) wake() {
	select {
	case l.poke <- struct{}{}:
	default:
	}
}
