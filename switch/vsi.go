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

// VSIConfig holds the settings of a VSI. The zero value works. All but Refuse can be
// changed under traffic.
type VSIConfig struct {
	MaxMACs int           `json:"maxMACs,omitzero"`             // learned MACs; default 8192
	Refuse  bool          `json:"refuse,omitzero"`              // at the limit nothing is learned; without it a new MAC takes the place of the one heard least recently of the port or peer that has most
	Ageing  time.Duration `json:"ageing,omitzero" zero:"never"` // learned MACs not heard for this long are forgotten; default 300 s, negative = never

	NoLearn            bool     `json:"noLearning,omitzero"`         // source MACs are not learned, on no port and from no peer
	Freeze             uint8    `json:"freeze,omitzero"`             // moves within 180 s after which a MAC stays, for 180 s, where it was before it began to move (RFC 7432, section 15.1, says 5), at most 255; 0 = never
	NoFlood            Class    `json:"noFlood,omitzero"`            // classes that are dropped instead of flooded
	Storm              Storm    `json:"storm,omitzero"`              // rates of all that is flooded, whoever sends it; where zero, no bound
	InnerVLAN          VLANMode `json:"innerVLAN,omitzero"`          // what becomes of frames with a VLAN tag where none is expected, in the tunnel above all
	ForwardPinned      bool     `json:"forwardPinned,omitzero"`      // frames whose source MAC is pinned elsewhere are forwarded instead of dropped
	ForwardBridgeGroup bool     `json:"forwardBridgeGroup,omitzero"` // frames to 01:80:c2:00:00:00-0f go on as other multicast, so that the STP of a bridge with two ports here finds the loop

	// RouteIsolated lets ports of one split-horizon group, such as isolated ones, reach each
	// other through the segment's gateway. Without it what the gateway sends back into the
	// segment, from one of them to another, is dropped under frame.Isolated. Tunnels, and ports
	// in groups 0 and 1, are not kept apart so.
	RouteIsolated bool `json:"routeIsolated,omitzero"`

	// FlapHold is for how long a port that is no tunnel is taken out of the segment, when a MAC moves more
	// than Flaps times in a second between it and the place where it was before: the way out
	// of a loop. All its frames are dropped under frame.Flapping. By default it never is.
	FlapHold time.Duration `json:"flapHold,omitzero"`
	Flaps    uint8         `json:"flaps,omitzero"` // moves of one MAC in a second beyond which an event and a warning tell of it, at most 255; 0 = 10

	// TellMisses makes an event, mac-miss, of a unicast frame whose destination is unknown, one
	// for each MAC in MissTimeout: a control plane that knows it sets it in the FDB. What
	// becomes of the frame is NoFlood's to say.
	TellMisses  bool          `json:"tellMisses,omitzero"`
	MissTimeout time.Duration `json:"missTimeout,omitzero"` // whole seconds; default 5 s

	Slots Slots `json:"-"` // stages for all attachments, behind their own
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
	held    atomic.Uint64               // ports taken out so far

	missing atomic.Pointer[pending.Set[frame.MAC]] // nil until misses are told of

	cfg     VSIConfig     // under Switch.mu
	storm   *meters       // of cfg.Storm, under Switch.mu
	members []*Attachment // under Switch.mu, in the order they came
	missFor time.Duration // what missing was made for; under Switch.mu
	ledger  ledger
}

