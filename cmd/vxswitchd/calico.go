package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/calico"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/vtep"
)

// A calicoKeeper runs the section calico.
type calicoKeeper struct {
	keeper[calico.Config, *calico.Plane]

	n *node.Node
}

func newCalico(n *node.Node, log *slog.Logger) *calicoKeeper {
	k := &calicoKeeper{n: n}
	k.name, k.log = "calico", log
	k.anew = (*calico.Config).Restarts
	k.files = (*calico.Config).CheckFiles
	k.configure = (*calico.Plane).Configure
	k.make = func(c *calico.Config) (*calico.Plane, error) {
		with := *c
		with.Log = log.With("section", k.name)
		p, err := calico.New(n, &with)
		return p, k.withKeys(err)
	}
	return k
}

// workloadsOf are those of a section; none without one.
func workloadsOf(c *calico.Config) (w calico.Workloads) {
	if c != nil {
		w = c.Workloads
	}
	return w
}

// guard closes the ports of workloads, if they are others: the node opens ports before the plane begins.
func (k *calicoKeeper) guard(old, next calico.Workloads) error {
	if reflect.DeepEqual(old, next) {
		return nil
	}
	return next.Close(k.n)
}

// change is that of a keeper. After a change that has failed, a plane that goes on has the ports again that guard has closed for it.
func (k *calicoKeeper) change(next *calico.Config, reread bool) func(ok bool) {
	old := k.config()
	done := k.keeper.change(next, reread)
	return func(ok bool) {
		done(ok)
		if !ok && old != nil && next != nil && !old.Restarts(next) && !reflect.DeepEqual(old.Workloads, next.Workloads) {
			k.reconfigure(old)
		}
	}
}

// read returns what the section does, and the plane's status; ok is false without a section.
func (k *calicoKeeper) read() (c api.Calico, st calico.Status, ok bool) {
	cfg := k.config()
	now, ok := k.status()
	if cfg == nil || !ok { // it may be removed between the two
		return c, st, false
	}
	c = api.Calico{State: sectionStarting, Since: now.since, Node: cfg.Node, VRF: cfg.VRF, Addresses: []string{}, Tunnels: []string{}, Resources: map[string]int{}, Problems: []api.CalicoProblem{}}
	if now.err != nil {
		c.State, c.Error, c.Again = sectionFailed, oneLine(now.err), &now.again
		return c, st, true
	}
	if now.plane == nil {
		return c, st, true
	}
	st = now.plane.Status()
	c.Error = st.LastError
	switch {
	case len(st.Resources) == 0: // not read yet
	case st.MAC.IsZero():
		c.Error = cmp.Or(c.Error, fmt.Sprintf("the datastore has no node %q", cfg.Node))
	case st.BGPErr != nil:
		c.State, c.Error = sectionFailed, oneLine(st.BGPErr)
	case !st.Stale.IsZero():
		c.State, c.Since = sectionStale, st.Stale
	default:
		c.State = sectionRunning
	}
	return c, st, true
}

// trouble returns a line for /healthz if the node is no member of the cluster. A datastore that is away is none: packets flow.
func (k *calicoKeeper) trouble() string {
	c, _, ok := k.read()
	if !ok || c.State == sectionRunning || c.State == sectionStale {
		return ""
	}
	return troubled(k.name, c.State, c.Since, cmp.Or(c.Error, "the datastore is not read yet"))
}

// spoken returns what the section does by BGP; ok is false without sessions.
func (k *calicoKeeper) spoken() (x spoken, ok bool) {
	cfg := k.config()
	c, st, ok := k.read()
	if cfg == nil || !ok || cfg.NoBGP {
		return x, false
	}
	now, ok := k.status()
	x.BGP = newBGPState(now.since, st.AS, st.RouterID, c.VRF)
	if st.BGP == nil || now.plane == nil {
		x.State, x.Error, x.Again = c.State, c.Error, c.Again
		return x, ok
	}
	for _, p := range st.Addresses {
		x.addresses = append(x.addresses, p.Addr())
	}
	x.speaks(*st.BGP, now.plane.Routes)
	return x, ok
}

