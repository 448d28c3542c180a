// Package bench measures a node with a Speaker beside FRR, whose bgpd and zebra write into a bridge, a VXLAN device and the routing table
// of the kernel. Both have two sessions with the same speakers, which say the same to them: from Established until the last MAC with
// its neighbour, or the last prefix, is in the tables; all of them change their VTEP, and are withdrawn; and one MAC, that of the second
// session, moves 200 times, alone and while all others move.
//
// What FRR has written is known from the kernel's notifications, and what the node has from its tables, which the contender looks at
// every 10 ms, and every 100 µs for one MAC: this counts against the node.
//
// TestGrowth measures the node alone, with 125,000 to 1,000,000 MACs with addresses: what a route costs, and how long frames between two ports of their
// segment take while the routes come and go: each millisecond one that the node's workers pass on, and one of a flow that the kernel
// carries. In a run of their own, frames that a program copies which does nothing else show how long any program in user space has to wait
// on such a machine. The node and the programs that send and copy frames get a processor before those that send the routes.
//
// The package is a module of its own, so that importers of evpn do not require module offload.
//
//	make evpn-bench
package bench
