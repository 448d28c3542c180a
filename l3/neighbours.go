package l3

import (
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
)

const (
	questions = 3 // before a next hop counts as gone, one a second
	penance   = 3 // seconds until a next hop that is gone is asked again
)

// waiting is what is kept for a next hop that has been asked for its MAC.
type waiting struct {
	packets []parked
	asker   netip.Addr // the source of the first packet
	asked   int
	gone    frame.Tick // 0, or when it is asked again: until then nobody waits
	next    frame.Tick // when to ask again
}

// parked is a packet that waits: a copy, before its TTL was touched.
type parked struct {
	f  frame.Frame
	x  packet
	in *Interface
}

// wait keeps a packet until the MAC of next is known, and asks for it.
func (i *Interface) wait(x *packet, next netip.Addr, in *Interface) frame.Verdict {
	g := i.vrf.gateway
	i.mu.Lock()
	w := i.waiting[next]
	if w != nil && w.gone != 0 && x.tick < w.gone {
		i.mu.Unlock()
		i.unresolved.Add(1)
		return in.refuse(x, noHost, frame.Unresolved)
	}
	ask := w == nil || w.gone != 0
	if ask {
		if w == nil && len(i.waiting) >= g.cfg.Waiting {
			i.mu.Unlock()
			i.unresolved.Add(1)
			return frame.Drop(frame.Unresolved)
		}
		w = &waiting{asker: x.src(), asked: 1, next: x.tick + 1}
		i.waiting[next] = w
	}
	kept := len(w.packets) < g.cfg.PerNeighbour && g.take(x.f.Len())
	if kept {
		p := parked{f: x.f.Clone(), x: *x, in: in}
		w.packets = append(w.packets, p)
	}
	i.mu.Unlock()
	if ask {
		i.ask(next, x.src())
	}
	if !kept {
		i.unresolved.Add(1)
		return frame.Drop(frame.Unresolved)
	}
	in.lane(x.worker).queued.count(x.worker)
	// It may have answered before it was asked for: between the look-up and the lock.
	if i.neighbours.Resolve(next) != 0 {
		i.found(next)
	}
	return frame.Consume
}

// take counts bytes that wait.
func (g *Gateway) take(n int) bool {
	if g.queued.Add(int64(n)) <= int64(g.cfg.Queued) {
		return true
	}
	g.queued.Add(int64(-n))
	return false
}

// ask asks everybody on the segment for a neighbour. An anycast gateway asks with the
// VTEP's own MAC and in nobody's name: its address is that of other VTEPs too, which
// would take the answer for theirs. In mode arp.Proxy it asks as it asks on for hosts, in
// the name of the one whose packet waits, so that the answer finds its way back.
func (i *Interface) ask(next, asker netip.Addr) {
	mac, from := i.cfg.MAC, netip.AddrFrom4(i.ip4)
	if next.Is6() {
		from = arp.LinkLocal(mac)
	}
	on := func(p netip.Prefix) bool { return p.Contains(asker) }
	switch {
	case i.cfg.Neighbours.Mode() == arp.Proxy && slices.ContainsFunc(i.cfg.Addrs, on):
		mac, from = i.cfg.Own, asker
	case i.cfg.Anycast:
		mac, from = i.cfg.Own, netip.IPv4Unspecified()
		if next.Is6() {
			from = arp.LinkLocal(mac)
		}
	}
	if f, err := arp.Question(next, frame.MAC{}, from, mac); err == nil {
		i.cfg.Send(0, &f)
	}
}

// asked reports whether a neighbour has been asked for, and not given up.
func (i *Interface) asked(next netip.Addr) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	w := i.waiting[next]
	return w != nil && w.gone == 0
}

// found sends what waits for a neighbour.
func (i *Interface) found(next netip.Addr) {
	i.mu.Lock()
	w := i.waiting[next]
	delete(i.waiting, next)
	i.mu.Unlock()
	if w == nil {
		return
	}
	for k := range w.packets {
		p := &w.packets[k]
		i.vrf.gateway.queued.Add(int64(-p.f.Len()))
		p.x.f, p.x.worker = &p.f, 0
		if p.in != i {
			p.f.Horizon = 0 // it does not go back where it came from
		}
		if p.in.again(p) != frame.Reenter || p.f.VNI != i.cfg.VNI || !i.cfg.Send(0, &p.f) {
			i.unresolved.Add(1)
		}
	}
}

// again routes a packet that has waited.
func (i *Interface) again(p *parked) frame.Verdict {
	if p.x.v6 {
		return i.forward6(&p.f, p.x.at(), p.x.ip)
	}
	return i.forward4(&p.f, p.x.at(), p.x.ip)
}

// Tend asks again, gives up, and forgets. It is for the switch's housekeeping.
func (i *Interface) Tend(now frame.Tick) {
	var ask [][2]netip.Addr
	var gone []parked
	i.mu.Lock()
	for ip, w := range i.waiting {
		switch {
		case w.gone != 0:
			if now >= w.gone {
				delete(i.waiting, ip)
			}
		case now < w.next:
		case w.asked < questions:
			w.asked++
			w.next = now + 1
			ask = append(ask, [2]netip.Addr{ip, w.asker})
		default:
			gone = append(gone, w.packets...)
			w.packets, w.gone = nil, now+penance
		}
	}
	i.mu.Unlock()
	for _, a := range ask {
		i.ask(a[0], a[1])
	}
	for k := range gone {
		p := &gone[k]
		i.vrf.gateway.queued.Add(int64(-p.f.Len()))
		i.unresolved.Add(1)
		p.x.f, p.x.tick, p.x.worker = &p.f, now, 0
		if p.in.refuse(&p.x, noHost, frame.Unresolved) == frame.Reply {
			p.in.cfg.Send(back(&p.f), &p.f)
		}
	}
}

// drain forgets everything that waits.
func (i *Interface) drain() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for ip, w := range i.waiting {
		for k := range w.packets {
			i.vrf.gateway.queued.Add(int64(-w.packets[k].f.Len()))
		}
		delete(i.waiting, ip)
	}
}
