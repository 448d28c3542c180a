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
// With DirectRouting or host-gw, packets to nodes on the same link leave through a segment with a port on that link and
// a gateway in the VRF, Config.Direct, which the node's configuration has.
package routed
