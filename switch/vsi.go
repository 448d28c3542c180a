package vswitch

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/pending"
	"github.com/vxswitch/vxswitch/setting"
)

// VSIConfig configures a VSI. The zero value is ready to use. All fields except Refuse can be changed
// under traffic.
type VSIConfig struct {
	MaxMACs int           `json:"maxMACs,omitzero"`             // limit of learned MACs; default 8192
	Refuse  bool          `json:"refuse,omitzero"`              // learn nothing at the limit, instead of replacing the least recently seen MAC of the port or peer with the most
	Ageing  time.Duration `json:"ageing,omitzero" zero:"never"` // time after which a learned MAC that was not seen is removed; default 300 s, negative = never

	NoLearn            bool     `json:"noLearning,omitzero"`         // do not learn source MACs, on any port or from any peer
	Freeze             uint8    `json:"freeze,omitzero"`             // moves within 180 s, at most 255, after which a MAC stays for 180 s where it was first (RFC 7432, section 15.1, suggests 5); 0 = never
	NoFlood            Class    `json:"noFlood,omitzero"`            // classes of frames that are dropped instead of flooded
	Storm              Storm    `json:"storm,omitzero"`              // rates of flooded frames of all senders together; default no limit
	InnerVLAN          VLANMode `json:"innerVLAN,omitzero"`          // how to handle frames with an unexpected VLAN tag, above all those from tunnels
	ForwardPinned      bool     `json:"forwardPinned,omitzero"`      // forward frames whose source MAC is pinned elsewhere, instead of dropping them
	ForwardBridgeGroup bool     `json:"forwardBridgeGroup,omitzero"` // forward frames to 01:80:c2:00:00:00-0f like other multicast, so that STP of a bridge with two ports here detects the loop

	// RouteIsolated lets ports of one split-horizon group, such as isolated ones, reach each other
	// through the segment's gateway. Without it, frames that the gateway returns to the segment, from
	// one of them to another, are dropped as frame.Isolated. Tunnels and ports in groups 0 and 1 are
	// not affected.
	RouteIsolated bool `json:"routeIsolated,omitzero"`

	// FlapHold is how long a port is blocked after a MAC has moved more than Flaps times in a second
	// between it and another place, which is what a loop looks like. Frames from and to the port are
	// dropped as frame.Flapping meanwhile. Tunnels are never blocked. Default: no port is.
	FlapHold time.Duration `json:"flapHold,omitzero"`
	Flaps    uint8         `json:"flaps,omitzero"` // moves of one MAC in a second, at most 255, above which an event and a warning report it; 0 = 10

	// TellMisses reports unicast frames to unknown MACs as mac-miss events, at most one for each MAC in
	// MissTimeout, so that a control plane can add the entry. NoFlood decides what happens to the frame.
	TellMisses  bool          `json:"tellMisses,omitzero"`
	MissTimeout time.Duration `json:"missTimeout,omitzero"` // whole seconds; default 5 s

	Slots Slots `json:"-"` // stages for all attachments, which run after their own
}

// A VSI is a virtual switching instance: one Ethernet segment.
type VSI struct {
	sw   *Switch
	vni  frame.VNI
	fdb  *fdb.Table
	view atomic.Pointer[view]
	gone atomic.Bool

	holds   atomic.Bool                 // cfg.FlapHold is set
	flapped atomic.Pointer[frame.Event] // for the housekeeping
	held    atomic.Uint64               // times a port was blocked

	missing atomic.Pointer[pending.Set[frame.MAC]] // nil until misses are reported

	cfg     VSIConfig     // under Switch.mu
	storm   *meters       // of cfg.Storm, under Switch.mu
	members []*Attachment // under Switch.mu, in the order they came
	missFor time.Duration // what missing was made for; under Switch.mu
	ledger  ledger
	tallies []*tally // of members; under Switch.tallies.mu
	past    traffic  // of members that have gone; likewise
}

// view is a VSI's membership as the workers see it: immutable.
type view struct {
	own     *circuit   // port 0: the switch itself
	members []*circuit // flooding goes in this order
	tunnels []*circuit // of these
	byPort  []member   // the same by port number: open addressing, at most half full
}

type member struct {
	port uint16
	c    *circuit // nil: nobody
}

func newView(own *circuit, members []*circuit) *view {
	size := 2
	for size < 2*len(members) {
		size *= 2
	}
	v := &view{own: own, members: members, byPort: make([]member, size)}
	for _, c := range members {
		if c.port.tunnel != nil {
			v.tunnels = append(v.tunnels, c)
		}
		i := int(c.port.num)
		for v.byPort[i&(size-1)].c != nil {
			i++
		}
		v.byPort[i&(size-1)] = member{c.port.num, c}
	}
	return v
}

// find returns the member on a port, or nil.
func (v *view) find(port uint16) *circuit {
	for i := int(port); ; i++ {
		if m := &v.byPort[i&(len(v.byPort)-1)]; m.port == port || m.c == nil {
			return m.c
		}
	}
}

