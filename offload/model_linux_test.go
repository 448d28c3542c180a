package offload

import (
	"cmp"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/offload/internal/datapath"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// A rig is a switch with three TAPs, one of them a trunk, and a VTEP with peers, of which two are a group, and an Offload without its goroutine.
type rig struct {
	t     testing.TB
	kind  encap.Type
	sw    *vswitch.Switch
	vsi   *vswitch.VSI
	v     *vtep.VTEP
	o     *Offload
	at    []*vswitch.Attachment // of the TAPs and, last, of the VTEP
	index []uint32              // of the devices
	peers []uint16
	dests []frame.Dest
	tags  []uint32 // of dests
	group frame.Dest
	macs  []frame.MAC

	policy *policy.Policy
	guard  *policy.Guard
	routes *routesRig
	tuples int // that were carried
	routed int // likewise
}

// To the ports with these numbers hosts send, and filters look at them.
var ports = [...]uint8{9, 10}

func tupleTo(port uint8) frame.Tuple {
	t, _ := frame.TupleOf(numberedTo(macA, macB, port, 0))
	return t
}

// filtered returns slots with the filters.
func (r *rig) filtered() vswitch.Slots {
	return vswitch.Slots{Ingress: vswitch.Chain(r.guard, r.policy.Ingress()), Egress: r.policy.Egress()}
}

func newRig(t testing.TB, h *netns.Host) *rig { return newRigWith(t, h, nil) }

func newRigWith(t testing.TB, h *netns.Host, cfg *Config) *rig {
	return newRigOf(t, h, cfg, encap.TypeVXLAN)
}

func newRigOf(t testing.TB, h *netns.Host, cfg *Config, kind encap.Type) *rig {
	r := &rig{t: t, kind: kind, sw: check.Must(vswitch.New(nil))(t), policy: check.Must(policy.New(&policy.Config{Stateless: true}))(t), guard: check.Must(policy.NewGuard(nil))(t)}
	r.vsi = check.Must(r.sw.VSI(vni, nil))(t)
	r.tags = []uint32{0, 0, 7, vni, vni, vni}
	for i, name := range []string{"tap0", "tap1", "tap2"} {
		d := netns.Open(t, h, func() (*port.Device, error) { return port.OpenTAP(name, nil) })
		a := check.Must(r.vsi.Attach(d, r.tags[i]))(t)
		r.at, r.dests = append(r.at, a), append(r.dests, a.Dest(0))
		r.index = append(r.index, uint32(check.Must(d.Hook())(t).Index))
	}
	u := netns.Open(t, h, func() (*underlay.UDP, error) { return underlay.ListenUDP(netip.AddrPortFrom(addr(1), 4789), nil) })
	r.v = check.Must(vtep.New(&vtep.Config{Type: kind}, u))(t)
	a := check.Must(r.vsi.Attach(r.v, vni))(t)
	r.at = append(r.at, a)
	for x := 2; x < 5; x++ {
		n := check.Must(r.v.AddPeer(netip.AddrPortFrom(addr(x), 0)))(t)
		r.peers, r.dests = append(r.peers, n), append(r.dests, a.Dest(n))
	}
	r.group = a.Dest(check.Must(r.v.Group(r.peers[:2]...))(t))
	for i := range 6 {
		r.macs = append(r.macs, frame.MAC{2, 0, 0, 0, 0, byte(i)})
	}
	r.newRoutes()
	r.o = netns.Open(t, h, func() (*Offload, error) { return newOffload(r.sw, cfg) })
	t.Cleanup(func() { r.sw.Close() })
	return r
}

// change does one of the things that may change decisions. It takes bytes from in.
func (r *rig) change(in func(n int) int) {
	mac, d := r.macs[in(len(r.macs))], r.dests[in(len(r.dests))]
	a := r.at[in(len(r.at))]
	stage := vswitch.Slots{Ingress: drops{}}
	switch in(26) {
	case 0, 1, 2, 3, 4:
		r.vsi.FDB().Learn(mac, d, r.sw.Tick())
	case 5:
		if in(3) > 0 {
			break
		}
		if in(4) == 0 {
			d = r.group
		}
		_ = r.vsi.FDB().Set(mac, d, []fdb.Flags{fdb.Static, fdb.Control, fdb.Filter, fdb.Control | fdb.Override}[in(4)])
	case 6:
		r.vsi.FDB().Delete(mac)
	case 7:
		_ = r.sw.FlushPort(a.Port())
	case 8:
		r.vsi.Flush()
	case 9:
		check.OK(r.t, a.Configure(vswitch.AttachConfig{Group: uint8(in(3)), NoLearn: in(2) == 1, Locked: in(4) == 1, GBP: uint16(in(8) / 7)}))
	case 10:
		was := a.Config()
		check.OK(r.t, a.Configure(vswitch.AttachConfig{Slots: stage}))
		r.check()
		check.OK(r.t, a.Configure(was))
	case 11:
		check.OK(r.t, r.vsi.Configure(vswitch.VSIConfig{MaxMACs: 2 + 4*in(4), ForwardPinned: in(2) == 1, Slots: r.vsi.Config().Slots}))
	case 12:
		check.OK(r.t, r.v.SetPeers([]vtep.PeerConfig{{Address: addr(2 + in(3)), Port: uint16(4789 + in(2)), Header: vtep.Header{TTL: vtep.Value(in(3)), DF: vtep.DF(in(4)), ECN: vtep.ECN(in(4))}}}))
	case 13:
		r.sw.SetTap(seen{})
		r.check()
		r.sw.SetTap(nil)
	case 14:
		_ = r.sw.FlushPeer(d)
	case 15:
		r.vsi.FDB().Sweep(r.sw.Tick()+frame.Tick(in(2)*400), 4096)
	case 16, 17:
		check.OK(r.t, a.Configure(vswitch.AttachConfig{Slots: []vswitch.Slots{{}, r.filtered()}[in(2)]}))
	case 18:
		cfg := &policy.Config{Stateless: in(8) > 0, Default: policy.Action(in(8) / 7)}
		for _, port := range ports {
			cfg.Rules = append(cfg.Rules, policy.Rule{Action: policy.Action(in(5) / 4), Direction: policy.Direction(in(3)), DstPorts: []policy.PortRange{policy.Port(uint16(port))}})
		}
		check.OK(r.t, r.policy.Update(cfg))
	case 19:
		check.OK(r.t, r.guard.Update(&policy.GuardConfig{MACs: r.macs[:[]int{0, 0, 3, 5}[in(4)]]}))
	default:
		r.changeRoutes(in, mac)
	}
}

type seen struct{}

func (seen) Frame(frame.VNI, string, *frame.Frame) {}

// carried reports whether the program carries a frame of a pair.
func (r *rig) carried(p vswitch.Pair) bool {
	const dot1q = 0x8100 << 16
	packet := numberedTo(p.Src, p.Dst, cmp.Or(uint8(p.Tuple.DstPort), ports[0]), 1)
	which, m := datapath.PortOut, datapath.Meta{}
	for i, d := range r.dests[:3] {
		if d == p.From {
			m.Ifindex = r.index[i]
		}
	}
	if m.Ifindex == 0 {
		which, m.Ifindex = datapath.TunnelIn, uint32(r.under())
		packet = outer(r.t, r.kind, p, packet, r.under())
	}
	if which == datapath.PortOut && p.Tag != 0 {
		m.Tag = dot1q | p.Tag
	}
	act, out, after, err := r.o.dp.Run(which, packet, m)
	check.OK(r.t, err)
	if act != datapath.Redirect {
		return false
	}
	f, tag := &r.o.known(p).flow, uint32(0)
	if f.To == r.dests[2] {
		tag = dot1q | 7
		if f.Hop.VNI == routedVNI {
			tag = dot1q | routedTag
		}
	}
	r.leaves(f, out)
	if after.Tag != tag {
		r.t.Fatalf("%v leaves to %v with tag %#x, want %#x", p, f.To, after.Tag, tag)
	}
	if which == datapath.PortOut {
		m.Tag = dot1q | (p.Tag ^ 7)
		if m.Tag == dot1q {
			m.Tag = 0
		}
		if act, _, _, _ := r.o.dp.Run(which, packet, m); act != datapath.Miss {
			r.t.Fatalf("%v is carried with tag %#x", p, m.Tag)
		}
	}
	return true
}

// pair is two hosts of which one is in a place.
func (r *rig) pair(from frame.Dest, src, dst frame.MAC) vswitch.Pair {
	return vswitch.Pair{From: from, Tag: r.tags[slices.Index(r.dests, from)], Src: src, Dst: dst}
}

// hosts has macA in one place, and macB in another, to stay, and returns the pair.
func (r *rig) hosts(a, b frame.Dest) vswitch.Pair {
	r.t.Helper()
	check.OK(r.t, r.vsi.FDB().Set(macA, a, fdb.Static))
	check.OK(r.t, r.vsi.FDB().Set(macB, b, fdb.Static))
	return r.pair(a, macA, macB)
}

// check compares what the programs do with the decisions of now.
func (r *rig) check() {
	r.t.Helper()
	for _, from := range r.dests {
		for _, src := range r.macs {
			for _, dst := range r.macs {
				p := r.pair(from, src, dst)
				for _, port := range ports {
					p.Tuple = tupleTo(port)
					e := r.o.known(p)
					if e == nil || !r.carried(p) {
						continue
					}
					f, how, _, err := r.o.decide(p)
					how.flow.Slot = e.slot
					if err != nil || f.To != e.flow.To || !how.same(&e.plan) {
						r.t.Fatalf("%v is carried to %v; the decision is %v, %v", p, e.flow.To, f.To, err)
					}
				}
			}
		}
	}
}

// play takes turns between changes, hints and comparisons.
func (r *rig) play(in func(n int) int, turns int) (carried int) {
	r.t.Helper()
	for range turns {
		switch in(4) {
		case 0:
			r.change(in)
		case 1, 2:
			p := r.pair(r.dests[in(len(r.dests))], r.macs[in(len(r.macs))], r.macs[in(len(r.macs))])
			if _, ok := r.vsi.FDB().Lookup(p.Dst); !ok {
				p.Dst = r.macs[in(len(r.macs))]
			}
			if in(4) == 0 {
				p.Dst = gatewayMAC(1)
			}
			if d, ok := r.vsi.FDB().Lookup(p.Src); ok && d.Port() != 0 && d != r.group && in(8) > 0 {
				p = r.pair(d, p.Src, p.Dst)
			}
			if in(3) > 0 {
				p.Tuple = tupleTo(ports[in(len(ports))])
			}
			clear(r.o.refused)
			clear(r.o.asked)
			r.o.offer(p)
			if e := r.o.known(p); e != nil {
				r.o.renew()
				if e = r.o.known(p); e != nil && !r.carried(p) {
					r.t.Fatalf("%v is not carried", p)
				} else if e != nil && e.flow.Hop != (frame.Hop{}) {
					r.routed++
				} else if e != nil && e.flow.Tuple != (frame.Tuple{}) {
					r.tuples++
				}
				carried++
			}
		case 3:
			r.o.renew()
		}
		r.check()
	}
	return carried
}
