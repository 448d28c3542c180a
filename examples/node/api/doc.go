// Package api is what a node and its clients tell each other: the JSON on its control
// socket, which is HTTP/1.1 over a Unix socket.
//
//	GET  /v1/fdb?vni=&dev=                     [FDBEntry ...]
//	GET  /v1/neigh?vni=                        [Neighbour ...]
//	GET  /v1/route?vrf=                        [Route ...]
//	GET  /v1/vtep, /v1/port, /v1/flood         [VTEP ...], [Port ...], [Flood ...]
//	GET  /v1/policy                            [Policy ...]
//	GET  /v1/drops                             [Drop ...]
//	GET  /v1/stats                             Stats
//	GET  /v1/config                            the configuration, as its file, with defaults
//	POST /v1/fdb       Change                  Done
//	POST /v1/reload                            Done
//	GET  /v1/monitor                           a line of JSON, Event, for each event
//	GET  /v1/trace?every=&mac=&vni=&dest=      likewise TraceRecord, for each frame
//	GET  /v1/capture                           pcapng, until the client goes
//
// What is wrong has another status than 200, and is an Error.
package api

import "github.com/vxswitch/vxswitch/frame"

// DefaultSocket is where a client looks for a node.
const DefaultSocket = "/run/vxswitch/node.sock"

// An Error is the answer to a request that fails.
type Error struct {
	Text  string   `json:"error"`           // one line
	Lines []string `json:"lines,omitempty"` // of a configuration: each thing that is wrong, "FILE:LINE:COL: key: text"
}

// Done is the answer to a request that has changed something.
type Done struct {
	Done string `json:"done"` // what, in one line
}

// Operations of a Change, in the words of bridge fdb.
const (
	Add     = "add"     // an entry that is not there yet
	Append  = "append"  // a peer to the flood list: MAC 00:00:00:00:00:00
	Replace = "replace" // an entry that may be there
	Del     = "del"
)

// A Change is one of a MAC table, or with MAC 00:00:00:00:00:00 of a flood list. All but Del
// need either Dst or Dev.
type Change struct {
	Op  string    `json:"op"`
	VNI frame.VNI `json:"vni"`
	MAC string    `json:"mac"`
	Dst string    `json:"dst,omitempty"` // address of the peer that the MAC is behind
	Dev string    `json:"dev,omitempty"` // or name of the port it is on
}
