package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vxswitch/vxswitch/calico"
)

// calicoMetrics collects what the section calico does besides BGP, which is in bgpMetrics.
type calicoMetrics struct{ k *calicoKeeper }

var describeCalico = described("calico")

var (
	descCalicoReady     = describeCalico("ready", "1 if the node does what the datastore says, also while that is away; else 0.")
	descCalicoStale     = describeCalico("stale_seconds", "Time since which the datastore is away; 0 while it is followed.")
	descCalicoResources = describeCalico("resources", "Resources in the datastore.", "kind")
	descCalicoRoutes    = describeCalico("routes", "Routes to blocks and borrowed addresses that BGP has no part in.")
	descCalicoWorkloads = describeCalico("workloads", "Ports of workloads, by whether the policies of the cluster decide there, or nothing passes.", "state")
	descCalicoDropped   = describeCalico("workload_dropped_frames_total", "Frames of a workload that spoke in the name of others, or as what it may not be.", "port", "cause")
	descCalicoProblems  = describeCalico("problems", "What the datastore asks for and is not done.")
)

// Describe implements prometheus.Collector.
func (calicoMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descCalicoReady, descCalicoStale, descCalicoResources, descCalicoRoutes, descCalicoWorkloads, descCalicoDropped, descCalicoProblems} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m calicoMetrics) Collect(ch chan<- prometheus.Metric) {
	c, st, ok := m.k.read()
	if !ok {
		return
	}
	to := sink(ch)
	to.gauge(descCalicoReady, one(c.State == sectionRunning || c.State == sectionStale))
	stale := 0.0
	if !st.Stale.IsZero() {
		stale = time.Since(st.Stale).Seconds()
	}
	to.gauge(descCalicoStale, stale)
	for kind, n := range st.Resources {
		to.gauge(descCalicoResources, float64(n), kind)
	}
	to.gauge(descCalicoRoutes, float64(st.Rows))
	open, closed := decided(st.Workloads)
	to.gauge(descCalicoWorkloads, float64(open), "open")
	to.gauge(descCalicoWorkloads, float64(closed), "closed")
	for _, w := range st.Workloads {
		if w.There {
			for cause, n := range w.Dropped.All() {
				to.count(descCalicoDropped, n, w.Port, cause)
			}
		}
	}
	to.gauge(descCalicoProblems, float64(len(m.k.problems(&st))+st.More))
}

// decided counts the ports where policies decide, and those where nothing passes.
func decided(list []calico.Workload) (open, closed int) {
	for _, w := range list {
		switch {
		case !w.There:
		case w.Closed != "" || w.Err != nil:
			closed++
		default:
			open++
		}
	}
	return open, closed
}
