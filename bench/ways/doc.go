// Ways measures the ways in which a switch in user space can move packets between the
// kernel and itself, side by side in one run. It needs root, Linux and two CPUs:
//
//	go run ./bench/ways
//	go run ./bench/ways -group AC -rounds 9 -seconds 2 -json out.json
//
// It asks five questions, each with the way this library uses now in the first line:
//
//	A  small frames out of a device: read(2), io_uring, AF_PACKET, AF_XDP
//	B  superframes of 65 KB out of a TAP: into one buffer, into pieces, by io_uring
//	C  superframes into the network: in 90 pieces, in one, without a copy, by io_uring
//	D  waiting for a packet: the poller of Go, blocking, poll, epoll, spinning
//	E  IP in IP into the network: a raw socket, AF_PACKET, packets and superframes
//
// Each line is the median over the rounds with the smallest and the largest value, and
// the gain: how many times better than the first line, by the first metric. A gain whose
// spread overlaps that of the first line is none. In a round every way is measured once,
// and from round to round they take turns in who is first.
//
// What a line does not say by itself is in the comment above the code of its group or
// way, above all on which thread the kernel does its part: a ring that is filled on the
// sender's CPU looks free to its reader, and its gain in A says no more than that: the
// last column there has the time of both.
// Everything is over veth and TAP devices; a network card may turn an order round, in
// particular that of the ways without a copy, since a veth always copies. A way that
// this kernel does not have, or forbids, is "refused" with the errno and the call.
//
// Threads that are measured run alone on a CPU each; what else runs on the machine shows
// up in the spread. The namespaces carry the process id in their names and are removed at
// the end, also after an interrupt; what a killed run left is removed by the next.
package main
