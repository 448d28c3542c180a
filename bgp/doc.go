// Package bgp is a control plane for networks of IP routes, as nodes of Calico have: a [Speaker] announces the blocks of addresses of a node
// by BGP, and makes routes, rows of package control, of what other nodes, route reflectors and routers announce. A program with a node
// has it in three lines:
//
//	sp, err := bgp.New(n, &bgp.Config{AS: 64512, RouterID: addr, Peers: peers, VRF: "cluster", ...})
//	...
//	err = sp.Run(ctx)
//
//	                                  +--- best paths --- engine <--- BGP ---> nodes, reflectors, routers
//	a VRF of the node <--- rows --- table                    ^
//	        +------------- routes of other owners, Announce -+
//
// # Pools
//
// A [Pool] is a range of addresses of hosts, and says how packets to them travel to the next hop, which is a node's address on the network
// of the nodes:
//
//	never         as they are, by the gateway of the segment of a link
//	ipip          in IP, by a segment with such a tunnel
//	vxlan         in VXLAN, to the MAC that Config.Nodes has for the next hop
//	cross-subnet  as they are if the next hop is on a network of a link, or else in the tunnel
//
// A node with one link to the network of the nodes has Config.Segment; one with several, such as the planes of a fabric, has Config.Links:
// a peer gets the address of its link as next hop, and routes without a tunnel leave by the link whose network has the next hop, or by the
// router of the peer's. Tunnels are in a segment of the link, since one over packet sockets has one router: two ToRs on one link need a tunnel
// over the host's sockets, with [Peer].NextHopSelf, and routes of the host by both.
//
// One address of a node can be both: its underlay and its gateway may share one (see package underlay/afpacket). Equally good routes are used
// together, each flow by one next hop. If all of them say how wide the link to theirs is (the Link Bandwidth community of
// draft-ietf-idr-link-bandwidth), next hops have flows in proportion, of 1/255 of the widest at least.
//
// # What peers may say
//
// Peers are not trusted. A route is refused, and counted by a [Reason], if no pool has it and no rule accepts it; if it is a default route and
// these are not allowed; if it is of loopback, multicast or link-local addresses, in a block of ours, or in a network of nodes; and if its
// next hop is not one host, is ours, or is in a pool. Routes have limits, for each peer and in all. A session over the limit of
// its peer ends and stays down, but that a peer of a prefix may connect again.
//
// Routes are gone when the session is lost, unless [Peer].GracefulRestart. A peer that is silent is found dead after the hold time, or, with
// [BFD], after a few missing packets. Its routes are gone then, also if it may restart (RFC 5882, section 4.3.2.2).
//
// Section 4.3.2 would rather have a restart that has begun go on, if BFD shares fate with BGP at either end, which the C bit of BFD says by
// being clear. It is at both: ours ends with the process, and so does forwarding, and BIRD has BFD in its own process, never sets the bit and
// never looks at it. So BFD cannot tell a BIRD that restarts from a machine that died, whose routes would stay for minutes, with the
// flows by them lost: the restart time of Calico is 120 s. Routes of such a peer outlive a restart if that is over before BFD finds it dead
// (Interval times Multiplier), or without BFD. A peer that sets the bit has a forwarding plane that is dead if BFD says so, and section
// 4.3.1 has its restart end, too. A BIRD with "bfd graceful" does not wait for us: we never ask for that.
//
// # What is announced
//
// [Config].Announce, and the routes of the VRF that [Config].Export accepts. Of a block of Announce, addresses that nobody has are
// unreachable here: the block has a route that ends. What peers announce is passed on to nobody, except that a route reflector ([Peer].Client)
// passes on routes of its AS, as RFC 4456 says, the best or all ([Peer].AllPaths), and what a filter accepts.
//
// # Filters
//
// A [Filter] has the rules of a BGPFilter of Calico, and single peers have filters by name. [Config].Import and pools are asked about what the
// import rules of a peer let through; routes that these reject are out before the best are chosen, so that another peer's takes their
// place, and are counted as peer-filter. Export rules are asked about what is announced, and about the routes of peers: those that a rule
// accepts are passed on, to another AS with our address as next hop, whether or not the route is taken here. A rule before it that
// rejects what is of remote-peers prevents that. Filters may change under way: sessions go on.
//
//	Calico                            here
//	cidr, matchOperator               prefix, operator
//	prefixLength                      min, max; with "in" and "not-in" only, and within the prefix
//	source, peerType, action          the same
//	communities                       community: one value, as there
//	asPathPrefix, operations          the same; prependASPath to another AS with our number only, and with asPathPrefix with one number only
//	priority                          the same, but not for imports of another AS; a route without LOCAL_PREF has 100
//	interface                         refused
//
// # What it is not
//
// It does not read Calico's datastore, and knows no IP address management: blocks and pools are settings, which module calico makes of a
// datastore. In a cluster whose routes Felix programs (the default of current Calico for IPIP and VXLAN), nodes announce nothing to each
// other that a Speaker could take. It has no route policies beyond [Filter], and no namespaces: sockets are opened in that of the process.
// It is never the restarter of a graceful restart, since forwarding ends with the process.
//
// # The engine
//
// BGP itself is gobgp, behind the interface of internal/engine, in one package. The engine of module evpn was weighed: it has sessions,
// but neither best paths, add-path, reflection nor peers by prefix, and its messages are of one family. To have both families and those in it
// would have been more code than all of this module. Its price is that of gobgp: some 190 packages, and for a route two to three times the
// processor time of BIRD and more than ten times the memory: gobgp alone, without the rest of a Speaker.
//
// Tested with BIRD 2.0.
package bgp
