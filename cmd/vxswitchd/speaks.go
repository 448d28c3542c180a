package main

import (
	"iter"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/bgp"
)

// A spoken is what a section does by module bgp: that of its name, or calico.
type spoken struct {
	api.BGP
	status    bgp.Status
	addresses []netip.Addr       // next hops of what is announced
	routes    func() []bgp.Route // nil while no speaker runs
}

func newBGPState(since time.Time, as uint32, id netip.Addr, vrf string) api.BGP {
	return api.BGP{State: sectionRunning, Since: since, AS: as, RouterID: text(id), VRF: vrf, Announced: []string{}, Refused: map[string]int{}}
}

// speaks adds what a speaker does that runs.
func (x *spoken) speaks(st bgp.Status, routes func() []bgp.Route) {
	x.status, x.routes = st, routes
	x.Peers, x.Established = len(st.Peers), established(st.Peers)
	for _, p := range st.Peers {
		x.Received, x.Accepted = x.Received+p.Received, x.Accepted+p.Accepted
	}
	for _, p := range st.Announced {
		x.Announced = append(x.Announced, p.String())
	}
	x.Refused, x.RowError = refusals(st.Refused), said(st.RowErr)
}

// spoken returns what a section does by BGP. Two of them are never there.
func (s *server) spoken() (x spoken, err error) {
	x, ok := s.bgp.spoken()
	if !ok {
		x, ok = s.calico.spoken()
	}
	if !ok {
		err = wrong(http.StatusNotFound, "the configuration has no section bgp, nor calico with BGP")
	}
	return x, err
}

// isEstablished is the state of a session with which routes are exchanged.
const isEstablished = "established"

// established returns how many sessions there are.
func established(peers []bgp.PeerStatus) (n int) {
	for _, p := range peers {
		if p.State == isEstablished {
			n++
		}
	}
	return n
}

// refusals has reasons by name.
func refusals(m map[bgp.Reason]int) map[string]int {
	by := map[string]int{}
	for r, n := range m {
		by[r.String()] = n
	}
	return by
}

func (s *server) getBGP(w http.ResponseWriter, r *http.Request) error {
	x, err := s.spoken()
	if err != nil {
		return err
	}
	return reply(w, x.BGP)
}

func (s *server) getBGPPeers(w http.ResponseWriter, r *http.Request) error {
	x, err := s.spoken()
	if err != nil {
		return err
	}
	return listOf(w, x.status.Peers, func(p bgp.PeerStatus) api.BGPPeer {
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
	x, err := s.spoken()
	if err != nil {
		return err
	}
	peer, one := query(r)["peer"]
	of, err := netip.ParseAddr(peer)
	if one && err != nil {
		return wrong(http.StatusBadRequest, "peer %q: must be the address of a peer", peer)
	}
	if x.routes == nil {
		return list(w, func(func(api.BGPRoute) bool) {})
	}
	if one {
		return list(w, peerRoutes(x.routes(), of.Unmap()))
	}
	return list(w, func(yield func(api.BGPRoute) bool) {
		for _, p := range x.status.Announced {
			for _, a := range x.nextHops(p) {
				if !yield(api.BGPRoute{Prefix: p.String(), NextHop: a}) {
					return
				}
			}
		}
		peerRoutes(x.routes(), netip.Addr{})(yield)
	})
}

// nextHops returns the addresses that peers get for a prefix of the node, "" if there is none.
func (x *spoken) nextHops(p netip.Prefix) (list []string) {
	for _, a := range x.addresses {
		if a.Is4() == p.Addr().Is4() {
			list = append(list, a.String())
		}
	}
	if len(list) == 0 {
		return []string{""}
	}
	return list
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
