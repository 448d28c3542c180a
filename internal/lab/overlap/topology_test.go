package overlap

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A topology is what a seed says the fabric looks like at first.
type topology struct {
	seed  uint64
	udp   uint16
	nodes []nodePlan
	nets  []netPlan
	hosts int // numbered from firstHost on
	plugs []plugPlan
}

type nodePlan struct {
	addrs      []netip.Addr
	listedOnly bool
	queues     int
	shift      frame.VNI // what the node's own VSI numbers differ by from the VNIs
}

type netPlan struct {
	vni     frame.VNI
	hub     int // node whose VTEP passes frames on between the others, or -1
	members []int
	cfg     vswitch.VSIConfig
}

// plugPlan is a host's first attachment to one network.
type plugPlan struct {
	host, node, net int
	tag             uint32
	cfg             vswitch.AttachConfig
}

func one(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func plan(seed uint64) *topology {
	r := rand.New(rand.NewPCG(seed, 1))
	t := &topology{seed: seed, udp: pick[uint16](r, 4789, 8472)}
	families := r.IntN(3) // IPv4, IPv6, both
	for i := range 2 + r.IntN(5) {
		v4, v6 := netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), netip.MustParseAddr(fmt.Sprintf("fd00::%d", i+1))
		p := nodePlan{listedOnly: one(r, 5), queues: 1}
		if one(r, 4) {
			p.shift = 5000
		}
		switch {
		case families == 0:
			p.addrs = []netip.Addr{v4}
		case families == 1:
			p.addrs = []netip.Addr{v6}
		default:
			p.addrs = pick(r, []netip.Addr{v4}, []netip.Addr{v6}, []netip.Addr{v4, v6}, []netip.Addr{v4, v6})
		}
		t.nodes = append(t.nodes, p)
	}
	all := []frame.VNI{100, 200, 4100, frame.MaxVNI, 0}
	vnis := r.Perm(len(all))
	for k := range 1 + r.IntN(4) {
		p := netPlan{vni: all[vnis[k]], hub: -1, cfg: randomVSI(r)}
		for i := range t.nodes {
			if !one(r, 5) || i == len(t.nodes)-1 && len(p.members) == 0 {
				p.members = append(p.members, i)
			}
		}
		if len(p.members) > 2 && one(r, 5) {
			p.hub = pick(r, p.members...)
		}
		t.nets = append(t.nets, p)
	}
	t.plugHosts(r)
	return t
}

func (t *topology) plugHosts(r *rand.Rand) {
	id := firstHost
	taken := map[int]map[uint32]bool{}
	for k, p := range t.nets {
		for _, i := range p.members {
			for range 1 + r.IntN(4) {
				if one(r, 3) && id > firstHost { // one more network on a port that is there
					if h := firstHost + r.IntN(id-firstHost); t.canTrunk(h, i, k) {
						tag := pick[uint32](r, 0, 10, 20, 30, 4094)
						if !taken[h][tag] {
							taken[h][tag] = true
							t.plugs = append(t.plugs, plugPlan{h, i, k, tag, randomAttach(r)})
						}
						continue
					}
				}
				tag := pick[uint32](r, 0, 0, 0, 10)
				taken[id] = map[uint32]bool{tag: true}
				t.plugs = append(t.plugs, plugPlan{id, i, k, tag, randomAttach(r)})
				id++
			}
		}
	}
	t.hosts = id - firstHost
}

func (t *topology) canTrunk(host, node, net int) bool {
	here := false
	for _, p := range t.plugs {
		if p.host == host {
			if p.node != node || p.net == net {
				return false
			}
			here = true
		}
	}
	return here
}

func randomVSI(r *rand.Rand) vswitch.VSIConfig {
	c := vswitch.VSIConfig{Ageing: pick[time.Duration](r, 0, 0, -1, 5*time.Second, 20*time.Second)}
	if one(r, 4) {
		c.NoFlood = vswitch.Class(r.IntN(8))
	}
	if one(r, 5) {
		c.MaxMACs = 1 + r.IntN(6)
	}
	c.Refuse = true
	c.ForwardPinned, c.ForwardBridgeGroup = one(r, 5), one(r, 5)
	return c
}

func randomAttach(r *rand.Rand) vswitch.AttachConfig {
	c := vswitch.AttachConfig{KeepOpen: one(r, 3), NoLearn: one(r, 10)}
	if one(r, 4) {
		c.Group = pick[uint8](r, vswitch.GroupIsolated, vswitch.GroupIsolated, vswitch.GroupTunnel, 7)
	}
	if one(r, 6) {
		c.NoFlood = vswitch.Class(r.IntN(8))
	}
	if one(r, 8) {
		c.MaxMACs = 1 + r.IntN(3)
	}
	return c
}

// tunnelAttach is how node i attaches its VTEP to a network.
func (t *topology) tunnelAttach(r *rand.Rand, i, net int) vswitch.AttachConfig {
	c := vswitch.AttachConfig{KeepOpen: !one(r, 3)}
	switch {
	case t.nets[net].hub == i:
		c.Hub = true
	case one(r, 10):
		c.Group = 7
	}
	if len(t.nodes[i].addrs) == 2 {
		c.KeepOpen = false // what has waited would come in by two ways, in any order
	}
	if one(r, 12) {
		c.NoFlood = vswitch.Class(r.IntN(8))
	}
	if one(r, 12) {
		c.MaxMACs = 1 + r.IntN(3)
	}
	c.NoLearn = one(r, 12)
	return c
}

// reach returns the one address at which node i speaks to node j.
func (t *topology) reach(i, j int) (netip.Addr, bool) {
	var found netip.Addr
	for _, a := range t.nodes[i].addrs {
		for _, b := range t.nodes[j].addrs {
			if a.Is4() == b.Is4() && (!found.IsValid() || (i+j)%2 == 0) {
				found = b
			}
		}
	}
	return found, found.IsValid()
}

// floodList is the flood list of node i. Everybody lists the hub only, where there is one, so
// that no frame has two ways.
func (t *topology) floodList(i, net int) (to []netip.Addr) {
	hub := t.nets[net].hub
	for j := range t.nodes {
		if j == i || hub >= 0 && i != hub && j != hub {
			continue
		}
		if a, ok := t.reach(i, j); ok {
			to = append(to, a)
		}
	}
	return to
}

// vsiOf returns the number of the VSI that node i has for a network.
func (t *topology) vsiOf(i, net int) frame.VNI {
	if t.nets[net].vni == frame.MaxVNI {
		return frame.MaxVNI
	}
	return t.nets[net].vni + t.nodes[i].shift
}

func (t *topology) String() string {
	s := fmt.Sprintf("seed %d, UDP port %d\n", t.seed, t.udp)
	for i, n := range t.nodes {
		s += fmt.Sprintf("  node%d %v listed-only=%v VSI=VNI+%d\n", i, n.addrs, n.listedOnly, n.shift)
	}
	for _, n := range t.nets {
		s += fmt.Sprintf("  VNI %d on nodes %v, hub %d\n", n.vni, n.members, n.hub)
	}
	return s
}
