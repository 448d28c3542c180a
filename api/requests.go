package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptrace"
)

// A Request is a request that a node answers.
type Request struct {
	Method, Path string
	Params       []string // of the query
	Body, Answer any      // values of the types that are sent and answered; nil for what is no type of this package
	Stream       bool     // the answer lasts; Answer is a line of it
}

// Requests lists all requests, as the package documentation does.
var Requests = []Request{
	{"GET", "/v1/fdb", []string{"vni", "dev"}, nil, []FDBEntry{}, false},
	{"GET", "/v1/neigh", []string{"vni"}, nil, []Neighbour{}, false},
	{"GET", "/v1/mdb", []string{"vni"}, nil, []Listener{}, false},
	{"GET", "/v1/route", []string{"vrf"}, nil, []Route{}, false},
	{"GET", "/v1/vtep", nil, nil, []VTEP{}, false},
	{"GET", "/v1/port", nil, nil, []Port{}, false},
	{"GET", "/v1/flood", nil, nil, []Flood{}, false},
	{"GET", "/v1/vni", []string{"vni"}, nil, []Segment{}, false},
	{"GET", "/v1/bfd", nil, nil, []BFD{}, false},
	{"GET", "/v1/flows", nil, nil, Flows{}, false},
	{"GET", "/v1/waiting", []string{"proto"}, nil, []Row{}, false},
	{"GET", "/v1/policy", nil, nil, []Policy{}, false},
	{"GET", "/v1/drops", nil, nil, []Drop{}, false},
	{"GET", "/v1/stats", nil, nil, Stats{}, false},
	{"GET", "/v1/flannel", nil, nil, Flannel{}, false},
	{"GET", "/v1/flannel/leases", nil, nil, []FlannelLease{}, false},
	{"GET", "/v1/evpn", nil, nil, EVPN{}, false},
	{"GET", "/v1/evpn/peers", nil, nil, []EVPNPeer{}, false},
	{"GET", "/v1/evpn/vni", nil, nil, []EVPNSegment{}, false},
	{"GET", "/v1/evpn/es", nil, nil, []EVPNEthernetSegment{}, false},
	{"GET", "/v1/evpn/routes", []string{"type", "vni", "peer"}, nil, []EVPNRoute{}, false},
	{"GET", "/v1/evpn/duplicates", nil, nil, []EVPNDuplicate{}, false},
	{"GET", "/v1/bgp", nil, nil, BGP{}, false},
	{"GET", "/v1/bgp/peers", nil, nil, []BGPPeer{}, false},
	{"GET", "/v1/bgp/routes", []string{"peer"}, nil, []BGPRoute{}, false},
	{"GET", "/v1/calico", nil, nil, Calico{}, false},
	{"GET", "/v1/ovsdb", nil, nil, OVSDB{}, false},
	{"GET", "/v1/ovsdb/leftout", nil, nil, []OVSDBRow{}, false},
	{"GET", "/v1/discovery", nil, nil, Discovery{}, false},
	{"GET", "/v1/discovery/neighbours", nil, nil, []DiscoveryNeighbour{}, false},
	{"GET", "/v1/discovery/hosts", nil, nil, []DiscoveryHost{}, false},
	{"GET", "/v1/config", nil, nil, nil, false},
	{"PUT", "/v1/config", []string{"dry-run"}, nil, ConfigChange{}, false},
	{"GET", "/v1/config/{list}/{name}", nil, nil, nil, false},
	{"PUT", "/v1/config/{list}/{name}", []string{"dry-run"}, nil, ConfigChange{}, false},
	{"DELETE", "/v1/config/{list}/{name}", []string{"dry-run"}, nil, ConfigChange{}, false},
	{"POST", "/v1/fdb", nil, FDBChange{}, Done{}, false},
	{"POST", "/v1/neigh", nil, NeighbourChange{}, Done{}, false},
	{"POST", "/v1/route", nil, RouteChange{}, Done{}, false},
	{"POST", "/v1/port", []string{"dry-run"}, PortChange{}, ConfigChange{}, false},
	{"POST", "/v1/evpn", nil, EVPNChange{}, Done{}, false},
	{"POST", "/v1/reload", nil, nil, Done{}, false},
	{"GET", "/v1/monitor", nil, nil, Event{}, true},
	{"GET", "/v1/trace", []string{"every", "mac", "vni", "dest"}, nil, TraceRecord{}, true},
	{"GET", "/v1/capture", []string{"port", "tunnel", "vni", "snaplen", "count", "filter"}, nil, nil, true},
}

// A Query has the parameters of a request, by name. [Requests] lists them.
type Query map[string]string

// FDB returns the FDB entries, of one "vni" or one "dev".
func (c *Client) FDB(ctx context.Context, q Query) ([]FDBEntry, error) {
	return ask[[]FDBEntry](ctx, c, "/v1/fdb", q)
}

