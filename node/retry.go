package node

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// An origin is where the device of a port comes from.
type origin struct {
	home    *os.File // network namespace of the thread that opened it, for a Port without Namespace; nil if the system does not say
	existed bool     // somebody else makes it
}

// here returns the network namespace of the calling thread, nil if the system does not say. n.mu is held.
func (n *Node) here() *os.File {
	is, err := os.Stat(namespace(""))
	if err != nil {
		return nil
	}
	if n.home != nil {
		if was, err := n.home.Stat(); err == nil && os.SameFile(was, is) {
			return n.home
		}
	}
	f, err := os.Open(namespace(""))
	if err != nil {
		return nil
	}
	n.home = f // the old one is closed when no port is from there
	return f
}

// away returns the path of the network namespace that a device comes from, "" if the calling thread is there. Where it is
// not, the way there needs CAP_SYS_ADMIN.
func (o origin) away() string {
	if o.home == nil {
		return ""
	}
	was, err := o.home.Stat()
	is, failed := os.Stat(namespace(""))
	if err != nil || failed != nil || os.SameFile(was, is) {
		return ""
	}
	return fmt.Sprintf("/proc/self/fd/%d", o.home.Fd())
}

// retrySoon has retry look for the next try.
func (n *Node) retrySoon() {
	select {
	case n.kick <- struct{}{}:
	default:
	}
}

// retry opens ports that are down again, until ctx is done.
func (n *Node) retry(ctx context.Context) {
	for {
		var due <-chan time.Time
		if at := n.nextTry(); !at.IsZero() {
			due = time.After(time.Until(at))
		}
		select {
		case <-ctx.Done():
			return
		case <-n.kick:
		case <-due:
			n.tryAgain()
		}
	}
}

// nextTry returns when a port is to be opened again, zero if none is.
func (n *Node) nextTry() (at time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.down {
		if o.isDown() && !o.next.IsZero() && (at.IsZero() || o.next.Before(at)) {
			at = o.next
		}
	}
	return at
}

// tryAgain opens the ports whose time has come. It is no change of the configuration: only their members change.
func (n *Node) tryAgain() {
	n.updates.Lock()
	defer n.updates.Unlock()
	n.mu.Lock()
	now := time.Now()
	var due []*outage
	for _, o := range n.down {
		if o.isDown() && !o.next.IsZero() && !o.next.After(now) {
			due = append(due, o)
		}
	}
	closed := n.closed
	n.mu.Unlock()
	if closed {
		return
	}
	slices.SortFunc(due, func(a, b *outage) int { return cmp.Compare(a.cfg.Name, b.cfg.Name) })
	// Without n.mu, so that nobody waits for the system. Nothing else changes an outage now.
	fresh := map[string]*device{}
	for _, o := range due {
		d, err := n.openAs(&o.cfg, o.from)
		if err == nil {
			fresh[o.cfg.Name] = d
			continue
		}
		n.mu.Lock()
		o.err = err
		o.later()
		n.mu.Unlock()
	}
	if len(fresh) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		opened{ports: fresh}.close()
		return
	}
	n.rejoin(fresh)
}

// rejoin puts devices in the place of ports that are down, with all that the configuration has for them. One for which that
// fails stays down. n.updates and n.mu are held.
func (n *Node) rejoin(fresh map[string]*device) {
	for name, d := range fresh {
		n.closePort(name) // what is left of it
		n.ports[name] = d
	}
	fails := func(name string, err error) {
		o := n.down[name]
		o.err = fmt.Errorf("port %q: %w", name, err)
		o.later()
		n.closePort(name)
		delete(fresh, name)
	}
	var touched []*Segment
	for i := range n.cfg.Segments {
		c := &n.cfg.Segments[i]
		s, touches := n.segments[c.VNI], false
		for k := range c.Members {
			m := &c.Members[k]
			if fresh[m.Port] == nil || s == nil {
				continue
			}
			touches = true
			err := n.step("member", func() error { return n.setMember(s, c, m) })
			if err == nil {
				err = n.setIPGateway(s, c)
			}
			if err != nil {
				fails(m.Port, fmt.Errorf("%s: %w", about(c.VNI), err))
			}
		}
		if touches {
			s.setMulticastRouters(c)
			touched = append(touched, c)
		}
	}
	n.plane.Reapply()
	a := &attempt{back: true}
	for _, c := range touched {
		if err := n.step("cross-connect", func() error { return n.setCrossConnect(n.segments[c.VNI], c) }); err != nil {
			for _, m := range c.Members { // one
				if fresh[m.Port] != nil {
					fails(m.Port, fmt.Errorf("%s: %w", about(c.VNI), err))
				}
			}
		}
	}
	n.openGates(a)
	if a.err != nil {
		n.log.Warn("a segment did not open for a port that is back", "err", a.err)
	}
	for name, d := range fresh {
		n.fitPort(name, d)
		n.comesBack(name)
	}
	n.prober.look()
}
