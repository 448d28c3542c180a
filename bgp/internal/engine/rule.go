package engine

import "net/netip"

// A Rule says what becomes of the routes of a family that it matches, which all of its conditions are about. Of the rules of a peer the
// first that matches counts; what none matches is imported, and exported as if the peer had no rules.
type Rule struct {
	IPv6 bool // about IPv6 routes, else about IPv4

	Prefix     netip.Prefix // that has all addresses of the route; the zero Prefix is not looked at, nor what follows
	Least      int          // length of the route's prefix
	Most       int          // length of the route's prefix
	Not        bool         // Prefix, Least and Most are not so
	Remote     bool         // the route is one of a peer
	Community  string       // the route has it, "65000:100" or "65000:100:1"; "" is not looked at
	ASPath     []uint32     // begins the route's path
	Preference uint32       // is that of the route (LOCAL_PREF); 0 is not looked at

	Reject         bool
	AddCommunities []string
	Prepend        []uint32 // to the path; if ASPath is not empty they are all the same
	SetPreference  uint32
	NextHop        netip.Addr // of what is exported; the zero Addr leaves it as it is
}
