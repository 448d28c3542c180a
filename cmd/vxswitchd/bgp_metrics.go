package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vxswitch/vxswitch/bgp"
)

// bgpMetrics collects what a section does by BGP.
type bgpMetrics struct{ s *server }

var describeBGP = described("bgp")

var (
	descBGPUp        = describeBGP("up", "1 if BGP runs; else 0.")
	descBGPSession   = describeBGP("peer_up", "1 if there is a session with a peer; else 0.", "peer")
	descBGPRoutes    = describeBGP("peer_routes", "Routes that a peer has announced.", "peer")
	descBGPAccepted  = describeBGP("peer_accepted_routes", "Routes of a peer that are taken.", "peer")
	descBGPIn        = describeBGP("peer_received_messages_total", "Messages of BGP from a peer.", "peer")
	descBGPOut       = describeBGP("peer_sent_messages_total", "Messages of BGP to a peer.", "peer")
	descBGPAnnounced = describeBGP("announced_routes", "Routes that the node announces.")
	descBGPRefused   = describeBGP("refused_routes", "Routes of peers that are not taken.", "reason")
	descBGPTooMany   = describeBGP("left_out_routes_total", "Routes of peers left out at the limit of all peers.")
)

// Describe implements prometheus.Collector.
func (bgpMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descBGPUp, descBGPSession, descBGPRoutes, descBGPAccepted, descBGPIn, descBGPOut, descBGPAnnounced, descBGPRefused, descBGPTooMany} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m bgpMetrics) Collect(ch chan<- prometheus.Metric) {
	x, err := m.s.spoken()
	if err != nil {
		return
	}
	st := &x.status
	to := sink(ch)
	to.gauge(descBGPUp, one(x.State == sectionRunning))
	for _, p := range st.Peers {
		peer := p.Addr.String()
		to.gauge(descBGPSession, one(p.State == isEstablished), peer)
		to.gauge(descBGPRoutes, float64(p.Received), peer)
		to.gauge(descBGPAccepted, float64(p.Accepted), peer)
		to.count(descBGPIn, p.In, peer)
		to.count(descBGPOut, p.Out, peer)
	}
	to.gauge(descBGPAnnounced, float64(len(st.Announced)))
	for reason, n := range st.Refused {
		if reason != bgp.TooMany {
			to.gauge(descBGPRefused, float64(n), reason.String())
		}
	}
	to.count(descBGPTooMany, uint64(st.Refused[bgp.TooMany]))
}
