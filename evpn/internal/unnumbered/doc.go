// Package unnumbered finds the router at the other end of a link by its router advertisements (RFC 4861), and advertises us, so that
// sessions need the name of an interface only, as FRR's "neighbor eth0 interface".
//
// Who is on the link is not trusted: a router is kept while there is a session with it, whatever others say, and what is read in a
// second is bounded.
package unnumbered
