// Package snoop knows which hosts of a segment listen to which multicast group, and keeps the group's frames from all others
// (RFC 4541). A [Snooper] is the stage for a switch's slot Multicast: it reads IGMPv1 to v3 and MLDv1 and v2.
//
//	frame to a group
//	   |
//	   v
//	Process --- report, leave, query, PIM hello ---> table: groups by place; places of routers
//	   |                                               |            ^
//	   v                                               |            | expiry, queries
//	Select: where to? <--------------------------------+        Housekeep
//
// A place is a port or a peer of a tunnel.
//
//   - Frames to a group go to the places with a listener and to those of multicast routers. Groups that nobody has joined go to
//     the routers, or with Config.Flood everywhere.
//   - A tunnel with peers for the group alone (vswitch.Grouper) sends to these, whoever has joined.
//   - Frames to 224.0.0.0/24 and to IPv6 groups of link-local scope or smaller (ff00::/16, ff01::/16, ff02::/16) go everywhere,
//     as do frames to groups that are neither IPv4 nor IPv6.
//   - Reports go to routers, so that hosts do not hear and suppress each other's, and into all tunnels: other VTEPs learn what
//     is behind this one. Queries, PIM and unknown types of IGMP go everywhere.
//   - A place with a querier, also one without an address, or with a router that says so by PIM (RFC 7761, section 4.9.2) or MRD
//     (RFC 4286) is that of a router, for 255 s. [Snooper.SetRouters] names others.
//   - Messages with a wrong checksum or length are dropped.
//
// While there is no querier in the segment, nor long enough for all hosts to have answered it, everything is flooded; reports only
// until there is one, since a host of IGMPv2 or MLDv1 that hears the answer of another keeps its own.
//
// Sources are not told apart: a host that listens to some sources of a group (IGMPv3, MLDv2) gets those that others listen to.
//
// # Querier
//
// Listeners are forgotten when they have not answered the querier for two of its intervals. With Config.Querier the Snooper asks
// itself. Among queriers the lowest address wins (RFC 3376, section 6.6.2), and among those with the same, which 0.0.0.0 is by
// default, the lowest MAC; the others are silent until they have missed it. Queries that
// give hosts more than a minute to answer do not count.
//
// # Limits
//
// A place that has no room for another listener gets the frames of all groups until the time of a listener is over. A full table
// makes room for places with few listeners by taking from the one that has the most. So a host that joins
// too many groups costs only what is behind its own port.
//
// # Concurrency
//
// Process and Select run inside the workers of a switch. Select takes no lock and allocates nothing. Process takes a lock for
// messages alone, which is held for one message at a time, and once a second for a walk through the table.
package snoop
