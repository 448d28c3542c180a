// Package discovery has VTEPs find each other, and tells each which hosts the others have, without BGP and without a controller. The
// wire is our own: no other implementation speaks it.
//
//	the switch -- events --> Speaker --- advertisements ---> other VTEPs
//	    ^                       |  <---- advertisements ----
//	    +-------- rows ---------+
//
// A program with a node has it in three lines:
//
//	sp, err := discovery.New(n, &discovery.Config{Tunnel: "vx", Local: addr, Servers: servers, KeyFile: "/etc/vxswitch/discovery.key"})
//	...
//	err = sp.Run(ctx)
//
// # Who is there
//
// One or two VTEPs are servers. Each VTEP registers with them every 15 s; one that has not registered for 75 s is gone. It asks them what
// has changed every 5 s, or within a second if a VTEP speaks that they have not listed yet. All VTEPs of a network ID say hello to each
// other, and are neighbours once each has heard the other. While no server answers, the last list holds. [Config].Neighbours names VTEPs
// to talk to without a server.
//
// A [Registry], such as etcd by package discovery/etcd, lists VTEPs too, beside servers or in their place: each registers itself there,
// and hears at once who comes and goes. Whom it lists still has to have a key.
//
// # Who has what
//
// Each VTEP advertises its segments and the MACs on its ports, to all neighbours, again every 25 s; what has not been heard for 75 s is
// gone. Only neighbours of [Config].Neighbours pass on what others have said, so that these may be a chain; VTEPs that a server
// lists hear of a change once each, and compare all they know with one of them every 10 s, in turn.
//
//	a segment that both have    a row of the flood list
//	a MAC of another VTEP       a MAC row; sticky if it is static there
//
// # Hosts that move
//
// A host that speaks here is ours, with a number of moves above that of the VTEP that had it. Of equal claims that of the lower address
// counts, and what the switch has learned makes room. A host that moves here five times in 180 s may not come again before that time is
// over.
//
// # Trust
//
// Datagrams have an HMAC-SHA-256 with a key from a file, and a time that is higher in each; others are refused, and so are those that came
// before. The clocks of VTEPs may differ by 30 s. Whoever has a key is trusted: it can claim any MAC. Nothing is encrypted.
//
// # How to set up the segments
//
// Set NoLearn of the segment's tunnel, for advertisements say where MACs are, and Peers of the tunnel to [vtep.ListedPerVNI], so that only
// VTEPs of the segment are heard.
package discovery
