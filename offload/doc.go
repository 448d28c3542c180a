// Package offload carries flows in the kernel that a switch has decided. User space stays the switch: it learns, decides and
// counts, and whatever the kernel does not carry goes through it as without this package.
//
//	               +------------------- switch ------------------+
//	port --------> | decide --hint--> Offload --Flow?--> decide  | --------> VTEP, port      every frame that has no flow
//	   |           +---------------------|-----------------------+              ^
//	   |                          puts, renews, counts                          |
//	   |                                 v                                      |
//	   +---- tcx ------------------ eBPF: flows ----------------- tcx ----------+            frames of flows
//
// A worker of the switch hints a pair of hosts whose frames keep coming. The Offload asks [vswitch.Switch.Flow] for the decision,
// and how the frames enter and leave: a TAP of the host, an interface or a veth pair ([port.Device.Hook]), the tunnel's outer
// headers ([vtep.VTEP.Path]) and the device of the route. It puts one entry for each direction. A frame that has no entry, or
// whose entry is void, or that is anything but plain IPv4 or IPv6, goes on to user space, untouched.
//
// Frames of VLANs are carried as others: their tag is taken off, put on or changed, and keeps its priority. Where a tunnel makes
// the outer DSCP of it, or uses the outer DSCP of what it receives, they stay in user space.
//
// # In a node
//
// Package node opens it while its Config.Datapath is kernel or auto, and node.Node.Offload returns it then:
//
//	n, err := node.New(&node.Options{Offload: func(sw *vswitch.Switch) (io.Closer, error) { return offload.New(sw, nil) }})
//	err = n.Update(func(c *node.Config) error { c.Datapath = node.DatapathAuto; return nil })
//
// # Never by an old decision
//
// An entry holds for three counters of changes (epochs): of everything, of the source MAC and of the destination MAC. The switch and
// the VTEP count after each change of what decisions depend on, which is one atomic addition in memory that the kernel's
// program reads: from then on frames go to user space, until the Offload has asked again. Changes of MACs without an entry are not
// counted: hosts of a control plane that come and go interrupt no flow of others. Methods of the switch that wait for frames on
// their way, such as Detach and [vswitch.Switch.Settle], wait for the kernel's programs too.
//
// # Counters, ageing
//
// Once a second the Offload reads the counters of the flows. They are added to all that the switch and the VTEP count, and sources
// that were heard are refreshed in the FDB: both are late by a second at most. A flow without a frame for [Config].Idle is removed.
//
// # Filters
//
// Where all stages at an attachment decide by MACs, protocol, addresses and ports alone ([vswitch.Judge]), as guards and stateless
// policies do, an entry is of one [frame.Tuple]: of TCP, UDP or the echo of ICMP. What they let pass is carried, and within a second
// in the counters of their rules. What they deny stays in user space, which counts it. A change of rules, sets or guards voids all
// entries. Fragments, IP options, extension headers and other protocols are for user space there, whatever the rules say.
//
// Policies that track flows are not carried: what they do with a packet depends on those before, of both directions, on TCP's flags and
// on the time between. Neither is anything behind an MSS clamp, which writes into packets.
//
// # Routed packets
//
// A gateway ([vswitch.FIB]; that of package l3 is one) is asked like a Judge. An entry is of all packets that a host sends to the
// gateway's MAC between two addresses: they leave in the segment of the next hop, with its MACs and with a TTL or hop limit that is
// less by one. Behind filters, and where a route has several next hops, an entry is of one Tuple. The source address is part of the
// key since the gateway looks at it, too. That is so between segments and within one, between ports, to a tunnel and out of one,
// the L3VNI of symmetric IRB included.
//
// A change of routes, next hops or interfaces, or of the entry that says that the gateway's MAC is the switch's, voids all entries; one of
// the next hop's MAC, in the neighbours or in the FDB, those that lead there. Neighbours are kept by ARP and ND, which pass through
// user space, not by packets: they age and are asked for as without this package. Each direction is hinted for itself, since
// answers may come back by another gateway.
//
// The gateway still gets, and answers, what it may not pass on as it came: packets that are too long for the way out, with a TTL of 1 or
// 0, with options, with a wrong checksum or length of the IP header, from or to addresses that are not routed, to itself, and those
// that have to wait for a MAC. Routing to IP ports, tunnels of IP packets, and from one tunnel to another, stays in user space.
//
// # What is not carried
//
// Frames stay with user space that other stages inspect, while there is a capture or a trace, in tunnels other than plain VXLAN and
// VXLAN-GPE, over underlays other than [underlay.UDP], with a computed outer UDP checksum (over IPv6 unless the underlay sends none), to
// peers with [vtep.Config.SymmetricHash], of TUN devices, and of devices in another network namespace. [Offload.Stats] counts why. So do
// frames with two VLAN tags, or with one that is only a priority, has DEI, is not 802.1Q (as a service tag), or that the sender's kernel
// has put into a TAP's frame.
//
// Packets that the kernel has merged for a UDP socket (generic receive offload) cannot be taken apart again: a peer whose packets
// come so is received in user space, which is faster for them.
//
// Frames to a group of several peers ([vtep.VTEP.Group]) stay there too, with the cause no-peer; those that its members send are carried. The VTEP
// picks a member for each flow, by addresses and ports, and an entry knows two MACs. To pick by another hash in the kernel would be as
// fair, but a flow would change its member, and be reordered, whenever it passes between kernel and user space: at each change that
// voids decisions, and for each of its frames that is a miss. To pick by the same hash needs the ports in the entry.
//
// A device that is moved to another network namespace takes its program along, but there it carries nothing, from the first frame
// on. Before a program carries a frame, it looks for a UDP socket that the Offload has bound to 127.0.0.1 in its own namespace;
// nobody else can make one that the program takes for it. Frames that it leaves therefore are misses (namespace). The Offload takes
// the program off as soon as the kernel has said that the device is gone. Until then, for some milliseconds, frames of flows to
// the device are lost. The end of a veth port that is in the guest may be moved at any time.
//
// A device in a VRF needs such a socket of its own. It gets one if it has been put there before its first flow.
//
// What is carried does not pass the host's packet filter and connection tracking for UDP, and tcpdump sees it on the underlay only.
// While the host has IPsec policies for what it sends, no tunnel is carried.
//
// # Segments that come alone
//
// A network card, or a veth without offloads, delivers TCP segment by segment. On their way to a guest by a veth port the kernel joins
// them again (generic receive offload), as it does behind its own tunnel devices; there is no such place before a TAP or an interface.
//
// # Needs
//
// Linux 6.6 or later, CAP_BPF and CAP_NET_ADMIN. Nothing is pinned: when the process ends, however it ends, its programs go with it, and
// a connection goes on through user space as soon as that is back.
package offload
