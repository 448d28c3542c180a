// Package control is where control planes plug in. What BGP, an address manager or a file
// says about a network reaches the tables of a switch as rows of four kinds ([MAC], [Group], [Flood],
// [Prefix]) through one method, [Programmer.Program]. A [Plane] is the Programmer of the
// switches of this module.
//
//	BGP, leases, a file ...          each an owner, with rows of its own
//	      |  Update: Add, Del, Snapshot
//	      v
//	   Plane.Program     check all rows, compare with what the owner has
//	      |              of each key the first owner's row counts, flood lists are joined
//	      v
//	   peers -> flood lists -> FDB -> neighbours -> routes     (what goes, the other way)
//	   vtep     vtep           fdb    arp           l3
//
//	Switch.Events  --->  what the switch has learned, for others to be told of
//
// # Owners
//
// Every row belongs to the owner that added it. One owner's snapshot never removes what
// another has. When two have a row for one key, the owner that Config.Owners names first is
// the one whose row is in the tables; when it withdraws, the next one's takes its place at
// once, without a moment in which there is none. A row whose port, segment, VTEP or group is not there
// waits as a whole, and the next one's is in the tables meanwhile. The keys are
//
//	VNI and MAC      in the FDB: of several rows of one owner the last that was added or changed
//	VNI and IP       among the neighbours: likewise
//	VNI and tunnel   the flood list: all owners' together, each VTEP once, in order of address
//	VNI and name     a group: all rows of one owner, for MAC rows of that owner alone
//	VRF and prefix   a route: all next hops of one owner
//
// # What a Plane takes over
//
// A table's entries that no row names are none of its business. But of a segment for which
// there is a Flood row it has the whole flood list, and of a VTEP that a row names it has
// the peer: it is deleted with the last row, as are the numbers of next hops with a VNI of their own
// and of groups. What a program sets for itself in the same
// places goes through an owner of its own, which Config.Static may make a static one.
//
// # Hosts that move
//
// A MAC row that is not Sticky gives way to its host when that speaks on a local port
// (RFC 7432, section 15): the switch tells of it in a frame.EventMACMoved, and its control
// plane advertises the host from here. The row stays, and is not written again by itself. It
// is when its owner advertises it anew: when it has changed, or is in both Del and Add of an
// Update. A new row likewise leaves alone what was learned on a local port. Entries and
// neighbours that somebody has set as static by hand stay in every case.
//
// # What may be called from where
//
// All methods of Plane may be called from anywhere but a Stage, and one waits for the other.
// Frames do not wait: what changes takes effect with the next batch. A Plane has no
// goroutine; it does not follow what happens to ports, interfaces and tables after rows were
// written. Who reads [vswitch.Switch.Events] calls [Plane.Reapply] when a port has come back,
// or a MAC has aged that a row had to make way for.
package control
