package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/cmd/internal/file"
	"github.com/vxswitch/vxswitch/node"
)

// Limits for clients.
const (
	maxConns   = 64                    // connections
	maxStreams = 16                    // streams among them
	maxCapture = 4                     // captures among those; each has a buffer
	maxTables  = 3                     // tables at a time
	maxChanges = 3                     // waiting changes; one is made at a time
	perRequest = 5 * time.Millisecond  // average time between requests
	maxRefused = 16                    // connections refused per millisecond
	maxBurst   = 64                    // requests in a burst
	maxBody    = 64 << 10              // bytes
	maxDiscard = 16 * maxFile          // bytes of a file that is too long, read so that the client reads the answer
	stalled    = 5 * time.Second       // write timeout of streams
	listing    = 15 * time.Second      // write timeout of tables
	tidy       = 10 * time.Millisecond // delay to collect lines of a stream
)

// A server serves the control socket. Clients cannot delay frames.
type server struct {
	n      *node.Node
	reload func() error
	apply  func(*file.Config) error

	flannel *flannelKeeper
	evpn    *evpnKeeper
	bgp     *bgpKeeper
	calico  *calicoKeeper
	ovsdb   *ovsdbKeeper

	discovery *discoveryKeeper

	http    http.Server
	end     context.CancelFunc // of every stream
	serves  sync.WaitGroup
	conns   *gate
	tables  *gate
	changes *gate
	stream  *gate
	rate    *rate

	captures *gate

	changing sync.Mutex // one change at a time
	tracing  atomic.Bool
}

