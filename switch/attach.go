package vswitch

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
	"github.com/vxswitch/vxswitch/setting"
)

// Split-horizon groups with a fixed meaning. All other numbers are free for use.
const (
	GroupTunnel   uint8 = 1 // tunnels, which form a full mesh
	GroupIsolated uint8 = 2 // ports that may not reach each other; see VSIConfig.RouteIsolated
)

// ErrTagTaken is returned by Attach if the port already has an attachment with the tag and neither has a Match, if the VSI has
// one with the tag, or if it already has one on the tunnel.
var ErrTagTaken = errors.New("already attached")

// AttachConfig configures an attachment. The zero value is ready to use. All fields can
// be changed under traffic, except KeepOpen; Match only for another Match.
type AttachConfig struct {
	Group    uint8  `json:"group,omitzero"`      // split horizon: nothing passes between members of one group; 0 = none, on a tunnel 1
	Hub      bool   `json:"hub,omitzero"`        // of a tunnel: its peers reach each other through this switch (group 0)
	NoLearn  bool   `json:"noLearning,omitzero"` // source MACs are not learned; of a tunnel, neighbours only in answer to the gateway's own questions
	MaxMACs  int    `json:"maxMACs,omitzero"`    // limit of learned MACs on the port, or on each peer of a tunnel; 0 = the segment's limit alone
	NoFlood  Class  `json:"noFlood,omitzero"`    // classes of flooded frames that are not sent out here
	Storm    Storm  `json:"storm,omitzero"`      // rates of flooded frames that enter here; defaults on ports other than tunnels: 10,000 packets a second of broadcast, 50,000 of multicast, and, where the whole segment learns, 50,000 of unknown unicast (DefaultStorm)
	Locked   bool   `json:"locked,omitzero"`     // only MACs with a static or control-plane entry here may send; nothing is learned
	GBP      uint16 `json:"gbp,omitzero"`        // group policy ID for frames that enter here without one; 0 = none
	Shut     bool   `json:"-"`                   // no frame enters or leaves (frame.PortDown), until everything else is set up
	Role     *Role  `json:"-"`                   // in an Ethernet segment that several VTEPs share; must not change; nil = no others share it; not for tunnels
	KeepOpen bool   `json:"-"`                   // pause the port instead of closing it; read at the first attachment only

	// Match has the attachment take only the frames that match, among those of its tag. Several attachments of a port may have one
	// tag, in different VSIs: of those that match a frame, the one with the lowest VNI takes it, and the one without a Match the rest.
	// Frames that leave here leave with the tag. Not for tunnels. It can be changed for another one, but not set or removed later.
	Match Matcher `json:"-"`

	Slots Slots `json:"-"` // stages that run before those of the VSI; see Variant
}

// An Attachment is a port's membership in a VSI; a tunnel has at most one in each. The first of a port in a VSI, without a Match, has
// the port's number, as in other VSIs. Further ones, and those with a Match, have a number, split horizon and limits of their own.
type Attachment struct {
	vsi  *VSI
	port *port
	tag  uint32

	tally *tally
	cfg   AttachConfig // under Switch.mu
	storm *meters      // of cfg.Storm, under Switch.mu
	now   *circuit     // as last published, under Switch.mu
	gone  bool         // under Switch.mu
	err   error        // why the port has failed, under Switch.mu
	held  time.Time    // under Switch.mu; blocked until then for flapping MACs
}

// Attach makes a port a member of the VSI with default settings. The tag is a VNI on a tunnel, a VLAN
// on a trunk (with [frame.ServiceTag] that of service tags, behind which there may be others: see
// VSIConfig.InnerVLAN), and 0 on an access port, whose frames are untagged. On success the switch owns the port;
// on an error it is still the caller's.
func (v *VSI) Attach(p Port, tag uint32) (*Attachment, error) {
	return v.AttachWith(p, tag, nil)
}

// AttachWith is Attach with settings; a nil cfg means the zero value. A port may have many attachments, in one VSI
// or several; those without a Match differ in their tags. The first attachment adds the port to the switch, which then reads it.
func (v *VSI) AttachWith(p Port, tag uint32, cfg *AttachConfig) (*Attachment, error) {
	s := v.sw
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &Attachment{vsi: v, tag: tag}
	if cfg != nil {
		a.cfg = *cfg
	}
	if err := s.attach(a, p); err != nil {
		return nil, fmt.Errorf("vswitch: attach to VSI %d with tag %d: %w", v.vni, tag, err)
	}
	return a, nil
}

