// Package api is the protocol of a node's control socket: JSON in HTTP/1.1 over a Unix socket.
//
//	GET  /v1/fdb?vni=&dev=                     [FDBEntry ...]
//	GET  /v1/neigh?vni=                        [Neighbour ...]
//	GET  /v1/mdb?vni=                          [Listener ...]
//	GET  /v1/route?vrf=                        [Route ...]
//	GET  /v1/vtep, /v1/port, /v1/flood         [VTEP ...], [Port ...], [Flood ...]
//	GET  /v1/vni?vni=                          [Segment ...]
//	GET  /v1/bfd                               [BFD ...]
//	GET  /v1/flows                             Flows
//	GET  /v1/waiting?proto=                    [Row ...]
//	GET  /v1/policy                            [Policy ...]
//	GET  /v1/drops                             [Drop ...]
//	GET  /v1/stats                             Stats
//	GET  /v1/flannel                           Flannel
//	GET  /v1/flannel/leases                    [FlannelLease ...]
//	GET  /v1/evpn                              EVPN
//	GET  /v1/evpn/peers, /v1/evpn/vni          [EVPNPeer ...], [EVPNSegment ...]
//	GET  /v1/evpn/es                           [EVPNEthernetSegment ...]
//	GET  /v1/evpn/routes?type=&vni=&peer=      [EVPNRoute ...]
//	GET  /v1/evpn/duplicates                   [EVPNDuplicate ...]
//	GET  /v1/bgp, /v1/bgp/peers                BGP, [BGPPeer ...]
//	GET  /v1/bgp/routes?peer=                  [BGPRoute ...]
//	GET  /v1/calico                            Calico
//	GET  /v1/ovsdb, /v1/ovsdb/leftout          OVSDB, [OVSDBRow ...]
//	GET  /v1/discovery                         Discovery
//	GET  /v1/discovery/neighbours              [DiscoveryNeighbour ...]
//	GET  /v1/discovery/hosts                   [DiscoveryHost ...]
//	GET  /v1/config                            the configuration as a file, with defaults
//	PUT  /v1/config?dry-run= a configuration   ConfigChange
//	GET  /v1/config/LIST/NAME                  the element of one of Lists with a name, of a segment its VNI
//	PUT  /v1/config/LIST/NAME?dry-run=         adds or replaces it: ConfigChange
//	DELETE /v1/config/LIST/NAME?dry-run=       ConfigChange
//	POST /v1/fdb       FDBChange               Done
//	POST /v1/neigh     NeighbourChange         Done
//	POST /v1/route     RouteChange             Done
//	POST /v1/port?dry-run=   PortChange        ConfigChange
//	POST /v1/evpn      EVPNChange              Done
//	POST /v1/reload                            Done
//	GET  /v1/monitor                           an Event for each event, a line each
//	GET  /v1/trace?every=&mac=&vni=&dest=      a TraceRecord for each frame, a line each
//	GET  /v1/capture?port=&tunnel=&vni=&snaplen=&count=&filter=
//	                                           pcapng, until the client disconnects or ends its half of the connection
//
// A configuration that is put has the form of a file, with comments, and stays until the node reads its file again. GET has an
// ETag; with it as If-Match, a change fails with status 412 if somebody else has changed the configuration in between. That is the
// tag of a [Client].
//
// A port that is added with an owner stays over reloads, other configurations and restarts of the node; see [PortChange].
//
// A request that fails has a status other than 200 and an [Error]. A [Client] sends the requests.
package api

// DefaultSocket is the default path of the control socket.
const DefaultSocket = "/run/vxswitch/vxswitchd.sock"

// An Error is the answer to a request that fails.
type Error struct {
	Status int `json:"-"` // of HTTP

	Text  string   `json:"error"`           // one line
	Lines []string `json:"lines,omitempty"` // errors in a configuration file, "FILE:LINE:COL: key: text"
}

func (e *Error) Error() string { return e.Text }

// Done is the answer to a change.
type Done struct {
	Done string `json:"done"` // what was done, in one line
}
