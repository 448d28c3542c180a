// Package policy filters frames: ordered rules decide on every frame that enters or leaves a
// switch. A [Policy] fills the slots Ingress and Egress (package vswitch, type Slots). A [Guard]
// keeps the hosts behind a port from using the addresses of others. A [Match] filters nothing: it is
// a vswitch.Matcher, which chooses the segment of a frame.
//
//	frame from a port --> slot Ingress                            slot Egress --> to a port
//	                      vswitch.Chain(guard, p.Ingress())       p.Egress()
//
//	Guard       MAC, address, ARP, ND: not the port's?            -> dropped, by cause
//	            DHCP server, router, tunnel: not allowed?         -> dropped, by cause
//	Policy      malformed headers or framing                      -> dropped: Malformed
//	  1 later fragment   of a datagram whose first one passed?    -> passes: Fragments
//	  2 ICMP error       about a packet of a flow?                -> passes: Related
//	  3 flow             reply to the flow's opener?              -> passes: Replies
//	                     the opener's, admitted in this slot?     -> passes, counts for its rule
//	  4 tiers, rules     the first that matches decides           -> passes or is dropped, counted
//	                     none: ARP and ND pass, else the default
//	  5 passed           and opens a flow?                        -> tracked, if there is room
//
// A stateless policy skips steps 1 to 3 and 5.
//
// # Rules
//
// An empty field of a [Rule] matches anything. A rule with addresses, a protocol, ports or ICMP
// types matches only IP; one with MACs no packet of an IP port; one with ports or ICMP types no
// later fragment. ARP and neighbour discovery (ICMPv6 types 133 to 136 with hop limit 255 and
// no extension header) are exempt from most rules, or a default of Deny would cut hosts off:
// rules with EtherTypes or MACs apply to both, rules with ICMP types to ND. ARP and ND that no
// such rule matches pass.
//
// Conditions that begin with Not have the same bounds: a rule with NotSrc matches only IP, one with NotDstPorts or sets of ports only
// packets with ports, one with NotICMP only ICMP other than ND. An address is in no prefix of the other family.
//
// [Config.Tiers] come before [Config.Rules]. In each the first rule that matches decides, and no other tier is asked; one with
// [Pass] leaves the decision to the next tier, as does a tier without a default if none of its rules matches. Rules with [Log]
// decide nothing: [Policy.WatchLog] tells of what they match. Rules with Pass and Log count, too: what comes by them when the
// rules decide, which of a flow is its first packet, and the next one after a change.
//
// # Framings
//
// A policy treats all framings that some receiver decodes alike. It skips VLAN tags (EtherTypes
// 0x8100, 0x88a8, 0x9100, 0x9200 and 0x9300) and 802.2 LLC/SNAP headers with the OUIs 00-00-00
// and 00-00-f8, two of each at most, in any order and whatever the length field says; rules and
// guards see the payload as if it followed the MACs (CVE-2021-27853, -27854, -27861, -27862).
// EtherTypes below 0x600 are lengths. A frame that some receiver might decode and the policy
// cannot is malformed: with more or truncated headers, SNAP of another form than AA-AA-03, or
// the LLC SAPs of IP and ARP. Other LLC, such as spanning tree, and SNAP with other OUIs is
// not IP; its EtherType is its length.
//
// Groups are VXLAN group policy ids of the sender (frame.GBP): the attachment's, or those from a
// tunnel. The flags are ignored: a policy applied elsewhere does not let a frame pass here. A
// flow has the group that its opener had when the rules decided on it.
//
// Rules are compiled. Each field of a frame selects the set of rules it satisfies, one bit a
// rule; the first bit in all sets is the answer. A word above each set says which of its words
// are not zero, so a thousand rules cost about as much as ten. An address selects by the lists and sets that it is in, however many
// addresses are in the same ones; so a member of a set is changed without the rules. What is compiled takes an eighth of a byte for
// each rule and each combination of sets that some address is in.
//
// # Flows
//
// The key of a flow is its VNI, both addresses, protocol, and ports or the identifier of an
// echo request; look-ups compare the whole key, not only a hash. The policy tracks unicast: TCP
// from its SYN on, ICMP echo, and every other IP protocol from its first packet on. It ignores
// TCP sequence numbers; FIN and RST shorten the timeout. Replies pass wherever the same Policy
// sees them, except a SYN, which needs a rule.
//
// A change of rules or sets takes effect with the next packet, also for open flows: the rules
// decide again on the next packet of each, on a reply as if the opener had sent it. Until then
// ICMP errors about the flow meet the rules.
//
// A flow is assured when its opener has sent again after a reply; for TCP, something other than
// SYN, FIN or RST. Until then its timeout is short ([Timeouts]).
//
// The table of flows is bounded and grows as it fills. In a full table a new flow evicts another.
// Each port, and each peer behind it, has the flows opened there. A port with fewer evicts flows
// of the port with the most; assured flows only if that has a quarter more. So with n active
// ports each can have about an nth of the table, which its peers share likewise. Of a port's
// flows the unanswered and closed go first, then the half-open, then the assured; of each the
// longest idle. The port with the most evicts only its own flows that are not assured and have
// been idle for some seconds; if there is none, the new flow passes untracked and counted, and
// the rules decide on its replies. A flow takes 114 bytes of a full table, and a look-up reads
// one cache line of it.
//
// Later fragments have no ports. They pass if the first one did; the table of fragments remembers
// 4096 of these for 30 seconds, with the same shares. Without a first fragment the rules decide.
// TCP fragments that could overwrite a checked header (RFC 1858, section 3) are malformed, as is
// a first fragment without the whole header.
//
// # In the kernel
//
// Package offload may carry packets past a guard and a stateless policy, which then count for their rules as well, within a second:
// those of TCP, UDP and the echo of ICMP that pass, without fragments, IP options and extension headers, and by no rule with Log. With flows
// tracked it carries none.
//
// # Concurrency
//
// The stages run inside the workers of a switch, any number of them at once. They take no lock
// and allocate only when a table or a worker's counters grow. Any goroutine may call everything
// else, under traffic. Frames are neither changed nor kept.
package policy
