// Compare measures what it costs to tunnel through this library, beside the kernel's
// own vxlan device, on one machine in one run. It needs root and Linux:
//
//	go run ./bench/compare
//	go run ./bench/compare -case tcp1,rr -rounds 9 -json out.json -svg out.svg
//
// Two hosts, each a network namespace, are joined by a veth pair; behind each is a
// guest, and the traffic is between the guests:
//
//	guest a          host a                            host b          guest b
//	+------+  veth  +------------------+    veth    +------------------+  veth  +------+
//	| eth0 +--------+ br0 --- vx0      |   "under"  |      vx0 --- br0 +--------+ eth0 |
//	+------+        |          :.. UDP +------------+ UDP ..:          |        +------+
//	                +------------------+            +------------------+
//
// The contenders differ in vx0 only: a kernel vxlan device, or the TAP device of
// examples/p2p. Two more stand beside them: "veth" is the path without a tunnel, the
// veth pair being a port of both bridges, and "ovs" has the user-space datapath of
// Open vSwitch as bridge and tunnel. The inner MTU is the same for all of them.
//
// VXLAN-GPE and IP in IP have cases of their own, for a few contenders each. What carries
// IP without Ethernet has no br0: vx0 is a TUN device, or the kernel's VXLAN-GPE, and the
// hosts route between it and their guests.
//
// In the cases "host" there is neither br0 nor a guest: the host itself is the guest, by vx0. A TAP whose flows the kernel
// carries (p2p -datapath kernel) cannot leave its host.
//
// The cases "packet" are for one program over UDP sockets and over packet sockets (underlay/afpacket):
// throughput, processor time, latency, memory, and how flows are spread over outer source ports.
//
// In the case "pairs", the kernel carries the flows of p2p, and the ratio is that of 1,000 hosts, 500 behind each guest, to one
// behind each: they talk in 5,000 pairs, so that each end has 10,000 flow entries. The program itself sends and receives for
// them, by packet sockets. Before, it has each pair send until the kernel carries it, and all the while the receiver's hosts
// answer, 5,000 packets a second. If user space has carried any but a few of the packets, that is an error and no figure.
//
// TCP streams, and four flows of UDP, are iperf3's. Other packets come from a generator of
// the program's own, and go to a sink of its own, which it executes inside the guests: they
// move 64 at a time and the sink reads in intervals, so that it is the tunnel that is measured
// and not they.
//
// Every measurement has hosts of its own, made before and removed after it, so that
// nothing else of the program runs meanwhile. In a round every contender is measured
// once in every case; from round to round they take turns in who is first. What is
// printed is the median over the rounds with the smallest and the largest value, and
// its ratio to the kernel's median, or to that of the first contender where the kernel's
// vxlan has no part in the case; and then, how the library stands against the limits that
// are set for it. One that is missed is no failure of the run.
//
// What a run makes carries its process id in its name and is removed at the end, also
// after an error or an interrupt; what a killed run left is removed by the next.
package main
