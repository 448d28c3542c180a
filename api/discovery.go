package api

import (
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A Discovery is what the section discovery of the configuration does.
type Discovery struct {
	State string     `json:"state"`           // running, failed
	Since time.Time  `json:"since"`           // of the state
	Error string     `json:"error,omitempty"` // with which a failed one has ended
	Again *time.Time `json:"again,omitempty"` // when a failed one is tried again

	Local          string             `json:"local"`
	Network        uint32             `json:"network"`
	Servers        []DiscoveryServer  `json:"servers"`
	Registry       *DiscoveryRegistry `json:"registry,omitempty"`
	Clients        int                `json:"clients"`        // that are registered with the node, if it is a server
	Neighbours     int                `json:"neighbours"`     // VTEPs to talk to
	Up             int                `json:"up"`             // of these
	Segments       []DiscoverySegment `json:"segments"`       // that take part
	Owners         int                `json:"owners"`         // VTEPs that advertise something, with the node
	Advertisements int                `json:"advertisements"` // of these
	Received       uint64             `json:"received"`       // datagrams
	ReceivedBytes  uint64             `json:"receivedBytes"`
	Sent           uint64             `json:"sent"` // datagrams
	SentBytes      uint64             `json:"sentBytes"`
	Refused        map[string]uint64  `json:"refused"`            // datagrams, and hosts without room, by reason
	RowError       string             `json:"rowError,omitempty"` // about rows that the node refused last
}

// A DiscoveryServer is a VTEP that lists those of the network.
type DiscoveryServer struct {
	Address string `json:"address"`
	Up      bool   `json:"up"`      // it answers
	Clients int    `json:"clients"` // in its list
}

// A DiscoveryRegistry is an etcd that lists the VTEPs of the network.
type DiscoveryRegistry struct {
	Up    bool   `json:"up"`    // its list is as it is now
	VTEPs int    `json:"vteps"` // in the list, with the node
	Error string `json:"error,omitempty"`
}

// A DiscoveryNeighbour is a VTEP to talk to.
type DiscoveryNeighbour struct {
	Address string    `json:"address"`
	Name    string    `json:"name,omitempty"`   // that it has registered with
	Listed  bool      `json:"listed,omitempty"` // by a server or etcd
	Up      bool      `json:"up"`               // each has heard the other
	Since   time.Time `json:"since"`            // of Up
}

// A DiscoverySegment is a segment that takes part.
type DiscoverySegment struct {
	VNI    frame.VNI `json:"vni"`
	VTEPs  int       `json:"vteps"`  // others that have it
	Hosts  int       `json:"hosts"`  // MACs that are here
	Remote int       `json:"remote"` // MACs of others
}

// A DiscoveryHost is a MAC that a VTEP advertises, perhaps the node.
type DiscoveryHost struct {
	VNI   frame.VNI `json:"vni"`
	MAC   string    `json:"mac"`
	VTEP  string    `json:"vtep"`
	Kind  string    `json:"kind"`            // static, learned, advertised
	Moves int       `json:"moves,omitempty"` // how often it has moved
}
