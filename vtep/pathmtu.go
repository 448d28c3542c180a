package vtep

import (
	"cmp"
	"errors"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
)

// PathMTUAge is how long a learned path MTU is used (RFC 1191, section 6.3).
const PathMTUAge = 10 * time.Minute

// The smallest path MTUs that are accepted: what every IPv4 host takes (RFC 791), and what every IPv6 link
// carries (RFC 8200, section 5).
const (
	minPath4 = 576
	minPath6 = 1280
)

// MTU returns the length of the longest inner frame to peer, counted from the destination MAC. ICMP errors from
// the path to the peer make it smaller than the underlay's. For peer 0 or an unknown peer it is the length that
// all underlays take; see [VTEP.FloodMTU].
func (v *VTEP) MTU(peer uint16) int {
	if peer == 0 || v.varied.Load() == 0 && v.oneFamily() {
		return v.least()
	}
	h := v.hops.get(peer)
	if h == nil {
		return v.least()
	}
	if h.family >= 0 {
		return v.mtuTo(h)
	}
	list := h.members()
	m := v.mtuTo(list[0])
	for _, h := range list[1:] {
		m = min(m, v.mtuTo(h))
	}
	return m
}

// FloodMTU returns the length of the longest inner frame that fits to some members of the flood list of a VNI,
// and of the longest that fits to all of them, but for those that are there for single MACs. A frame in between loses the copies
// that do not fit.
func (v *VTEP) FloodMTU(tag uint32) (some, all int) {
	varied := v.varied.Load() != 0
	n, ok := v.networks.Load(vniKey(tag))
	if !ok || !varied && v.oneFamily() {
		return v.least(), v.least()
	}
	l := n.flood.Load()
	for _, hops := range [...][]*hop{l.hops[family4], l.hops[family6], l.groups} {
		for _, h := range hops {
			no := l.no[h]
			if no == noBroadcast|noUnknown {
				continue
			}
			m := v.mtuTo(h)
			if some = max(some, m); no&groupOnly != 0 {
				continue
			}
			if all == 0 || m < all {
				all = m
			}
			if !varied && !h.mcast {
				break // the others of its family are equal
			}
		}
	}
	if some == 0 {
		return v.least(), v.least()
	}
	return some, cmp.Or(all, some)
}

// oneFamily reports whether there is only one underlay.
func (v *VTEP) oneFamily() bool { return v.families[family4] == nil || v.families[family6] == nil }

// FollowMTU asks the underlays for the MTUs of their interfaces again, where Config.MTU does not set it, and reports whether one has
// changed. It takes the time of a system call for each interface of the host. Path MTUs that were learned are forgotten if the
// interface takes more than before, as they may have been its own. The error says which MTU is too small; the VTEP keeps the old one.
func (v *VTEP) FollowMTU() (changed bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, s := range v.families {
		if s == nil || v.cfg.MTU != 0 || v.closed {
			continue
		}
		mtu, bad := v.measure(s)
		if bad != nil || mtu == s.longest() {
			err = errors.Join(err, bad)
			continue
		}
		if mtu > s.longest() {
			for h := range v.hops.all {
				if int(h.family) == i {
					v.forgetPathMTU(h)
				}
			}
		}
		v.setMTU(s, mtu)
		changed = true
	}
	if changed {
		v.changed()
	}
	return changed, err
}

// measure returns the length of the longest inner frame that an underlay takes now.
func (v *VTEP) measure(s *family) (int, error) {
	u, mtu := s.link.Load().u, v.cfg.MTU
	local := u.LocalAddr().Addr()
	if mtu == 0 {
		mtu = u.MTU()
	}
	if err := v.cfg.CheckMTU(mtu, local); err != nil {
		return 0, err
	}
	return mtu - v.cfg.outer(!local.Unmap().Is4()), nil
}

func (v *VTEP) setMTU(s *family, mtu int) {
	s.mtu.Store(int32(mtu))
	least := mtu
	for _, x := range v.families {
		if x != nil {
			least = min(least, x.longest())
		}
	}
	v.mtu.Store(int32(least))
}

// longest returns the length of the longest inner frame that the underlay takes.
func (s *family) longest() int { return int(s.mtu.Load()) }

// least returns the length of the longest inner frame that all underlays take.
func (v *VTEP) least() int { return int(v.mtu.Load()) }

// mtuTo returns the length of the longest inner frame to one host.
func (v *VTEP) mtuTo(h *hop) int {
	m := v.families[h.family].longest()
	if path := int(h.path.Load()); path != 0 {
		return min(m, path)
	}
	return m
}

// narrow records that IP packets longer than mtu do not reach a host. The underlay calls it for ICMP errors and
// errors of the kernel; quoted is the start of the UDP payload of the packet. The underlay has checked that the
// packet was sent from one of its ports to a port of peers; narrow checks that the quoted part is a packet of
// this VTEP (RFC 5927, section 4.1). It never waits: while the tables are being changed it does nothing, and
// the next error will do.
func (v *VTEP) narrow(to frame.Endpoint, mtu int, quoted []byte) {
	s := v.families[familyOf(to)]
	if s == nil || mtu <= 0 || !v.sends(quoted) {
		return
	}
	if !v.mu.TryLock() {
		return
	}
	defer v.mu.Unlock()
	mtu = max(mtu, minPath4)
	if familyOf(to) == family6 {
		mtu = max(mtu, minPath6)
	}
	inner := mtu - v.cfg.outer(familyOf(to) == family6)
	if inner >= s.longest() {
		return
	}
	now := time.Now()
	for h := range v.hops.all {
		if h.family < 0 || h.to.Load()[0].Host() != to.Host() {
			continue
		}
		switch old := int(h.path.Load()); {
		case old == 0:
			v.varied.Add(1)
		case old < inner:
			continue
		}
		h.learned = now
		if int(h.path.Swap(int32(inner))) != inner {
			v.changed()
		}
	}
}

// sends reports whether this VTEP may have sent a packet, of which b is the quoted part behind the outer
// headers.
func (v *VTEP) sends(b []byte) bool {
	if len(b) == 0 || len(b) < v.cfg.Type.Header() {
		return true
	}
	var vni frame.VNI
	switch v.cfg.Type {
	case encap.TypeIPIP, encap.TypeFOU:
		return b[0]>>4 == 4 || b[0]>>4 == 6
	case encap.TypeGPE:
		head, drop := encap.ParseGPE(b)
		_, ok := head.Kind()
		ok = ok || head.Next() == encap.NextNSH && v.services.Load() != nil
		if !ok || drop != frame.NotDropped || head&encap.GPEFlagProtocol == 0 || uint64(head)&^v.used != 0 {
			return false
		}
		vni = head.VNI()
	case encap.TypeOwn:
		p, _, drop := v.cfg.Own.Parse(b)
		if drop != frame.NotDropped {
			return drop == frame.Short // too little is quoted
		}
		vni = p.VNI
	default:
		head, drop := encap.ParseVXLAN(b)
		if drop != frame.NotDropped || uint64(head)&^v.used != 0 {
			return false
		}
		vni = head.VNI()
	}
	if _, ok := v.networks.Load(vniKey(vni)); ok {
		return true
	}
	for h := range v.hops.all {
		if h.vni != 0 && h.vni == vni {
			return true
		}
	}
	return false
}

// forgetPathMTU removes a learned path MTU. v.mu is held.
func (v *VTEP) forgetPathMTU(h *hop) {
	if h.path.Swap(0) != 0 {
		v.varied.Add(-1)
		v.changed()
	}
}
