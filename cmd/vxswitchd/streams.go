package main

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// Lines per second of a stream.
const (
	maxEvents = 20_000
	maxTraced = 2_000
)

func shownEvent(e frame.Event) api.Event {
	x := api.Event{Time: e.Time, Event: e.Kind.String(), Pinned: e.Pinned, Dest: e.Name, Old: e.OldName}
	switch e.Kind {
	case frame.EventOverflow, frame.EventPortUp, frame.EventPortDown, frame.EventPeerUp, frame.EventPeerDown, frame.EventLocalChanged:
	default:
		x.VNI = &e.VNI
	}
	for to, m := range map[*string]frame.MAC{&x.MAC: e.MAC, &x.OldMAC: e.OldMAC} {
		if !m.IsZero() {
			*to = m.String()
		}
	}
	if e.IP.IsValid() {
		x.IP = e.IP.String()
	}
	if e.Err != nil {
		x.Error = e.Err.Error()
	}
	return x
}

func (s *server) getTrace(w http.ResponseWriter, r *http.Request) error {
	cfg, err := s.traceConfig(r)
	if err != nil {
		return err
	}
	if !s.tracing.CompareAndSwap(false, true) {
		return wrong(http.StatusConflict, "another trace is running: end it first")
	}
	defer s.tracing.Store(false)
	sw := s.n.Switch()
	t, err := sw.Trace(&cfg)
	if err != nil {
		return wrong(http.StatusBadRequest, "%w", err)
	}
	defer t.Close()
	each(r.Context(), newStream(w, "application/x-ndjson", maxTraced), t.Next, func(x vswitch.TraceRecord) any {
		return shownRecord(sw, x, t.Lost())
	})
	return nil
}

func (s *server) traceConfig(r *http.Request) (cfg vswitch.TraceConfig, err error) {
	q := query(r)
	if v, ok := q["every"]; ok {
		if cfg.Every, err = strconv.Atoi(v); err != nil || cfg.Every < 1 {
			return cfg, wrong(http.StatusBadRequest, "every %q: must be 1 or more", v)
		}
	}
	if v, ok := q["mac"]; ok {
		if cfg.MAC, err = frame.ParseMAC(v); err != nil {
			return cfg, wrong(http.StatusBadRequest, "mac %q: must be a MAC such as 02:00:00:00:00:01", v)
		}
	}
	if v, ok := q["vni"]; ok {
		vni, err := s.vni(v)
		if err != nil {
			return cfg, err
		}
		cfg.VNI = &vni
	}
	if v, ok := q["dest"]; ok {
		cfg.Dest, err = s.dest(v)
	}
	return cfg, err
}

// vni parses the VNI of a segment, or of BFD inside a tunnel.
func (s *server) vni(text string) (frame.VNI, error) {
	n, err := strconv.ParseUint(text, 10, 24)
	if err != nil {
		return 0, wrong(http.StatusBadRequest, "vni %q: must be 0 to %d", text, frame.MaxVNI)
	}
	_, err = vsiOf(s.n.Switch().VSIs(), frame.VNI(n))
	return frame.VNI(n), err
}

// dest returns a port or tunnel by name, or a peer by address.
func (s *server) dest(what string) (frame.Dest, error) {
	addr, err := netip.ParseAddr(what)
	if to, e := netip.ParseAddrPort(what); e == nil {
		addr, err = to.Addr(), nil
	}
	tunnels := s.n.Tunnels()
	for _, p := range s.n.Switch().Stats().Ports {
		if p.Name == what && p.Port != 0 {
			return frame.NewDest(p.Port, 0), nil
		}
		if v := tunnels[p.Name]; err == nil && v != nil {
			for _, x := range v.Stats().Peers {
				if x.Addr.Addr() == addr.Unmap() {
					return frame.NewDest(p.Port, x.Peer), nil
				}
			}
		}
	}
	return 0, wrong(http.StatusNotFound, "dest %q: no such port, tunnel or peer", what)
}

func shownRecord(sw *vswitch.Switch, r vswitch.TraceRecord, lost uint64) api.TraceRecord {
	x := api.TraceRecord{Time: r.Time, From: sw.Name(r.From), VNI: r.VNI, Len: r.Len, Lost: lost}
	switch r.Kind {
	case frame.IPv4:
		x.Type = "0800"
	case frame.IPv6:
		x.Type = "86dd"
	default:
		x.Src, x.Dst, x.Type = r.Src.String(), r.Dst.String(), fmt.Sprintf("%04x", r.Type)
	}
	switch v := r.Verdict; v.Action() {
	case frame.ActForward:
		x.Verdict, x.To = "forward", sw.Name(v.Dest())
	case frame.ActDrop:
		x.Verdict, x.Reason = "drop", v.Reason().String()
	default:
		x.Verdict = v.String()
	}
	return x
}
