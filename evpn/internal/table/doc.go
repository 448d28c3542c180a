// Package table holds what a speaker of EVPN knows: the routes of its peers, and what the switch has here. Of both it makes rows for
// the switch, and routes for the peers. It is not concerned with BGP or with clocks: times are arguments.
//
//	peers  -- Learned, Withdrawn, Down --> input -- use --> host, flood, prefix -- rows -----> control.Ledger -> the switch
//	switch -- Here, Gone, Speaks, ... ------------------>   (places)           -- routes --> engine          -> peers
//
// A route of a peer is used at places: type 2 at the host of a segment, and with a second label at its prefix in a VRF; type 3 at the
// flood list of a segment; type 5 at a prefix of a VRF. Import targets say of which segments and VRFs. A place that has changed waits for
// Flush, which asks it once for its rows and routes, however often it has changed since.
package table
