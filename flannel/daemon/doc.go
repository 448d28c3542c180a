// Package daemon makes a [node.Node] one of a flannel network, from settings with the names of flanneld's flags: [Daemon] is what
// vxflanneld and vxswitchd have in common. It finds the interface to other nodes, keeps the node's lease in its store, writes
// /run/flannel/subnet.env once pods can be made, and follows the leases of other nodes.
//
//	store <-- lease -->  flannel.Plane  -->  mode l3:  routed.Shape, pods are ports of the switch
//	                          |              mode tap: hosted.Shape, flannel.1 and routes of the host
//	                       ready: nft table, subnet.env
//
// [Main] is the program vxflanneld, which takes flanneld's place on a host: with the flags of flanneld v0.28 and the environment
// FLANNELD_*, in mode tap, on a node of its own, with leases in etcd or in the nodes of Kubernetes,
// /readyz and systemd. Flags of flanneld that it does not have are errors
// that say so. It is for Linux.
//
// In mode tap the device stays with its address and routes when the process ends or is killed, and the next process takes them:
// "ip link delete flannel.1", or [Daemon.Leave], ends it for good. A lost lease removes them.
package daemon
