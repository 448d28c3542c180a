// Package policy says who may talk to whom: ordered rules, judged for every frame that
// comes in or goes out. A [Policy] fills the slots Ingress and Egress of a switch (package
// vswitch, type Slots); a [Guard] keeps one port from speaking in the name of others.
//
//	frame from a port --> slot Ingress                            slot Egress --> to a port
//	                      vswitch.Chain(guard, p.Ingress())       p.Egress()
//
//	Guard       MAC, address, ARP, ND: is it the port's own?      -> dropped, by cause
//	            DHCP server, router, tunnel: may it be one?       -> dropped, by cause
//	Policy      headers or a framing that cannot be read          -> dropped: Malformed
//	  1 later fragment   of a datagram whose first one passed?    -> passes: Fragments
//	  2 ICMP error       about a packet of a flow?                -> passes: Related
//	  3 flow             opened by the other side?                -> passes: Replies
//	                     admitted in this slot before?            -> passes, on its rule's count
//	  4 rules            the first that matches decides           -> passes or is dropped, counted
//	                     none: ARP and ND pass, else the default
//	  5 passed           and opens a flow?                        -> tracked, if there is room
//
// Steps 1 to 3 and 5 are left out in a policy that is stateless.
//
// # Rules
//
// A field of a [Rule] that is empty matches anything. One that is not asks for a frame
// that has it: a rule with addresses, a protocol, ports or ICMP types matches no frame
// that is not IP, one with MACs no packet of an IP port, one with ports or ICMP types no
// later fragment. Of ARP and neighbour discovery (ICMPv6 types 133 to 136 with hop limit
// 255, no extension header before them) less is asked, or every default of Deny would cut
// hosts off: ARP meets only rules with EtherTypes or MACs, ND those and rules with ICMP
// types; what none of them matches passes.
//
// # Framings
//
// What is refused in one framing is refused in every framing that some receiver opens. VLAN
// tags (EtherTypes 0x8100, 0x88a8, 0x9100, 0x9200 and 0x9300) and 802.2 LLC/SNAP headers with
// the OUIs 00-00-00 and 00-00-f8 are looked through, two of each at most, in any order and
// whatever the length field says: what is in them is judged as if it stood behind the MACs,
// by rules and guards (CVE-2021-27853, -27854, -27861, -27862). EtherTypes below 0x600 are
// lengths. A frame that some receiver might open and that cannot be read is malformed: with
// more or cut headers, SNAP of any other form than AA-AA-03, or the LLC SAPs of IP and ARP.
// Other LLC, like spanning tree's, and SNAP with other OUIs is a frame that is not IP, whose
// EtherType is its length.
//
// Groups are those of VXLAN group policy (frame.GBP), of who sends a frame: an attachment's,
// or what a tunnel has brought, flags aside; that a policy has been applied elsewhere is no
// reason to pass here. A flow is of the group that its opener had when the rules judged it.
//
// Rules are compiled. Each field of a frame is looked up by itself, which gives the set of
// rules it satisfies, one bit a rule; the first bit that all sets have is the answer. A
// word above each set says which of its words are not zero, so that a thousand rules cost
// about what ten do.
//
// # Flows
//
// A flow is known by its VNI, both addresses, protocol, and ports or the identifier of an
// echo request; exactly, never by a hash alone. Tracked are frames to one host: TCP from
// its SYN on, ICMP echo, every other protocol of IP from its first packet on. TCP is
// followed lightly: sequence numbers are not looked at, FIN and RST shorten the timeout.
// What the other side sends passes wherever the same Policy judges it, except a SYN,
// which asks for a connection of its own.
//
// A change of rules or sets takes effect with the next packet, for flows that are open as
// well: the next packet of each is judged anew, that of the other side as if it were the
// opener's. An ICMP error about a flow that has not been judged anew yet meets the rules.
//
// A flow is assured when its opener has spoken again after an answer, of TCP with something
// else than SYN, FIN or RST. Until then its timeout is short ([Timeouts]).
//
// The table is bounded and grows as it fills. When it is full, a new flow takes the place of
// another, by shares: what is opened at a port, or by a peer behind one, counts for it. Who
// has less than others takes from who has most, and from assured flows where that is a
// quarter more, so that no port keeps another from the flows it needs: with n ports at work
// each can have about an nth of the table, and of that each peer behind a tunnel its part. Of
// a port's flows those go first that are unanswered or over, then those that are half open,
// then the assured ones, of each the longest silent. Who has most takes from its own alone,
// and of them only what is not assured and has been silent for some seconds; if there is none
// the flow passes untracked, and is counted: the rules allowed it, only its replies are then
// judged by the rules too. A flow takes 114 bytes of a table that is full, and a look-up
// reads one cache line of it.
//
// Later fragments have no ports. They follow the first one, which the table of fragments
// remembers for 30 seconds, 4096 of them, by the same shares; one whose first was not seen is
// judged by the rules. TCP fragments that could overwrite a header that was judged (RFC 1858,
// section 3) are malformed, as is a first one without the whole header.
//
// # What may be called from where
//
// The stages run inside the workers of a switch, any number of them at once: no lock, and no
// allocation but when a table or the counters of a worker grow. Everything else may be
// called from anywhere, under traffic. Frames are neither changed nor kept.
package policy
