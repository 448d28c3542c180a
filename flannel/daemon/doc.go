// Package daemon is the program vxflanneld: a node of a flannel network that takes flanneld's place on a host. It takes the flags of
// flanneld v0.28 and the environment FLANNELD_*, keeps its lease in etcd or in the nodes of Kubernetes, makes the device flannel.N,
// writes /run/flannel/subnet.env last, and then follows the leases of other nodes. It is for Linux.
//
//	store <-- lease -->  flannel.Plane  -->  hosted.Shape: flannel.1, routes  -->  node: VXLAN
//	                          |
//	                       ready: nft table, subnet.env, /readyz, systemd
//
// When it ends, or is killed, the device stays with its address and routes, and the next process takes them: "ip link delete
// flannel.1" ends it for good. A lost lease removes them.
//
// Flags of flanneld that this program does not have are errors that say so.
package daemon
