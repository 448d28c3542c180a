package flannel

import (
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

// Neighbour answers a packet to an address without a neighbour, which generations 1 and 2 do: the next Flush has a row for
// the address, at the VTEP of its lease. It reports whether there is a lease. Of many addresses the oldest are forgotten.
func (m *Mapper) Neighbour(ip netip.Addr, now time.Time) bool {
	if m.cfg.Generation == 3 {
		return false
	}
	row, ok := m.answer(ip)
	if !ok {
		return false
	}
	if a := m.asked[ip]; a != nil { // the switch has lost it
		m.forget(a)
	}
	for len(m.asked) >= maxAsked {
		m.forgetFirst()
	}
	a := &asked{ip: ip, at: now}
	m.asked[ip] = a
	m.queue = append(m.queue, a)
	m.rows.Set(rowKey{ip: ip}, row)
	return true
}

// MAC answers a frame to a MAC without an FDB entry, which generation 1 does.
func (m *Mapper) MAC(mac frame.MAC, now time.Time) bool {
	if m.cfg.Generation != 1 {
		return false
	}
	for _, l := range m.byMAC[mac] {
		for _, f := range families {
			if e := l.lease.end(f); e.MAC == mac && m.follows(l, f) {
				return m.Neighbour(l.lease.Subnet.prefix(f).Addr(), now)
			}
		}
	}
	return false
}

// Forget removes the rows of addresses that were asked for before a time, and returns how many are left. A packet to one of
// them is a miss again.
func (m *Mapper) Forget(before time.Time) int {
	for len(m.queue) > 0 && (m.queue[0].gone || m.queue[0].at.Before(before)) {
		m.forgetFirst()
	}
	return len(m.asked)
}

func (m *Mapper) forgetFirst() {
	a := m.queue[0]
	m.queue = m.queue[1:] // before forget, which may take others out
	if !a.gone {
		m.forget(a)
	}
}

// forget removes the row of an address, which stays in the queue until it is first there, or too many are gone.
func (m *Mapper) forget(a *asked) {
	a.gone = true
	delete(m.asked, a.ip)
	m.rows.Set(rowKey{ip: a.ip})
	if len(m.queue) > 2*maxAsked {
		m.queue = slices.DeleteFunc(m.queue, func(a *asked) bool { return a.gone })
	}
}

// reply sets the rows of all addresses that were asked for anew, after leases have changed.
func (m *Mapper) reply() {
	for ip, a := range m.asked {
		if row, ok := m.answer(ip); ok {
			m.rows.Set(rowKey{ip: ip}, row)
		} else {
			m.forget(a)
		}
	}
}

// answer returns the row for an address: that of the smallest subnet with it.
func (m *Mapper) answer(ip netip.Addr) (control.Row, bool) {
	f := familyOf(ip)
	r := m.cfg.Network.subnets(f)
	if !r.IsValid() || !r.Network.Contains(ip) {
		return nil, false
	}
	for bits := f.least; bits >= r.Network.Bits(); bits-- {
		set := m.byFirst[netip.PrefixFrom(ip, bits).Masked().Addr()]
		if len(set) == 0 || !set[0].lease.Subnet.prefix(f).Contains(ip) || !m.follows(set[0], f) || m.direct(set[0], f) {
			continue
		}
		e := set[0].lease.end(f)
		return control.MAC{VNI: m.cfg.VNI, MAC: e.MAC, IP: ip, VTEP: netip.AddrPortFrom(set[0].vtep(e), 0), Tunnel: m.cfg.Tunnel}, true
	}
	return nil, false
}

// follows reports whether a lease counts for a family.
func (m *Mapper) follows(l *mapped, f family) bool {
	return l.claims().prefix(f).IsValid() && !l.unroutable && m.contest(l, f) == nil
}
