package api

import (
	"context"
	"net/http"

	"github.com/vxswitch/vxswitch/frame"
)

// Operations of changes, in the words of bridge and ip.
const (
	Add     = "add"     // a new entry
	Append  = "append"  // another next hop of a route, or with MAC 00:00:00:00:00:00 or that of a group another peer of a flood list
	Replace = "replace" // a new or existing entry
	Del     = "del"
)

// An FDBChange changes an FDB, or with MAC 00:00:00:00:00:00 a flood list, with that of a group the peers that get its frames. All but Del need either Dst or Dev.
type FDBChange struct {
	Op  string    `json:"op"`
	VNI frame.VNI `json:"vni"`
	MAC string    `json:"mac"`
	Dst string    `json:"dst,omitempty"` // address of the peer with the MAC
	Dev string    `json:"dev,omitempty"` // or name of the port with the MAC

	Tunnel string `json:"tunnel,omitempty"` // with Dst, if the segment has several for the family of Dst
}

// A NeighbourChange adds, replaces or deletes the MAC of an IP address, and its FDB entry. Where the host is, Dst or Dev says, or
// an FDB entry of the MAC that was added by an FDBChange.
type NeighbourChange struct {
	Op  string    `json:"op"` // Add, Replace or Del
	VNI frame.VNI `json:"vni"`
	IP  string    `json:"ip"`
	MAC string    `json:"mac,omitempty"` // not for Del
	Dst string    `json:"dst,omitempty"` // as in an FDBChange
	Dev string    `json:"dev,omitempty"`

	Tunnel string `json:"tunnel,omitempty"` // as in an FDBChange
	Router bool   `json:"router,omitempty"` // with an IPv6 address: the host is a router
}

// A RouteChange adds, replaces or deletes routes of a VRF. A next hop is one of these; Del without one deletes them all:
//
//	Via              a neighbour; its segment is VNI, by default the one with a gateway of the VRF in whose prefix it is
//	VNI, MAC, Dst    a router behind a tunnel
//	VNI, Dst         the far end of a tunnel for IP
//	VNI              what is behind a port for IP
//	Blackhole        none: packets are dropped
type RouteChange struct {
	Op        string     `json:"op"`
	VRF       string     `json:"vrf,omitempty"` // default the only one
	Prefix    string     `json:"prefix"`
	VNI       *frame.VNI `json:"vni,omitempty"`
	Via       string     `json:"via,omitempty"`
	MAC       string     `json:"mac,omitempty"`
	Dst       string     `json:"dst,omitempty"`
	Tunnel    string     `json:"tunnel,omitempty"` // as in an FDBChange
	Blackhole bool       `json:"blackhole,omitempty"`
	Weight    uint8      `json:"weight,omitempty"` // share of the flows relative to other next hops; default 1
	Metric    uint8      `json:"metric,omitempty"` // of routes to the same prefix the lowest counts; routes of the configuration have 0
}

// PortTypes are the types of ports that the node opens.
var PortTypes = []string{"tap", "tun", "veth", "interface", "packet"}

// A PortChange adds a port to the configuration, and to a segment, or deletes it and its memberships.
type PortChange struct {
	Op      string     `json:"op"` // Add or Del
	Name    string     `json:"name"`
	Type    string     `json:"type,omitempty"`    // one of PortTypes; default the first
	MTU     int        `json:"mtu,omitempty"`     // default as for a port of a file
	Queues  int        `json:"queues,omitempty"`  // default 1
	VNI     *frame.VNI `json:"vni,omitempty"`     // segment, default none
	VLAN    int        `json:"vlan,omitempty"`    // with VNI: VLAN ID on the port; 0 = untagged
	Service bool       `json:"service,omitempty"` // with VLAN: it is that of a service tag (802.1ad)

	// Namespace is the network namespace of the device: the path of a file, or a name in /run/netns; default that of the node.
	Namespace string `json:"namespace,omitempty"`

	// Owner is a program that has made the device and adds it here. The node makes none and brings none up, and the port
	// stays over reloads and restarts of the node, until it is deleted, or the device is gone at a start. Default: it stays
	// until the next reload.
	Owner string `json:"owner,omitempty"`
}

// ChangeFDB changes an FDB or a flood list.
func (c *Client) ChangeFDB(ctx context.Context, x FDBChange) error { return c.post(ctx, "/v1/fdb", x) }

// ChangeNeighbour changes the MAC of an IP address.
func (c *Client) ChangeNeighbour(ctx context.Context, x NeighbourChange) error {
	return c.post(ctx, "/v1/neigh", x)
}

// ChangeRoute changes routes.
func (c *Client) ChangeRoute(ctx context.Context, x RouteChange) error {
	return c.post(ctx, "/v1/route", x)
}

// ChangePort adds or deletes a port, as SetConfig does.
func (c *Client) ChangePort(ctx context.Context, x PortChange, o *SetOptions) (ConfigChange, error) {
	return c.set(ctx, http.MethodPost, "/v1/port", x, o)
}

func (c *Client) post(ctx context.Context, path string, x any) error {
	_, err := c.Do(ctx, http.MethodPost, path, nil, x)
	return err
}
