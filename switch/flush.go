package vswitch

import (
	"fmt"
	"net"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
)

// Flushing removes learned MACs in constant time, with one event for each segment. Static and control entries stay.

// Flush removes all learned MACs of all VSIs.
func (s *Switch) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beforeBump()
	s.gens.FlushAll()
	for _, v := range s.vsis {
		v.fdb.Flushed(0)
	}
}

// Flush removes all learned MACs of the VSI.
func (v *VSI) Flush() {
	v.sw.mu.Lock()
	defer v.sw.mu.Unlock()
	v.sw.beforeBump()
	v.fdb.Flush()
	v.fdb.Flushed(0)
}

// FlushPort removes all MACs learned on a port, in all VSIs; on a tunnel, those of all its peers. If
// the port is not attached the error wraps [net.ErrClosed].
func (s *Switch) FlushPort(p Port) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.byPort[p]
	if x == nil {
		return fmt.Errorf("vswitch: flush: the port is not attached: %w", net.ErrClosed)
	}
	s.beforeBump()
	s.gens.FlushPort(x.num)
	for _, a := range x.members {
		if a.port != x {
			s.gens.FlushPort(a.port.num)
		}
		a.vsi.flushed(a.Dest(0))
		a.vsi.fdb.Flushed(a.Dest(0))
	}
	return nil
}

// FlushPeer removes all MACs learned behind one peer of a tunnel, in all VSIs. It returns fdb.ErrNoDest
// if d is neither a port nor a peer.
func (s *Switch) FlushPeer(d frame.Dest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ports := *s.ports.Load()
	if n := int(d.Port()); n == 0 || n >= len(ports) || ports[n] == nil || !ports[n].has(d.Peer()) {
		return fmt.Errorf("vswitch: flush: %w: %v", fdb.ErrNoDest, d)
	}
	s.beforeBump()
	s.gens.FlushPeer(d)
	for _, a := range ports[d.Port()].members {
		if a.port.num != d.Port() {
			continue
		}
		a.vsi.flushed(d)
		a.vsi.fdb.Flushed(d)
	}
	return nil
}
