// Package bgp is a BGP speaker (RFC 4271) for one family only, EVPN (AFI 25, SAFI 70). It originates routes and hears those of
// its peers; it passes none on, and chooses none.
//
// It exists because gobgp v4.8.0 resets the session on any EVPN route type but 1 to 5, and takes a route with an EVPN community
// it does not know for a withdrawal: both are found in ordinary fabrics. A filter in front of it would have to parse and rebuild
// every UPDATE, which is most of this package.
//
// Errors in UPDATEs are handled as RFC 7606 says. A route whose length is sound but not its content is left out alone.
package bgp
