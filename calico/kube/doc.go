// Package kube reads the datastore of a Calico cluster that is in the API of Kubernetes, for package calico. A program says where it is in
// place of etcd:
//
//	store, err := kube.New(&kube.Config{Kubeconfig: "/etc/kubernetes/node.conf"})
//	...
//	p, err := calico.New(n, &calico.Config{Node: "host-7", Datastore: store, ...})
//
// It gives the resources as calicoctl writes them in etcd, so that all else is as with etcd:
//
//	ippools, bgpconfigurations, bgppeers, bgpfilters, tiers, globalnetworkpolicies,
//	globalnetworksets, networksets, hostendpoints, staged policies                    -->  themselves: labels are in an annotation, too
//	networkpolicies                                                                   -->  themselves, without "default." if it is not in their name
//	ipamblocks, blockaffinities                                                       -->  blocks, and affinities of the node
//	Nodes: annotations projectcalico.org/..., labels, addresses                       -->  nodes
//	Nodes: pod CIDRs, with UsePodCIDR                                                 -->  blocks, affinities, and the address for IP-in-IP
//	Pods with an address: labels, ports with a name                                   -->  workloadendpoints NODE-k8s-POD-eth0, interface caliHASH
//	Namespaces                                                                        -->  profiles kns.NAMESPACE, with labels pcns.
//	ServiceAccounts                                                                   -->  profiles ksa.NAMESPACE.NAME, with labels pcsa.
//	NetworkPolicies of Kubernetes                                                     -->  networkpolicies knp.default.NAME, order 1000
//
// It only reads: a role needs list and watch, as vxswitch.yaml has them.
//
// # When something fails
//
// Each kind is listed and watched by itself. What is told at first is whole when all kinds have been listed; changes of different kinds
// come in any order. A kind of which the API server has forgotten the changes (410) is listed again, and what differs is told, while
// the others go on. If the API server is away, or refuses a kind (403), or lacks one that every cluster of Calico has, Follow ends with an
// error that names the kind: everything stays as it was last told. A kind that older clusters lack has no objects, and is asked
// for again. A silent partition is noticed by the HTTP/2 pings of client-go after 45 s.
//
// # Limits
//
// Of each kind twice as many objects are remembered as package calico reads resources: it has the numbers, and what becomes of more. Values are as
// large as it reads.
//
// # How it differs from Calico
//
//   - The API group is crd.projectcalico.org/v1. That of clusters with projectcalico.org/v3 in CRDs of its own is not read.
//   - A NetworkPolicy of Kubernetes with a selector that is none is a policy that cannot be read, and closes the ports that may have it; a rule
//     with a network or a port that is none is left out. Calico takes an ipBlock that is none for all networks.
//   - An AdminNetworkPolicy, a BaselineAdminNetworkPolicy or a ClusterNetworkPolicy is a policy that cannot be read: as long as there is
//     one, workloads have no traffic.
//   - Two objects with the name of one resource are none.
//   - FelixConfigurations are not read, so that workloads make no tunnels and have no addresses of others, nor the ClusterInformation.
//   - Pods have no MAC there: the guard of their ports is of addresses alone.
//   - Floating IPs, allowedSourcePrefixes and QoS of pods are not carried.
//
// # Why client-go
//
// Kubeconfig files name plugins for credentials, tokens are renewed, and lists come in pages or as streams: its rest client and reflector
// do what calico/node's do. It is most of what a program with this package links, so that it is in a module of its own; clientsets are
// left out, and CRDs need no types of Calico.
package kube
