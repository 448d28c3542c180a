package table

import (
	"bytes"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/mobility"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// A host is a MAC of a segment: whose it is, and what is known of it.
type host struct {
	s      *segment
	mac    frame.MAC
	claims []*path // of peers
	slot   slot    // in segment.far
	late   latecomers
	group  *group // nil = the claim that counts is on no Ethernet segment

	here     bool         // the switch has it on a port
	static   bool         // and the configuration says so
	claimed  bool         // we say that it is here: no claim of a peer counts
	unseen   bool         // since Mark
	absent   bool         // the port is without a carrier: see absent.go
	override bool         // a row of ours replaces what the switch has learned
	dest     frame.Dest   // 0 for a static one
	sequence uint32       // of our claim
	addrs    []address    // that it has said
	fixed    []address    // that are configured
	held     []route.Addr // addresses that heldIn counts as here
	heldIn   *vrf
	moves    *mobility.Host // nil = it was never here
	told     []route.Key
}

// An address is what a host here has said by ARP or ND.
type address struct {
	ip     route.Addr
	router bool
	unseen bool // since Mark
}

// useHost adds a path to a host of a segment.
func (t *Table) useHost(now time.Duration, s *segment, p *path) (left string) {
	if left := s.unfitHost(p); left != "" {
		return left
	}
	h := s.hosts[p.MAC]
	if h == nil || len(h.claims) == 0 {
		if !s.far.room(p.VTEP, t.cfg.MaxHosts, func(x *host) { x.evict(t, now) }) {
			return leftSegmentLimit
		}
	} else if len(h.claims) >= t.maxClaims() {
		h.late.add(p)
		return leftAddressLimit
	}
	h = s.host(p.MAC)
	if len(h.claims) == 0 && h.here && !h.claimed && !h.static {
		h.override = true // a duplicate that nobody had
	}
	h.claims = append(h.claims, p)
	s.far.settle(&h.slot, h.claims, h)
	h.contest(t, now)
	t.touch(h)
	return ""
}

// unfitHost returns why a path cannot be used in a segment.
func (s *segment) unfitHost(p *path) string {
	if !p.MAC.IsHost() {
		return leftMAC
	}
	if _, ok := label(p.Labels[0], s.VNI); !ok || p.NumLabels == 0 {
		return leftLabel
	}
	if s.VTEP.Bits() != p.NextHop.Bits() && s.VTEP.Bits() != 0 {
		return leftNextHop
	}
	ip := p.IP.Netip()
	if p.IP.Bits() != 0 && (ip.IsUnspecified() || ip.IsLoopback() || ip.IsMulticast() || ip == broadcast || odd(ip)) {
		return leftAddress
	}
	for i := range s.Gateways {
		g := &s.Gateways[i]
		if slices.Contains(g.MACs, p.MAC) {
			return leftOwnMAC
		}
		if p.IP.Bits() != 0 && slices.ContainsFunc(g.Addresses, func(a netip.Prefix) bool { return a.Addr() == ip }) {
			return leftOwnAddress
		}
	}
	return ""
}

func (s *segment) host(mac frame.MAC) *host {
	h := s.hosts[mac]
	if h == nil {
		h = &host{s: s, mac: mac}
		s.hosts[mac] = h
	}
	return h
}

// remove takes a claim away.
func (h *host) remove(t *Table, now time.Duration, p *path) {
	n := len(h.claims)
	if h.claims = remove(h.claims, p); len(h.claims) == n {
		h.late.remove(p)
		return
	}
	h.s.far.settle(&h.slot, h.claims, h)
	if len(h.claims) == 0 {
		h.claims = nil
		t.roomy = h.s.far.relieve(t.cfg.MaxHosts) || t.roomy
	}
	h.fewer(t, now)
	h.contest(t, now)
	t.touch(h)
}

// evict makes room for a host at another VTEP.
func (h *host) evict(t *Table, now time.Duration) {
	was := h.claims
	h.claims, h.late = nil, latecomers{}
	h.s.far.remove(&h.slot)
	for _, p := range was {
		t.leaveOut(p, leftSegmentLimit)
	}
	h.fewer(t, now)
	t.touch(h)
}

// fewer is what follows when a claim of a peer is gone: one that is configured may be ours again.
func (h *host) fewer(t *Table, now time.Duration) {
	switch {
	case h.static && !h.claimed:
		t.Here(now, h.s.VNI, h.mac, h.dest, true)
	case len(h.claims) == 0 && h.moves != nil && !h.here:
		h.moves.Gone(now)
	}
}

// best returns the claim of a peer that counts, nil if there is none.
func (h *host) best() *path {
	var best *path
	for _, p := range h.claims {
		if best == nil || p.better(best) {
			best = p
		}
	}
	return best
}

// better reports whether p counts and not o.
func (p *path) better(o *path) bool {
	return p.Claim.Beats(&o.Claim) || !o.Claim.Beats(&p.Claim) && bytes.Compare(p.ESI[:], o.ESI[:]) > 0
}

// beside reports whether two claims say the same place.
func (p *path) beside(o *path) bool { return p.VTEP == o.VTEP || p.ESI.Shared() && p.ESI == o.ESI }

func (h *host) ours() mobility.Claim {
	return mobility.Claim{VTEP: h.s.VTEP, Sequence: h.sequence, Sticky: h.static}
}

// contest withdraws our claim if one of a peer counts.
func (h *host) contest(t *Table, now time.Duration) {
	best := h.best()
	if best == nil || !h.claimed {
		return
	}
	if h.beside(t, best) {
		if !h.static && best.Sequence > h.sequence {
			h.sequence, _ = h.moves.Beside(&best.Claim)
		}
		return
	}
	if ours := h.ours(); best.Claim.Beats(&ours) {
		was := h.moves.Duplicate()
		h.moves.There(now, &best.Claim, t.cfg.Mobility)
		h.claimed, h.override = false, true
		t.duplicated(now, h, was)
	}
}

func (t *Table) duplicated(now time.Duration, h *host, was bool) {
	if !h.moves.Duplicate() || was {
		return
	}
	t.frozen[h] = now
	if t.cfg.Duplicated != nil {
		t.cfg.Duplicated(h.s.VNI, h.mac)
	}
}

// Here says that the switch has a MAC on a local port: it was learned there, or configured (static).
func (t *Table) Here(now time.Duration, vni frame.VNI, mac frame.MAC, at frame.Dest, static bool) {
	s := t.segments[vni]
	if s == nil {
		return
	}
	h := s.host(mac)
	h.unseen = false
	h.back(t)
	if h.static && !static {
		return // what is learned beside it is not news
	}
	if h.moves == nil {
		h.moves = &mobility.Host{}
	}
	delete(t.resting, h)
	was := h.on(t)
	h.dest, h.here = at, true
	if h.claimed && h.static == static {
		h.replug(t, now, was)
		return
	}
	h.static = static
	var theirs *mobility.Claim
	if best := h.best(); best != nil && !h.claimed {
		theirs = &best.Claim
	}
	duplicate := h.moves.Duplicate()
	switch beside := h.beside(t, h.best()); {
	case static:
		h.sequence, h.claimed = 0, theirs == nil || beside || !theirs.Sticky
	case theirs != nil && beside:
		h.sequence, h.claimed = h.moves.Beside(theirs)
	default:
		h.sequence, h.claimed = h.moves.Here(now, theirs, t.cfg.Mobility)
	}
	h.override = !h.claimed && theirs != nil // a duplicate that nobody has may stay in the switch
	t.duplicated(now, h, duplicate)
	t.touch(h)
}

// replug is what follows when a host that we claim has another port, and was on an Ethernet segment: if a peer has it there, it has moved.
func (h *host) replug(t *Table, now time.Duration, was *homed) {
	if was == h.on(t) {
		return
	}
	t.touch(h)
	best := h.best()
	if h.static || was == nil || best == nil || best.ESI != was.ESI {
		return
	}
	duplicate := h.moves.Duplicate()
	h.sequence, h.claimed = h.moves.Here(now, &best.Claim, t.cfg.Mobility)
	h.override = !h.claimed
	t.duplicated(now, h, duplicate)
}

// Gone says that the switch has learned the MAC on no local port any more. One that is configured stays: it may have taken the place of what
// was learned.
func (t *Table) Gone(now time.Duration, vni frame.VNI, mac frame.MAC) {
	if s := t.segments[vni]; s != nil && s.hosts[mac] != nil && !s.hosts[mac].static && !s.hosts[mac].absent {
		t.gone(now, s.hosts[mac])
	}
}

func (t *Table) gone(now time.Duration, h *host) {
	if !h.here {
		return
	}
	h.back(t)
	h.here, h.claimed, h.static, h.dest = false, false, false, 0
	if best := h.best(); best != nil {
		was := h.moves.Duplicate()
		h.moves.There(now, &best.Claim, t.cfg.Mobility)
		t.duplicated(now, h, was)
	} else {
		h.moves.Gone(now)
	}
	t.touch(h)
}

// Mark begins a new list of what a segment has here. Sweep ends it, and forgets what was not said since.
func (t *Table) Mark(vni frame.VNI) {
	if s := t.segments[vni]; s != nil {
		for _, h := range s.hosts {
			h.unseen = !h.static && !h.absent
			for i := range h.addrs {
				h.addrs[i].unseen = h.unseen
			}
		}
	}
}

// Sweep ends what Mark has begun.
func (t *Table) Sweep(now time.Duration, vni frame.VNI) {
	s := t.segments[vni]
	if s == nil {
		return
	}
	for _, h := range s.hosts {
		n := len(h.addrs)
		if h.addrs = slices.DeleteFunc(h.addrs, func(a address) bool { return a.unseen }); len(h.addrs) < n {
			t.touch(h)
		}
		if h.unseen {
			h.unseen = false
			t.gone(now, h)
		}
	}
}

// PortGone says that all MACs that were at a port of a segment are gone.
func (t *Table) PortGone(now time.Duration, vni frame.VNI, at frame.Dest) {
	s := t.segments[vni]
	if s == nil {
		return
	}
	for _, h := range s.hosts {
		if h.dest == at && !h.static {
			h.addrs = nil
			t.gone(now, h)
		}
	}
}

// Speaks says that a host here has an address.
func (t *Table) Speaks(vni frame.VNI, mac frame.MAC, ip netip.Addr, router bool) {
	s := t.segments[vni]
	if s == nil || !ip.IsValid() {
		return
	}
	h, a := s.host(mac), address{ip: route.AddrFrom(ip), router: router}
	i := slices.IndexFunc(h.addrs, func(x address) bool { return x.ip == a.ip })
	switch {
	case i >= 0 && h.addrs[i].router == router:
		h.addrs[i].unseen = false
		return
	case i >= 0:
		h.addrs[i] = a
	case len(h.addrs) >= t.cfg.MaxAddrs:
		return
	default:
		h.addrs = append(h.addrs, a)
	}
	t.touch(h)
}

// Silent says that it has the address no more.
func (t *Table) Silent(vni frame.VNI, mac frame.MAC, ip netip.Addr) {
	s := t.segments[vni]
	if s == nil || s.hosts[mac] == nil || s.hosts[mac].absent {
		return
	}
	h, a := s.hosts[mac], route.AddrFrom(ip)
	h.addrs = slices.DeleteFunc(h.addrs, func(x address) bool { return x.ip == a })
	t.touch(h)
}

// Clear forgets that a MAC moved too often, and reports whether it had.
func (t *Table) Clear(now time.Duration, vni frame.VNI, mac frame.MAC) bool {
	s := t.segments[vni]
	if s == nil || s.hosts[mac] == nil || s.hosts[mac].moves == nil || !s.hosts[mac].moves.Duplicate() {
		return false
	}
	t.clear(now, s.hosts[mac])
	return true
}

func (t *Table) clear(now time.Duration, h *host) {
	delete(t.frozen, h)
	h.moves.Clear()
	if h.here && !h.claimed {
		t.Here(now, h.s.VNI, h.mac, h.dest, h.static)
	}
	t.touch(h)
}

// idle reports whether nobody has the MAC.
func (h *host) idle() bool { return len(h.claims) == 0 && !h.here && len(h.addrs) == 0 }

// addresses returns those that it has, each once.
func (h *host) addresses() []address {
	list := slices.Clone(h.fixed)
	for _, a := range h.addrs {
		if !slices.ContainsFunc(h.fixed, func(x address) bool { return x.ip == a.ip }) {
			list = append(list, a)
		}
	}
	return list
}

func (h *host) was() *[]route.Key { return &h.told }

// settled forgets the host, or lets it rest, if nobody has it.
func (h *host) settled(t *Table, now time.Duration) {
	switch {
	case !h.idle():
		delete(t.resting, h)
	case h.moves == nil || h.moves.Forgotten(now, t.cfg.Mobility):
		h.drop(t)
	default:
		if len(t.resting) >= t.cfg.MaxHosts {
			for x := range t.resting { // any of them
				x.drop(t)
				break
			}
		}
		t.resting[h] = struct{}{}
	}
}

func (h *host) drop(t *Table) {
	delete(t.resting, h)
	delete(t.frozen, h)
	delete(t.absent, h)
	if h.s.hosts[h.mac] == h {
		delete(h.s.hosts, h.mac)
	}
}
