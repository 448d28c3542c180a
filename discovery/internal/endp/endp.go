package endp

import (
	"net/netip"
	"time"
)

const (
	ProbeEvery    = 5 * time.Second
	RegisterEvery = 15 * time.Second
	Age           = 5 * RegisterEvery // without registration a client is gone
	Silence       = 3 * ProbeEvery    // without answer a server is down
	Youth         = 2 * RegisterEvery // of a server that has begun: some may not have registered yet

	MaxClients = 16384 // of a server
	MaxGone    = 4096  // that a server remembers, of a network; of all networks MaxClients
	MaxPage    = 20    // clients in an answer, so that it fits a datagram
	MaxName    = 32    // bytes
)

// A Client is one line of a server's list.
type Client struct {
	Addr netip.Addr
	Name string
	Gone bool
}

type (
	// Register has a server list its sender, or, with Leave, forget it.
	Register struct {
		Name  string
		Leave bool
	}
	// Probe asks for what has changed since a version.
	Probe struct {
		Life    uint64 // of the server, as it was heard last
		Version uint64 // 0 = all
	}
	// Clients answers a Probe.
	Clients struct {
		Life    uint64
		Since   uint64 // the version that it begins after, 0 = it is the beginning of all
		Version uint64 // of the last one
		More    bool   // there are others
		Young   bool   // the server has begun lately, and may not know all
		List    []Client
	}
)

// A Send is a message to a VTEP: a [Register], a [Probe] or a [Clients].
type Send struct {
	To      netip.Addr
	Message any
}
