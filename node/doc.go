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
// Callers take turns, and a change takes effect at the next batch. A tunnel, port or
// gateway is made anew when its settings differ, and with it only what uses it is
// interrupted; another local address of a tunnel, and settings of its peers, are taken in place; everything else keeps its
// descriptors, tables and counters.
//
// No frame that comes meanwhile gets where neither the old configuration nor the new one lets it:
// what changes in more than one step, such as a port that moves, a gateway made anew, or a segment
// that gets another policy and other peers, lets none pass until all is in place, which takes
// milliseconds. What is one change alone, such as other rules, another peer or an isolated port, takes
// effect without a pause.
//
// When something cannot be had, such as an address or a device, nothing has been touched yet; only
// for another setting of a tunnel that keeps its address, or of a device, the old one has to go
// first, and is put back. What is wrong with the configuration itself Check says, by asking the
// packages whose settings these are.
package node
