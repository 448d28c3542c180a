// Package hosted makes a [node.Node] a node of a flannel network in which the host's kernel routes, as with flanneld: there
// is a device flannel.1 with the first address of the node's subnet, and a route for each other node. The CNI
// plugin "flannel" works unchanged. It is for Linux.
//
//	 the host's kernel                                        node
//	+--------------------------------------------+          +---------------------------------+
//	| cni0 10.3.1.1/24  <-- pods                 |          | segment 1                       |
//	| 10.3.2.0/24 via 10.3.2.0 onlink --+        |          |   10.3.2.0 is at MAC: answers   |
//	| 10.3.3.0/24 via 10.3.3.0 onlink --+-- flannel.1 --TAP-+   the kernel's question (ARP)   |
//	|                                   10.3.1.0/32         |   MAC is at 192.0.2.2: VXLAN ---+---> other nodes
//	+--------------------------------------------+          +---------------------------------+
//
// A [Shape] is for a flannel.Plane with OneMAC. It provides the tunnel, the TAP and the segment to the node, and keeps the
// addresses and routes with package hostnet: "ip route show proto 118". IPv4 routes have metrics from 1 to 1024, by the number of
// the subnet: Linux takes longer and longer to add next hops of one metric. With DirectRouting and host-gw the routes to
// nodes on the same link leave through Config.Link. With the backend udp the device is a TUN, flannel0, the whole network is behind
// it, and the switch has the routes: one for each lease, in a VRF with the name of the owner.
//
// The TAP ends with the process, and its routes with it: pods then hear that other subnets are not reachable, instead of
// sending into nowhere. With Config.Persistent all of that stays for the next process, and packets are lost until it runs: the
// kernel has the MAC of each next hop, so that nothing has to be asked for.
package hosted