// view is a VSI's membership as the workers see it: immutable.
type view struct {
	own     *circuit   // port 0: the switch itself
	members []*circuit // flooding goes in this order
	byPort  []member   // the same, found by port number: open addressing, half empty
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

// VSI returns the VSI of a VNI, making it with cfg if there is none; a nil cfg means
// defaults, or no change. A VSI that exists is configured anew by a cfg that is not
// nil.
func (s *Switch) VSI(vni frame.VNI, cfg *VSIConfig) (*VSI, error) {
	if !vni.Valid() {
		return nil, fmt.Errorf("vswitch: VNI %d, allowed are 0 to %d", vni, frame.MaxVNI)
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

// maxTime is the longest time between two ticks that can be told: 68 years.
const maxTime = (1<<31 - 1) * time.Second

// Check returns what [Switch.VSI] and [VSI.Configure] refuse.
func (c *VSIConfig) Check() error {
	w := setting.Of("vswitch: VSIConfig")
	w.Limit("MaxMACs", c.MaxMACs)
	if c.Ageing > 0 && c.Ageing < time.Second || c.Ageing > maxTime {
		w.Wrong("Ageing", "%v, allowed are 1s to %v", c.Ageing, maxTime)
	}
	if c.MissTimeout != 0 && c.MissTimeout < time.Second || c.MissTimeout > maxTime {
		w.Wrong("MissTimeout", "%v, allowed are 1s to %v, and 0 for %v", c.MissTimeout, maxTime, missTimeout)
	}
	if c.NoFlood > Broadcast|Multicast|UnknownUnicast {
		w.Wrong("NoFlood", "%#x is no set of classes", uint8(c.NoFlood))
	}
	if c.FlapHold != 0 && c.FlapHold < time.Second || c.FlapHold > maxTime {
		w.Wrong("FlapHold", "%v, allowed are 1s to %v, and 0 for never", c.FlapHold, maxTime)
	}
	if c.InnerVLAN > VLANPass {
		w.Wrong("InnerVLAN", "%d is no mode", c.InnerVLAN)
	}
	w.Add("Slots", c.Slots.check())
	return w.Err()
}

// Configure changes the settings of a VSI, all but Refuse, under traffic.
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
		return errors.New("vswitch: VSIConfig.Refuse: cannot be changed")
	}
	v.cfg, v.storm = cfg, cfg.Storm.meters(v.storm, v.sw.now())
	v.fdb.SetLimit(cfg.MaxMACs)
	v.fdb.SetFreeze(cfg.Freeze)
	v.fdb.SetFlaps(int(cfg.Flaps))
	v.holds.Store(cfg.FlapHold > 0)
	v.fdb.SetAgeing(ageing(cfg.Ageing))
	v.publish()
	return nil
}

// publish makes circuits of the attachments as they are now, and shows them to the
// workers. s.mu is held.
func (v *VSI) publish() {
	if t := cmp.Or(v.cfg.MissTimeout, missTimeout); v.cfg.TellMisses && t != v.missFor {
		// Only then: members come and go, and what was told of stays told of.
		v.missing.Store(pending.New[frame.MAC](uint32(t / time.Second)))
		v.missFor = t
	}
	own := &circuit{
		vsi: v, port: v.sw.own, tag: uint32(v.vni), forwardBridge: v.cfg.ForwardBridgeGroup, noFloodIn: v.cfg.NoFlood,
		misses: v.cfg.TellMisses, innerVLAN: v.cfg.InnerVLAN, routeIsolated: v.cfg.RouteIsolated,
		slots: Slots{Gateway: v.cfg.Slots.Gateway, TooBig: v.cfg.Slots.TooBig},
	}
	members, last := make([]*circuit, 0, len(v.members)), v.defaultSlots()
	for _, a := range v.members {
		members = append(members, a.circuit(last))
	}
	v.view.Store(newView(own, members))
	v.sw.own.circuits.Store(tagKey(v.vni), own)
	for _, c := range members {
		c.port.circuits.Store(tagKey(c.tag), c)
	}
}

// has reports whether the FDB may have entries for d: the switch itself, a member, or a peer
// behind one that is a tunnel.
func (v *VSI) has(d frame.Dest) bool {
	c := v.view.Load().find(d.Port())
	return d == 0 || c != nil && c.port.has(d.Peer())
}

// leads reports whether frames to one peer may go to another one of the same tunnel.
func (v *VSI) leads(to, peer frame.Dest) bool {
	c := v.view.Load().find(to.Port())
	if c == nil || c.port.leader == nil {
		return false
	}
	return c.port.leader.Leads(to.Peer(), peer.Peer())
}

// missTimeout is how long a control plane has to answer before it is asked again.
const missTimeout = 5 * time.Second

// miss tells control planes that nobody knows where a MAC is, if they do not know yet.
func (v *VSI) miss(mac frame.MAC, from frame.Dest, now frame.Tick) {
	if v.missing.Load().Take(mac, from.Port(), from.Peer(), uint32(now)) {
		v.sw.events.emit(frame.Event{Kind: frame.EventMACMiss, VNI: v.vni, MAC: mac, Dest: from})
	}
}

// VNI returns the VSI's number.
func (v *VSI) VNI() frame.VNI { return v.vni }

// FDB returns the VSI's MAC table. It takes entries for members, peers behind them, and with
// Dest 0 the switch itself: others are fdb.ErrNoDest.
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
	delete(s.vsis, v.vni)
	s.setList(v, false)
	s.own.circuits.Delete(tagKey(v.vni))
	s.version.Add(1)
	s.grace()
	v.fdb.Close()
	return nil
}
