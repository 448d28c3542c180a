package main

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/flannel"
	flanneld "github.com/vxswitch/vxswitch/flannel/daemon"
	"github.com/vxswitch/vxswitch/node"
)

// A flannelKeeper runs the section flannel.
type flannelKeeper struct {
	keeper[flanneld.Config, *flanneld.Daemon]

	store flannel.Store // of tests; nil: etcd
}

func newFlannel(n *node.Node, log *slog.Logger) *flannelKeeper {
	k := new(flannelKeeper)
	k.name, k.log = "flannel", log
	k.files = (*flanneld.Config).CheckFiles
	k.anew = func(old, next *flanneld.Config) bool {
		return old.Mode != next.Mode || old.Device != next.Device || old.SubnetFile != next.SubnetFile
	}
	var subnet flannel.Subnet // of the last lease: pods have addresses in it
	k.make = func(c *flanneld.Config) (*flanneld.Daemon, error) {
		return flanneld.New(c, &flanneld.Options{Node: n, Store: k.store, Log: log, Ready: func(s flannel.Status, mtu int) {
			if was := subnet; was != (flannel.Subnet{}) && was != s.Own.Subnet {
				log.Warn("flannel: the subnet is another one; pods with addresses of the old one are not reached", "old", was.String(), "new", s.Own.Subnet.String())
			}
			subnet = s.Own.Subnet
			log.Info("flannel: ready", "subnet", subnet.String(), "backend", s.Network.Backend.Type, "mtu", mtu)
		}})
	}
	return k
}

// States of the section flannel beside those of others; it is starting until there is a lease, and others are known.
const (
	flannelReady = "ready"
	flannelLost  = "lost" // somebody has taken the lease; another try follows
)

// read returns what the section does, and the plane's status; ok is false without a section.
func (k *flannelKeeper) read() (f api.Flannel, s flannel.Status, ok bool) {
	cfg := k.config()
	now, ok := k.status()
	if cfg == nil || !ok { // it may be removed between the two
		return f, s, false
	}
	f.State, f.Since, f.Mode = sectionStarting, now.since, cfg.Mode.String()
	f.Refused = map[string]int{}
	if d := now.plane; d != nil && d.Plane() != nil {
		s = d.Plane().Status()
		f.Error = s.LastError
		switch {
		case !s.Stale.IsZero():
			f.State, f.Since = sectionStale, s.Stale
		case d.Ready():
			f.State = flannelReady
		}
	}
	if err := now.err; err != nil {
		f.State, f.Error, f.Again = sectionFailed, oneLine(err), &now.again
		if errors.Is(err, flannel.ErrLost) {
			f.State = flannelLost
		}
		return f, flannel.Status{}, true
	}
	return f, s, true
}

// trouble returns a line for /healthz if no pods can be made. A store that is away is none: packets flow.
func (k *flannelKeeper) trouble() string {
	f, _, ok := k.read()
	if !ok || f.State == flannelReady || f.State == sectionStale {
		return ""
	}
	return troubled(k.name, f.State, f.Since, cmp.Or(f.Error, "there is no lease yet"))
}

// getFlannel answers with the state of the section.
func (s *server) getFlannel(w http.ResponseWriter, r *http.Request) error {
	f, st, ok := s.flannel.read()
	if !ok {
		return noSection("flannel")
	}
	if n := st.Network; n != nil {
		f.Network, f.Backend = n.String(), n.Backend.Type
	}
	if own := st.Own; own.Subnet != (flannel.Subnet{}) {
		l := flannelLease(own)
		f.Lease, f.Renewed = &l, &st.Renewed
		if !st.Until.IsZero() {
			f.Expires = &st.Until
		}
	}
	f.Leases, f.Misses, f.Unanswered = st.Leases, st.Misses, st.Unanswered
	for reason, n := range st.Refused {
		f.Refused[reason.String()] = n
	}
	return reply(w, f)
}

