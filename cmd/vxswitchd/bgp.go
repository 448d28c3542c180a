package main

import (
	"iter"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/node"
)

// A bgpKeeper runs the section bgp.
type bgpKeeper struct {
	keeper[bgp.Config, *bgp.Speaker]
}

func newBGP(n *node.Node, log *slog.Logger) *bgpKeeper {
	k := new(bgpKeeper)
	k.name, k.log = "bgp", log
	k.anew = (*bgp.Config).Restarts
	k.files = (*bgp.Config).CheckFiles
	k.configure = (*bgp.Speaker).Configure
	k.make = func(c *bgp.Config) (*bgp.Speaker, error) {
		with := *c
		with.Log = log.With("section", k.name)
		sp, err := bgp.New(n, &with)
		return sp, k.withKeys(err)
	}
	return k
}

// trouble returns a line for /healthz if BGP does not run. A session that is down is none: it is a peer's as much as ours.
func (k *bgpKeeper) trouble() string {
	b, _, ok := k.read()
	if !ok || b.State == sectionRunning {
		return ""
	}
	return troubled(k.name, b.State, b.Since, b.Error)
}

// read returns what the section does, and its speaker, nil if none runs; ok is false without a section.
func (k *bgpKeeper) read() (b api.BGP, s *bgp.Speaker, ok bool) {
	cfg := k.config()
	now, ok := k.status()
	if cfg == nil || !ok { // it may be removed between the two
		return b, nil, false
	}
	b = api.BGP{State: sectionRunning, Since: now.since, AS: cfg.AS, RouterID: cfg.RouterID.String(), VRF: cfg.VRF, Announced: []string{}, Refused: map[string]int{}}
	if now.err != nil {
		b.State, b.Error, b.Again = sectionFailed, oneLine(now.err), &now.again
		return b, nil, true
	}
	return b, now.plane, true
}

// summary returns what the section does, with counts.
func (k *bgpKeeper) summary() (b api.BGP, st bgp.Status, ok bool) {
	b, s, ok := k.read()
	if s == nil {
		return b, st, ok
	}
	st = s.Status()
	b.Peers = len(st.Peers)
	for _, p := range st.Peers {
		if b.Received, b.Accepted = b.Received+p.Received, b.Accepted+p.Accepted; p.State == established {
			b.Established++
		}
	}
	for _, p := range st.Announced {
		b.Announced = append(b.Announced, p.String())
	}
	b.Refused, b.RowError = refusals(st.Refused), said(st.RowErr)
	return b, st, ok
}

// established is the state of a session with which routes are exchanged.
const established = "established"

// refusals has reasons by name.
func refusals(m map[bgp.Reason]int) map[string]int {
	by := map[string]int{}
	for r, n := range m {
		by[r.String()] = n
	}
	return by
}

func (s *server) getBGP(w http.ResponseWriter, r *http.Request) error {
	b, _, ok := s.bgp.summary()
	if !ok {
		return noSection("bgp")
	}
	return reply(w, b)
}

func (s *server) getBGPPeers(w http.ResponseWriter, r *http.Request) error {
	_, st, ok := s.bgp.summary()
	if !ok {
		return noSection("bgp")
	}
	return listOf(w, st.Peers, func(p bgp.PeerStatus) api.BGPPeer {
		x := api.BGPPeer{Address: text(p.Addr), AS: p.AS, State: p.State, HoldTime: p.Hold.Seconds(), BFD: p.BFD, Routes: p.Received, Accepted: p.Accepted, Refused: refusals(p.Refused),
			Received: p.In, Sent: p.Out, Error: p.Why}
		if !p.Since.IsZero() {
			x.Since = &p.Since
		}
		return x
	})
}

// getBGPRoutes lists routes of the node, then those of peers.
func (s *server) getBGPRoutes(w http.ResponseWriter, r *http.Request) error {
	_, sp, ok := s.bgp.read()
	if !ok {
		return noSection("bgp")
	}
	peer, one := query(r)["peer"]
	of, err := netip.ParseAddr(peer)
	if one && err != nil {
		return wrong(http.StatusBadRequest, "peer %q: must be the address of a peer", peer)
	}
	if sp == nil {
		return list(w, func(func(api.BGPRoute) bool) {})
	}
	if one {
		return list(w, peerRoutes(sp.Routes(), of.Unmap()))
	}
	cfg := s.bgp.config()
	return list(w, func(yield func(api.BGPRoute) bool) {
		for _, p := range sp.Status().Announced {
			if !yield(api.BGPRoute{Prefix: p.String(), NextHop: ownNextHop(cfg, p)}) {
				return
			}
		}
		peerRoutes(sp.Routes(), netip.Addr{})(yield)
	})
}

// ownNextHop returns the address that peers get for a prefix of the node.
func ownNextHop(c *bgp.Config, p netip.Prefix) string {
	for _, a := range c.Addresses {
		if a.Is4() == p.Addr().Is4() {
			return a.String()
		}
	}
	return ""
}

// peerRoutes returns routes of one peer, or of all.
func peerRoutes(all []bgp.Route, of netip.Addr) iter.Seq[api.BGPRoute] {
	return func(yield func(api.BGPRoute) bool) {
		for _, r := range all {
			if of.IsValid() && r.Peer != of {
				continue
			}
			x := api.BGPRoute{Prefix: r.Prefix.String(), Peer: text(r.Peer), PathID: r.PathID, NextHop: text(r.NextHop)}
			if r.Refused != bgp.None {
				x.Refused = r.Refused.String()
			} else {
				x.Via = strings.TrimPrefix(r.Via.String(), "via ")
			}
			if !yield(x) {
				return
			}
		}
	}
}