// Neighbours returns the IP addresses with their MACs, of one "vni".
func (c *Client) Neighbours(ctx context.Context, q Query) ([]Neighbour, error) {
	return ask[[]Neighbour](ctx, c, "/v1/neigh", q)
}

// Listeners returns who listens to multicast groups, of one "vni".
func (c *Client) Listeners(ctx context.Context, q Query) ([]Listener, error) {
	return ask[[]Listener](ctx, c, "/v1/mdb", q)
}

// Routes returns the routes, of one "vrf".
func (c *Client) Routes(ctx context.Context, q Query) ([]Route, error) {
	return ask[[]Route](ctx, c, "/v1/route", q)
}

// VTEPs returns the tunnels with their peers.
func (c *Client) VTEPs(ctx context.Context) ([]VTEP, error) {
	return ask[[]VTEP](ctx, c, "/v1/vtep", nil)
}

// Ports returns the ports and tunnels with their counters.
func (c *Client) Ports(ctx context.Context) ([]Port, error) {
	return ask[[]Port](ctx, c, "/v1/port", nil)
}

// Segments returns the segments with their counters, or one "vni".
func (c *Client) Segments(ctx context.Context, q Query) ([]Segment, error) {
	return ask[[]Segment](ctx, c, "/v1/vni", q)
}

// Floods returns the flood lists.
func (c *Client) Floods(ctx context.Context) ([]Flood, error) {
	return ask[[]Flood](ctx, c, "/v1/flood", nil)
}

// BFD returns the sessions of BFD.
func (c *Client) BFD(ctx context.Context) ([]BFD, error) { return ask[[]BFD](ctx, c, "/v1/bfd", nil) }

// Flows returns the flows that the kernel carries.
func (c *Client) Flows(ctx context.Context) (Flows, error) {
	return ask[Flows](ctx, c, "/v1/flows", nil)
}

// Waiting returns the rows of control planes that wait, and those that were refused last, of one "proto".
func (c *Client) Waiting(ctx context.Context, q Query) ([]Row, error) {
	return ask[[]Row](ctx, c, "/v1/waiting", q)
}

// Policies returns the statistics of policies and guards.
func (c *Client) Policies(ctx context.Context) ([]Policy, error) {
	return ask[[]Policy](ctx, c, "/v1/policy", nil)
}

// Drops returns the dropped frames by port and reason.
func (c *Client) Drops(ctx context.Context) ([]Drop, error) {
	return ask[[]Drop](ctx, c, "/v1/drops", nil)
}

// Stats returns totals.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	return ask[Stats](ctx, c, "/v1/stats", nil)
}

// Flannel returns the state of the section flannel. Without the section it is an [*Error] with status 404.
func (c *Client) Flannel(ctx context.Context) (Flannel, error) {
	return ask[Flannel](ctx, c, "/v1/flannel", nil)
}

// FlannelLeases returns the leases of other nodes of the flannel network, also those that are not followed.
func (c *Client) FlannelLeases(ctx context.Context) ([]FlannelLease, error) {
	return ask[[]FlannelLease](ctx, c, "/v1/flannel/leases", nil)
}

// Discovery returns the state of the section discovery. Without the section it is an [*Error] with status 404, as are the lists.
func (c *Client) Discovery(ctx context.Context) (Discovery, error) {
	return ask[Discovery](ctx, c, "/v1/discovery", nil)
}

// DiscoveryNeighbours returns the VTEPs that the node talks to.
func (c *Client) DiscoveryNeighbours(ctx context.Context) ([]DiscoveryNeighbour, error) {
	return ask[[]DiscoveryNeighbour](ctx, c, "/v1/discovery/neighbours", nil)
}

// DiscoveryHosts returns the MACs that VTEPs advertise in segments that the node has.
func (c *Client) DiscoveryHosts(ctx context.Context) ([]DiscoveryHost, error) {
	return ask[[]DiscoveryHost](ctx, c, "/v1/discovery/hosts", nil)
}

// EVPN returns the state of the section evpn. Without the section it is an [*Error] with status 404, as are the lists.
func (c *Client) EVPN(ctx context.Context) (EVPN, error) { return ask[EVPN](ctx, c, "/v1/evpn", nil) }

// EVPNPeers returns the peers of BGP.
func (c *Client) EVPNPeers(ctx context.Context) ([]EVPNPeer, error) {
	return ask[[]EVPNPeer](ctx, c, "/v1/evpn/peers", nil)
}

// EVPNEthernetSegments returns the Ethernet segments, of the node and of peers.
func (c *Client) EVPNEthernetSegments(ctx context.Context) ([]EVPNEthernetSegment, error) {
	return ask[[]EVPNEthernetSegment](ctx, c, "/v1/evpn/es", nil)
}

