package main

import (
	"cmp"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/evpn"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
)

// An evpnKeeper runs the section evpn.
type evpnKeeper struct {
	keeper[evpn.Config, *evpn.Speaker]
}

func newEVPN(n *node.Node, log *slog.Logger) *evpnKeeper {
	k := new(evpnKeeper)
	k.name, k.log = "evpn", log
	k.anew = (*evpn.Config).Restarts
	k.rest = 2 * time.Second // FRR 8.4 keeps a dead session with a neighbour of a listen range that comes back at once
	k.files = (*evpn.Config).CheckFiles
	k.configure = (*evpn.Speaker).Configure
	k.make = func(c *evpn.Config) (*evpn.Speaker, error) {
		with := *c
		with.Log = log.With("section", k.name)
		sp, err := evpn.New(n, &with)
		return sp, k.withKeys(err)
	}
	return k
}

// read returns what the section does, and its speaker, nil if none runs; ok is false without a section.
func (k *evpnKeeper) read() (e api.EVPN, s *evpn.Speaker, ok bool) {
	cfg := k.config()
	now, ok := k.status()
	if cfg == nil || !ok { // it may be removed between the two
		return e, nil, false
	}
	e = api.EVPN{State: sectionRunning, Since: now.since, AS: cfg.AS, RouterID: cfg.RouterID.String(), LeftOut: map[string]int{}, Malformed: map[string]uint64{}}
	if now.err != nil {
		e.State, e.Error, e.Again = sectionFailed, oneLine(now.err), &now.again
		return e, nil, true
	}
	return e, now.plane, true
}

// summary returns what the section does, with counts.
func (k *evpnKeeper) summary() (e api.EVPN, st evpn.Status, ok bool) {
	e, s, ok := k.read()
	if s == nil {
		return e, st, ok
	}
	st = s.Status()
	e.Peers, e.Duplicates, e.Advertised = len(st.Peers), len(st.Duplicates), st.Advertised
	for _, p := range st.Peers {
		if e.Routes += p.Routes; p.State == isEstablished {
			e.Established++
		}
	}
	e.LeftOut, e.Malformed = st.LeftOut, st.Malformed
	return e, st, ok
}

func (s *server) getEVPN(w http.ResponseWriter, r *http.Request) error {
	e, _, ok := s.evpn.summary()
	if !ok {
		return noSection("evpn")
	}
	return reply(w, e)
}

// evpnStatus returns the status of the speaker, an empty one while none runs.
func (s *server) evpnStatus() (st evpn.Status, err error) {
	_, sp, ok := s.evpn.read()
	switch {
	case !ok:
		err = noSection("evpn")
	case sp != nil:
		st = sp.Status()
	}
	return st, err
}

func (s *server) getEVPNPeers(w http.ResponseWriter, r *http.Request) error {
	st, err := s.evpnStatus()
	if err != nil {
		return err
	}
	return listOf(w, st.Peers, func(p evpn.PeerStatus) api.EVPNPeer {
		x := api.EVPNPeer{Address: text(p.Addr), Interface: p.Interface, Link: p.Link, AS: p.AS, State: p.State, Error: said(p.Err), HoldTime: p.Hold.Seconds(), Routes: p.Routes, Stale: p.Stale, Missing: p.Missing,
			Received: p.In, Sent: p.Out, BFD: p.BFD}
		if !p.Since.IsZero() {
			x.Since = &p.Since
		}
		return x
	})
}

func (s *server) getEVPNSegments(w http.ResponseWriter, r *http.Request) error {
	st, err := s.evpnStatus()
	if err != nil {
		return err
	}
	return listOf(w, st.Segments, func(x evpn.SegmentStatus) api.EVPNSegment {
		return api.EVPNSegment{VNI: x.VNI, VTEP: text(x.VTEP), RD: x.RD, VRF: x.VRF, Hosts: x.Hosts, Remote: x.Remote, VTEPs: x.VTEPs}
	})
}

func (s *server) getEVPNEthernets(w http.ResponseWriter, r *http.Request) error {
	st, err := s.evpnStatus()
	if err != nil {
		return err
	}
	return listOf(w, st.Ethernets, func(e evpn.EthernetStatus) api.EVPNEthernetSegment {
		x := api.EVPNEthernetSegment{ESI: e.ESI, Mode: e.Mode.String(), VTEPs: texts(e.VTEPs), Hosts: e.Hosts, Port: e.Port, State: e.State, Candidates: texts(e.Candidates)}
		if e.Port != "" {
			x.Election = e.Election.String()
		}
		for _, m := range e.Segments {
			x.Segments = append(x.Segments, api.EVPNDesignatedMember(m))
		}
		return x
	})
}

