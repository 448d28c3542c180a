package vswitch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/frame"
)

// A Matcher chooses frames of a port for an attachment, before anything else is done with them: by MAC, EtherType, or what
// else a program knows. See AttachConfig.Match. Workers call it at the same time, so it must not block or allocate, nor change
// the frame.
type Matcher interface {
	// Match reports whether the attachment takes a frame. The VLAN tag of the attachment has been removed. An Ethernet frame has
	// at least its header of 14 bytes.
	Match(f *frame.Frame) bool
}

// An attachment of a port that has another in the VSI, or that takes only what matches, is at a sub-port: a number of its own, so
// that FDB entries, moves, split horizon and limits tell it from the others. A sub-port has no workers. Frames from it come in at
// the port, and frames to it leave by the port's Writers.

// sub makes a sub-port. s.mu is held.
func (s *Switch) sub(main *port) (*port, error) {
	num, err := s.number()
	if err != nil {
		return nil, err
	}
	x := &port{num: num, of: main, p: main.p, takes: main.takes, name: main.name}
	s.setPort(num, x)
	return x, nil
}

// setNames names the attachments at sub-ports: by their tags where the VSI has several of a port, else by the port. s.mu is held.
func (v *VSI) setNames() {
	n := map[*port]int{}
	for _, a := range v.members {
		n[a.port.of]++
	}
	for _, a := range v.members {
		if main := a.port.of; main != a.port {
			name := main.name
			if n[main] > 1 {
				name = AttachmentName(name, a.tag)
			}
			a.port.alias.Store(&name)
		}
	}
}

// title is the name of a port or a sub-port.
func (p *port) title() string {
	if name := p.alias.Load(); name != nil {
		return *name
	}
	return p.name
}

// AttachmentName is the name of one of several attachments of a port in a VSI: eth0.20, eth0.s20 for service tags, eth0.0 for untagged
// frames. The one with the port's own number has the name of the port, and so has any that is the port's only one in the VSI. Names
// change when others come and go; Dests do not.
func AttachmentName(port string, tag uint32) string {
	if tag&frame.ServiceTag != 0 {
		return fmt.Sprintf("%s.s%d", port, tag&^frame.ServiceTag)
	}
	return fmt.Sprintf("%s.%d", port, tag)
}

// Named returns those of the attachments of a VSI that a name stands for: all of the port with that name, else the one with that
// AttachmentName.
func Named[T any](list []T, name string, place func(T) (port string, tag uint32)) []T {
	var ofPort, one []T
	for _, x := range list {
		switch port, tag := place(x); {
		case port == name:
			ofPort = append(ofPort, x)
		case strings.HasPrefix(name, port) && AttachmentName(port, tag) == name:
			one = append(one, x)
		}
	}
	if ofPort != nil {
		return ofPort
	}
	return one
}

// Named returns the attachments of ports, not those of tunnels, that a name stands for; see the function [Named].
func (v *VSI) Named(name string) []*Attachment {
	ports := slices.DeleteFunc(v.Attachments(), func(a *Attachment) bool { return a.port.tunnel != nil })
	return Named(ports, name, func(a *Attachment) (string, uint32) { return a.PortName(), a.tag })
}

// dropSub frees the number of a sub-port that no worker knows any more. s.mu is held.
func (s *Switch) dropSub(x *port) {
	s.setPort(x.num, nil)
	s.nums.give(int(x.num))
}

// steer publishes which attachments take frames by what they match, in the order of their VNIs. s.mu is held.
func (p *port) steer() {
	var list []*circuit
	for _, a := range p.members {
		if a.cfg.Match != nil && a.now != nil {
			list = append(list, a.now)
		}
	}
	if len(list) == 0 {
		p.matching.Store(nil)
		return
	}
	slices.SortFunc(list, func(a, b *circuit) int { return cmp.Compare(a.vsi.vni, b.vsi.vni) })
	p.matching.Store(&list)
}

// match returns the first attachment with the tag that takes f by what it matches, or nil.
func match(list []*circuit, tag uint32, f *frame.Frame) *circuit {
	if f.Drop != frame.NotDropped || f.Kind == frame.Ethernet && f.Len() < ethLen {
		return nil
	}
	for _, c := range list {
		if c.tag == tag && c.match.Match(f) {
			return c
		}
	}
	return nil
}