// macs are those that other nodes send VXLAN to, by IPv4 and by IPv6; none without a segment for VXLAN.
func (k *calicoKeeper) macs(st *calico.Status) (list []frame.MAC) {
	cfg := k.config()
	if cfg == nil || cfg.VXLAN.Segment == 0 {
		return nil
	}
	for _, p := range st.Addresses {
		if p.Addr().Is4() {
			list = append(list, st.MAC)
		} else {
			list = append(list, st.MACv6)
		}
	}
	return slices.Compact(list)
}

// open names tunnels that take VXLAN from hosts that are no nodes.
func (k *calicoKeeper) open(cfg *calico.Config, s node.Segment) (list []calico.Problem) {
	for _, t := range k.n.Config().Tunnels {
		if t.Peers == vtep.AnyPeer && (t.Name == s.Tunnel || slices.ContainsFunc(s.Tunnels, func(x node.SegmentTunnel) bool { return x.Tunnel == t.Name })) {
			list = append(list, calico.Problem{Resource: "nodes/" + cfg.Node, Why: fmt.Sprintf("tunnel %q takes packets for workloads from hosts that are no nodes; its peers should be \"listed\"", t.Name)})
		}
	}
	return list
}

// problems are those of the plane, that the gateway has another MAC than other nodes send VXLAN to, and that others may send it.
func (k *calicoKeeper) problems(st *calico.Status) (list []calico.Problem) {
	cfg := k.config()
	for _, s := range k.n.Config().Segments {
		if cfg != nil && s.VNI == cfg.VXLAN.Segment {
			list = append(list, k.open(cfg, s)...)
		}
		for _, want := range k.macs(st) {
			if cfg != nil && s.VNI == cfg.VXLAN.Segment && s.Gateway != nil && s.Gateway.VTEPMAC != want && s.Gateway.MAC != want {
				why := fmt.Sprintf("other nodes send to %v, and the gateway of segment %v has the MAC %v", want, s.VNI, cmp.Or(s.Gateway.VTEPMAC, s.Gateway.MAC))
				list = append(list, calico.Problem{Resource: "nodes/" + cfg.Node, Why: why})
			}
		}
	}
	return append(list, st.Problems...)
}

// getCalico answers with the state of the section.
func (s *server) getCalico(w http.ResponseWriter, r *http.Request) error {
	c, st, ok := s.calico.read()
	if !ok {
		return noSection("calico")
	}
	c.AS, c.RouterID = st.AS, text(st.RouterID)
	for _, p := range st.Addresses {
		c.Addresses = append(c.Addresses, p.String())
	}
	c.Tunnels = append(c.Tunnels, texts(st.Tunnels)...)
	for _, mac := range s.calico.macs(&st) {
		c.MACs = append(c.MACs, mac.String())
	}
	if st.Resources != nil {
		c.Resources = st.Resources
	}
	if b := st.BGP; b != nil {
		c.Peers, c.Established = len(b.Peers), established(b.Peers)
	}
	for _, p := range s.calico.problems(&st) {
		c.Problems = append(c.Problems, api.CalicoProblem(p))
	}
	for i := range st.Workloads {
		c.Workloads = append(c.Workloads, newWorkload(&st.Workloads[i]))
	}
	c.More, c.Routes, c.RowError = st.More, st.Rows, said(st.RowErr)
	return reply(w, c)
}

func newWorkload(w *calico.Workload) api.CalicoWorkload {
	x := api.CalicoWorkload{
		Port: w.Port, There: w.There, Endpoint: w.Endpoint, Addresses: texts(w.Addrs), Policies: w.Policies, NotDone: w.NotDone, Closed: w.Closed, Error: said(w.Err), Dropped: map[string]uint64{},
	}
	for cause, n := range w.Dropped.All() {
		if n > 0 {
			x.Dropped[cause] = n
		}
	}
	return x
}
