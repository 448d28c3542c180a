// Package metrics exports the counters of a switch, its VTEPs, neighbours, gateway and ports to
// Prometheus. It is a separate module: only its importers depend on the Prometheus client.
//
//	 Prometheus --GET /metrics--> promhttp --> Registry
//	                                              | Collect, once a scrape
//	                                              v
//	Config.Switch ------------ Stats() ------> Collector ----> samples
//	Config.Sources() --------- Stats() ---------->
//	  VTEPs, underlays, neighbours, gateway interfaces, ports with counters of their own
//
// A [Collector] calls Stats only when it is scraped: it has no goroutine, keeps nothing, and does
// not slow the data path.
//
// # Names
//
// Every name begins with vxswitch_. Counters end in _total and start at 0 with their port, VSI
// or peer; rate() treats that as a restart. The name has the unit: frames, where a superframe
// counts once; their bytes, from the destination MAC on; single datagrams.
//
//	vxswitch_port_         port, number                 frames and bytes; decisions; flooding by class
//	vxswitch_port_up       port                         of the configuration: 0 while it is down
//	vxswitch_drops_total   port, number, direction, reason
//	vxswitch_vsi_          vni                          frames and bytes, flooding by class, drops by reason
//	vxswitch_attachment_   vni, port, number, tag       frames and bytes of a port or tunnel in a VNI
//	vxswitch_events_                                    events that readers have lost
//	vxswitch_fdb_          vni                          entries; learned, moved, refused, ...
//	vxswitch_vtep_         vtep                         frames and bytes, peers, losses
//	vxswitch_vtep_peer_    vtep, peer, number           frames and bytes, last heard, MTU
//	vxswitch_underlay_     underlay                     datagrams, runs, losses, errors the network reported
//	vxswitch_neighbour_    vni                          messages by outcome; the table
//	vxswitch_multicast_    vni                          IGMP and MLD messages; groups, listeners
//	vxswitch_gateway_      vrf, vni                     packets routed, answered, waiting
//	vxswitch_policy_       policy                       packets and bytes by rule; flows
//	vxswitch_guard_        port, vni                    frames dropped by cause
//	vxswitch_toobig_       stage                        frames by outcome
//	vxswitch_packet_       device                       what AF_PACKET lost, and its buffers
//	vxswitch_buffer_       buffer                       queue and losses of port.Buffered
//	vxswitch_capture_      capture                      packets written and not
//
// The number distinguishes ports with the same name, and rows of a VTEP's table with the same
// address (vtep.NextHop). To ignore it, sum by (port) or by (peer). Numbers are reused.
//
// # Series by reason
//
// There are about forty reasons for a drop, and most never occur. A series by reason, or by the
// outcome of a neighbour message, appears with its first count, and then stays. increase() misses
// that first count. So each such family has a total that always exists
// (vxswitch_port_dropped_frames_total, vxswitch_vsi_dropped_frames_total, ...): alert on the total,
// then look at the reasons. Families with few outcomes show all of them from the start.
//
// # How many series
//
// Each port has 15, each VSI 21, plus 4 for each attachment, 13 with neighbours and 8 with a gateway, and those by
// reason. Their number follows from the configuration. Each peer has 6; the network can add
// up to vtep.Config.MaxPeers learned peers. [Config].NoPeers omits the series of peers. No series
// is by MAC or by host.
//
// # Several switches
//
// A Collector is for one switch. Two Collectors in one registry need a label that distinguishes
// their series:
//
//	prometheus.WrapRegistererWith(prometheus.Labels{"switch": "a"}, registry).MustRegister(a)
//	prometheus.WrapRegistererWith(prometheus.Labels{"switch": "b"}, registry).MustRegister(b)
//
// The file dashboard.json beside this one is a dashboard for Grafana 10 and later.
package metrics
