// Package route has the routes of EVPN (RFC 7432, RFC 9136) as values: what a peer says, without how it says it. Keys are
// comparable and hold no pointer, so that a table of a million routes is nothing for the garbage collector to look at.
package route
