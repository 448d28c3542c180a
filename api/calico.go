package api

import "time"

// A Calico is what the section calico of the configuration does.
type Calico struct {
	State string     `json:"state"`           // starting, running, stale, failed
	Since time.Time  `json:"since"`           // of a stale node: when the datastore was last followed; else when the state's run began or ended
	Error string     `json:"error,omitempty"` // the last one of the datastore or BGP, or with which a failed one has ended
	Again *time.Time `json:"again,omitempty"` // when one that has ended is tried again

	Node     string `json:"node"`               // its name in the datastore
	VRF      string `json:"vrf"`                // of the routes
	AS       uint32 `json:"as,omitempty"`       // none without BGP
	RouterID string `json:"routerID,omitempty"` // likewise

	Addresses []string `json:"addresses"`      // of the node, with their networks
	Tunnels   []string `json:"tunnels"`        // addresses of its devices for IP-in-IP and VXLAN
	MACs      []string `json:"macs,omitempty"` // that other nodes send VXLAN to: that of the gateway

	Resources   map[string]int   `json:"resources"`           // of the datastore, by kind: ippools, nodes, blocks and others
	Peers       int              `json:"peers"`               // of BGP
	Established int              `json:"established"`         // of these
	Routes      int              `json:"routes"`              // to blocks and borrowed addresses that BGP has no part in
	Problems    []CalicoProblem  `json:"problems"`            // what the datastore asks for and is not done
	More        int              `json:"more,omitempty"`      // problems that are not in the list
	Workloads   []CalicoWorkload `json:"workloads,omitempty"` // by port

	RowError string `json:"rowError,omitempty"` // about rows that the node refused last
}

// A CalicoProblem is something that the datastore asks for and that is not done.
type CalicoProblem struct {
	Resource string `json:"resource"` // such as ippools/default
	Why      string `json:"why"`
}

// A CalicoWorkload is a port that is a workload of the cluster, or an endpoint of the node whose port is not there.
type CalicoWorkload struct {
	Port      string   `json:"port"`
	There     bool     `json:"there"`               // the node has the port
	Endpoint  string   `json:"endpoint,omitempty"`  // namespace/name of its WorkloadEndpoint, none while it is not known
	Addresses []string `json:"addresses,omitempty"` // of the endpoint
	Policies  []string `json:"policies,omitempty"`  // that decide, and profiles behind them, in order
	NotDone   []string `json:"notDone,omitempty"`   // what of these is not done
	Closed    string   `json:"closed,omitempty"`    // why nothing passes
	Error     string   `json:"error,omitempty"`     // why its policies could not be put into force: nothing passes

	Dropped map[string]uint64 `json:"dropped,omitempty"` // frames that it sent as another, or in a tunnel: those causes of policy.GuardStats that there were
}
