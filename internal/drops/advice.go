package main

import "github.com/vxswitch/vxswitch/frame"

// advice says what to do about each reason. What a reason means is the comment of its constant in package frame.
var advice = [frame.NumReasons]string{
	frame.Short:     "Look at the sender in a capture. A few are scans of the tunnel's UDP port.",
	frame.NoVNIFlag: "Something other than VXLAN arrives on the tunnel's `port`: compare `type` and `port` at both ends.",
	frame.ReservedBits: "The peer uses an extension, such as group policy (`gbp`), or VXLAN-GPE on the port of VXLAN. Set `type` or `gbp` " +
		"as the peer has them, or `reserved` to \"rfc\".",
	frame.UnknownVNI:   "The peer sends a VNI that this node has not, in this tunnel: compare `vni` at both ends. `vxsctl port` lists the VNIs of a tunnel.",
	frame.UnknownVLAN:  "On a port with members by `vlan`, the host sends another tag or none. Add a member for it, or mend the host.",
	frame.InnerVLAN:    "A host tags its frames in a segment that carries none. Take the VLAN device off the host, or set `innerVLAN` to \"pass\" at both ends.",
	frame.UnknownPeer:  "The tunnel has `peers` \"listed\" or \"listed-per-vni\": add the sender to `flood`, or find out who it is with tcpdump. NAT on the way changes the address too.",
	frame.OwnAddress:   "Two VTEPs have the same address, or someone forges it. Compare `local` of all nodes.",
	frame.PeerLimit:    "Raise `maxPeers`, or list the peers. If you do not know the senders, see [Security](../SECURITY.md).",
	frame.BadSourceMAC: "A host, or a program on it, makes wrong frames: find its port with `vxsctl drops`, and the frame in a capture.",
	frame.OwnMAC: "A loop returns frames of the gateway, another node has the gateway's `mac` without `anycast`, or a host takes it. " +
		"A guest must not have the MAC of a gateway.",
	frame.MACPinned: "`vxsctl fdb` shows the entry. If the host has moved, change or delete the entry; a frozen one (`freeze`) goes by itself after 180 s. Else a host forges a MAC.",
	frame.Locked:    "Add an entry to `fdb` for the MAC with the port, or take off `locked`.",
	frame.Filtered:  "`vxsctl fdb` shows the entry with `filter`. Delete it if the MAC is welcome.",
	frame.BadKind:   "A TUN, or an IP-in-IP tunnel, carries IP alone: its segment needs a `gateway` or a `crossConnect`. Use a TAP or VXLAN for Ethernet.",
	frame.SplitHorizon: "As intended between peers of tunnels, which reach each other directly: list every peer at every node. On a node in the middle set `hub`. " +
		"Between members, compare `group`.",
	frame.Isolated:          "As intended between members that are `isolated`. Set `routeIsolated` to let them reach each other through the gateway.",
	frame.Reflect:           "A few after a host has moved are normal. Many: a bridge or switch behind the port floods frames back, for instance because it has forgotten the MAC.",
	frame.ReservedMAC:       "STP, LLDP or LACP of what is behind the port: harmless. Set `forwardBridgeGroup` to carry them.",
	frame.BroadcastOff:      "As `noFlood` says. Without broadcast ARP needs `neighbours` in `mode` \"suppress\" or \"proxy\", and hosts that are known.",
	frame.MulticastOff:      "As `noFlood` says. IPv6 needs multicast to find neighbours, unless `neighbours` answer for them.",
	frame.UnknownUnicastOff: "As `noFlood` says. The control plane, or `fdb`, lacks the MAC: compare with `vxsctl fdb` and `vxsctl waiting`.",
	frame.Storm:             "A loop, or a host that floods: `vxsctl top` shows the port. If the traffic is wanted, raise `storm`.",
	frame.Flapping:          "A loop between the ports that `vxsctl monitor` names in port-held: take one of them off. See `flapHold`.",
	frame.NoEgress:          "The segment has no other member, and `flood` lists no peer. Normal before the others are there.",
	frame.NoPeer:            "The tunnel has no peer for the segment: `vxsctl flood` is empty. List the others in `flood`, or wait for the control plane. A peer that is learned sends first.",
	frame.TooBig:            "The host's MTU is longer than the path. Give it what `vxsctl port` and `vxsctl vtep` show, less 14 for the Ethernet header, or enlarge the MTU of the underlay.",
	frame.ECN:               "A router between the VTEPs marks congestion on packets that do not take part. Compare `ecn` at both ends.",
	frame.TTL:               "Traceroute, or a routing loop: `vxsctl route` at both ends.",
	frame.NoRoute:           "`vxsctl route` lacks the destination, or nothing listens at the address of the gateway. Add a route, or look into `vxsctl waiting`.",
	frame.Unresolved:        "`vxsctl neigh` does not have the next hop: it is down, in another segment, or does not answer ARP or ND. Ping it from its own segment.",
	frame.Martian: "A host sends from or to 0.0.0.0, loopback, link-local, or from multicast or the gateway's own address through the gateway, or a packet of IP-in-IP would enter the tunnel that carries it: " +
		"route the peers' addresses outside the tunnel.",
	frame.BadChecksum:  "The sender, or a network card that offloads, makes wrong checksums. Switch them off to see: `ethtool -K eth0 tx off rx off`. Over IPv6, a zero UDP checksum needs `udp6ZeroChecksumRx`.",
	frame.BadHeader:    "Look at the frame in a capture: lengths, version and options. SCTP through offloads: see `noOffload`.",
	frame.Fragment:     "Outer packets arrive in fragments: make the MTU of the underlay fit, or lower that of the hosts. For a gateway, see `fragments`.",
	frame.GPEVersion:   "The peer speaks another version of VXLAN-GPE, or something else: compare `type` and `port`.",
	frame.GPEProtocol:  "The peer sends MPLS, NSH where the program has no handler for it, or packets without the P bit, as plain VXLAN has them: compare `type` and `port`, and see `ethernetWithoutP`.",
	frame.GPEOAM:       "As intended: the peer sends OAM packets that nothing here answers.",
	frame.Policy:       "`vxsctl policy` shows the counters of each rule and guard; `vxsctl trace mac M` shows the frames. Change the rule, or the guard's `macs` and `addrs`. With `multicast`, members that are isolated or have a `group` may not act as multicast routers.",
	frame.PortFull:     "The reader of the port, often a guest, is slower than the traffic, or the send buffer is full. Give it more queues or CPU time; see `queues` and `sendBuffer`.",
	frame.PortDown:     "A few while a configuration is applied are normal. Else the device of the port is gone: `vxsctl port` has it as `down`, and says why.",
	frame.Unreachable:  "No route to the peer, its next hop does not answer, or it answers that nothing listens there. Try `ping` and `ip route get` with its address.",
	frame.SendFailed:   "The kernel refuses the packet: often a packet filter's OUTPUT chain (EPERM). Look at `nft list ruleset` and the IPsec policy.",
	frame.EtherType:    "As intended in `mode` \"access\": such ports carry IP and ARP alone.",
	frame.NotGateway:   "As intended in `mode` \"access\" and, to hosts of other sites, in \"proxy\" without `exposeMACs`: hosts reach them through the gateway. A host with a stale ARP entry mends itself.",
	frame.ServiceIndex: "The service path is longer than its index says, or goes in a circle: compare it with the classifier that begins the path.",
	frame.NoListener:   "As intended with `multicast`: no host has joined the group. Set its `flood` if hosts listen without joining.",
}
