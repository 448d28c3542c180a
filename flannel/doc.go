// Package flannel makes a switch a node of a flannel network: it keeps leases of subnets in the store where flanneld keeps
// them, in the same form, so that both kinds of nodes are in one network.
//
//	PREFIX/config                      PREFIX/subnets/10.230.33.0-24
//	      |                                  |
//	      v                                  v
//	ParseNetwork                        ParseLease  --->  Refusal: a name for each cause
//	      |                                  |
//	      v                                  v
//	   Network                             Lease
//
// What is written here follows flannel v0.28: the keys, the values and the defaults of its "local subnet manager".
//
// # Hostile input
//
// Whoever may write to the store can say what he likes, and a lease of another node is never trusted. What is no lease is
// refused by the parser with a [Reason]; flanneld tries some of it for a minute, and follows nobody else meanwhile.
//
// # What is not built
//
// The stores, the rows of a lease in the switch, and the program are not built yet.
package flannel
