// Package control is the interface for control planes. BGP, an address manager or a configuration file
// describes a network as rows of four kinds ([MAC], [Group], [Flood], [Prefix]), and passes them to one
// method, [Programmer.Program]. A [Plane] is the Programmer of a switch: it writes the rows into the
// tables.
//
//	BGP, leases, a file ...          owners, each with its own rows
//	      |  Update: Add, Del, Snapshot
//	      v
//	   Plane.Program     compare the rows with those of the owner, refuse wrong ones,
//	      |              choose one owner's row for each key, join flood lists
//	      v
//	   peers -> flood lists -> FDB -> neighbours -> routes     (deletions in the opposite order)
//	   vtep     vtep           fdb    arp           l3
//
//	Switch.Events  --->  what the switch has learned, for control planes to advertise
//
// # Owners
//
// Every row belongs to the owner that added it. A snapshot of one owner never removes rows of another.
// If two owners have a row for the same key, the tables contain the row of the owner that comes first in
// Config.Owners. When that owner withdraws it, the row of the next owner replaces it in one step. The keys are
//
//	VNI and MAC      in the FDB: of several rows of one owner, the last that was added or changed
//	VNI and IP       in the neighbour table: likewise
//	VNI and tunnel   the flood list: of all owners together, each VTEP once for all frames and once for each group with rows of
//	                 its own, sorted by address; of one owner's rows for a VTEP and group the last
//	VNI and name     a group: all rows of one owner, for MAC rows of that owner only
//	VRF and prefix   a route: all next hops of one owner and distance; see [Prefix]
//
// # Rows that are refused, and rows that wait
//
// [Programmer.Program] refuses a row that is wrong or has no place, for instance because its segment or VTEP is
// missing, and says so with a [RowError]. All other rows of the Update are carried out. A control plane that hears
// of networks before they are configured here sets Update.Loose: then rows without a place wait for one. What is
// wrong in any case is refused even so: a malformed row, a VTEP with an address of this switch, one with a loopback
// address unless the local VTEP has such an address too, and a MAC of the switch itself.
//
// Rows wait, too, if their place goes after they were added, if a table is full, if an interface has their prefix
// itself, if its addresses change so that their next hop is its own or on none of its networks, and if their MAC becomes
// the switch's own. A row waits as a whole, and meanwhile the tables contain the next owner's row. [Plane.Waiting]
// lists them, with reasons.
//
// # What a Plane manages
//
// A Plane leaves table entries alone that no row refers to. But for a segment with a Flood row it manages the
// whole flood list, and for a VTEP that a row refers to it manages the peer: it deletes the peer with the last
// row, and the event peer-down follows within half a minute, when no frame from it can be on its way. The same
// holds for next hops with their own VNI and for groups. A program that sets entries with these keys itself should
// do so as an owner; Config.Static makes its entries static.
//
// # Hosts that move
//
// If the host of a MAC row that is not Sticky sends on a local port, the entry moves there (RFC 7432,
// section 15). The switch reports a frame.EventMACMoved, and its control plane advertises the host from
// here. Its address moves likewise when the host speaks ARP or ND here (EventNeighbourMoved). The row stays, but is
// not written again until its owner advertises it again: as a changed row, or in both Del and Add of an
// Update. Nor does a new row replace what was learned on a local port. Static entries and neighbours that
// were set by hand are never replaced.
//
// # Writing a control plane
//
// A program with a node.Node calls its methods Program and Switch; examples/agent is one with a control plane of its own.
//
//   - What is here: get [vswitch.Switch.Events], carry out [vswitch.Switch.State] once and after an EventOverflow, and then the
//     events. They suffice to know at any time which ports, peers, segments, gateways, hosts and neighbours there are.
//   - What else is known: [Plane.Watch] says what the configuration and other control planes have, [Plane.WatchRoutes]
//     which routes there are. [l3.Interface.Config] and vtep.VTEP.Local say which addresses this switch has, and events
//     when they change.
//   - What is elsewhere: keep it in a [Ledger], with Loose, and Flush it. After a restart, or a loss of the other side, a snapshot
//     puts everything right, and writes only what differs.
//
// # Concurrency
//
// All methods of Plane are safe for concurrent use, and wait for each other. They must not be called from
// a Stage. Forwarding does not wait; changes take effect at the next batch. A Plane has no goroutine: a
// program without a node.Node passes the events of [vswitch.Switch.Events] to [Plane.Handle], so that rows are
// written when their place comes, or when the host has gone that they gave way to.
package control
