package node

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A DownPort is a port of the configuration that does not run: its device has failed, or could not be opened again.
type DownPort struct {
	Name  string
	Type  PortType
	Tags  map[frame.VNI][]uint32 // its segments, each with the tags of its members there: VLANs, with frame.ServiceTag or without
	Err   error                  // why it failed, or why it could not be opened at the last try
	Since time.Time
	Next  time.Time // of the next try; zero for a port of the program, in whose place the program must Add another
}

// Down returns the ports of the configuration that are down, in the order of their names. The node logs when one goes and
// when it is back, and tries to open it again while it runs: after 100 ms, then after twice the time of the last try, and
// at last every 10 s. A port that fails within a second of its return goes on with the next wait.
//
// A device that the node had made it makes again. One that was there before, an interface or a persistent TAP or TUN, must
// be made again by its owner, in the same network namespace with the same name. The port returns with all that the
// configuration has for it: members, entries, routes, policies.
//
// Meanwhile the rest of the node runs and changes as usual. A change tries to open the ports that are down, those with other
// settings too; one that still cannot be opened stays down, and is no error of the change.
func (n *Node) Down() []DownPort {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []DownPort
	for _, name := range slices.Sorted(maps.Keys(n.down)) {
		o := n.down[name]
		if !o.isDown() {
			continue
		}
		p := DownPort{Name: name, Type: o.cfg.Type, Tags: map[frame.VNI][]uint32{}, Err: o.err, Since: o.since, Next: o.next}
		for i := range n.cfg.Segments {
			c := &n.cfg.Segments[i]
			for k := range c.Members {
				if m := &c.Members[k]; m.Port == name {
					p.Tags[c.VNI] = append(p.Tags[c.VNI], m.tag())
				}
			}
		}
		list = append(list, p)
	}
	return list
}

// PortsUp returns the ports of the configuration by name, false for those in [Node.Down].
func (n *Node) PortsUp() map[string]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := make(map[string]bool, len(n.cfg.Ports))
	for _, c := range n.cfg.Ports {
		m[c.Name] = !n.isDown(c.Name)
	}
	return m
}

// TunnelsDown returns the tunnels of the configuration that do not run, each with its error: its sockets have failed, or could
// not be opened again when a change failed. The next change opens them.
func (n *Node) TunnelsDown() map[string]error {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := map[string]error{}
	for _, c := range n.cfg.Tunnels {
		if t := n.tunnels[c.Name]; t == nil {
			m[c.Name] = errors.New("it could not be opened again")
		} else if t.failed != nil {
			m[c.Name] = t.failed
		}
	}
	return m
}

// Waits between tries to open a port again.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 10 * time.Second

	probation = time.Second // after a return: a failure in this time is one more of the same
)

// An outage is the time in which a port is down, and its probation.
type outage struct {
	cfg  Port
	dead *device // what has failed, nil if it could not be opened
	from origin  // where it was opened
	err  error

	since time.Time
	wait  time.Duration // after the next try
	next  time.Time     // zero: the program must Add another
	back  time.Time     // zero while the port is down
}

func (o *outage) isDown() bool { return o != nil && o.back.IsZero() }

// later sets the time of the next try.
func (o *outage) later() {
	o.next = time.Now().Add(o.wait)
	o.wait = min(2*o.wait, lastWait)
}

func (n *Node) isDown(name string) bool { return n.down[name].isDown() }

// goesDown records that a port does not run: d has failed, or nil could be opened. n.mu is held.
func (n *Node) goesDown(c *Port, d *device, err error) {
	now := time.Now()
	o := n.down[c.Name]
	if o == nil || now.Sub(o.back) > probation {
		o = &outage{wait: firstWait}
		n.down[c.Name] = o
	}
	o.cfg, o.dead, o.err, o.since, o.next, o.back = *c, d, err, now, time.Time{}, time.Time{}
	if d != nil {
		o.from = d.from
	} else {
		o.from = origin{home: n.here()}
	}
	if c.Type != PortOwn {
		if d != nil {
			d.port.Close() // which may keep it from being opened again
		}
		o.later()
		n.retrySoon()
	}
	n.log.Warn("a port is down", "port", c.Name, "err", err)
}

// comesBack records that a port runs again. n.mu is held.
func (n *Node) comesBack(name string) {
	o := n.down[name]
	o.back, o.dead, o.err = time.Now(), nil, nil
	n.log.Warn("a port is back", "port", name, "after", o.back.Sub(o.since).Round(time.Millisecond))
}

// failed records that a port is detached, with the error with which it has failed if it has. n.mu is held.
func (n *Node) failed(name string, err error) {
	d := n.ports[name]
	if d == nil || n.isDown(name) || n.ending != nil && n.ending() != nil {
		return // none that fails: the switch lets go of all ports at its end
	}
	if err == nil {
		err = errors.New("the port was detached from the switch")
	}
	n.goesDown(&d.cfg, d, err)
}

// lookForFailed records the ports that have failed, and logs the tunnels that have. n.mu is held.
func (n *Node) lookForFailed() {
	if n.closed {
		return
	}
	for _, s := range n.segments {
		for _, a := range s.members {
			if err := a.Err(); err != nil {
				n.failed(a.port, err)
			}
		}
		for name, a := range s.tunnels {
			t := n.tunnels[name]
			if err := a.Err(); err != nil && t != nil && t.failed == nil {
				t.failed = err
				n.log.Warn("a tunnel is down until the next change", "tunnel", name, "err", err)
			}
		}
	}
}

// settleDown compares what is down with what a change has left. n.mu is held.
func (n *Node) settleDown() {
	if len(n.down) == 0 {
		return
	}
	ports := index(n.cfg).ports
	for name, o := range n.down {
		d, c := n.ports[name], ports[name]
		switch {
		case c == nil, !o.isDown() && time.Since(o.back) > probation:
			delete(n.down, name)
		case !o.isDown():
		case d != nil && d != o.dead:
			n.comesBack(name)
		case !reflect.DeepEqual(o.cfg, *c) && c.Type != PortOwn: // still down, with other settings
			o.cfg, o.from.existed, o.wait = *c, false, firstWait
			o.later()
			n.retrySoon()
		}
	}
}
