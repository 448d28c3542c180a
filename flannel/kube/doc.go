// Package kube keeps the leases of package flannel in the nodes of Kubernetes, as flanneld does with -kube-subnet-mgr, so that both
// kinds of nodes are in one network. Others assign the subnets; a node says in its annotations how it is reached.
//
//	kind: Node
//	metadata:
//	  annotations:
//	    flannel.alpha.coreos.com/kube-subnet-manager: "true"
//	    flannel.alpha.coreos.com/backend-type: vxlan                                        <-- Acquire
//	    flannel.alpha.coreos.com/backend-data: '{"VNI":1,"VtepMAC":"9e:e4:4c:09:b4:8b"}'
//	    flannel.alpha.coreos.com/public-ip: 10.9.0.1
//	spec:
//	  podCIDRs: [10.244.1.0/24]                                                             <-- kube-controller-manager
//	status:
//	  conditions: [{type: NetworkUnavailable, status: "False", reason: FlannelIsUp}]        <-- Available
//
// The network is that of net-conf.json, in a file, which is how a pod sees the ConfigMap kube-flannel-cfg, or in the ConfigMap itself.
//
// # Whose a lease is
//
// The node's, by its name. There is no time to live: a lease lasts as long as the node does. Acquire writes the annotations
// that differ, under the condition that the node has not changed since it was read. From then on they are ours: if anybody changes or
// removes one of them, or the node, Watch and Renew tell that the lease is lost. Nodes of which
// kube-subnet-manager is not "true" have no lease.
//
// An operator may write these, which are read by [Store.PublicIPs] and Acquire:
//
//	node-public-ip, node-public-ipv6                the address of this node: -public-ip, -public-ipv6
//	public-ip-overwrite, public-ipv6-overwrite      what others are told in its place, with a NAT before the node
//
// # How it differs from flanneld
//
// The pod CIDR may come later than the program, which waits for it. A node whose annotation kube-subnet-manager goes is
// followed no longer. A watch that fails ends: whoever watches again begins with a snapshot, no older than what this store has written.
// With Kubernetes 1.34 and newer, and etcd 3.5, a snapshot is a stream, of which the parts that are not needed, most of a node, are thrown
// away one node at a time; else it is a list. A silent partition is noticed by the HTTP/2 pings of client-go after 45 s, and by calls after Config.Timeout.
package kube
