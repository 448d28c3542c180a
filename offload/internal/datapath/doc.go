// Package datapath carries frames in the kernel, for flows whose path is decided already. It consists of three eBPF
// programs, the tables they read, and this Go code, which loads them, attaches them and writes the tables. It decides
// nothing, and knows nothing of switches: a frame without an entry, or with anything unusual in it, is a miss, and goes
// on untouched to where it would have gone without the program.
//
//	                 port_in                                        tunnel_in
//	veth, card ----> tcx ingress --+                       +-- tcx ingress <---- underlay device
//	                               |                       |
//	                 port_out      v                       v
//	TAP of host ---> tcx egress -> out                     in        tables of flows, by MACs: hash
//	                               |                       |
//	                               +------> tuples <-------+        where the MACs have no flow: by MACs, addresses and ports, or
//	                               |                       |        by MACs and addresses
//	                               |                       |
//	                               +--> slots, epochs <----+        is the flow still valid? arrays, mapped here
//	                               |                       |
//	             encapsulate, redirect_neigh   decapsulate, redirect to a port
//	             or redirect to another port
//
// # Tables and who writes them
//
//	epochs  user space adds; programs read
//	slots   validity: user space; counters: programs add, user space reads
//	out, in, tuples
//	        user space puts and deletes; programs look up; the value of an entry never changes
//	paths   what flows of one peer have in common, so that entries are small: user space writes one before a flow names it, and
//	        again only when the slots of all flows that named it have other flows; programs read
//	misses  programs add; user space reads
//	beacons user space puts; programs look up
//
// User space reaches epochs and slots by memory access, without a system call.
//
// # Order
//
// An epoch counts changes. Epoch [Global] counts those that may concern any flow; each other epoch stands for a group of
// MACs. A slot has the values of three epochs, for which its flow was found valid. A program uses a flow only if all
// three are the present ones. Whoever changes what decisions are made from changes it first, and then calls
// [Datapath.Bump]. Whoever validates a flow reads the epochs first, then decides, and then calls [Slot.Validate] with what
// was read. So a change in between is never missed: the epoch has gone on, and the flow is a miss.
//
// A slot that has been validated for one decision is validated again only for the same decision. Another one is another
// entry: [Slot.Kill], delete, and put with another slot.
//
// A program that has read an entry or an epoch may be a few microseconds behind. After [Grace] none is: what was bumped,
// killed or deleted before the call carries no frame after it. A slot may be used for another flow only after that.
// The kernel reuses the memory of a deleted entry at once, so [Datapath.Put] calls Grace by itself if something was deleted since
// the last call. So an entry ends with Kill, delete, Grace and a last look at
// [Slot.Counters].
//
// # What is a miss
//
// Each [Cause] has a counter. In short, only IPv4 and IPv6 is carried, without a VLAN tag or with one that the kernel has taken out of
// the frame, from and to one host: TCP, UDP and ICMP without options and extension headers, fragments included. Never carried:
// neighbour discovery, DHCP, a frame that is too long, a received packet with anything in the outer headers that is not exactly as
// the entry expects it, and each ECN combination that user space counts or drops. The flow of a tuple carries no frame without one
// ([frame.TupleOf]), such as a fragment. A flow that routes ([Flow].NewDst) carries no packet that a router would not pass on, or not
// as it came: with a TTL or hop limit of 1 or 0, or with a wrong checksum or length in the IP header.
//
// # Where it is carried
//
// A device that is moved to another network namespace takes its program along, and the entries have numbers of devices, which
// are other devices there. So Load binds a UDP socket to 127.0.0.1, the beacon, and gives it a value in a table of sockets, which
// nobody else can. A program looks for it from where it is (bpf_sk_lookup_udp), last of all that it asks: without it, the
// frame is a miss. This takes about 20 ns of a frame that is carried (Linux 6.18), and nothing of others.
//
// # What differs
//
// The carried packets are those that user space would send, with these exceptions. The source port is another one of the
// same, of which sixteen are used, and the outer UDP checksum is zero. A received outer UDP checksum is verified by the network card,
// trusted where the packet has met none, as the kernel's sockets do, or not at all, as [Outer.Unverified] says (RFC 7348, section 5).
// An inner transport checksum that is not finished is completed by whoever comes next in the kernel, which knows of it; if a relay has
// lost that knowledge, it stays unfinished. A superframe out of a tunnel stays whole, with the segment size that the sender's kernel gave it.
//
// What is carried passes by the packet filter, connection tracking, reverse path filter and IPsec of the host, and by its
// sockets. A capture on the port's device shows only what the port sends; one on the underlay shows both directions.
//
// # Life
//
// Programs are attached by tcx links, which are not pinned: they go with the process. That needs Linux 6.6, and the
// capabilities CAP_BPF and CAP_NET_ADMIN.
package datapath
