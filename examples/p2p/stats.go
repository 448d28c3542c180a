package main

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/offload"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// stats is what the stats line shows.
type stats struct {
	Rx    frame.Count     `json:"rx"` // frames decapsulated and accepted
	Tx    frame.Count     `json:"tx"` // copies sent into the tunnel
	Flood vswitch.Flooded `json:"flood"`
	Drops frame.Drops     `json:"drops"`

	TooBig frame.TooBigStats `json:"toobig,omitzero"` // frames too long for their way out, by what their senders were told

	FDB   []fdbEntry  `json:"fdb"`
	Neigh []neighbour `json:"neigh"`
	Peers []peer      `json:"peers"`

	Counts *arp.Stats `json:"neigh_counts,omitempty"` // with -neigh: what was answered, and why the rest was not

	Datapath node.Datapath  `json:"datapath,omitzero"` // with -datapath: "kernel", if flows are carried there
	Offload  *offload.Stats `json:"offload,omitempty"` // then: flows, what they have carried, and why others are not
}

type fdbEntry struct {
	VNI    frame.VNI `json:"vni"`
	MAC    string    `json:"mac"`
	Dest   string    `json:"dest"` // the device, or a peer
	Origin string    `json:"origin"`
	Age    float64   `json:"age"` // seconds since it was last heard
}

type neighbour struct {
	VNI    frame.VNI `json:"vni"`
	IP     string    `json:"ip"`
	MAC    string    `json:"mac"`
	Origin string    `json:"origin"`
	State  string    `json:"state"`
}

type peer struct {
	Addr string `json:"addr"`
	Rx   uint64 `json:"rx"`
	Tx   uint64 `json:"tx"`
}

// takeStats returns the stats line of a node that still has its ports, v its tunnel. What carries its flows may be nil.
func takeStats(n *node.Node, v *vtep.VTEP, carries *offload.Offload) string {
	var s stats
	if carries != nil {
		st, _ := carries.Stats() // first, so that what was carried is in all counters; without its misses if the kernel has an error
		s.Datapath, s.Offload = node.DatapathKernel, &st
	}
	sw, vni := n.Switch(), n.Config().Segments[0].VNI
	tunnel := v.Stats()
	s.Tx, s.FDB, s.Neigh, s.Peers = tunnel.Tx, []fdbEntry{}, []neighbour{}, []peer{}
	far := far(n, v)
	total := sw.Stats()
	for _, p := range total.Ports {
		if far != 0 && p.Port == far {
			s.Rx = p.Accepted
		}
		s.Flood.Broadcast += p.Flood.Broadcast
		s.Flood.Multicast += p.Flood.Multicast
		s.Flood.Unknown += p.Flood.Unknown
		for r := range s.Drops {
			s.Drops[r] += p.RxDrops[r] + p.TxDrops[r]
		}
	}
	s.TooBig = total.TooBig
	for r, n := range tunnel.Lost.All() { // copies; to the switch the frame was sent
		s.Drops[r] += n
	}
	s.Drops[frame.PeerLimit] += tunnel.PeerLimit
	for _, vsi := range sw.VSIs() {
		for e := range vsi.FDB().All() {
			s.FDB = append(s.FDB, fdbEntry{
				vsi.VNI(), e.MAC.String(), sw.Name(e.Dest), e.Origin.String(), float64(e.Age(sw.Tick())),
			})
		}
	}
	slices.SortFunc(s.FDB, func(a, b fdbEntry) int { return cmp.Compare(a.MAC, b.MAC) })
	if neigh := n.Neighbours(vni); neigh != nil {
		counts := neigh.Stats()
		s.Counts = &counts
		for e := range neigh.Table().All() {
			s.Neigh = append(s.Neigh, neighbour{vni, e.IP.String(), e.MAC.String(), e.Origin.String(), e.State.String()})
		}
	}
	for _, p := range tunnel.Peers {
		s.Peers = append(s.Peers, peer{v.PeerName(p.Peer), p.Rx.Frames, p.Tx.Frames})
	}
	line, _ := json.Marshal(s) // of plain numbers and strings: cannot fail
	return "stats " + string(line)
}

// far returns the number that the tunnel has in the switch, 0 when it has left. The device may have
// its name.
func far(n *node.Node, v *vtep.VTEP) uint16 {
	for _, vsi := range n.Switch().VSIs() {
		for _, a := range vsi.Attachments() {
			if a.Port() == vswitch.Port(v) {
				return a.Dest(0).Port()
			}
		}
	}
	return 0
}
