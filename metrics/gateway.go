package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
)

// gatewayFamilies show l3.InterfaceStats and frame.TooBigStats.
type gatewayFamilies struct {
	routed, echo, errors, limited, queued, unresolved, waiting family
	tooBig                                                     family
}

func (g *gatewayFamilies) describe(fs *families) {
	g.routed = fs.counter("gateway_routed_packets", "Packets that came in on the interface and were handed on.", "vrf", "vni", "family")
	g.echo = fs.counter("gateway_echo_replies", "Pings answered.", "vrf", "vni")
	g.errors = fs.counter("gateway_icmp_errors", "Packets answered with an ICMP error.", "vrf", "vni")
	g.limited = fs.counter("gateway_limited_icmp_errors", "ICMP errors not sent, beyond a rate.", "vrf", "vni")
	g.queued = fs.counter("gateway_queued_packets", "Packets that waited for their next hop's MAC.", "vrf", "vni")
	g.unresolved = fs.counter("gateway_unresolved_packets", "Packets whose next hop did not answer.", "vrf", "vni")
	g.waiting = fs.gauge("gateway_waiting_next_hops", "Next hops on the interface that are being asked.", "vrf", "vni")
	g.tooBig = fs.counter("toobig_frames", "Frames longer than their egress takes, by what was done: answered with ICMP (sent-ipv4, sent-ipv6), or why not.", "stage", "outcome")
}

func (g *gatewayFamilies) collect(ch chan<- prometheus.Metric, vrf, vni string, s l3.InterfaceStats) {
	put(ch, g.routed, s.Routed4, vrf, vni, "ipv4")
	put(ch, g.routed, s.Routed6, vrf, vni, "ipv6")
	put(ch, g.echo, s.Echo, vrf, vni)
	put(ch, g.errors, s.Errors, vrf, vni)
	put(ch, g.limited, s.Limited, vrf, vni)
	put(ch, g.queued, s.Queued, vrf, vni)
	put(ch, g.unresolved, s.Unresolved, vrf, vni)
	put(ch, g.waiting, s.Waiting, vrf, vni)
}

func (g *gatewayFamilies) collectTooBig(ch chan<- prometheus.Metric, s frame.TooBigStats) {
	const stage = "switch"
	put(ch, g.tooBig, s.Sent4, stage, "sent-ipv4")
	put(ch, g.tooBig, s.Sent6, stage, "sent-ipv6")
	put(ch, g.tooBig, s.Limited, stage, "limited")
	put(ch, g.tooBig, s.Fragmenting, stage, "fragmenting")
	put(ch, g.tooBig, s.NotIP, stage, "not-ip")
	put(ch, g.tooBig, s.NotHost, stage, "not-host")
	put(ch, g.tooBig, s.ICMPError, stage, "icmp-error")
	put(ch, g.tooBig, s.Fragment, stage, "fragment")
	put(ch, g.tooBig, s.Malformed, stage, "malformed")
	put(ch, g.tooBig, s.Fits, stage, "fits")
	put(ch, g.tooBig, s.TinyMTU, stage, "tiny-mtu")
	put(ch, g.tooBig, s.Unreachable, stage, "unreachable")
}