// VSI returns the VSI of a VNI. If there is none, it creates one with cfg; nil means defaults. If there
// is one, it changes its settings to cfg; nil leaves them as they are.
func (s *Switch) VSI(vni frame.VNI, cfg *VSIConfig) (*VSI, error) {
	if !vni.Valid() {
		return nil, fmt.Errorf("vswitch: VNI %d: must be 0 to %d", vni, frame.MaxVNI)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("vswitch: VSI %d: %w", vni, net.ErrClosed)
	}
	v := s.vsis[vni]
	if v == nil {
		c := VSIConfig{}
		if cfg != nil {
			c = *cfg
		}
		if err := c.Check(); err != nil {
			return nil, err
		}
		return s.addVSI(vni, c), nil
	}
	if cfg != nil {
		return v, v.configure(*cfg)
	}
	return v, nil
}

// addVSI adds a VSI. s.mu is held.
func (s *Switch) addVSI(vni frame.VNI, cfg VSIConfig) *VSI {
	v := &VSI{sw: s, vni: vni, cfg: cfg, storm: cfg.Storm.meters(nil, 0)}
	v.fdb = fdb.NewTable(&fdb.Config{
		VNI: vni, Gens: s.gens, Limit: cfg.MaxMACs, Evict: !cfg.Refuse, Ageing: ageing(cfg.Ageing), Freeze: cfg.Freeze,
		Flaps: int(cfg.Flaps), Has: v.has, Leads: v.leads, Notify: v.notify,
	})
	v.holds.Store(cfg.FlapHold > 0)
	s.vsis[vni] = v
	s.setList(v, true)
	v.publish()
	s.events.emit(frame.Event{Kind: frame.EventSegmentUp, VNI: vni})
	v.routed(Slots{}, cfg.Slots)
	return v
}

// ageing converts to the FDB's ticks of a second.
func ageing(d time.Duration) frame.Tick {
	if d < 0 {
		return fdb.Never
	}
	return frame.Tick(d / time.Second)
}

// maxTime is the longest time that ticks can express, 68 years.
const maxTime = (1<<31 - 1) * time.Second

// Check returns what is wrong with the settings. [Switch.VSI] and [VSI.Configure] return the same error.
func (c *VSIConfig) Check() error {
	w := setting.Of("vswitch: VSIConfig")
	w.Limit("MaxMACs", c.MaxMACs)
	if c.Ageing > 0 && c.Ageing < time.Second || c.Ageing > maxTime {
		w.Want("Ageing", c.Ageing, "1s to %v", maxTime)
	}
	if c.MissTimeout != 0 && c.MissTimeout < time.Second || c.MissTimeout > maxTime {
		w.Want("MissTimeout", c.MissTimeout, "1s to %v, or 0 for %v", maxTime, missTimeout)
	}
	if c.NoFlood > Broadcast|Multicast|UnknownUnicast {
		w.Want("NoFlood", uint8(c.NoFlood), "a set of Broadcast, Multicast and UnknownUnicast")
	}
	if c.FlapHold != 0 && c.FlapHold < time.Second || c.FlapHold > maxTime {
		w.Want("FlapHold", c.FlapHold, "1s to %v, or 0 for never", maxTime)
	}
	if c.InnerVLAN > VLANPass {
		w.Want("InnerVLAN", uint8(c.InnerVLAN), "VLANDiscard, VLANStrip or VLANPass")
	}
	w.Add("Slots", c.Slots.check())
	return w.Err()
}

// Configure changes all settings except Refuse, under traffic.
func (v *VSI) Configure(cfg VSIConfig) error {
	v.sw.mu.Lock()
	defer v.sw.mu.Unlock()
	if v.gone.Load() {
		return fmt.Errorf("vswitch: VSI %d: %w", v.vni, net.ErrClosed)
	}
	return v.configure(cfg)
}

// Config returns the settings that were last set.
func (v *VSI) Config() VSIConfig {
	v.sw.mu.Lock()
	defer v.sw.mu.Unlock()
	return v.cfg
}

func (v *VSI) configure(cfg VSIConfig) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	if cfg.Refuse != v.cfg.Refuse {
		return errors.New("vswitch: VSIConfig.Refuse: cannot be changed after the VSI was created")
	}
	was := v.cfg.Slots
	v.cfg, v.storm = cfg, cfg.Storm.meters(v.storm, v.sw.now())
	v.fdb.SetLimit(cfg.MaxMACs)
	v.fdb.SetFreeze(cfg.Freeze)
	v.fdb.SetFlaps(int(cfg.Flaps))
	v.holds.Store(cfg.FlapHold > 0)
	v.fdb.SetAgeing(ageing(cfg.Ageing))
	v.publish()
	v.routed(was, cfg.Slots)
	return nil
}

// routed says which gateways have gone and come with a change of slots. s.mu is held.
func (v *VSI) routed(was, is Slots) {
	old, now := routers(was), routers(is)
	for r := range old {
		if _, stays := now[r]; !stays {
			v.sw.events.emit(frame.Event{Kind: frame.EventGatewayDown, VNI: v.vni, Name: r.VRFName()})
		}
	}
	for r := range now {
		if _, there := old[r]; !there {
			v.sw.events.emit(frame.Event{Kind: frame.EventGatewayUp, VNI: v.vni, Name: r.VRFName()})
		}
	}
}

