// Package metrics shows a switch and what is around it to Prometheus. It is a module of its
// own, so that who does not import it does not get the Prometheus client either.
//
//	 Prometheus --GET /metrics--> promhttp --> Registry
//	                                              | Collect, once a scrape
//	                                              v
//	Config.Switch ------------ Stats() ------> Collector ----> samples
//	Config.Sources() --------- Stats() ---------->
//	  VTEPs, underlays, neighbours, gateway interfaces, ports with counters of their own
//
// A [Collector] asks for Stats when it is scraped and at no other time: it has no goroutine,
// keeps nothing, and costs a frame nothing.
//
// # Names
//
// Every name begins with vxswitch_. What only grows ends in _total and begins at 0 when its
// port, VSI, peer or the like does: rate() takes that for a restart, which it is. Units are in
// the name: frames from the destination MAC on, a superframe being one; bytes of those;
// datagrams one by one.
//
//	vxswitch_port_         port, number                 frames and bytes; decisions; flooding by class
//	vxswitch_drops_total   port, number, direction, reason
//	vxswitch_vsi_          vni                          flooding by class, drops by reason
//	vxswitch_fdb_          vni                          entries; learned, moved, refused, ...
//	vxswitch_vtep_         vtep                         frames and bytes, peers, losses
//	vxswitch_vtep_peer_    vtep, peer, number           frames, MTU
//	vxswitch_underlay_     underlay                     datagrams, runs, losses, errors the network reported
//	vxswitch_neighbour_    vni                          messages by outcome; the table
//	vxswitch_gateway_      vrf, vni                     packets routed, answered, waiting
//	vxswitch_toobig_       stage                        frames by outcome
//	vxswitch_packet_       device                       what AF_PACKET lost, and its buffers
//	vxswitch_buffer_       buffer                       queue and losses of port.Buffered
//	vxswitch_capture_      capture                      packets written and not
//
// Ports of one name are told apart by their number, as are rows of a VTEP's table that lead to
// one address (vtep.NextHop); sum by (port), or by (peer), where that does not matter. Numbers
// are used again.
//
// # Series by reason
//
// There are some forty reasons for a drop, and most never happen. So a series by reason, or by
// the outcome of a neighbour message, appears when its count is no longer 0, and then stays.
// increase() does not see the step from nothing to the first count: beside each such family
// is one of the totals (vxswitch_port_dropped_frames_total, vxswitch_vsi_dropped_frames_total, ...)
// that is always there. Alert on that, and look at the reasons. Families with few outcomes show
// all of them, from 0 on.
//
// # How many series
//
// 14 a port, 15 a VSI, 13 more a VSI with neighbours and 8 with a gateway, and those by reason.
// These follow what is configured. Peers may be learned from the network, as many as
// vtep.Config.MaxPeers: 3 series each, which [Config].NoPeers leaves out. Nothing is by MAC or
// by host.
//
// # Several switches
//
// A Collector is of one switch. Two of them in one registry need a label that tells their
// series apart:
//
//	prometheus.WrapRegistererWith(prometheus.Labels{"switch": "a"}, registry).MustRegister(a)
//	prometheus.WrapRegistererWith(prometheus.Labels{"switch": "b"}, registry).MustRegister(b)
//
// The file dashboard.json beside this one is a dashboard for Grafana 10 and later.
package metrics