func (s *Switch) attach(a *Attachment, p Port) error {
	v := a.vsi
	if s.closed || v.gone.Load() {
		return net.ErrClosed
	}
	switch {
	case absent.Is(p):
		return fmt.Errorf("port: is %#v", p)
	case !reflect.TypeOf(p).Comparable():
		return fmt.Errorf("a port of type %T cannot be compared; it must be a pointer", p)
	}
	tunnel, isTunnel := p.(Tunnel)
	if err := a.cfg.Check(isTunnel); err != nil {
		return err
	}
	if vid := a.tag &^ frame.ServiceTag; !isTunnel && (vid > 4094 || vid == 0 && a.tag != 0) {
		return errors.New("tag: a VLAN is 1 to 4094, with frame.ServiceTag or without, or 0 for none")
	}
	x, second := s.byPort[p], false
	if x != nil {
		if _, taken := x.circuits.Load(tagKey(a.tag)); taken && a.cfg.Match == nil {
			return fmt.Errorf("tag: %w", ErrTagTaken)
		}
		if slices.ContainsFunc(v.members, func(m *Attachment) bool { return m.port.of == x && m.tag == a.tag }) {
			return fmt.Errorf("tag: %w", ErrTagTaken)
		}
		if second = slices.ContainsFunc(v.members, func(m *Attachment) bool { return m.port.of == x }); second && isTunnel {
			return fmt.Errorf("port: %w", ErrTagTaken)
		}
	} else if _, ok := p.(Pauser); a.cfg.KeepOpen && !ok {
		return errors.New("AttachConfig.KeepOpen: the port cannot be paused")
	}
	if isTunnel {
		if err := tunnel.Control().Open(a.tag); err != nil {
			return err
		}
	}
	fresh := x == nil
	if fresh {
		var err error
		if x, err = s.add(p, a.cfg.KeepOpen); err != nil {
			if isTunnel {
				tunnel.Control().Shut(a.tag)
			}
			return err
		}
	}
	if a.port = x; second || a.cfg.Match != nil {
		var err error
		if a.port, err = s.sub(x); err != nil {
			if fresh {
				delete(s.byPort, p)
				s.dropSub(x)
			}
			return err
		}
		a.port.members = []*Attachment{a}
	}
	a.storm = a.meters(0)
	s.tallies.open(a)
	x.members = append(x.members, a)
	v.members = append(v.members, a)
	v.fdb.SetPerDest(a.port.num, a.cfg.MaxMACs)
	v.publish()
	if fresh {
		s.events.emit(frame.Event{Kind: frame.EventPortUp, Dest: frame.NewDest(x.num, 0)})
		s.log.Info("port up", "port", x.name, "number", x.num)
		if isTunnel {
			tunnel.Control().Tell(func(e frame.Event) {
				e.Dest = frame.NewDest(x.num, e.Dest.Peer())
				s.events.emit(e)
			})
		}
		if s.running {
			s.start(x)
		}
	}
	s.events.emit(frame.Event{Kind: frame.EventAttached, VNI: v.vni, Dest: a.Dest(0)})
	return nil
}

// Check returns what is wrong with the settings for a tunnel, or for any other port. [VSI.AttachWith]
// returns the same error.
func (c *AttachConfig) Check(tunnel bool) error {
	w := setting.Of("AttachConfig")
	w.Limit("MaxMACs", c.MaxMACs)
	if c.Hub && !tunnel {
		w.Wrong("Hub", nil, "the port is not a tunnel")
	} else if c.Hub && c.Group != 0 {
		w.Wrong("Hub", nil, "a hub cannot be in a group")
	}
	if c.NoFlood > Broadcast|Multicast|UnknownUnicast {
		w.Want("NoFlood", uint8(c.NoFlood), "a set of Broadcast, Multicast and UnknownUnicast")
	}
	if c.Match != nil && tunnel {
		w.Wrong("Match", nil, "not for tunnels")
	}
	if c.Role != nil && tunnel {
		w.Wrong("Role", nil, "not for tunnels")
	} else if c.Role != nil {
		w.Add("Role", c.Role.Check())
	}
	w.Add("Slots", c.Slots.check())
	return w.Err()
}

// circuit returns the attachment as the workers see it. The stages of last run after all others.
func (a *Attachment) circuit(last Slots) *circuit {
	c, v := &a.cfg, &a.vsi.cfg
	group := c.Group
	if group == 0 && a.port.tunnel != nil && !c.Hub {
		group = GroupTunnel
	}
	slots := c.Slots.before(v.Slots).before(last)
	if !a.held.IsZero() {
		slots.Ingress, slots.Egress = closed(frame.Flapping), closed(frame.Flapping)
	}
	if c.Role.blocked() {
		slots.Ingress, slots.Egress = closed(frame.Blocked), closed(frame.Blocked)
	}
	if c.Shut {
		slots.Ingress, slots.Egress = closed(frame.PortDown), closed(frame.PortDown)
	}
	enters := lookOf(slots.Ingress)
	if c.GBP != 0 {
		enters = atAll
	}
	return &circuit{
		vsi: a.vsi, port: a.port, fib: fibOf(slots.Gateway), selector: selectorOf(slots.Multicast), match: c.Match, tag: a.tag, tally: a.tally, group: group, hub: c.Hub, learn: !c.NoLearn && !v.NoLearn && !c.Locked,
		locked: c.Locked, innerVLAN: v.InnerVLAN, native: v.InnerVLAN == VLANPass && a.tag == 0 && a.port.tunnel == nil,
		gbp: c.GBP, storm: a.limits(), role: c.Role.compile(),
		forwardPinned: v.ForwardPinned, forwardBridge: v.ForwardBridgeGroup, routeIsolated: v.RouteIsolated,
		noFloodIn: v.NoFlood, misses: v.TellMisses, noFloodOut: c.NoFlood, slots: slots,
		confined: a.port.tunnel == nil && confines(slots.Neighbour), hidden: a.port.tunnel == nil && hides(slots.Neighbour), enters: enters, leaves: lookOf(slots.Egress),
	}
}

