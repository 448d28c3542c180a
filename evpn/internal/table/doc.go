// Package table holds what a speaker of EVPN knows: the routes of its peers, and what the switch has here. Of both it makes rows for
// the switch, and routes for the peers. It is not concerned with BGP or with clocks: times are arguments.
//
//	peers  -- Learned, Withdrawn, Down --> input -- use --> host, flood, prefix -- rows -----> control.Ledger -> the switch
//	switch -- Here, Gone, Speaks, ... ------------------>   (places)           -- routes --> engine          -> peers
//
// A route of a peer is used at places: type 2 at the host of a segment, and with a second label at its prefix in a VRF; type 3 at the
// flood list of a segment; type 5 at a prefix of a VRF. Import targets say of which segments and VRFs. A place that has changed waits for
// Flush, which asks it once for its rows and routes, however often it has changed since.
//
// An Ethernet segment is what several VTEPs have a link to: types 1 and 4 say which. Hosts on one are in a group of rows, so that a VTEP
// that comes or goes changes the group, and not the hosts. Of the segments that a port of ours is on, Flush tells the switch for which of
// its networks the port forwards.
package table
