// Package flannel makes a switch a node of a flannel network: it keeps leases of subnets in the store where flanneld keeps
// them, in the same form, so that both kinds of nodes are in one network.
//
//	PREFIX/config             PREFIX/subnets/10.230.33.0-24
//	      |                         |            ^
//	      |       KV: etcd, Memory  |            |  Create, Update, Delete: transactions
//	      v                         v            |
//	ParseNetwork   Registry: Acquire, Renew, Release, Watch
//	      |                         |
//	      v                         v
//	   Network                 ParseLease  --->  Lease, or a Refusal with a name for its cause
//	      |                         |
//	      +-----------------------> Mapper: rows of package control for the switch, routes for the host
//
// What is written here follows flannel v0.28: the keys, the values and the defaults of its "local subnet manager". Package
// etcd has the store; [Memory] is one for tests. Package kube, a module of its own, has a [Store] in the nodes of Kubernetes, to which
// others assign subnets: a lease is a [NodeLease] there.
//
// A [Plane] puts the parts together, for a [Shape] that makes what the rows need: one goroutine changes the Mapper, others wait for the
// store and for events. Package routed has a Shape whose pods are ports of the switch, package hosted one whose host routes.
//
// # Whose a subnet is
//
// With etcd: that of the node whose PublicIP is in the value of the key. A node that starts again takes the lease with its PublicIP, and its
// MAC from there. Each change of a key is a transaction on the revision that was read last: of two nodes that
// want one subnet, one gets it, and a node that was away too long hears that its lease is lost, and leaves the key alone.
// Two nodes with one PublicIP are a mistake: the second takes the lease, and the first hears it from Watch.
//
// # What happens when
//
//	the store is away                 rows stay, Status says since when; the lease is renewed as soon as it is back
//	a watch ends, for any reason      another one, which begins with a snapshot: what differs is written
//	the own key is gone, or another's the rows are withdrawn, and Run returns ErrLost
//	the process ends                  the lease stays, and is found by its PublicIP
//	a lease is bad                    it is named once, counted while it is there, and others are followed
//
// # Hostile input
//
// Whoever may write to the store can say what he likes, and a lease of another node is never trusted. What is no lease is
// refused by the parser with a [Reason]; flanneld tries some of it for a minute, and follows nobody else meanwhile. What
// takes something from others is refused by the [Mapper]: subnets outside of the network or in our own, our address or MAC, and
// the subnet, a part of it or the MAC of an older lease. A younger subnet that contains older ones is followed: for them their own
// leases count. flanneld takes no subnet that overlaps another, but follows whoever has one.
//
// # What is not built
//
// Backends are vxlan, host-gw, udp and ipip; wireguard and the others of flannel are read, and refused by
// Backend.Supported. ipip is for package routed. The network is read once, as flanneld does.
package flannel
