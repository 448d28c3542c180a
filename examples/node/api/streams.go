package api

import (
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// An Event is something that changed. Which fields are set depends on what.
type Event struct {
	Time   time.Time  `json:"time"`
	Event  string     `json:"event"` // mac-learned, mac-moved, port-down and so on; overflow: some were lost, list the tables again
	VNI    *frame.VNI `json:"vni,omitempty"`
	MAC    string     `json:"mac,omitempty"`
	OldMAC string     `json:"old_mac,omitempty"`
	IP     string     `json:"ip,omitempty"`
	Dest   string     `json:"dest,omitempty"`
	Old    string     `json:"old,omitempty"`    // where it was before
	Pinned bool       `json:"pinned,omitempty"` // a control plane's entry gave way
	Error  string     `json:"error,omitempty"`
}

// A TraceRecord is what became of one frame.
type TraceRecord struct {
	Time    time.Time `json:"time"`
	From    string    `json:"from"` // the port or peer
	VNI     frame.VNI `json:"vni"`  // it left the switch in
	Src     string    `json:"src"`  // empty in an IP packet
	Dst     string    `json:"dst"`
	Type    string    `json:"type"` // EtherType in hexadecimal
	Len     int       `json:"len"`
	Verdict string    `json:"verdict"`          // forward, flood, flood local, reply, consume, drop
	To      string    `json:"to,omitempty"`     // of forward
	Reason  string    `json:"reason,omitempty"` // of drop
	Lost    uint64    `json:"lost,omitempty"`   // frames in all that there was no time to show
}
