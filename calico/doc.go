// Package calico makes a node a member of a Calico cluster whose datastore is etcd, or by module calico/kube the API of Kubernetes: it reads
// what calicoctl, calico/node and Calico's IP address management have written there, and follows it. A program with a node has it in three lines:
//
//	p, err := calico.New(n, &calico.Config{Node: "host-7", VRF: "cluster", VXLAN: calico.Tunnel{Segment: 4096}, ...})
//	...
//	err = p.Run(ctx)
//
//	etcd:  ippools  nodes  bgpconfigurations  bgppeers  bgpfilters    IPAM: blocks, affinities of the node    policy
//	          |       |            |              |          |                  |                               |
//	          +-------+------------+-- resources--+----------+------------------+                               |
//	                                       |                                                                    |
//	          peers, pools, blocks of ours | blocks and borrowed addresses of others                            |
//	                     v                                v                                                     v
//	              a bgp.Speaker                  rows of package control                       a policy.Policy for each port of a workload
//
// # Which part of Calico this is
//
// The part of confd and BIRD, and those of Felix which make routes and filter workloads:
//
//   - Peers: the mesh of nodes, and BGPPeers of all nodes, of one, and by nodeSelector and peerSelector, with the sessions back that they
//     need on the other side; ports of BGPConfigurations; AS numbers of cluster, node and peer; route reflectors and their clients. Tests
//     compare with confd's golden templates.
//   - Pools: ipipMode and vxlanMode, Always and CrossSubnet. Blocks in them are routes: of VXLAN pools always by the blocks in the datastore,
//     of others by these or by what peers announce, as programClusterRoutes of the BGPConfiguration says. Its default is that of Calico
//     v3.33: IP-in-IP by the blocks, and what has no tunnel by peers. Tests compare with those of Felix's calculation graph.
//   - Blocks of this node are announced, and what nobody has of them is unreachable here. So are addresses that it has borrowed from
//     other blocks. An address of its blocks that lives elsewhere by the datastore has a route there, and no other has one by a peer.
//   - Tiers, GlobalNetworkPolicies, NetworkPolicies, profiles and network sets apply to ports that are workloads.
//
// # Which part it is not
//
//   - It writes nothing. The Node resource, its addresses, the MAC and addresses of tunnels, blocks and their addresses are the work of
//     calicoctl, calico/node and calico-ipam: a mistake with a block takes the addresses of others.
//   - It has no policies of host endpoints, and no WireGuard. natOutgoing is named, and not done; so are floating addresses (ipNATs) and
//     qosControls of workloads.
//   - BGPFilters are filters of package bgp. A BGPPeer is left out, and named, if one of its filters has what that package cannot do, such as
//     a rule with an interface. So is one with a password, which is a secret of Kubernetes, with ttlSecurity, with a localASNumber that is
//     not ours, with localWorkloadSelector, or with an address of this node, unless that makes it the peer of others; a nodeMeshPassword
//     leaves no mesh. What a filter accepts still has to be in a pool. Of two ports of one address the first BGPPeer by name counts.
//   - These are named, and their peers are there without them: nextHopMode, keepOriginalNextHop, reachableBy, keepaliveTime. maxRestartTime
//     is that of the peer, who tells it. Communities, prefixAdvertisements and addresses of services are not announced. A route reflector
//     has its router ID as its cluster, not the routeReflectorClusterID.
//   - vxlanVNI and vxlanPort of a FelixConfiguration change no tunnel: if that of Config.VXLAN has others, they are named.
//   - The readiness flag of the datastore, in the ClusterInformation, is not looked at.
//
// [Status] lists what the datastore asks for and is not done.
//
// # Policy
//
// [Workloads] says which ports of the node are workloads: those whose names begin with "cali", say. A port is the WorkloadEndpoint of this
// node with its name as interfaceName, and has the policies whose selectors choose that, tier by tier, and then its profiles:
//
//	its WorkloadEndpoint is not known, or gone, or two have its name  -->  closed
//	it is known when the port comes                                   -->  its policies before the first frame
//	the datastore is away, or the Plane has ended                     -->  as it was last
//
// What is closed passes nothing, not even ARP. From [New] on a workload is closed until the datastore says more, so New comes
// before Run of the node. Another Plane for the same node begins with the policies that the one before it has left.
//
// Flows are tracked for each port. A change of labels, of addresses or of networks changes members of sets, all at once, and no rules; a
// change of policies compiles those of the ports that have them, and no others. Open connections are judged again, as in package policy, and what
// may go on does. Packets that rules with Log match are in the node's log.
//
// A workload sends from the MAC and the ipNetworks of its endpoint alone, also in ARP and neighbour discovery, and from the IPv6 link-local
// address that its MAC makes. What it sends as another is dropped and counted ([Workload].Dropped) before policies are asked, from the first
// frame on. So are tunnels that it makes, and messages of routers and of servers of DHCP. FelixConfigurations, of all nodes, of those that
// one selects, and of this one, say what else it may:
//
//	allowIPIPPacketsFromWorkloads    IP in IP
//	allowVXLANPacketsFromWorkloads   VXLAN, to 4789, 8472 and vxlanPort
//	both                             GPE, Geneve and GRE, too
//	workloadSourceSpoofing: Any      the allowSpoofedSourcePrefixes of its endpoint; without it an endpoint that has some is closed
//
// Tunnels of the node that take packets from listed peers alone drop those of hosts that no route goes to, as unknown-peer.
//
// Where this differs from Calico:
//
//   - A rule with http, services, a field that nobody knows or a mistake is left out if it allows, and denies more if it denies. An endpoint
//     has no traffic if it may have a policy that could not be read, and none has any if there are more resources than are read.
//   - Policies with doNotTrack or preDNAT are about host endpoints alone; these are named, as are applyOnForward and staged policies.
//   - No traffic is exempt: Felix lets a node reach its own workloads, and workloads ask for addresses by DHCP. Here policies decide on
//     these, too, and on what workloads send to the gateway.
//   - Calico does not look at the MAC of a workload, lets it have any IPv6 link-local address, and make GRE and Geneve. Whoever needs that has
//     ports that are Unguarded, with a Guard of the member (package node) in its place.
//   - A rule without a protocol that names a port is about it also if the endpoint has its protocol as a number.
//   - A port whose policies change compiles all of them, in large clusters for a tenth of a second.
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
// Everything goes on as it was last, policies as well, Status says since when, and the datastore is asked again every few seconds. A watch that ends,
// for any reason, such as a compaction of etcd, is followed by a list of everything; what differs is done, and nothing before the list
// is whole.
//
// # What the datastore may say
//
// Whoever writes there is not trusted with this process: numbers and sizes have limits, and what is wrong is left out and named. A node
// with our address, with one in a pool, or with the MAC of another one has no routes; of pools that overlap the first by name counts.
package calico
