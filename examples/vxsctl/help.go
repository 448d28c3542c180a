package main

const help = `Usage: vxsctl [-socket PATH] [-json] COMMAND

Shows and changes a running node.

  -socket PATH   the node's control socket (default $VXSCTL_SOCKET, or /run/vxswitch/node.sock)
  -json          print what the node says, in JSON

What there is:
  fdb [show] [vni N] [dev NAME]     MACs: of a segment, on a port or behind a tunnel
  neigh [show] [vni N]              addresses and their MACs
  route [show] [vrf NAME]           routes of the gateways
  flood                             who gets what is flooded
  vtep, port                        tunnels and their peers; ports, their segments and counters
  drops                             frames dropped, by port and reason
  policy                            rules and what they decided
  stats                             sums
  config                            the configuration with its defaults, as a file

What changes:
  fdb add MAC dst ADDR vni N        the MAC is behind that peer, and does not move
  fdb add MAC dev PORT vni N        the MAC is on that port
  fdb replace MAC ...               the same, where there may be another entry
  fdb del MAC vni N
  fdb append 00:00:00:00:00:00 dst ADDR vni N    the peer gets what is flooded; "fdb del" ends it
  reload                            the node reads its file again
  Entries made here outlast a reload, not a restart. Those of the file are changed there.

What happens, until it is interrupted:
  monitor                           MACs and neighbours that come, move and go; ports
  trace [every N] [mac M] [vni N] [dest NAME|ADDR]
                                    what becomes of frames: one in N of those that match
  capture FILE|-                    packets on ports and tunnels, as pcapng
  top [-interval 1s]                rates of ports and drops; q ends it

Examples:
  vxsctl fdb show vni 100
  vxsctl fdb append 00:00:00:00:00:00 dst 10.0.0.3 vni 100
  vxsctl trace every 100 dest 10.0.0.2
  vxsctl -json port | jq -r '.[].name'
  vxsctl capture - | tshark -r -

Exit status: 0; 1 when the node or the system refuses; 2 for a wrong command line.
`
