package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/cmd/internal/pcapfilter"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// getCapture sends packets until there are enough, or the client hangs up. A client that only ends its half of the connection
// gets the rest and the statistics.
func (s *server) getCapture(w http.ResponseWriter, r *http.Request) error {
	sel, err := s.selection(r)
	if err != nil {
		return err
	}
	from := whoIn(r.Context())
	if !s.captures.enter(r.Context(), from, 0) {
		return wrong(http.StatusConflict, "too many captures are running: end one")
	}
	defer s.captures.leave(from)
	var to *stream
	begun := make(chan struct{})
	file, err := s.n.Capture().Open(writer(func(b []byte) (int, error) {
		<-begun
		return to.Write(b)
	}), sel)
	if err != nil {
		return wrong(http.StatusServiceUnavailable, "%w", err)
	}
	to = newStream(w, "application/x-pcapng", 0) // nothing that comes after the answer has begun is missed
	close(begun)
	select {
	case <-r.Context().Done():
	case <-file.Done():
	}
	if file.Stop() != nil {
		panic(http.ErrAbortHandler) // do not end the answer
	}
	return nil
}

type writer func([]byte) (int, error)

func (f writer) Write(b []byte) (int, error) { return f(b) }

// selection reads what a request captures.
func (s *server) selection(r *http.Request) (*capture.Selection, error) {
	q := query(r)
	sel := &capture.Selection{Port: q["port"], Tunnel: q["tunnel"], Filter: q["filter"]}
	places := 0
	for _, k := range []string{"port", "tunnel", "vni"} {
		if _, ok := q[k]; ok {
			places++
		}
	}
	if places > 1 {
		return nil, wrong(http.StatusBadRequest, "capture: only one of port, tunnel and vni may be given")
	}
	var err error
	if sel.SnapLen, err = number(q, "snaplen", capture.DefaultSnapLen); err != nil {
		return nil, err
	}
	if sel.Count, err = number(q, "count", 1<<31-1); err != nil {
		return nil, err
	}
	link, err := s.link(q, sel)
	if err != nil {
		return nil, err
	}
	if sel.Filter != "" || sel.VNI != nil { // else all packets of a port, or a tunnel, begin alike
		sel.Match, err = matcher(sel.Filter, link, places == 0)
	}
	if err != nil {
		return nil, wrong(http.StatusBadRequest, "%w", err)
	}
	return sel, nil
}

// number reads a parameter of 1 to most; without it, 0.
func number(q map[string]string, key string, most int) (int, error) {
	v, ok := q[key]
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > most {
		return 0, wrong(http.StatusBadRequest, "%s %q: must be 1 to %d", key, v, most)
	}
	return n, nil
}

// link completes sel and returns what its packets begin with.
func (s *server) link(q map[string]string, sel *capture.Selection) (pcapfilter.Link, error) {
	sw, tunnels := s.n.Switch(), s.n.Tunnels()
	if name, ok := q["tunnel"]; ok {
		if tunnels[name] == nil {
			return 0, unknown("tunnel", name, slices.Collect(maps.Keys(tunnels)))
		}
		return pcapfilter.RawIP, nil
	}
	of := func(frame.VNI, string) bool { return false }
	if name, ok := q["port"]; ok {
		var ports []string
		for _, p := range sw.Stats().Ports {
			if p.Port != 0 && tunnels[p.Name] == nil {
				ports = append(ports, p.Name)
			}
		}
		if !slices.Contains(ports, name) {
			return 0, unknown("port", name, ports)
		}
		of = func(_ frame.VNI, port string) bool { return port == name }
	}
	if text, ok := q["vni"]; ok {
		vni, err := s.vni(text)
		if err != nil {
			return 0, err
		}
		sel.VNI = &vni
		of = func(v frame.VNI, _ string) bool { return v == vni }
	}
	return s.linkOf(of), nil
}

// linkOf is raw IP if all those attachments carry IP without Ethernet.
func (s *server) linkOf(of func(frame.VNI, string) bool) pcapfilter.Link {
	sw, ip := s.n.Switch(), map[string]bool{}
	for _, t := range s.n.Running().Tunnels {
		ip[t.Name] = t.Type.Bare()
	}
	link := pcapfilter.Ethernet
	for _, v := range sw.VSIs() {
		for _, a := range v.Attachments() {
			name := sw.Name(a.Dest(0))
			if !of(v.VNI(), name) {
				continue
			}
			if o, ok := a.Port().(vswitch.Offloader); !ip[name] && (!ok || o.Offloads()&frame.IPOnly == 0) {
				return pcapfilter.Ethernet
			}
			link = pcapfilter.RawIP
		}
	}
	return link
}

// unknown is the error for a name that is none of names.
func unknown(what, name string, names []string) error {
	const most = 20
	slices.Sort(names)
	switch n := len(names); {
	case n == 0:
		return wrong(http.StatusNotFound, "%s %q: there is none", what, name)
	case n > most:
		names = append(names[:most], fmt.Sprintf("and %d more", n-most))
	}
	return wrong(http.StatusNotFound, "%s %q: must be one of %s", what, name, strings.Join(names, ", "))
}

// matcher compiles a filter for packets of a link. Others are left out, so that a file has one link type, as tcpdump needs.
// With both, the filter is for Ethernet, and takes packets of IP if it needs nothing of Ethernet.
func matcher(text string, link pcapfilter.Link, both bool) (func(frame.Kind, []byte) bool, error) {
	f, err := pcapfilter.New(text, link)
	if err != nil {
		return nil, err
	}
	var other *pcapfilter.Filter
	if both {
		other, _ = pcapfilter.New(text, pcapfilter.RawIP)
	}
	return func(kind frame.Kind, packet []byte) bool {
		if (kind == frame.Ethernet) == (link == pcapfilter.Ethernet) {
			return f.Match(packet)
		}
		return other != nil && other.Match(packet)
	}, nil
}
