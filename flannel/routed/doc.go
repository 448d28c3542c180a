// Package routed makes a [node.Node] a node of a flannel network in which the switch routes: pods are ports of the switch,
// and neither the host's kernel nor its routes have part in it.
//
//	pods (ports)       segment Pods              segment of the tunnel: VNI 1
//	+-----------+     +---------------------+   +----------------------------+
//	| 10.3.1.5 -+-----+- 10.3.1.1/24        |   | 10.3.1.0/32    MAC of the  |
//	| 10.3.1.6 -+-----+-            gateway-+---+-gateway        lease      -+--- VXLAN, port 8472 ---> other nodes
//	+-----------+     +---------------------+   +----------------------------+
//	                            VRF: 10.3.2.0/24 via MAC at 192.0.2.2, a row for each lease
//
// A [Shape] is for a flannel.Plane. It provides the tunnel, both segments and the VRF to the node, beside what the node's
// configuration has. Pods are members that the program adds to the segment Pods. The segment is made before the plane runs, so
// that it is the program's, and the Shape gives it a gateway:
//
//	pods, err := n.Segment(routed.DefaultPods, nil)
//	go plane.Run(ctx)
//	<-plane.Ready() // the subnet is known
//	err = pods.Add(port, nil)
//
// # Choices
//
// The tunnel never floods, learns nothing unless the network says Learning, and accepts packets only from nodes that have
// a lease; Config.AnyPeer is for nodes whose packets do not come from their PublicIP. Packets to other nodes have TTL 62
// when they arrive at a pod, as with flanneld: each node takes one.
//
// The longest packet of a pod that fits the tunnel is Network.MTU. A pod with a larger MTU is told of it by ICMP.
//
// # Without a tunnel
//
// With backend host-gw, and with DirectRouting, nodes on one link send to each other without a tunnel: the next hop to a subnet is
// the PublicIP of its node. There the switch must be, not the host's kernel. So the configuration of the node has a segment
// for it, Config.Direct, with a port of type packet on the link, and a gateway in the VRF that has the PublicIP:
//
//	            port       segment Direct: 7
//	         +---------+  +----------------------+
//	eth0 ----+-- ARP, -+--+- 192.0.2.11/24       |          VRF: 10.3.2.0/24 via 192.0.2.2 in segment 7, on the link
//	      |  |  routed |  |  MAC       gateway --+-- VRF         10.3.3.0/24 via MAC at 198.51.100.3, behind a router
//	      |  +---------+  +----------------------+
//	      +--- UDP to port 8472: the tunnel, 192.0.2.11 over packet sockets on eth0
//
// The tunnel, if the network has one, is then over packet sockets on the same device. It shares the address and its MAC with the
// gateway, as package node says, and needs a router in Config.Tunnel for nodes that are not on the link: its Gateway. The host itself
// has other addresses, on eth0 or elsewhere, and reaches the store from those.
//
// Whoever is on the link reaches pods, as with flanneld, unless a policy of the segment says otherwise.
//
// On the link is what is in the prefixes of that gateway. When they change, or Plane.SetLinks says something else, so does the way
// to a node, at once, and no packet is lost. Without the gateway, or its public address, nobody is on the link, and the log says so.
package routed
