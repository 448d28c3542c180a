// Package node is the way into the library: a whole VTEP node, its tunnels, ports, segments,
// gateways, VRFs, policies and static entries, from a few calls or from a file, changed under
// traffic.
//
//	n, err := node.New(nil)
//	t, err := n.Tunnel("vx", node.Tunnel{Local: addr})
//	seg, err := n.Segment(100, nil)
//	err = seg.Join(t, peers...)
//	err = seg.Add(port, nil)
//	err = n.Run(ctx)
//
// What calls say and what a file says is one thing, a [Config]. Each call is an [Node.Update] of
// it, and every Update is an Apply of the whole:
//
//	Tunnel, Segment, Join, Add, Gateway --> Update --+
//	                                                 v
//	Parse (JSON, every error with its place) --> Config --Check--> Apply --> what is new is opened,
//	                                                                 |       what differs is changed,
//	                                                                 v       what is gone is closed
//	                                      switch   VTEPs   ports   gateway   policies
//	                                          \_______|_______|_______|________/
//	                                                          |
//	                              control.Plane: flood lists, static entries and routes
//
// The settings are those of the packages underneath, which also say what is wrong with them. What
// a caller leaves out is safe: a TAP gets the MTU that fits the tunnels, who sends packets that
// do not fit is told so, a gateway has its entry in the FDB, and a stage of a member comes before
// those of its segment. Other owners program rows of their own beside the configuration's
// through [Node.Program].
//
// Callers take turns, and a change takes effect at the next batch. A tunnel, port or gateway with
// other settings is closed and made again, and only what uses it is interrupted. A tunnel takes
// another local address, and other settings of its peers, in place. Everything else keeps its
// descriptors, tables and counters.
//
// During a change no frame gets where neither the old configuration nor the new one lets it. What
// changes in several steps lets no frames pass until the last of them, for some milliseconds: a port
// that moves, a new gateway, a segment with another policy and other peers. What changes in one
// step goes on without a pause: other rules, another peer, an isolated port.
//
// What is new is opened first: when an address or a device cannot be had, nothing has changed. A
// device, or a tunnel that keeps its address, has to be closed before it can have other settings;
// on an error it is opened again as it was. [Config.Check] says what is wrong with the
// configuration itself, by asking the packages whose settings these are.
package node
