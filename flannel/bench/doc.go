// Package bench is a test that measures how fast nodes of a flannel network follow leases, beside the real flanneld in the same
// run. It needs root, Linux, etcd and iperf3:
//
//	go test ./bench
//	make flannel-bench        (at the top of the repository; writes bench/results/flannel.txt)
//
// The contenders are flanneld, with the kernel's vxlan; "tap", which is vxflanneld, built with the tags of the releases; and "l3", a
// node of package routed with one pod on a TAP. Each is a process in a network namespace of its own, a node of one network with
// etcd:
//
//	etcd  <--- puts, deletes --- the test
//	 |
//	 +--> contender in n11 ---- VXLAN ---- n50: a socket, or another contender
//
// They take turns, and no two kinds run at once. The test measures
//
//	start      from the start of the process, with leases in etcd, until all of them are in the tables
//	memory     resident then, after a moment of rest, and the kernel's slabs that came with it
//	packet     from the put of a lease to the first packet that leaves for its node; one is sent each tenth of a millisecond
//	watch      from the put of a lease to its event at a client of etcd: the part of packet that is no node's
//	flow       a TCP flow between two nodes while 100 leases come in a second; beside as many puts that are no leases; and alone
//	large      a node of package routed with a store in memory and 10,000 leases: for a node of this size etcd would be measured
//
// Without flags the numbers are small, to see that all of it works.
package bench
