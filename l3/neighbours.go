package l3

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/internal/neighbour"
)

// retryAfter is how many seconds pass until a next hop that did not answer is asked again.
const retryAfter = 3

// wait queues a packet until the MAC of next is known, and asks for it.
func (i *Interface) wait(x *packet, next netip.Addr, in *Interface) frame.Verdict {
	if x.waited {
		return frame.Drop(frame.Unresolved)
	}
	l, from := &i.vrf.gateway.queue, x.f.Origin()
	l.mu.Lock()
	w := i.waiting[next]
	ask := w == nil || w.gone != 0
	switch {
	case i.closed:
		w = nil
	case w != nil && w.gone != 0 && x.tick < w.gone:
		l.mu.Unlock()
		i.unresolved.Add(1)
		return in.refuse(x, icmperr.NoHost, frame.Unresolved)
	case ask:
		if w != nil {
			i.stopResolving(w)
		}
		w = i.startResolving(next, x.src(), from, x.tick)
	}
	kept := w != nil && i.enqueue(w, x, in, from)
	l.mu.Unlock()
	if ask && w != nil {
		i.cfg.Neighbours.Missed(next, from, x.tick)
		i.ask(next, x.src())
	}
	if !kept {
		i.unresolved.Add(1)
		return frame.Drop(frame.Unresolved)
	}
	in.counts.Of(x.worker).queued.Count(1, x.worker)
	// The answer may have come between the look-up and the lock.
	if i.neighbours.Resolve(next) != 0 {
		i.resolved(next)
	}
	return frame.Consume
}

// passOver has a route with several next hops pass over one whose neighbour is unknown, and asks for it. It returns
// the next hop to use instead, nil if all are down.
func (i *Interface) passOver(x *packet, r *route, h *nextHop) *nextHop {
	if r.one != nil || h.down.Load()&unresolved != 0 {
		return nil
	}
	n := &i.vrf.nextHops
	if !n.mark(h, unresolved, 0) {
		return nil
	}
	i.question(h.ip, x.src(), x.f.Origin(), x.tick)
	if i.neighbours.Resolve(h.ip) != 0 { // the answer has come meanwhile
		n.answered(i, h.ip)
		return h
	}
	if other := r.pick(x.flow); other != h && other.down.Load() == 0 {
		return other
	}
	return nil
}

// question asks for a neighbour that no packet waits for, unless there is a question for it already.
func (i *Interface) question(next, asker netip.Addr, from frame.Dest, now frame.Tick) {
	l := &i.vrf.gateway.queue
	l.mu.Lock()
	ask := i.waiting[next] == nil && !i.closed && i.startResolving(next, asker, from, now) != nil
	l.mu.Unlock()
	if ask {
		i.cfg.Neighbours.Missed(next, from, now)
		i.ask(next, asker)
	}
}

// ask asks the segment for a neighbour's MAC. An anycast gateway asks from the VTEP's own MAC
// and no address: other VTEPs, which have its address too, would take the answer for theirs. In
// mode arp.Proxy it asks from the address of the host whose packet waits, as for that host, so
// that the answer comes back.
func (i *Interface) ask(next, asker netip.Addr) {
	if i.cfg.NoAsk {
		return
	}
	mac, from := i.cfg.MAC, netip.AddrFrom4(i.ip4)
	if next.Is6() {
		from = arp.LinkLocal(mac)
	}
	on := func(p netip.Prefix) bool { return p.Contains(asker) }
	switch {
	case i.cfg.Neighbours.Mode() == arp.Proxy && slices.ContainsFunc(i.cfg.Addresses, on):
		mac, from = i.cfg.VTEPMAC, asker
	case i.cfg.Anycast:
		mac, from = i.cfg.VTEPMAC, netip.IPv4Unspecified()
		if next.Is6() {
			from = arp.LinkLocal(mac)
		}
	}
	if b := neighbour.Ask(next, frame.MAC{}, from, mac); b != nil {
		f := frame.Make(b)
		i.cfg.Send(0, &f)
	}
}

// asked reports whether there is an open question for a neighbour.
func (i *Interface) asked(next netip.Addr) bool {
	l := &i.vrf.gateway.queue
	l.mu.Lock()
	defer l.mu.Unlock()
	w := i.waiting[next]
	return w != nil && w.gone == 0
}

