package main

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/cmd/internal/file"
	"github.com/vxswitch/vxswitch/discovery"
	"github.com/vxswitch/vxswitch/node"
)

// A discoveryKeeper runs the section discovery.
type discoveryKeeper struct {
	keeper[file.Discovery, *discovery.Speaker]
}

func newDiscovery(n *node.Node, log *slog.Logger) *discoveryKeeper {
	k := new(discoveryKeeper)
	k.name, k.log = "discovery", log
	k.files = (*file.Discovery).CheckFiles
	k.anew = (*file.Discovery).Restarts
	k.configure = func(s *discovery.Speaker, d *file.Discovery) error { return s.Configure(&d.Config) }
	k.make = func(d *file.Discovery) (*discovery.Speaker, error) {
		return d.New(n, func(c *discovery.Config) { c.Log = log.With("section", k.name) })
	}
	return k
}

// read returns what the section does, and its speaker, nil if none runs; ok is false without a section.
func (k *discoveryKeeper) read() (d api.Discovery, s *discovery.Speaker, ok bool) {
	cfg := k.config()
	now, ok := k.status()
	if cfg == nil || !ok { // it may be removed between the two
		return d, nil, false
	}
	d = api.Discovery{State: sectionRunning, Since: now.since, Local: cfg.Local.String(), Network: cfg.Network,
		Servers: []api.DiscoveryServer{}, Segments: []api.DiscoverySegment{}, Refused: map[string]uint64{}}
	if now.err != nil {
		d.State, d.Error, d.Again = sectionFailed, oneLine(now.err), &now.again
		return d, nil, true
	}
	return d, now.plane, true
}

// summary returns what the section does, with counts.
func (k *discoveryKeeper) summary() (d api.Discovery, st discovery.Status, ok bool) {
	d, s, ok := k.read()
	if s == nil {
		return d, st, ok
	}
	st = s.Status()
	for _, x := range st.Servers {
		d.Servers = append(d.Servers, api.DiscoveryServer{Address: x.Addr.String(), Up: x.Up, Clients: x.Clients})
	}
	if r := st.Registry; r != nil {
		d.Registry = &api.DiscoveryRegistry{Up: r.Up, VTEPs: r.VTEPs, Error: r.Error}
	}
	for _, x := range st.Neighbours {
		if d.Neighbours++; x.Up {
			d.Up++
		}
	}
	for _, x := range st.Segments {
		d.Segments = append(d.Segments, api.DiscoverySegment(x))
	}
	d.Clients, d.Owners, d.Advertisements = st.Clients, st.Owners, st.Advertisements
	d.Refused, d.RowError = st.Refused, said(st.RowErr)
	d.Received, d.ReceivedBytes, d.Sent, d.SentBytes = st.Received, st.ReceivedBytes, st.Sent, st.SentBytes
	return d, st, ok
}

func (s *server) getDiscovery(w http.ResponseWriter, r *http.Request) error {
	d, _, ok := s.discovery.summary()
	if !ok {
		return noSection("discovery")
	}
	return reply(w, d)
}

func (s *server) getDiscoveryNeighbours(w http.ResponseWriter, r *http.Request) error {
	_, st, ok := s.discovery.summary()
	if !ok {
		return noSection("discovery")
	}
	return listOf(w, st.Neighbours, func(x discovery.NeighbourStatus) api.DiscoveryNeighbour {
		return api.DiscoveryNeighbour{Address: x.Addr.String(), Name: x.Name, Listed: x.Listed, Up: x.Up, Since: x.Since}
	})
}

func (s *server) getDiscoveryHosts(w http.ResponseWriter, r *http.Request) error {
	_, sp, ok := s.discovery.read()
	if !ok {
		return noSection("discovery")
	}
	return list(w, func(yield func(api.DiscoveryHost) bool) {
		if sp == nil {
			return
		}
		for h := range sp.Hosts() {
			if !yield(api.DiscoveryHost{VNI: h.VNI, MAC: h.MAC.String(), VTEP: h.VTEP.String(), Kind: h.Kind, Moves: h.Moves}) {
				return
			}
		}
	})
}