// newServer returns a server whose sections write to the logger; reload and apply change the node.
func newServer(n *node.Node, to *slog.Logger, reload func() error, apply func(*file.Config) error) *server {
	s := &server{
		n: n, reload: reload, apply: apply, flannel: newFlannel(n, to), evpn: newEVPN(n, to), bgp: newBGP(n, to), calico: newCalico(n, to), ovsdb: newOVSDB(n, to), discovery: newDiscovery(n, to), rate: newRate(),
		conns: newGate(maxConns), tables: newGate(maxTables), changes: newGate(maxChanges), stream: newGate(maxStreams), captures: newGate(maxCapture),
	}
	mux := http.NewServeMux()
	handlers := s.handlers()
	for _, x := range api.Requests {
		pattern, limited := x.Method+" "+x.Path, s.plain
		switch {
		case x.Stream:
			limited = s.streaming
		case x.Method == http.MethodGet:
			limited = s.table
		}
		mux.Handle(pattern, limited(checked(x, handlers[pattern])))
	}
	mux.Handle("/", s.plain(func(_ http.ResponseWriter, r *http.Request) error {
		var methods, paths []string
		for _, x := range api.Requests {
			paths = append(paths, x.Path)
			if _, at := mux.Handler(&http.Request{Method: x.Method, URL: r.URL}); at == x.Method+" "+x.Path {
				methods = append(methods, x.Method)
			}
		}
		if methods != nil {
			return wrong(http.StatusMethodNotAllowed, "%s %s: method must be one of %s", r.Method, r.URL.Path, strings.Join(methods, ", "))
		}
		slices.Sort(paths)
		return wrong(http.StatusNotFound, "%s: not found; must be one of %s", r.URL.Path, strings.Join(slices.Compact(paths), ", "))
	}))
	ctx, cancel := context.WithCancel(context.Background())
	s.end = cancel
	s.http = http.Server{
		Handler: mux, ReadTimeout: stalled, WriteTimeout: listing, IdleTimeout: 2 * stalled, MaxHeaderBytes: 8 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, ConnContext: withWho,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	return s
}

// config returns the configuration of the node and the sections that run.
func (s *server) config() *file.Config {
	return &file.Config{Config: *s.n.Config(), Flannel: s.flannel.config(), EVPN: s.evpn.config(), BGP: s.bgp.config(), Calico: s.calico.config(), OVSDB: s.ovsdb.config(), Discovery: s.discovery.config()}
}

// handlers has what answers each of [api.Requests].
func (s *server) handlers() map[string]answer {
	return map[string]answer{
		"GET /v1/fdb":     s.getFDB,
		"GET /v1/neigh":   s.getNeigh,
		"GET /v1/mdb":     s.getMDB,
		"GET /v1/route":   s.getRoute,
		"GET /v1/vtep":    s.getVTEP,
		"GET /v1/port":    s.getPort,
		"GET /v1/flood":   s.getFlood,
		"GET /v1/vni":     s.getVNI,
		"GET /v1/bfd":     s.getBFD,
		"GET /v1/flows":   s.getFlows,
		"GET /v1/waiting": s.getWaiting,
		"GET /v1/policy":  s.getPolicy,
		"GET /v1/drops":   s.getDrops,
		"GET /v1/stats":   s.getStats,

		"GET /v1/flannel":        s.getFlannel,
		"GET /v1/flannel/leases": s.getFlannelLeases,

		"GET /v1/evpn":            s.getEVPN,
		"GET /v1/evpn/peers":      s.getEVPNPeers,
		"GET /v1/evpn/vni":        s.getEVPNSegments,
		"GET /v1/evpn/es":         s.getEVPNEthernets,
		"GET /v1/evpn/routes":     s.getEVPNRoutes,
		"GET /v1/evpn/duplicates": s.getEVPNDuplicates,
		"POST /v1/evpn":           s.postEVPN,

		"GET /v1/bgp":        s.getBGP,
		"GET /v1/bgp/peers":  s.getBGPPeers,
		"GET /v1/bgp/routes": s.getBGPRoutes,

		"GET /v1/calico": s.getCalico,

		"GET /v1/ovsdb":         s.getOVSDB,
		"GET /v1/ovsdb/leftout": s.getOVSDBLeftOut,

		"GET /v1/discovery":            s.getDiscovery,
		"GET /v1/discovery/neighbours": s.getDiscoveryNeighbours,
		"GET /v1/discovery/hosts":      s.getDiscoveryHosts,

		"GET /v1/config":                  s.getConfig,
		"PUT /v1/config":                  s.putConfig,
		"GET /v1/config/{list}/{name}":    s.getPart,
		"PUT /v1/config/{list}/{name}":    s.putPart,
		"DELETE /v1/config/{list}/{name}": s.deletePart,
		"POST /v1/fdb":                    s.postFDB,
		"POST /v1/neigh":                  s.postNeigh,
		"POST /v1/route":                  s.postRoute,
		"POST /v1/port":                   s.postPort,
		"POST /v1/reload":                 s.postReload,

		"GET /v1/monitor": s.getMonitor,
		"GET /v1/trace":   s.getTrace,
		"GET /v1/capture": s.getCapture,
	}
}

// listen serves a socket until it is closed.
func (s *server) listen(l *socket) {
	s.serves.Go(func() { s.http.Serve(&limited{Listener: l, conns: s.conns}) })
}

// close ends all requests and waits for streams, which use the switch.
func (s *server) close() {
	s.end()
	s.http.Close()
	s.serves.Wait()
	s.stream.empty()
}

// An answer writes to w or returns an error to send.
type answer func(w http.ResponseWriter, r *http.Request) error

// A failure is an error with an HTTP status.
type failure struct {
	status int
	error
}

func (f failure) Unwrap() error { return f.error }

func wrong(status int, format string, args ...any) error {
	return failure{status, fmt.Errorf(format, args...)}
}

func (s *server) plain(f answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := s.rate.wait(r.Context())
		if err != nil { // the client has disconnected
			err = wrong(http.StatusServiceUnavailable, "cancelled while waiting: %w", err)
		} else {
			err = f(w, r)
		}
		if err != nil {
			refuse(w, err)
		}
	})
}

