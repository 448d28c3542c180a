// Package engine is what the speaker asks of BGP: to say and to hear routes. Who implements it knows sessions and bytes; the
// speaker knows neither.
package engine

import (
	"context"
	"net/netip"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// Engine says our routes to all peers, and tells a Handler theirs.
type Engine interface {
	// Run keeps the sessions until ctx is done. It calls h from one goroutine at a time.
	Run(ctx context.Context, h Handler) error

	// Advertise says a route to all peers, now and when a session comes up. One with the same key is replaced.
	Advertise(route.Route)

	// Withdraw takes a route back.
	Withdraw(route.Key)

	// Between runs f between two calls of the Handler. f may call Advertise and Withdraw.
	Between(f func())
}

// Handler hears what peers say. While it does not return, its peer has to wait: nothing is queued without a bound.
type Handler interface {
	Learned(peer netip.Addr, r *route.Route) // r is the engine's
	Withdrawn(peer netip.Addr, k *route.Key)

	Up(peer netip.Addr)               // the session is established
	Down(peer netip.Addr, err error)  // all routes of the peer are gone
	Ended(peer netip.Addr)            // the peer has said all it has (RFC 4724, section 2)
	Stale(peer netip.Addr, err error) // the session is lost, but its routes stay until Ended or Down (graceful restart)

	// Malformed counts an UPDATE, or a route, that was left out, by a name such as "mac-length".
	Malformed(peer netip.Addr, reason string)
}
