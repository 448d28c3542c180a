// Package node is the high-level API of the library. A node is a complete VTEP with tunnels, ports, segments,
// gateways, VRFs, policies and static entries. Configure it by calls or from a file, and change it under traffic.
//
//	n, err := node.New(nil)
//	t, err := n.Tunnel("vx", node.Tunnel{Local: addr})
//	seg, err := n.Segment(100, nil)
//	err = seg.Join(t, peers...)
//	err = seg.Add(port, nil)
//	err = n.Run(ctx)
//
// Calls and files change the same [Config]. Each call is a [Node.Update], which applies the whole configuration:
//
//	Tunnel, Segment, Join, Add, Gateway --> Update --+
//	                                                 v
//	Parse (JSON, errors with positions) ------> Config --Check--> Apply --> opens new parts,
//	                                                                |       changes others in place,
//	                                                                v       closes removed ones
//	                                      switch   VTEPs   ports   gateway   policies
//	                                          \_______|_______|_______|________/
//	                                                          |
//	                              control.Plane: flood lists, static entries and routes
//
// The settings are those of the packages below, which also check them. Defaults are safe: a TAP gets the MTU that
// fits the tunnels, also when the MTU of the underlay changes, senders of longer packets get ICMP errors, the MACs of a gateway are in the FDB, and the
// policy of a member applies before that of its segment. Other owners add rows with [Node.Program], and
// filters of ports with [Node.SetPortFilters].
//
// A tunnel over packet sockets may have the address of a gateway whose segment has a packet port on the same device, as
// BGP and flannel need it. They then have one MAC; the gateway answers ARP and pings, and forwards what comes without the tunnel.
//
// Calls are serialized, and a change takes effect with the next batch. A tunnel, port or gateway with other settings
// is closed and reopened, which interrupts only its users. The local address and the peer settings of a tunnel
// change in place, over packet sockets also its MAC, prefix and router, and so does the MTU of a port. Everything else keeps its descriptors, tables and counters.
//
// During a change, a frame is forwarded only where the old or the new configuration allows it. A change of several
// steps stops the affected frames for some milliseconds: a port that moves, a new gateway, a segment with both
// another policy and other peers. A change of one step does not: other rules, another peer, an isolated port.
// Putting back a change that failed stops no other frames than the change itself.
//
// Apply opens new parts first. If an address or a device is not available, nothing has changed. A device, or a tunnel
// that keeps its address, must be closed before it is opened with other settings; after an error it is opened
// again with the old ones.
//
// A port whose device is deleted, or cannot be opened again, is down, as [Node.Down] says. The node opens the device again as
// soon as it can, and the port returns with all that the configuration has for it. A port of the program that has failed is
// down until the program Adds one with its name. Until then the routes and static entries of the configuration that lead
// to the port wait, as control.Plane.Waiting says, and all other changes apply.
package node
