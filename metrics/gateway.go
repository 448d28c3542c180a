package metrics

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
)

func (s sink) gateway(vrf, vni string, st l3.InterfaceStats) {
	s = s.with("vrf", vrf, "vni", vni)
	routed := s.counter("gateway_routed_packets", "Packets that came in on the interface and were handed on.", "family")
	routed(st.Routed4, "ipv4")
	routed(st.Routed6, "ipv6")
	s.counter("gateway_echo_replies", "Pings answered.")(st.Echo)
	s.counter("gateway_icmp_errors", "Packets answered with an ICMP error.")(st.Errors)
	s.counter("gateway_limited_icmp_errors", "ICMP errors not sent, beyond a rate.")(st.Limited)
	s.counter("gateway_queued_packets", "Packets that waited for their next hop's MAC.")(st.Queued)
	s.counter("gateway_unresolved_packets", "Packets whose next hop did not answer.")(st.Unresolved)
	s.gauge("gateway_waiting_next_hops", "Next hops on the interface that are being asked.")(uint64(st.Waiting))
}

func (s sink) tooBig(st frame.TooBigStats) {
	frames := s.with("stage", "switch").counter("toobig_frames", "Frames longer than their egress takes, by what was done: answered with ICMP (sent-ipv4, sent-ipv6), or why not.", "outcome")
	frames(st.Sent4, "sent-ipv4")
	frames(st.Sent6, "sent-ipv6")
	frames(st.Limited, "limited")
	frames(st.Fragmenting, "fragmenting")
	frames(st.NotIP, "not-ip")
	frames(st.NotHost, "not-host")
	frames(st.ICMPError, "icmp-error")
	frames(st.Fragment, "fragment")
	frames(st.Malformed, "malformed")
	frames(st.Fits, "fits")
	frames(st.TinyMTU, "tiny-mtu")
	frames(st.Unreachable, "unreachable")
}
