package main

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// stats is what the stats line shows.
type stats struct {
	Rx    vswitch.Count   `json:"rx"` // frames decapsulated and accepted
	Tx    vtep.Count      `json:"tx"` // copies sent into the tunnel
	Flood vswitch.Flooded `json:"flood"`
	Drops frame.Drops     `json:"drops"`
	FDB   []fdbEntry      `json:"fdb"`
	Neigh []struct{}      `json:"neigh"`
	Peers []peer          `json:"peers"`
}

type fdbEntry struct {
	VNI    frame.VNI `json:"vni"`
	MAC    string    `json:"mac"`
	Dest   string    `json:"dest"` // the device, or a peer
	Origin string    `json:"origin"`
	Age    float64   `json:"age"` // seconds since it was last heard
}

type peer struct {
	Addr string `json:"addr"`
	Rx   uint64 `json:"rx"`
	Tx   uint64 `json:"tx"`
}

// takeStats returns the stats line; far is where v is attached. It is for a switch
// that still has its ports.
func takeStats(sw *vswitch.Switch, v *vtep.VTEP, far *vswitch.Attachment) string {
	tunnel := v.Stats()
	s := stats{Tx: tunnel.Tx, FDB: []fdbEntry{}, Neigh: []struct{}{}, Peers: []peer{}}
	for _, p := range sw.Stats().Ports {
		lost := p.TxDrops
		if p.Port == far.Dest(0).Port() {
			s.Rx = p.Accepted
			// A flooded frame of which some copies were lost is no drop to the switch.
			for r, n := range tunnel.Lost {
				lost[r] = max(lost[r], n)
			}
		}
		s.Flood.Broadcast += p.Flood.Broadcast
		s.Flood.Multicast += p.Flood.Multicast
		s.Flood.Unknown += p.Flood.Unknown
		for r := range s.Drops {
			s.Drops[r] += p.RxDrops[r] + lost[r]
		}
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
	for _, p := range tunnel.Peers {
		s.Peers = append(s.Peers, peer{p.Addr.String(), p.Rx, p.Tx})
	}
	line, _ := json.Marshal(s) // of plain numbers and strings: cannot fail
	return "stats " + string(line)
}
