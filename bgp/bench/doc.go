// Package bench measures a node with a Speaker beside BIRD, which writes into the routing table of the kernel. Both have a session with the
// same BIRD, which announces 1,000 to 200,000 blocks as nodes of Calico do: from Established until the last route is in the tables by
// which packets are forwarded; all of them are withdrawn; and one of them is, 50 times. What a route costs in memory is the difference
// between the programs with the most and with the fewest routes.
//
// Beside them, gobgp alone is the engine of a Speaker with a handler that counts routes: what a Speaker with it cannot be faster than.
//
// The node looks for one route after the other every millisecond. The kernel is asked for a thousandth of them, and then how many it has,
// so that asking takes no more than a tenth of a processor.
//
//	make bgp-bench
package bench
