// Package node is one whole VTEP node made from a [Config]: tunnels, ports, segments,
// gateways, VRFs, policies and static entries, changed under traffic.
//
//	        Config --Check--> Node.Apply --> what is new is opened, what differs is changed,
//	          ^                    |         what is gone is closed; the rest is not touched
//	Parse ----+                    v
//	(JSON, every      switch   VTEPs   ports   gateway   policies
//	error with its        \_______|_______|_______|________/
//	position)                           |
//	                          control.Plane: flood lists, static
//	                          entries and routes, owner "config"
//
// An agent embeds a node, or the packages it is made of; examples/node is the program that
// runs one from a file. Other owners program rows of their own beside the configuration's
// through [Node.Plane].
//
// Apply is for one caller at a time and takes effect at the next batch. A tunnel, port or
// gateway is made anew when its settings differ, and with it only what uses it is
// interrupted; another local address of a tunnel is taken in place; everything else keeps its
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