// routers returns the gateways in slots.
func routers(s Slots) map[Router]struct{} {
	list := map[Router]struct{}{}
	collectStage(list, s.Gateway)
	return list
}

// publish makes circuits for the attachments as they are now and gives them to the workers. s.mu is
// held.
func (v *VSI) publish() {
	if t := cmp.Or(v.cfg.MissTimeout, missTimeout); v.cfg.TellMisses && t != v.missFor {
		// A change of members must not repeat reports.
		v.missing.Store(pending.New[frame.MAC](uint32(t / time.Second)))
		v.missFor = t
	}
	own := &circuit{
		vsi: v, port: v.sw.own, tag: uint32(v.vni), tally: v.sw.own.tallies[0], forwardBridge: v.cfg.ForwardBridgeGroup, noFloodIn: v.cfg.NoFlood,
		misses: v.cfg.TellMisses, innerVLAN: v.cfg.InnerVLAN, routeIsolated: v.cfg.RouteIsolated,
		slots: Slots{Gateway: v.cfg.Slots.Gateway, TooBig: v.cfg.Slots.TooBig}, enters: atAll,
	}
	members, last := make([]*circuit, 0, len(v.members)), v.defaultSlots()
	for _, a := range v.members {
		a.now = a.circuit(last)
		members = append(members, a.now)
	}
	v.view.Store(newView(own, members))
	v.sw.own.circuits.Store(tagKey(v.vni), own)
	for _, c := range members {
		c.port.circuits.Store(tagKey(c.tag), c)
		switch {
		case c.match != nil:
			c.port.of.steer()
		case c.port.of != c.port:
			c.port.of.circuits.Store(tagKey(c.tag), c)
		}
	}
	v.setNames()
	v.sw.changed()
}

// has reports whether the FDB may have entries for d: the switch itself, a member, or a peer
// behind one that is a tunnel.
func (v *VSI) has(d frame.Dest) bool {
	c := v.view.Load().find(d.Port())
	return d == 0 || c != nil && c.port.has(d.Peer())
}

// leads reports whether frames to one peer of a tunnel may reach another.
func (v *VSI) leads(to, peer frame.Dest) bool {
	c := v.view.Load().find(to.Port())
	if c == nil || c.port.leader == nil {
		return false
	}
	return c.port.leader.Leads(to.Peer(), peer.Peer())
}

// missTimeout is how long a control plane has to answer before a miss is reported again.
const missTimeout = 5 * time.Second

// miss reports that a MAC is unknown, unless it did so recently.
func (v *VSI) miss(mac frame.MAC, from frame.Dest, now frame.Tick) {
	if v.missing.Load().Take(mac, from.Port(), from.Peer(), uint32(now)) {
		v.sw.events.emit(frame.Event{Kind: frame.EventMACMiss, VNI: v.vni, MAC: mac, Dest: from})
	}
}

// A macIn is a MAC of a segment.
type macIn struct {
	vni frame.VNI
	mac frame.MAC
}

// refused reports a frame with the MAC of a static or sticky entry elsewhere, if anybody wants to know (RFC 7432,
// section 15.2).
func (v *VSI) refused(mac frame.MAC, from frame.Dest, now frame.Tick) {
	s := v.sw
	if s.events.wants(frame.EventMACRefused) && s.alarmed.Take(macIn{v.vni, mac}, from.Port(), from.Peer(), uint32(now)) {
		at, _ := v.fdb.Lookup(mac)
		s.events.emit(frame.Event{Kind: frame.EventMACRefused, VNI: v.vni, MAC: mac, Dest: from, Old: at})
	}
}

// VNI returns the VSI's number.
func (v *VSI) VNI() frame.VNI { return v.vni }

// FDB returns the VSI's MAC table. It accepts entries for members, for peers behind them, and with Dest
// 0 for the switch itself. Other destinations are fdb.ErrNoDest.
func (v *VSI) FDB() *fdb.Table { return v.fdb }

// Attachments returns the members in the order they were attached.
func (v *VSI) Attachments() []*Attachment {
	v.sw.mu.Lock()
	defer v.sw.mu.Unlock()
	return slices.Clone(v.members)
}

// Delete detaches every member and removes the VSI.
func (v *VSI) Delete() error {
	s := v.sw
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.gone.Load() {
		return fmt.Errorf("vswitch: VSI %d: %w", v.vni, net.ErrClosed)
	}
	for _, a := range slices.Clone(v.members) {
		s.detach(a)
	}
	v.gone.Store(true)
	v.routed(v.cfg.Slots, Slots{})
	delete(s.vsis, v.vni)
	s.setList(v, false)
	s.own.circuits.Delete(tagKey(v.vni))
	s.version.Add(1)
	s.grace()
	v.fdb.Close()
	s.events.emit(frame.Event{Kind: frame.EventSegmentDown, VNI: v.vni})
	return nil
}