// EVPNSegments returns the segments that take part.
func (c *Client) EVPNSegments(ctx context.Context) ([]EVPNSegment, error) {
	return ask[[]EVPNSegment](ctx, c, "/v1/evpn/vni", nil)
}

// EVPNRoutes returns the routes of peers, also those that are used nowhere, and those of the node: of one "type", "vni" or "peer".
func (c *Client) EVPNRoutes(ctx context.Context, q Query) ([]EVPNRoute, error) {
	return ask[[]EVPNRoute](ctx, c, "/v1/evpn/routes", q)
}

// EVPNDuplicates returns the MACs that have moved too often.
func (c *Client) EVPNDuplicates(ctx context.Context) ([]EVPNDuplicate, error) {
	return ask[[]EVPNDuplicate](ctx, c, "/v1/evpn/duplicates", nil)
}

// BGP returns the state of the section bgp, or of BGP of the section calico. Without them it is an [*Error] with status 404, as are the lists.
func (c *Client) BGP(ctx context.Context) (BGP, error) { return ask[BGP](ctx, c, "/v1/bgp", nil) }

// BGPPeers returns the peers of BGP.
func (c *Client) BGPPeers(ctx context.Context) ([]BGPPeer, error) {
	return ask[[]BGPPeer](ctx, c, "/v1/bgp/peers", nil)
}

// BGPRoutes returns the routes of the node and the best ones of peers, also those that are not taken, or those of one "peer".
func (c *Client) BGPRoutes(ctx context.Context, q Query) ([]BGPRoute, error) {
	return ask[[]BGPRoute](ctx, c, "/v1/bgp/routes", q)
}

// Calico returns the state of the section calico. Without the section it is an [*Error] with status 404.
func (c *Client) Calico(ctx context.Context) (Calico, error) {
	return ask[Calico](ctx, c, "/v1/calico", nil)
}

// OVSDB returns the state of the section ovsdb. Without the section it is an [*Error] with status 404.
func (c *Client) OVSDB(ctx context.Context) (OVSDB, error) {
	return ask[OVSDB](ctx, c, "/v1/ovsdb", nil)
}

// OVSDBLeftOut returns rows of the database that have no effect, or not all of it, at most 64.
func (c *Client) OVSDBLeftOut(ctx context.Context) ([]OVSDBRow, error) {
	return ask[[]OVSDBRow](ctx, c, "/v1/ovsdb/leftout", nil)
}

// Reload makes the node read its file again.
func (c *Client) Reload(ctx context.Context) error { return c.post(ctx, "/v1/reload", nil) }

// Monitor returns events until ctx is done.
func (c *Client) Monitor(ctx context.Context) iter.Seq2[Event, error] {
	return stream[Event](c, c.Lines(ctx, "/v1/monitor", nil))
}

// Trace returns forwarding decisions until ctx is done: "every" N frames with a "mac", of a "vni", to a "dest".
func (c *Client) Trace(ctx context.Context, q Query) iter.Seq2[TraceRecord, error] {
	return stream[TraceRecord](c, c.Lines(ctx, "/v1/trace", q))
}

// A Capture is packets as pcapng.
type Capture struct {
	io.ReadCloser
	conn net.Conn
}

// End asks the node to end the capture. What it has still follows, and the statistics.
func (c *Capture) End() error {
	half, ok := c.conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// Capture returns packets as pcapng until ctx is done: those of one "port", one "tunnel" or one "vni", else all; "snaplen" bytes
// of each, until there are "count", if a "filter" in the words of tcpdump takes them. The last block has the statistics: packets
// that the filter took, and how many of them were dropped, for the reader is too slow. tcpdump reads captures of one port,
// tunnel or VNI.
func (c *Client) Capture(ctx context.Context, q Query) (*Capture, error) {
	var x Capture
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { x.conn = i.Conn }})
	answer, err := c.open(ctx, http.MethodGet, "/v1/capture", q, nil, "")
	if err != nil {
		return nil, err
	}
	x.ReadCloser = answer.Body
	return &x, nil
}

func ask[T any](ctx context.Context, c *Client, path string, q Query) (v T, err error) {
	text, err := c.Do(ctx, http.MethodGet, path, q, nil)
	if err != nil {
		return v, err
	}
	return decode[T](c, text)
}

func stream[T any](c *Client, lines iter.Seq2[[]byte, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for line, err := range lines {
			var v T
			if err == nil {
				v, err = decode[T](c, line)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

func decode[T any](c *Client, text []byte) (v T, err error) {
	if err = json.Unmarshal(text, &v); err != nil {
		err = fmt.Errorf("%s: invalid answer: %w", c.socket, err)
	}
	return v, err
}
