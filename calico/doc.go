// Package calico makes a node a member of a Calico cluster whose datastore is etcd: it reads what calicoctl, calico/node and Calico's
// IP address management have written there, and follows it. A program with a node has it in three lines:
//
//	p, err := calico.New(n, &calico.Config{Node: "host-7", VRF: "cluster", VXLAN: calico.Tunnel{Segment: 4096}, ...})
//	...
//	err = p.Run(ctx)
//
//	etcd:  ippools  nodes  bgpconfigurations  bgppeers  bgpfilters    IPAM: blocks, affinities of the node
//	          |       |            |              |          |                  |
//	          +-------+------------+-- resources--+----------+------------------+
//	                                       |
//	          peers, pools, blocks of ours | blocks and borrowed addresses of others
//	                     v                                v
//	              a bgp.Speaker                  rows of package control
//
// # Which part of Calico this is
//
// The part of confd and BIRD, and that of Felix which makes routes:
//
//   - Peers: the mesh of nodes, and BGPPeers of all nodes, of one, and by nodeSelector and peerSelector, with the sessions back that they
//     need on the other side; ports of BGPConfigurations; AS numbers of cluster, node and peer; route reflectors and their clients. Tests
//     compare with confd's golden templates.
//   - Pools: ipipMode and vxlanMode, Always and CrossSubnet. Blocks in them are routes: of VXLAN pools always by the blocks in the datastore,
//     of others by these or by what peers announce, as programClusterRoutes of the BGPConfiguration says. Its default is that of Calico
//     v3.33: IP-in-IP by the blocks, and what has no tunnel by peers. Tests compare with those of Felix's calculation graph.
//   - Blocks of this node are announced, and what nobody has of them is unreachable here. So are addresses that it has borrowed from
//     other blocks. An address of its blocks that lives elsewhere has a route there.
//
// # Which part it is not
//
//   - It writes nothing. The Node resource, its addresses, the MAC and addresses of tunnels, blocks and their addresses are the work of
//     calicoctl, calico/node and calico-ipam: a mistake with a block takes the addresses of others.
//   - It does not read clusters whose datastore is the API of Kubernetes.
//   - It applies no policies. What they mean is there, as configs of package policy for the workload endpoints of a node: tiers,
//     GlobalNetworkPolicies, NetworkPolicies, profiles and network sets. But a Plane does not read these resources yet, and gives no
//     port a policy: who lets workloads of a cluster in has none of their policies.
//   - It has no host endpoints, and no WireGuard. natOutgoing is named, and not done.
//   - BGPFilters are filters of package bgp. A BGPPeer is left out, and named, if one of its filters has what that package cannot do, such as
//     a rule with an interface. So is one with a password, which is a secret of Kubernetes, with ttlSecurity, with a localASNumber that is
//     not ours, or with localWorkloadSelector; a nodeMeshPassword leaves no mesh. What a filter accepts still has to be in a pool.
//     Of two ports of one address the first BGPPeer by name counts.
//   - These are named, and their peers are there without them: nextHopMode, keepOriginalNextHop, reachableBy, keepaliveTime. maxRestartTime
//     is that of the peer, who tells it. Communities, prefixAdvertisements and addresses of services are not announced. A route reflector
//     has its router ID as its cluster, not the routeReflectorClusterID.
//   - The readiness flag of the datastore, in the ClusterInformation, is not looked at.
//
// [Status] lists what the datastore asks for and is not done.
//
// # Addresses
//
// Sessions and tunnels of other nodes are with the address of the Node resource, which is thus one of the host, or of a VTEP on its
// network interface. Packets without a tunnel are sent there, too: with pools that have such ways the address is also that of the
// gateway of Config.Segment (see package underlay/afpacket), and sessions are from Config.Local, an address of the host beside it, for which
// other nodes need a BGPPeer in place of the mesh.
//
// The gateway of the segment of VXLAN has the MAC that the Node resource says, or that the hash of its name gives: Status.MAC. A
// kernel's vxlan device in Calico's form sends there.
//
// # When the datastore is away
//
// Everything goes on as it was last, Status says since when, and the datastore is asked again every few seconds. A watch that ends,
// for any reason, such as a compaction of etcd, is followed by a list of everything; what differs is done, and nothing before the list
// is whole.
//
// # What the datastore may say
//
// Whoever writes there is not trusted with this process: numbers and sizes have limits, and what is wrong is left out and named. A node
// with our address, with one in a pool, or with the MAC of another one has no routes; of pools that overlap the first by name counts.
package calico
