package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/vxswitch/vxswitch/metrics"
	"github.com/vxswitch/vxswitch/node"
)

// Limits for clients of -metrics.
const (
	maxScrapers = 32 // connections
	maxScrapes  = 2  // at a time
)

// metricsAddr parses the value of -metrics. Without a host it is an address of the loopback interface.
func metricsAddr(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err == nil && host == "" {
		host = "127.0.0.1"
	}
	a, e := netip.ParseAddrPort(net.JoinHostPort(host, port))
	if err != nil || e != nil {
		return "", fmt.Errorf("-metrics %q: must be an address and a TCP port such as 127.0.0.1:9470, or a port such as :9470 for this host alone", text)
	}
	return a.String(), nil
}

// described returns what makes the descriptions of a section's metrics.
func described(section string) func(name, help string, labels ...string) *prometheus.Desc {
	return func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("vxswitch_"+section+"_"+name, help, labels, nil)
	}
}

// A sink takes what a Collector collects.
type sink chan<- prometheus.Metric

func (s sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (s sink) count(d *prometheus.Desc, n uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

// one is the value of a gauge that is 1 or 0.
func one(is bool) float64 { return map[bool]float64{true: 1}[is] }

// A monitor serves /metrics and /healthz over TCP.
type monitor struct {
	http   http.Server
	l      net.Listener
	serves sync.WaitGroup
}

// monitored starts a monitor, nil without an address.
func monitored(addr string, n *node.Node, s *server) (*monitor, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("-metrics: %w", adviseMetrics(err))
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.New(metrics.OfNode(n)), flowMetrics{n}, flannelMetrics{s.flannel}, evpnMetrics{s.evpn}, bgpMetrics{s}, calicoMetrics{s.calico}, ovsdbMetrics{s.ovsdb}, discoveryMetrics{s.discovery}, collectors.NewBuildInfoCollector(),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	scrape := scrapes(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("GET /metrics", http.TimeoutHandler(scrape, listing, "the scrape has timed out\n")) // who reads slowly has no place meanwhile
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		health(w, n.Down(), n.TunnelsDown(), s.flannel.trouble(), s.evpn.trouble(), s.bgp.trouble(), s.calico.trouble(), s.ovsdb.trouble(), s.discovery.trouble())
	})
	m := &monitor{l: l, http: http.Server{
		Handler: mux, ReadTimeout: stalled, WriteTimeout: 2 * listing, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 8 << 10,
		ConnContext: withWho, ErrorLog: log.New(io.Discard, "", 0),
	}}
	m.serves.Go(func() { m.http.Serve(&limited{Listener: l, conns: newGate(maxScrapers)}) })
	return m, nil
}

// scrapes limits those at a time, of each client to one. Others wait in turn. It leaves half of the time to frames, as for tables.
func scrapes(h http.Handler) http.Handler {
	places := newGate(maxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := whoIn(r.Context())
		if !places.enter(r.Context(), from, stalled) {
			http.Error(w, "too many scrapes: try again later", http.StatusServiceUnavailable)
			return
		}
		begin := time.Now()
		defer func() {
			time.AfterFunc(min(time.Since(begin), time.Second), func() { places.leave(from) })
		}()
		h.ServeHTTP(w, r)
	})
}

// health answers with "ok", or with status 503 and a line for each port and tunnel that is down, and others.
func health(w http.ResponseWriter, down []node.DownPort, tunnels map[string]error, more ...string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	more = slices.DeleteFunc(more, func(line string) bool { return line == "" })
	if len(down)+len(tunnels)+len(more) == 0 {
		io.WriteString(w, "ok\n")
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	for _, p := range down {
		fmt.Fprintf(w, "port %s is down since %s: %v\n", p.Name, p.Since.UTC().Format(time.RFC3339), oneLine(p.Err))
	}
	for _, name := range slices.Sorted(maps.Keys(tunnels)) {
		fmt.Fprintf(w, "tunnel %s is down until the next change: %v\n", name, oneLine(tunnels[name]))
	}
	for _, line := range more {
		fmt.Fprintln(w, line)
	}
}

// at returns the address as a word of the ready line, "" for nil.
func (m *monitor) at() string {
	if m == nil {
		return ""
	}
	return " metrics=" + m.l.Addr().String()
}

// close ends scrapes after a moment.
func (m *monitor) close() {
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if m.http.Shutdown(ctx) != nil {
		m.http.Close()
	}
	m.serves.Wait()
}