// discoveryMetrics collects what the section does.
type discoveryMetrics struct{ k *discoveryKeeper }

var describeDiscovery = described("discovery")

var (
	descDiscoveryUp         = describeDiscovery("up", "1 if the section runs; else 0.")
	descDiscoveryServer     = describeDiscovery("server_up", "1 if a server answers; else 0.", "server")
	descDiscoveryRegistry   = describeDiscovery("registry_up", "1 if the list of etcd is as it is now; else 0.")
	descDiscoveryClients    = describeDiscovery("clients", "VTEPs that are registered with the node.")
	descDiscoveryNeighbours = describeDiscovery("neighbours", "VTEPs to talk to, that are up or down.", "state")
	descDiscoveryOwners     = describeDiscovery("owners", "VTEPs that advertise something, with the node.")
	descDiscoveryAdverts    = describeDiscovery("advertisements", "Advertisements of all VTEPs.")
	descDiscoveryHosts      = describeDiscovery("hosts", "MACs of a segment that the node advertises.", "vni")
	descDiscoveryRemote     = describeDiscovery("remote_hosts", "MACs of a segment that others advertise.", "vni")
	descDiscoveryIn         = describeDiscovery("received_datagrams_total", "Datagrams received.")
	descDiscoveryInBytes    = describeDiscovery("received_bytes_total", "Bytes received, without headers of UDP.")
	descDiscoveryOut        = describeDiscovery("sent_datagrams_total", "Datagrams sent.")
	descDiscoveryOutBytes   = describeDiscovery("sent_bytes_total", "Bytes sent, without headers of UDP.")
	descDiscoveryRefused    = describeDiscovery("refused_total", "Datagrams that were refused, and hosts without room.", "reason")
)

// Describe implements prometheus.Collector.
func (discoveryMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descDiscoveryUp, descDiscoveryServer, descDiscoveryRegistry, descDiscoveryClients, descDiscoveryNeighbours, descDiscoveryOwners,
		descDiscoveryAdverts, descDiscoveryHosts, descDiscoveryRemote, descDiscoveryIn, descDiscoveryInBytes, descDiscoveryOut, descDiscoveryOutBytes,
		descDiscoveryRefused} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m discoveryMetrics) Collect(ch chan<- prometheus.Metric) {
	d, _, ok := m.k.summary()
	if !ok {
		return
	}
	to := sink(ch)
	to.gauge(descDiscoveryUp, one(d.State == sectionRunning))
	for _, x := range d.Servers {
		to.gauge(descDiscoveryServer, one(x.Up), x.Address)
	}
	if d.Registry != nil {
		to.gauge(descDiscoveryRegistry, one(d.Registry.Up))
	}
	to.gauge(descDiscoveryClients, float64(d.Clients))
	to.gauge(descDiscoveryNeighbours, float64(d.Up), "up")
	to.gauge(descDiscoveryNeighbours, float64(d.Neighbours-d.Up), "down")
	to.gauge(descDiscoveryOwners, float64(d.Owners))
	to.gauge(descDiscoveryAdverts, float64(d.Advertisements))
	for _, x := range d.Segments {
		to.gauge(descDiscoveryHosts, float64(x.Hosts), x.VNI.String())
		to.gauge(descDiscoveryRemote, float64(x.Remote), x.VNI.String())
	}
	to.count(descDiscoveryIn, d.Received)
	to.count(descDiscoveryInBytes, d.ReceivedBytes)
	to.count(descDiscoveryOut, d.Sent)
	to.count(descDiscoveryOutBytes, d.SentBytes)
	for reason, n := range d.Refused {
		to.count(descDiscoveryRefused, n, reason)
	}
}