// resolved sends the packets that wait for a neighbour.
func (i *Interface) resolved(next netip.Addr) {
	i.vrf.nextHops.answered(i, next)
	l := &i.vrf.gateway.queue
	var packets []*queuedPacket
	l.mu.Lock()
	if w := i.waiting[next]; w != nil {
		packets = i.stopResolving(w)
	}
	l.mu.Unlock()
	for _, p := range packets {
		if !p.sendOn() {
			i.unresolved.Add(1)
		}
	}
}

// sendOn routes a packet that has waited, perhaps to another next hop, which has answered first. It reports false for a
// packet that is lost.
func (p *queuedPacket) sendOn() bool {
	p.x.f, p.x.worker, p.x.passed = &p.f, 0, false
	v := p.in.reroute(p)
	if p.x.out != p.in {
		p.f.Horizon = 0 // out of the segment it came from
	}
	switch {
	case v == frame.Reenter:
		return p.x.out.cfg.Send(0, &p.f)
	case v.Action() == frame.ActForward:
		return p.x.out.cfg.Send(v.Dest(), &p.f)
	case v == frame.Reply:
		p.f.Horizon = 0 // the gateway sends it
		return p.in.cfg.Send(returnDest(&p.f), &p.f)
	}
	return v == frame.Consume // it waits again, or has been answered
}

// reroute routes a packet that has waited.
func (i *Interface) reroute(p *queuedPacket) frame.Verdict {
	if p.x.v6 {
		return i.forward6(&p.x)
	}
	return i.forward4(&p.x)
}

// Housekeep asks for next hops again, gives up, expires packets and fragments, and sends router advertisements. The switch's
// housekeeping calls it. Ports and peers with few questions come first.
func (i *Interface) Housekeep(now frame.Tick) {
	var ask [][2]netip.Addr
	var gone []*queuedPacket
	var silent []netip.Addr
	i.tick.Store(uint32(now))
	l := &i.vrf.gateway.queue
	l.mu.Lock()
	for _, w := range i.asking.All() {
		switch {
		case w.gone != 0:
			if now >= w.gone {
				i.stopResolving(w)
			}
		case now < w.next:
		case w.asked < neighbour.Tries:
			w.asked++
			w.next = now + 1
			ask = append(ask, [2]netip.Addr{w.ip, w.asker})
		default:
			gone = append(gone, l.Take(&w.packets)...)
			silent = append(silent, w.ip)
			w.gone = now + retryAfter
		}
	}
	maps.DeleteFunc(i.rates, func(_ frame.Dest, r rate) bool { return int32(now-r.second) > 1 }) // a worker's tick may be behind
	l.mu.Unlock()
	i.vrf.gateway.fragments.expire(now)
	i.in.Load().housekeep(now)
	i.out.Load().housekeep(now)
	again := i.again.Swap(false) // one that is due says the change, too
	if ra := i.cfg.RouterAdvertisements; ra != nil && (i.advertiser.due(now, ra) || again) {
		i.advertise(false)
	}
	for _, a := range ask {
		i.ask(a[0], a[1])
	}
	for _, ip := range silent {
		i.vrf.nextHops.gaveUp(i, ip)
	}
	for _, ip := range i.vrf.nextHops.housekeep(i, now) {
		i.question(ip, netip.Addr{}, 0, now)
	}
	for _, p := range gone {
		p.x.tick, p.x.waited = now, true
		if p.sendOn() {
			continue
		}
		i.unresolved.Add(1)
		if p.in.refuse(&p.x, icmperr.NoHost, frame.Unresolved) == frame.Reply {
			p.f.Horizon = 0 // the gateway sends it
			p.in.cfg.Send(returnDest(&p.f), &p.f)
		}
	}
}

// drain drops all packets that wait on a closed interface.
func (i *Interface) drain() {
	l := &i.vrf.gateway.queue
	l.mu.Lock()
	defer l.mu.Unlock()
	i.closed = true
	for _, w := range i.waiting {
		i.stopResolving(w)
	}
	clear(i.rates)
}