func (s *server) getEVPNDuplicates(w http.ResponseWriter, r *http.Request) error {
	st, err := s.evpnStatus()
	if err != nil {
		return err
	}
	return listOf(w, st.Duplicates, func(d evpn.Duplicate) api.EVPNDuplicate {
		return api.EVPNDuplicate{VNI: d.VNI, MAC: d.MAC.String(), VTEP: text(d.At)}
	})
}

// getEVPNRoutes lists routes by type, VNI, and what they are for.
func (s *server) getEVPNRoutes(w http.ResponseWriter, r *http.Request) error {
	_, sp, ok := s.evpn.read()
	if !ok {
		return noSection("evpn")
	}
	wanted, err := wantedRoutes(query(r))
	if err != nil {
		return err
	}
	var all []evpn.Route
	if sp != nil {
		for x := range sp.Routes() {
			if wanted(&x) {
				all = append(all, x)
			}
		}
	}
	slices.SortFunc(all, func(a, b evpn.Route) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.VNI, b.VNI), cmp.Compare(a.MAC.Uint64(), b.MAC.Uint64()), a.IP.Compare(b.IP),
			a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()), a.Peer.Compare(b.Peer), cmp.Compare(a.RD, b.RD))
	})
	return list(w, shownRoutes(all))
}

// wantedRoutes returns what a query asks for.
func wantedRoutes(q api.Query) (func(*evpn.Route) bool, error) {
	kind, vni, peer := uint64(0), uint64(0), netip.Addr{}
	var err error
	if x, ok := q["type"]; ok {
		if kind, err = strconv.ParseUint(x, 10, 8); err != nil || kind < 1 || kind > 5 {
			return nil, wrong(http.StatusBadRequest, "type %q: must be 1 to 5", x)
		}
	}
	if x, ok := q["vni"]; ok {
		if vni, err = strconv.ParseUint(x, 10, 24); err != nil {
			return nil, wrong(http.StatusBadRequest, "vni %q: must be 0 to %d", x, frame.MaxVNI)
		}
	}
	if x, ok := q["peer"]; ok {
		if peer, err = netip.ParseAddr(x); err != nil {
			return nil, wrong(http.StatusBadRequest, "peer %q: must be the address of a peer", x)
		}
	}
	return func(r *evpn.Route) bool {
		_, of := q["vni"]
		return (kind == 0 || uint64(r.Type) == kind) && (!peer.IsValid() || r.Peer == peer.Unmap()) && (!of || uint64(r.VNI) == vni || uint64(r.L3VNI) == vni)
	}, nil
}

func shownRoutes(all []evpn.Route) iter.Seq[api.EVPNRoute] {
	return func(yield func(api.EVPNRoute) bool) {
		for _, r := range all {
			x := api.EVPNRoute{Peer: text(r.Peer), Type: r.Type, RD: r.RD, VNI: r.VNI, L3VNI: r.L3VNI, IP: text(r.IP), Gateway: text(r.Gateway), VTEP: text(r.VTEP), ESI: r.ESI,
				Sequence: r.Sequence, Sticky: r.Sticky, Targets: r.Targets, Stale: r.Stale, LeftOut: r.LeftOut}
			if !r.MAC.IsZero() {
				x.MAC = r.MAC.String()
			}
			if !r.RouterMAC.IsZero() {
				x.RouterMAC = r.RouterMAC.String()
			}
			if r.Prefix.IsValid() {
				x.Prefix = r.Prefix.String()
			}
			if !yield(x) {
				return
			}
		}
	}
}

// texts returns addresses.
func texts(list []netip.Addr) (all []string) {
	for _, a := range list {
		all = append(all, a.String())
	}
	return all
}

