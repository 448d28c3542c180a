package main

import (
	"cmp"
	"context"
	"maps"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// A host is a MAC of the segment, alone or with one of its addresses.
type host struct {
	MAC frame.MAC  `json:"mac"`
	IP  netip.Addr `json:"ip,omitzero"`
}

func (h host) compare(o host) int {
	return cmp.Or(cmp.Compare(h.MAC.Uint64(), o.MAC.Uint64()), h.IP.Compare(o.IP))
}

// watch keeps hosts as the events of the switch say.
func (a *agent) watch(ctx context.Context) {
	events := a.node.Switch().Events()
	defer events.Close()
	a.again() // what was there before the events
	for {
		e, err := events.Next(ctx)
		if err != nil {
			return
		}
		switch e.Kind {
		case frame.EventOverflow, frame.EventFlushed, frame.EventDetached, frame.EventPeerDown: // many at once
			a.again()
		default:
			a.change(func() bool { return a.carry(e) })
		}
	}
}

// again takes all hosts from the tables, as events.
func (a *agent) again() {
	a.change(func() bool {
		was := a.hosts
		a.hosts = map[host]bool{}
		for e := range a.node.Switch().State() {
			a.carry(e)
		}
		return !maps.Equal(was, a.hosts)
	})
}

// carry carries out an event of one host, and reports whether that was a change. A host with a peer is behind a tunnel:
// another agent announces it.
func (a *agent) carry(e frame.Event) bool {
	if e.VNI != a.segment.VNI() {
		return false
	}
	n := len(a.hosts)
	here := e.Dest.Peer() == 0
	switch e.Kind {
	case frame.EventMACLearned, frame.EventMACMoved:
		if here {
			a.hosts[host{MAC: e.MAC}] = true
			break
		}
		fallthrough
	case frame.EventMACAged, frame.EventMACEvicted, frame.EventMACDeleted:
		delete(a.hosts, host{MAC: e.MAC})
	case frame.EventNeighbourLearned, frame.EventNeighbourMoved:
		delete(a.hosts, host{e.OldMAC, e.IP})
		if here {
			a.hosts[host{e.MAC, e.IP}] = true
			return true
		}
		fallthrough
	case frame.EventNeighbourAged, frame.EventNeighbourDeleted:
		delete(a.hosts, host{e.MAC, e.IP})
	}
	return len(a.hosts) != n
}

// change changes hosts, and wakes those who tell the others.
func (a *agent) change(f func() bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f() {
		close(a.changed)
		a.changed = make(chan struct{})
	}
}
