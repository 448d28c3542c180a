package node

import (
	"errors"
	"maps"
	"net"
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A gate blocks frames in a segment during a change.
type gate struct {
	shut    map[*vswitch.Attachment]bool
	gateway bool            // the gateway is blocked
	unknown bool            // unknown unicast is dropped, since static entries may be missing
	retired []*l3.Interface // gateways that have gone, of which hosts are to hear
}

// attach attaches a port to the segment, shut.
func (s *segment) attach(p vswitch.Port, tag uint32, at vswitch.AttachConfig) (*vswitch.Attachment, error) {
	at.Shut = true
	a, err := s.vsi.AttachWith(p, tag, &at)
	if err == nil {
		s.gate.shut[a] = true
	}
	return a, err
}

// set changes the settings of an attachment and keeps it shut.
func (s *segment) set(a *vswitch.Attachment, at vswitch.AttachConfig) error {
	at.Shut = s.gate.shut[a]
	return unlessGone(a.Configure(at))
}

// unlessGone returns err, but none if an attachment has gone with its device meanwhile: the node hears of that by an event.
func unlessGone(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// detach detaches an attachment, and drops the interface on it.
func (s *segment) detach(a *vswitch.Attachment) error {
	if s.onPort() {
		s.dropInterface()
	}
	delete(s.gate.shut, a)
	err := unlessGone(a.Detach())
	unmark(a)
	return err
}

// configure changes the settings of the VSI, behind the gate.
func (s *segment) configure(cfg vswitch.VSIConfig) error {
	s.settings = cfg
	if s.gate.gateway {
		cfg.Slots.Gateway = nil
	}
	if s.gate.unknown {
		cfg.NoFlood |= vswitch.UnknownUnicast
	}
	return s.vsi.Configure(cfg)
}

// closeGate closes the gate of the segment; with shut also all attachments.
func (s *segment) closeGate(shut bool) error {
	err := s.configure(s.settings)
	for _, a := range s.vsi.Attachments() {
		if shut && err == nil {
			s.gate.shut[a] = true
			err = s.set(a, a.Config())
		}
	}
	return err
}

// openGate opens the gate and the attachments.
func (s *segment) openGate() (err error) {
	if s.gate.gateway || s.gate.unknown {
		s.gate.gateway, s.gate.unknown = false, false
		err = s.configure(s.settings)
	}
	for a := range s.gate.shut {
		if err == nil {
			delete(s.gate.shut, a)
			err = s.set(a, a.Config())
		}
	}
	if err == nil {
		s.retireNow()
	}
	return err
}

// closeGates closes the gates of segments where the change to w requires it.
func (n *Node) closeGates(w wanted, a *attempt) {
	was, closed := index(a.from), false
	matches := changedMatches(was, w)
	for _, vni := range slices.Sorted(maps.Keys(n.segments)) {
		s, c := n.segments[vni], w.segments[vni]
		gateway := c == nil || !reflect.DeepEqual(s.made, c.neighbourhood())
		unknown := c != nil && (gateway && s.iface != nil || n.losesEntries(s, c, w))
		shut := c != nil && (inSteps(was.segments[vni], c, was, w) || slices.ContainsFunc(c.Members, func(m Member) bool { return matches[m.place()] }))
		if !gateway && !unknown && !shut {
			continue
		}
		closed = true
		if gateway {
			s.retire(c)
		}
		s.gate.gateway, s.gate.unknown = s.gate.gateway || gateway, s.gate.unknown || unknown
		if n.take(a, about(vni), "close", func() error { return s.closeGate(shut) }) {
			return
		}
	}
	if closed {
		n.sw.Settle()
	}
}

// shutWith shuts the segments of a tunnel that is opened again where it was to change in place.
func (n *Node) shutWith(name string, a *attempt) {
	for _, vni := range slices.Sorted(maps.Keys(n.segments)) {
		if s := n.segments[vni]; s.tunnels[name] != nil {
			n.take(a, about(vni), "close", func() error { return s.closeGate(true) })
		}
	}
	n.sw.Settle()
}

// openGates opens all gates.
func (n *Node) openGates(a *attempt) {
	for _, vni := range slices.Sorted(maps.Keys(n.segments)) {
		if n.take(a, about(vni), "open", n.segments[vni].openGate) {
			return
		}
	}
	for _, v := range n.gateway.VRFs() {
		v.Release()
	}
}
