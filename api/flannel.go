package api

import "time"

// A Flannel is what the section flannel of the configuration does.
type Flannel struct {
	State string     `json:"state"`           // starting, ready, stale, lost, failed
	Since time.Time  `json:"since"`           // of a stale node: when the store was last followed; else when the state's run began or ended
	Error string     `json:"error,omitempty"` // the last one of the store, or with which the run has ended
	Again *time.Time `json:"again,omitempty"` // when a lost or failed one is tried again

	Mode    string `json:"mode"`              // l3, tap
	Network string `json:"network,omitempty"` // of all nodes
	Backend string `json:"backend,omitempty"` // vxlan, host-gw, ipip, udp

	Lease   *FlannelLease `json:"lease,omitempty"`   // of this node
	Renewed *time.Time    `json:"renewed,omitempty"` // when it was acquired or renewed last
	Expires *time.Time    `json:"expires,omitempty"` // when it ends if it is not renewed; a reservation does not end

	Leases     int            `json:"leases"`     // of other nodes
	Refused    map[string]int `json:"refused"`    // of these, those that are not followed, by reason
	Misses     uint64         `json:"misses"`     // of the tunnel that were heard, with generations 1 and 2
	Unanswered uint64         `json:"unanswered"` // of these, without a lease
}

// A FlannelLease is a lease of a node in a flannel network. Lists have one element for each family.
type FlannelLease struct {
	Subnet    string           `json:"subnet"` // or the key, if that is no subnet
	PublicIPs []string         `json:"publicIPs,omitempty"`
	MACs      []string         `json:"macs,omitempty"`    // of its VTEPs, with backend vxlan
	Way       string           `json:"way,omitempty"`     // of packets to it: tunnel, direct; "" for the node's own, and one that is not followed
	Refused   []FlannelRefusal `json:"refused,omitempty"` // why it is not followed, in one family or both
}

// A FlannelRefusal says why a lease is not followed.
type FlannelRefusal struct {
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}