// table limits answers that read whole tables.
func (s *server) table(f answer) http.Handler {
	return s.plain(func(w http.ResponseWriter, r *http.Request) error {
		from := whoIn(r.Context())
		if !s.tables.enter(r.Context(), from, stalled) {
			return wrong(http.StatusServiceUnavailable, "too many table requests: try again later")
		}
		begin := time.Now()
		defer func() { // leave half of the time to frames
			time.AfterFunc(min(time.Since(begin), time.Second), func() { s.tables.leave(from) })
		}()
		return f(&watched{w, http.NewResponseController(w), begin.Add(listing)}, r)
	})
}

// A watched is an answer that is sent in parts, until the client has read nothing for a while.
type watched struct {
	http.ResponseWriter
	rc   *http.ResponseController
	most time.Time // for all of it
}

func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watched) Write(b []byte) (n int, err error) {
	const part = 32 << 10
	for first := true; err == nil && (first || n < len(b)); first = false {
		by := time.Now().Add(stalled)
		if w.most.Before(by) {
			by = w.most
		}
		w.rc.SetWriteDeadline(by)
		var k int
		k, err = w.ResponseWriter.Write(b[n:min(n+part, len(b))])
		n += k
	}
	return n, err
}

// streaming limits answers that last until the client disconnects.
func (s *server) streaming(f answer) http.Handler {
	return s.plain(func(w http.ResponseWriter, r *http.Request) error {
		from := whoIn(r.Context())
		if !s.stream.enter(r.Context(), from, 0) {
			return wrong(http.StatusServiceUnavailable, "too many streams: end one")
		}
		defer s.stream.leave(from)
		http.NewResponseController(w).SetReadDeadline(time.Time{})
		return f(w, r)
	})
}

// change makes one change at a time, and says what was done.
func (s *server) change(w http.ResponseWriter, r *http.Request, done string, f func() error) error {
	if err := s.turn(r, func() error { return s.alone(f) }); err != nil {
		return err
	}
	return reply(w, api.Done{Done: done})
}

// alone runs f while no other change is made.
func (s *server) alone(f func() error) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return f()
}

// turn limits the requests that change something or have long bodies.
func (s *server) turn(r *http.Request, f func() error) error {
	from := whoIn(r.Context())
	if !s.changes.enter(r.Context(), from, stalled) {
		return wrong(http.StatusServiceUnavailable, "too many changes: try again later")
	}
	defer s.changes.leave(from)
	return f()
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if f := (failure{}); errors.As(err, &f) {
		status = f.status
	}
	answer := api.Error{Text: strings.ReplaceAll(err.Error(), "\n", "; ")}
	if lines := (fileError{}); errors.As(err, &lines) {
		answer.Lines = lines
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(answer)
}

// reply answers with a value in JSON.
func reply(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
	return nil
}

// checked refuses a query that cannot be read, and parameters that a request has not.
func checked(x api.Request, f answer) answer {
	return func(w http.ResponseWriter, r *http.Request) error {
		q, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil { // URL.Query would leave out what is wrong
			return wrong(http.StatusBadRequest, "%s: query: %w", r.URL.Path, err)
		}
		for k, v := range q {
			switch {
			case slices.Contains(x.Params, k) && len(v) > 1:
				return wrong(http.StatusBadRequest, "%s: %s: duplicate parameter", r.URL.Path, k)
			case slices.Contains(x.Params, k):
			case len(x.Params) == 0:
				return wrong(http.StatusBadRequest, "%s: unknown parameter %q", r.URL.Path, k)
			default:
				return wrong(http.StatusBadRequest, "%s: unknown parameter %q; must be one of %s", r.URL.Path, k, strings.Join(x.Params, ", "))
			}
		}
		return f(w, r)
	}
}

// query returns the parameters of a request.
func query(r *http.Request) api.Query {
	q := api.Query{}
	for k, v := range r.URL.Query() {
		q[k] = v[0]
	}
	return q
}