// text returns an address, "" for none.
func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// postEVPN lets a MAC move again.
func (s *server) postEVPN(w http.ResponseWriter, r *http.Request) error {
	x, err := readChange[api.EVPNChange](w, r)
	if err != nil {
		return err
	}
	if err := oneOf("op", x.Op, api.Clear); err != nil {
		return err
	}
	mac, err := frame.ParseMAC(x.MAC)
	if err != nil {
		return wrong(http.StatusBadRequest, "mac %q: must be a MAC such as 02:00:00:00:00:01", x.MAC)
	}
	_, sp, ok := s.evpn.read()
	if !ok {
		return noSection("evpn")
	}
	return s.change(w, r, fmt.Sprintf("%s %v vni %d", x.Op, mac, x.VNI), func() error {
		if sp == nil || !sp.ClearDuplicate(x.VNI, mac) {
			return wrong(http.StatusNotFound, "mac %v: has not moved too often in vni %d", mac, x.VNI)
		}
		return nil
	})
}

// evpnMetrics collects what the section does.
type evpnMetrics struct{ k *evpnKeeper }

var describeEVPN = described("evpn")

var (
	descEVPNUp         = describeEVPN("up", "1 if BGP runs; else 0.")
	descEVPNSession    = describeEVPN("peer_up", "1 if there is a session with a peer; else 0.", "peer")
	descEVPNPeerRoutes = describeEVPN("peer_routes", "Routes that a peer has advertised.", "peer")
	descEVPNMissing    = describeEVPN("peer_missing_routes", "Routes of a peer left out at a limit since it said all.", "peer")
	descEVPNIn         = describeEVPN("peer_received_messages_total", "Messages of BGP from a peer.", "peer")
	descEVPNOut        = describeEVPN("peer_sent_messages_total", "Messages of BGP to a peer.", "peer")
	descEVPNAdvertised = describeEVPN("advertised_routes", "Routes that the node advertises.")
	descEVPNHosts      = describeEVPN("hosts", "MACs of a segment that the node advertises.", "vni")
	descEVPNRemote     = describeEVPN("remote_hosts", "MACs of a segment that peers advertise.", "vni")
	descEVPNLeft       = describeEVPN("left_out_routes", "Routes of peers that are used nowhere.", "reason")
	descEVPNMalformed  = describeEVPN("malformed_total", "Routes and UPDATEs that were not taken.", "reason")
	descEVPNForward    = describeEVPN("es_forwards", "1 if the node is the one that forwards to a member on an Ethernet segment; else 0.", "esi", "vni")
	descEVPNOthers     = describeEVPN("es_vteps", "VTEPs of peers on an Ethernet segment of the node.", "esi")
	descEVPNDuplicates = describeEVPN("duplicate_macs", "MACs that have moved too often, and stay where they were last.")
)

// Describe implements prometheus.Collector.
func (evpnMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descEVPNUp, descEVPNSession, descEVPNPeerRoutes, descEVPNMissing, descEVPNIn, descEVPNOut, descEVPNAdvertised, descEVPNHosts, descEVPNRemote,
		descEVPNLeft, descEVPNMalformed, descEVPNForward, descEVPNOthers, descEVPNDuplicates} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m evpnMetrics) Collect(ch chan<- prometheus.Metric) {
	e, st, ok := m.k.summary()
	if !ok {
		return
	}
	to := sink(ch)
	to.gauge(descEVPNUp, one(e.State == sectionRunning))
	for _, p := range st.Peers {
		peer := cmp.Or(p.Interface, p.Addr.String())
		to.gauge(descEVPNSession, one(p.State == isEstablished), peer)
		to.gauge(descEVPNPeerRoutes, float64(p.Routes), peer)
		to.gauge(descEVPNMissing, float64(p.Missing), peer)
		to.count(descEVPNIn, p.In, peer)
		to.count(descEVPNOut, p.Out, peer)
	}
	to.gauge(descEVPNAdvertised, float64(e.Advertised))
	for _, s := range st.Segments {
		to.gauge(descEVPNHosts, float64(s.Hosts), s.VNI.String())
		to.gauge(descEVPNRemote, float64(s.Remote), s.VNI.String())
	}
	for _, es := range st.Ethernets {
		if es.Port == "" {
			continue
		}
		to.gauge(descEVPNOthers, float64(len(es.VTEPs)), es.ESI)
		for _, m := range es.Segments {
			to.gauge(descEVPNForward, one(m.Forward), es.ESI, m.VNI.String())
		}
	}
	for reason, n := range e.LeftOut {
		to.gauge(descEVPNLeft, float64(n), reason)
	}
	for reason, n := range e.Malformed {
		to.count(descEVPNMalformed, n, reason)
	}
	to.gauge(descEVPNDuplicates, float64(e.Duplicates))
}
