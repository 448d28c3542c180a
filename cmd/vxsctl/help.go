package main

const help = `Usage: vxsctl [-socket PATH] [-json] COMMAND | -version

Show and change a running node.

  -socket PATH   control socket of the node (default $VXSCTL_SOCKET, or /run/vxswitch/vxswitchd.sock)
  -json          print the answer of the node as JSON
  -version       print the version and exit

Show:
  fdb [show] [vni N] [dev NAME]     MACs, of a segment, a port or a tunnel
  neigh [show] [vni N]              IP addresses and their MACs
  mdb [show] [vni N]                who listens to multicast groups, where multicast routers are, and for how long
  route [show] [vrf NAME]           routes of the gateways
  flood                             flood lists
  bfd                               sessions that probe next hops and peers
  flows                             flows that the kernel carries, and why not others
  flannel [show]                    the node's lease in a flannel network, and what is known of others
  flannel leases                    leases of other nodes, and why some are not followed
  evpn [show]                       EVPN: the node's AS, sessions and routes, and why some are left out
  evpn peers|vni|duplicates         sessions of BGP; segments that take part; MACs that have moved too often
  evpn es                           Ethernet segments of several VTEPs, and where this node forwards
  evpn routes [type N] [vni N] [peer ADDR]
                                    routes of peers, of one peer or type, and those of the node
  bgp [show]                        BGP of routes: the node's AS, sessions and blocks, and why routes of peers are refused
  bgp peers                         sessions, and routes of each peer
  bgp routes [peer ADDR]            routes of the node, and those of peers or one of them, and their ways
  calico [show]                     the node in a Calico cluster: its datastore, addresses and routes, and what is asked for and not done;
                                    "bgp" has its sessions and their routes
  ovsdb [show]                      OVSDB: the connection with the database, what it has the node do, and why some is left out
  ovsdb left-out                    rows of the database without effect
  discovery [show]                  discovery: the node's servers, neighbours and segments, and what is refused
  discovery neighbours|hosts        VTEPs to talk to; MACs and the VTEPs that have them
  waiting [proto NAME]              rows of control planes that wait, and those refused last, with reasons
  vtep, port                        tunnels and peers; ports, their segments and counters; a port is up, down, or unused by segments
  vni [show] [vni N]                segments, their members and counters
  drops                             dropped frames by port and reason
  policy                            rules and their counters
  stats                             totals
  config [show] [LIST NAME]         configuration with defaults, as a file, or an element of its LIST: tunnels, ports, policies,
                                    segments or vrfs; the NAME of a segment is its VNI

  PROTO is who wrote an entry: config, vxsctl, or the name of a control plane.

Change:
  fdb add MAC dst ADDR vni N        add a static entry for a MAC behind a peer
  fdb add MAC dev PORT vni N        add a static entry for a MAC behind a port
  fdb replace MAC ...               add or replace an entry
  fdb del MAC [dst ADDR|dev PORT] vni N    delete an entry, wherever it is or only if it is there
  fdb append 00:00:00:00:00:00 dst ADDR vni N    add a peer to the flood list; "fdb del" removes it. With the MAC of a
                                    group the peer, and no other without it, gets the frames of the group
  neigh add IP lladdr MAC [dst ADDR|dev PORT] vni N [router]
                                    add a neighbour and the FDB entry of its MAC; without dst or dev it has one from "fdb add".
                                    "router" is for an IPv6 router
  neigh replace IP ...              add or replace a neighbour
  neigh del IP vni N                delete a neighbour
  route add PREFIX via IP [vni N] [vrf NAME] [weight N] [metric N]
                                    add a route; the VNI is needed if IP is in no prefix of a gateway, the VRF if there are several
  route add PREFIX vni N [[lladdr MAC] dst ADDR] ...
                                    to a router behind a tunnel; without lladdr for a tunnel of IP, without dst for a port of IP
  route add blackhole PREFIX ...    drop packets
  route append|replace PREFIX ...   add a next hop, or add or replace the route
  route del PREFIX [via IP] ...     delete the route, or one of its next hops
  With several tunnels in the segment, the peer is one of that with the family of dst; if two have it, add "tunnel NAME".
  These entries survive a reload but not a restart. Change entries of the file in the file.

  port add NAME [type tap|tun|veth|interface|packet] [mtu N] [queues N] [vni N [vlan|service N]] [namespace NS] [owner NAME]
                                    add a port to the configuration, and to a segment; with an owner, who has made its device,
                                    it stays until port del
  port del NAME                     delete a port, and from its segments
  evpn clear MAC vni N              let a MAC move again that has moved too often
  config diff FILE|-                show what a configuration would change: + added, - deleted, ~ changed
  config apply FILE|-               replace the configuration, and show what has changed
  config diff|apply LIST NAME FILE|-, config del LIST NAME    likewise one element, added if it is not there
  reload                            make the node read its file again
  Ports and configurations stay until the next reload or restart.

Watch, until interrupted:
  monitor                           events: learned, moved and aged MACs, neighbours, ports, rows of control planes
  trace [every N] [mac M] [vni N] [dest NAME|ADDR]
                                    forwarding decisions, for one in N matching frames
  capture [port NAME|tunnel NAME|vni N] [-w FILE] [-c COUNT] [-s SNAPLEN] [--] [FILTER]
                                    packets, as pcapng, to FILE or standard output
  top [-interval 1s]                rates of ports and drops; press q to quit

  capture port NAME    frames in and out of a port
  capture tunnel NAME  packets in and out of a tunnel, with rebuilt outer headers; TTL and source ports may differ on the wire
  capture vni N        frames of a segment where they come in and go out: one that is forwarded is there twice
  capture              all ports and tunnels; for Wireshark, since tcpdump reads one kind of packet in a file

  -c ends after COUNT packets, -s keeps SNAPLEN bytes of each. FILTER is one of tcpdump, see pcap-filter(7), for numeric
  addresses and ports; the node runs it. Superframes are captured whole. At the end, the packets that were captured, that
  FILTER has taken, and that were dropped, since they were not read in time, are on standard error.

Words as you type them, by the tab key:
  completion bash|zsh|fish          print what the shell needs; for bash: source <(vxsctl completion bash)

Examples:
  vxsctl fdb show vni 100
  vxsctl fdb append 00:00:00:00:00:00 dst 10.0.0.3 vni 100
  vxsctl trace every 100 dest 10.0.0.2
  vxsctl -json port | jq -r '.[].name'
  vxsctl capture vni 100 | tcpdump -n -r -
  vxsctl capture port tap0 -w x.pcapng -c 100 'tcp port 80 and host 10.1.0.5'
  vxsctl capture -w - | tshark -r -

Exit status: 0; 1 for errors of the node or the system; 2 for a wrong command line.
`
