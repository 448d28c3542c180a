// Package engine is what the speaker asks of BGP: to say and to hear routes. Who implements it knows sessions and bytes; the
// speaker knows neither.
package engine

import (
	"context"
	"net/netip"
	"time"
)

// A Source is where a path comes from: a peer, and with add-path (RFC 7911) the number that it has given it.
type Source struct {
	Peer netip.Addr
	ID   uint32
}

// A Path is one of the best ways to a prefix. Another of the same prefix and Source replaces it.
type Path struct {
	Source
	Prefix  netip.Prefix
	NextHop netip.Addr

	Bandwidth float32 // of the link to it, relative to that of other paths (draft-ietf-idr-link-bandwidth); 0 = not said
}

// A Handler hears of the best paths of peers; those of a prefix that are equally good all count. It is called from one goroutine at
// a time.
type Handler interface {
	Learned([]Path)
	Withdrawn([]Path) // NextHop is not looked at

	// Session says that a session has come up, or has ended and why.
	Session(peer netip.Addr, up bool, why string)
}

// Config is who we are.
type Config struct {
	AS       uint32
	RouterID netip.Addr
	Listen   []netip.Addr // none: we only connect
	Port     uint16
}

// A Peer is a neighbour, or all those of a prefix, which connect to us.
type Peer struct {
	Addr     netip.Addr
	Prefix   netip.Prefix // in place of Addr
	AS       uint32
	Port     uint16
	Local    netip.Addr
	Passive  bool
	Hold     time.Duration
	Retry    time.Duration
	Password string
	Hops     uint8 // to a peer of another AS
	OwnAS    uint8
	Client   bool // of ours, who are its route reflector
	Restarts bool // its routes stay while it restarts
	Limit    uint32
	AllPaths bool // of a prefix, not only the best, are for a client that takes them (RFC 7911)

	Import, Export []Rule // for sessions that go on, too

	// NextHops are ours in what we announce to it, at most one of each family, for sessions that go on, too: what is of no such family is
	// not announced to it. With nil they are those of Announce.
	NextHops []netip.Addr
}

// Status is how a session is.
type Status struct {
	Addr     netip.Addr
	AS       uint32
	State    string
	Since    time.Time     // of an established session
	Hold     time.Duration // agreed on
	Received int           // routes
	Filtered int           // of them: rejected by rules of the peer
	In, Out  uint64        // messages
	Why      string        // the last session ended, or there is none yet; or ""
}

// Engine says our routes to all peers, and tells a Handler theirs.
type Engine interface {
	// Run keeps the sessions until ctx is done. It is called once.
	Run(ctx context.Context, h Handler) error

	// SetPeers replaces the peers, before or while Run runs. Sessions with peers that stay as they are go on.
	SetPeers([]Peer) error

	// Announce says that a prefix is ours, now and when a session comes up, and Withdraw that it no longer is.
	Announce(p netip.Prefix, nextHop netip.Addr) error
	Withdraw(netip.Prefix) error

	// Reset ends the session with a peer, whose path is dead.
	Reset(peer netip.Addr)

	// Paths returns all best paths of peers there are.
	Paths() []Path

	Status() []Status
}

// OfFamily returns the first address of a family, none if there is none.
func OfFamily(list []netip.Addr, is4 bool) netip.Addr {
	for _, a := range list {
		if a.Is4() == is4 {
			return a
		}
	}
	return netip.Addr{}
}
