package fuzz

import (
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// settings is how a rig is set up. Each field is one choice out of the input; new ones go to
// the end of their function, so that inputs which are kept go on meaning what they did.
type settings struct {
	tunnel   vtep.Config
	underMTU int
	listed   int  // peers in the first flood lists
	maxMACs  int  // of the switch
	bare     bool // the far end of the gateway's segment for IP is a TUN
	gso      bool // underlays take runs
	segments [2]segmentSettings

	plain    bool // a model follows: bridging in VXLAN, and nothing else
	vnis     [2]frame.VNI
	shift    frame.VNI // what a segment's own number differs by from its VNI
	families int       // of the underlay: IPv4, IPv6, both
	fabric   bool      // there are more switches
	node     int       // of a fabric
}

type segmentSettings struct {
	vsi     vswitch.VSIConfig
	far     vswitch.AttachConfig
	members [3]vswitch.AttachConfig // by port

	arp       int // 0 = no responder, else 1 + its mode
	localOnly bool
	gateway   int // 0 = none, 1 = one of its own, 2 = anycast
	tooBig    bool
	policy    int // 0 = none
	guard     int // 0 = none
	mss       int // 0 = none
}

func (s *settings) draw(d *draw) {
	s.tunnel.Type = pick(d, encap.TypeVXLAN, encap.TypeGPE, encap.TypeIPIP)
	s.tunnel.Peers = pick(d, vtep.AnyPeer, vtep.ListedOnly)
	s.tunnel.MaxPeers = pick(d, 4, 1, 0)
	s.tunnel.Header.TTL = pick[vtep.Value](d, 0, vtep.Inherit, 3)
	s.tunnel.Header.TOS = pick[vtep.Value](d, 0, vtep.Inherit, 0xb8, vtep.TOSZero)
	s.tunnel.Header.DF = pick(d, vtep.DFSet, vtep.DFUnset, vtep.DFInherit)
	s.tunnel.Header.ECN = pick(d, vtep.ECNNormal, vtep.ECNCompat, vtep.ECNRFC3168)
	s.tunnel.EthernetWithoutP = d.flag() && s.tunnel.Type == encap.TypeGPE
	s.underMTU = pick(d, 1500, 600, 1300)
	s.listed = pick(d, 2, 1, 0)
	s.maxMACs = pick(d, 0, 3, 20)
	s.bare = d.flag()
	s.gso = d.flag()
	for i := range s.segments {
		s.segments[i].draw(d)
	}
	s.tunnel.GBP = d.flag() && s.tunnel.Type == encap.TypeVXLAN
	if s.tunnel.Type != encap.TypeIPIP {
		s.tunnel.Reserved = pick(d, vtep.ReservedRFC, vtep.ReservedStrict, 1)
		if d.flag() {
			s.tunnel.Peers = vtep.ListedPerVNI
		}
	}
	for i := range s.segments {
		s.segments[i].harden(d)
	}
	if s.tunnel.Type == encap.TypeIPIP {
		d.bytes(2) // what it has no use for
	}
	if s.vnis = [2]frame.VNI{100, 200}; d.flag() {
		s.simplify(d)
	}
}

// harden draws limits and policies of a segment.
func (s *segmentSettings) harden(d *draw) {
	s.vsi.Freeze = pick[uint8](d, 0, 1, 5)
	s.vsi.InnerVLAN = pick(d, vswitch.VLANDiscard, vswitch.VLANStrip, vswitch.VLANPass)
	s.vsi.Storm = drawStorm(d)
	for _, c := range []*vswitch.AttachConfig{&s.far, &s.members[0], &s.members[1], &s.members[2]} {
		c.Storm = drawStorm(d)
		c.Locked = d.under(8) == 1
		c.GBP = pick[uint16](d, 0, 7)
	}
}

func drawStorm(d *draw) (s vswitch.Storm) {
	for _, r := range []*vswitch.Rate{&s.Broadcast, &s.Multicast, &s.UnknownUnicast} {
		r.Packets = pick[uint64](d, 0, 1, 3)
		r.Bits = pick[uint64](d, 0, 1000, 100_000)
	}
	return s
}

func (s *segmentSettings) draw(d *draw) {
	drawVSI(&s.vsi, d)
	drawAttachment(&s.far, d, true)
	for i := range s.members {
		drawAttachment(&s.members[i], d, false)
	}
	s.arp = d.under(int(arp.Access) + 2)
	s.localOnly = d.flag()
	s.gateway = d.under(3)
	s.tooBig = d.flag()
	s.policy = d.under(len(policies))
	s.guard = d.under(3)
	s.mss = pick(d, 0, 1400, 500)
}

func drawVSI(c *vswitch.VSIConfig, d *draw) {
	c.MaxMACs = pick(d, 16, 1, 5, 0)
	c.Refuse = d.flag()
	c.Ageing = pick[time.Duration](d, 0, -1, 5*time.Second, 20*time.Second)
	c.NoLearn = d.flag()
	c.NoFlood = vswitch.Class(d.under(8))
	c.ForwardPinned = d.flag()
	c.ForwardBridgeGroup = d.flag()
	c.TellMisses = d.flag()
}

func drawAttachment(c *vswitch.AttachConfig, d *draw, tunnel bool) {
	c.Group = pick[uint8](d, 0, vswitch.GroupIsolated, vswitch.GroupTunnel, 7)
	c.Hub = d.flag() && tunnel
	c.NoLearn = d.flag()
	c.MaxMACs = pick(d, 0, 1, 3)
	c.NoFlood = vswitch.Class(d.under(8))
	c.KeepOpen = d.flag()
	if c.Hub {
		c.Group = 0
	}
}

// drawRole draws that of a member. Half have none.
func drawRole(d *draw) *vswitch.Role {
	b := d.byte()
	if b&1 == 0 {
		return nil
	}
	r := &vswitch.Role{Blocked: b&14 == 14, NoFlood: b&48 == 48}
	for n := range int(b >> 6) {
		r.Shared = append(r.Shared, nodeAddr(2+n, false).Addr(), nodeAddr(2+n, true).Addr())
	}
	return r
}

// limit is how many MACs a VSI may learn.
func limit(c *vswitch.VSIConfig) int {
	if c.MaxMACs == 0 {
		return 8192
	}
	return c.MaxMACs
}