// closed is a Stage that drops every frame for one reason.
type closed frame.Reason

func (c closed) Process(*frame.Frame, frame.At) frame.Verdict { return frame.Drop(frame.Reason(c)) }

// Configure changes all settings except KeepOpen, under traffic.
func (a *Attachment) Configure(cfg AttachConfig) error {
	s := a.vsi.sw
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.gone {
		return fmt.Errorf("vswitch: attachment: %w", net.ErrClosed)
	}
	if err := cfg.Check(a.port.tunnel != nil); err != nil {
		return fmt.Errorf("vswitch: %w", err)
	}
	if (cfg.Match == nil) != (a.cfg.Match == nil) {
		return errors.New("vswitch: AttachConfig.Match: cannot be set or removed later")
	}
	cfg.KeepOpen = a.cfg.KeepOpen
	blocks := cfg.Role.blocked() && !a.cfg.Role.blocked()
	a.cfg = cfg
	a.storm = a.meters(s.now())
	a.vsi.fdb.SetPerDest(a.port.num, cfg.MaxMACs)
	a.vsi.publish()
	if blocks {
		a.forget()
	}
	return nil
}

// Config returns the settings that were last set.
func (a *Attachment) Config() AttachConfig {
	a.vsi.sw.mu.Lock()
	defer a.vsi.sw.mu.Unlock()
	return a.cfg
}

// VSI returns the VSI the attachment is a member of.
func (a *Attachment) VSI() *VSI { return a.vsi }

// Port returns the port that was attached.
func (a *Attachment) Port() Port { return a.port.p }

// PortName returns the name of the port, which is the same for all its attachments; see also [AttachmentName].
func (a *Attachment) PortName() string { return a.port.of.name }

// Tag returns the port's name for the network.
func (a *Attachment) Tag() uint32 { return a.tag }

// Err returns the error with which the port has failed, that of its EventPortDown; nil while it is attached, or if it was
// detached.
func (a *Attachment) Err() error {
	a.vsi.sw.mu.Lock()
	defer a.vsi.sw.mu.Unlock()
	return a.err
}

// Dest returns the destination that FDB entries use for the port, or for a peer behind it.
func (a *Attachment) Dest(peer uint16) frame.Dest { return frame.NewDest(a.port.num, peer) }

// Detach ends the membership under traffic. When it returns, no frame enters or leaves through the
// attachment, and no FDB entry refers to it. A port that loses its last attachment leaves the switch
// and is closed, or paused if KeepOpen is set.
func (a *Attachment) Detach() error {
	s := a.vsi.sw
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.gone {
		return fmt.Errorf("vswitch: detach: %w", net.ErrClosed)
	}
	s.detach(a)
	return nil
}

// detach ends one attachment. s.mu is held.
func (s *Switch) detach(a *Attachment) {
	main := a.port.of
	if len(main.members) == 1 {
		s.remove(main, nil)
		return
	}
	a.unlink()
	if a.port != main {
		a.port.gone.Store(true)
		s.version.Add(1)
	}
	s.grace()
	s.tallies.shut(a, false)
	if a.port == main {
		a.vsi.fdb.DeletePort(a.port.num)
		a.left()
		return
	}
	s.beforeBump()
	s.gens.KillPort(a.port.num)
	a.left()
	s.dropSub(a.port)
}

// left tells stages and readers of events that no frame comes from the attachment any more.
func (a *Attachment) left() {
	a.vsi.left(a.Dest(0), a)
	a.vsi.sw.events.emit(frame.Event{Kind: frame.EventDetached, VNI: a.vsi.vni, Dest: a.Dest(0)})
}

// unlink removes the attachment from the tables that workers read. s.mu is held.
func (a *Attachment) unlink() {
	a.gone = true
	mine := func(m *Attachment) bool { return m == a }
	a.vsi.members = slices.DeleteFunc(a.vsi.members, mine)
	main := a.port.of
	main.members = slices.DeleteFunc(main.members, mine)
	a.port.circuits.Delete(tagKey(a.tag))
	if a.cfg.Match != nil {
		main.steer()
	} else if a.port != main {
		main.circuits.Delete(tagKey(a.tag))
	}
	if a.port.tunnel != nil {
		a.port.tunnel.Control().Shut(a.tag)
	}
	a.vsi.fdb.SetPerDest(a.port.num, -1)
	a.vsi.publish()
}
