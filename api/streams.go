package api

import (
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// An Event is an event of the switch, or a row that a control plane, the configuration or vxsctl has added or removed. The
// kind of event determines which fields are set.
type Event struct {
	Time   time.Time  `json:"time"`
	Event  string     `json:"event"` // mac-learned, mac-moved, port-down, row-added and so on; overflow: events were lost, list the tables again
	VNI    *frame.VNI `json:"vni,omitempty"`
	MAC    string     `json:"mac,omitempty"`
	OldMAC string     `json:"old_mac,omitempty"`
	IP     string     `json:"ip,omitempty"`
	Dest   string     `json:"dest,omitempty"`
	Old    string     `json:"old,omitempty"`    // previous destination
	Pinned bool       `json:"pinned,omitempty"` // an entry of a control plane was replaced
	Error  string     `json:"error,omitempty"`
	Proto  string     `json:"proto,omitempty"` // of row-added and row-removed: the owner of the row
	Row    string     `json:"row,omitempty"`   // that row; one that is added may wait, see Row
}

// A TraceRecord is the forwarding decision for a frame.
type TraceRecord struct {
	Time    time.Time `json:"time"`
	From    string    `json:"from"` // port or peer
	VNI     frame.VNI `json:"vni"`  // after routing
	Src     string    `json:"src"`  // empty for IP without Ethernet
	Dst     string    `json:"dst"`
	Type    string    `json:"type"` // EtherType in hexadecimal
	Len     int       `json:"len"`
	Verdict string    `json:"verdict"`          // forward, flood, flood local, reply, consume, drop
	To      string    `json:"to,omitempty"`     // for forward
	Reason  string    `json:"reason,omitempty"` // for drop
	Lost    uint64    `json:"lost,omitempty"`   // total of frames that were skipped
}