// getFlannelLeases lists the leases of other nodes.
func (s *server) getFlannelLeases(w http.ResponseWriter, r *http.Request) error {
	now, ok := s.flannel.status()
	if !ok {
		return noSection("flannel")
	}
	list := []api.FlannelLease{}
	if d := now.plane; d != nil && d.Plane() != nil && now.err == nil {
		for _, x := range d.Plane().Remotes() {
			l := api.FlannelLease{Subnet: x.Key}
			if x.Lease.Subnet != (flannel.Subnet{}) {
				l = flannelLease(x.Lease)
			}
			for _, e := range x.Refused {
				l.Refused = append(l.Refused, api.FlannelRefusal{Reason: e.Reason.String(), Detail: e.Detail})
			}
			switch {
			case !x.Followed:
			case x.Direct:
				l.Way = "direct"
			default:
				l.Way = "tunnel"
			}
			list = append(list, l)
		}
	}
	return reply(w, list)
}

// flannelLease returns what is shown of a lease.
func flannelLease(l flannel.Lease) api.FlannelLease {
	x := api.FlannelLease{Subnet: l.Subnet.String()}
	for _, e := range []flannel.End{l.IPv4, l.IPv6} {
		if e.PublicIP.IsValid() {
			x.PublicIPs = append(x.PublicIPs, e.PublicIP.String())
		}
		if mac := e.MAC.String(); !e.MAC.IsZero() && !slices.Contains(x.MACs, mac) {
			x.MACs = append(x.MACs, mac)
		}
	}
	return x
}

// flannelMetrics collects what the section does.
type flannelMetrics struct{ k *flannelKeeper }

var describeFlannel = described("flannel")

var (
	descFlannelReady      = describeFlannel("ready", "1 if there is a lease and the others are known, also while the store is away; else 0.")
	descFlannelLease      = describeFlannel("lease_info", "The node's lease: its subnet.", "subnet", "backend")
	descFlannelExpires    = describeFlannel("lease_remaining_seconds", "Time until the node's lease ends if it is not renewed.")
	descFlannelLeases     = describeFlannel("leases", "Leases of other nodes.")
	descFlannelRefused    = describeFlannel("refused_leases", "Leases of other nodes that are not followed.", "reason")
	descFlannelMisses     = describeFlannel("misses_total", "Misses of the tunnel that were heard, with generations 1 and 2.")
	descFlannelUnanswered = describeFlannel("unanswered_misses_total", "Misses for which there is no lease.")
	descFlannelStale      = describeFlannel("stale_seconds", "Time since which the store is away; 0 while it is followed.")
)

// Describe implements prometheus.Collector.
func (flannelMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descFlannelReady, descFlannelLease, descFlannelExpires, descFlannelLeases, descFlannelRefused, descFlannelMisses, descFlannelUnanswered, descFlannelStale} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m flannelMetrics) Collect(ch chan<- prometheus.Metric) {
	f, s, ok := m.k.read()
	if !ok {
		return
	}
	to := sink(ch)
	ready := f.State == flannelReady || f.State == sectionStale
	to.gauge(descFlannelReady, one(ready))
	if s.Network == nil {
		return
	}
	if s.Own.Subnet != (flannel.Subnet{}) {
		to.gauge(descFlannelLease, 1, s.Own.Subnet.String(), s.Network.Backend.Type)
		if !s.Until.IsZero() {
			to.gauge(descFlannelExpires, time.Until(s.Until).Seconds())
		}
	}
	to.gauge(descFlannelLeases, float64(s.Leases))
	for reason, n := range s.Refused {
		to.gauge(descFlannelRefused, float64(n), reason.String())
	}
	to.count(descFlannelMisses, s.Misses)
	to.count(descFlannelUnanswered, s.Unanswered)
	stale := 0.0
	if !s.Stale.IsZero() {
		stale = time.Since(s.Stale).Seconds()
	}
	to.gauge(descFlannelStale, stale)
}
