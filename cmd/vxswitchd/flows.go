package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/offload"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// carry has flows carried by the kernel, for "datapath".
func carry(sw *vswitch.Switch) (io.Closer, error) { return offload.New(sw, nil) }

// carried returns what the kernel carries; ok is false while it carries nothing.
func carried(n *node.Node) (o *offload.Offload, st offload.Stats, ok bool) {
	if o, ok = n.Offload().(*offload.Offload); ok {
		st, _ = o.Stats() // an error is about the misses, and has those that could be read
	}
	return o, st, ok
}

// getFlows lists the flows that the kernel carries.
func (s *server) getFlows(w http.ResponseWriter, r *http.Request) error {
	is, why := s.n.Datapath()
	f := api.Flows{Datapath: is.String(), Refused: map[string]uint64{}, Misses: map[string]uint64{}, Flows: []api.Flow{}}
	if why != nil {
		f.Why = oneLine(why)
	}
	if o, st, ok := carried(s.n); ok {
		f.Carried, f.Added, f.Removed, f.Renewed = st.Carried, st.Added, st.Removed, st.Renewed
		f.Refused, f.Misses = st.Refused, st.Misses
		seconds := func(d time.Duration) float64 { return math.Round(d.Seconds()*10) / 10 }
		sw := s.n.Switch()
		for e := range o.Flows() {
			hop := ""
			if e.Hop != (frame.Hop{}) {
				hop = fmt.Sprintf("vni %v mac %v", e.Hop.VNI, e.Hop.Dst)
			}
			f.Flows = append(f.Flows, api.Flow{
				VNI: e.VNI, Src: e.Src.String(), Dst: e.Dst.String(), Tuple: e.Tuple.String(), Hop: hop, From: sw.Name(e.From), To: sw.Name(e.To),
				Carried: e.Carried, Age: seconds(e.Age), Idle: seconds(e.Idle),
			})
		}
		slices.SortFunc(f.Flows, func(a, b api.Flow) int {
			return cmp.Or(cmp.Compare(a.VNI, b.VNI), cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst), cmp.Compare(a.From, b.From),
				cmp.Compare(a.Tuple, b.Tuple))
		})
	}
	return reply(w, f)
}

// flowMetrics collects what the kernel carries.
type flowMetrics struct{ n *node.Node }

var describe = described("offload")

var (
	descFlows   = describe("flows", "Flows that the kernel carries.")
	descFrames  = describe("frames_total", "Frames that the kernel has carried; a superframe is one.")
	descBytes   = describe("bytes_total", "Bytes that the kernel has carried.")
	descRefused = describe("refused_total", "Pairs of hosts that the kernel cannot carry, counted once a second.", "cause")
	descMisses  = describe("misses_total", "Frames that the kernel has left to the switch, and with the cause lost those that it has dropped.", "cause")
)

// Describe implements prometheus.Collector.
func (flowMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descFlows, descFrames, descBytes, descRefused, descMisses} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m flowMetrics) Collect(ch chan<- prometheus.Metric) {
	_, st, ok := carried(m.n)
	if !ok {
		return
	}
	to := sink(ch)
	to.gauge(descFlows, float64(st.Flows))
	to.count(descFrames, st.Carried.Frames)
	to.count(descBytes, st.Carried.Bytes)
	for cause, n := range st.Refused {
		to.count(descRefused, n, cause)
	}
	for cause, n := range st.Misses {
		to.count(descMisses, n, cause)
	}
}
