package main

import (
	"log/slog"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/ovsdb"
)

// An ovsdbKeeper runs the section ovsdb.
type ovsdbKeeper struct {
	keeper[ovsdb.Config, *ovsdb.Switch]
}

func newOVSDB(n *node.Node, log *slog.Logger) *ovsdbKeeper {
	k := new(ovsdbKeeper)
	k.name, k.log = "ovsdb", log
	k.anew = func(old, next *ovsdb.Config) bool {
		// A port that is taken out may leave the node, too, which refuses that while it is in a segment of the controller.
		gone := func(p string) bool { return !slices.Contains(next.Ports, p) }
		return old.Restarts(next) || slices.ContainsFunc(old.Ports, gone)
	}
	k.configure = (*ovsdb.Switch).Configure
	k.make = func(c *ovsdb.Config) (*ovsdb.Switch, error) {
		with := *c
		with.Log = log.With("section", k.name)
		return ovsdb.New(n, &with)
	}
	return k
}

// read returns what the section does; ok is false without a section.
func (k *ovsdbKeeper) read() (o api.OVSDB, st ovsdb.Status, ok bool) {
	cfg := k.config()
	now, ok := k.status()
	if cfg == nil || !ok { // it may be removed between the two
		return o, st, false
	}
	o = api.OVSDB{State: ovsdb.Connecting, Since: now.since, Target: cfg.Where(), Switch: cfg.Name, LeftOut: map[string]int{}, Refused: map[string]string{}}
	switch {
	case now.err != nil:
		o.State, o.Error, o.Again = sectionFailed, oneLine(now.err), &now.again
		return o, st, true
	case now.plane == nil:
		return o, st, true
	}
	st = now.plane.Status()
	o.State, o.Since, o.Stale, o.Segments, o.Rows, o.Hosts = st.State, st.Since, st.Stale, st.Segments, st.Rows, st.Hosts
	o.Error, o.RowError, o.WriteError = said(st.Err), said(st.RowErr), said(st.WriteErr)
	o.Transactions, o.Failed = st.Transactions, st.Failed
	for reason, n := range st.LeftOut {
		o.LeftOut[reason] = n
	}
	for name, err := range st.Refused {
		o.Refused[name] = oneLine(err)
	}
	return o, st, true
}

// trouble returns a line for /healthz if the node knows of no controller. A database that is away later is none: what it said last holds.
func (k *ovsdbKeeper) trouble() string {
	o, _, ok := k.read()
	if !ok {
		return ""
	}
	return ovsdbTrouble(o)
}

func ovsdbTrouble(o api.OVSDB) string {
	why := "the database has not answered yet"
	switch {
	case o.State == ovsdb.Connected || o.Stale:
		return ""
	case o.Error != "":
		why = o.Error
	}
	return troubled("ovsdb", o.State, o.Since, why)
}

func (s *server) getOVSDB(w http.ResponseWriter, r *http.Request) error {
	o, _, ok := s.ovsdb.read()
	if !ok {
		return noSection("ovsdb")
	}
	return reply(w, o)
}

func (s *server) getOVSDBLeftOut(w http.ResponseWriter, r *http.Request) error {
	_, st, ok := s.ovsdb.read()
	if !ok {
		return noSection("ovsdb")
	}
	return listOf(w, st.Left, func(l ovsdb.Left) api.OVSDBRow { return api.OVSDBRow{Table: l.Table, UUID: l.ID, Reason: l.Reason} })
}

// ovsdbMetrics collects what the section does.
type ovsdbMetrics struct{ k *ovsdbKeeper }

var describeOVSDB = described("ovsdb")

var (
	descOVSDBUp       = describeOVSDB("up", "1 if the node is connected with the database, as its switch; else 0.")
	descOVSDBSegments = describeOVSDB("segments", "Logical switches that the node has.")
	descOVSDBRows     = describeOVSDB("rows", "MACs, neighbours and flood lists of the controller.")
	descOVSDBHosts    = describeOVSDB("hosts", "MACs of the node in the database, with each of their addresses.")
	descOVSDBLeft     = describeOVSDB("left_out_rows", "Rows of the database without effect.", "reason")
	descOVSDBRefused  = describeOVSDB("refused_segments", "Logical switches that the node refuses.")
	descOVSDBSent     = describeOVSDB("transactions_total", "Transactions of the node.")
	descOVSDBFailed   = describeOVSDB("failed_transactions_total", "Transactions of the node that the database refused.")
)

// Describe implements prometheus.Collector.
func (ovsdbMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descOVSDBUp, descOVSDBSegments, descOVSDBRows, descOVSDBHosts, descOVSDBLeft, descOVSDBRefused, descOVSDBSent, descOVSDBFailed} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m ovsdbMetrics) Collect(ch chan<- prometheus.Metric) {
	o, _, ok := m.k.read()
	if !ok {
		return
	}
	to := sink(ch)
	to.gauge(descOVSDBUp, one(o.State == ovsdb.Connected))
	to.gauge(descOVSDBSegments, float64(o.Segments))
	to.gauge(descOVSDBRows, float64(o.Rows))
	to.gauge(descOVSDBHosts, float64(o.Hosts))
	to.gauge(descOVSDBRefused, float64(len(o.Refused)))
	for reason, n := range o.LeftOut {
		to.gauge(descOVSDBLeft, float64(n), reason)
	}
	to.count(descOVSDBSent, o.Transactions)
	to.count(descOVSDBFailed, o.Failed)
}
