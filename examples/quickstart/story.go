package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
)

// story prints the steps and checks them. After the first step that fails it prints nothing more.
type story struct {
	out io.Writer
	f   *fabric
	n   int
	err error
}

// patience is the time limit of a step.
const patience = 2 * time.Second

func (s *story) step(format string, args ...any) {
	if s.n++; s.err == nil {
		fmt.Fprintf(s.out, "%d. %s\n", s.n, fmt.Sprintf(format, args...))
	}
}

func (s *story) tell(format string, args ...any) {
	fmt.Fprintf(s.out, "     %s\n", fmt.Sprintf(format, args...))
}

// hears waits until h reports what.
func (s *story) hears(ctx context.Context, h *host, what string) bool {
	if s.err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		select {
		case got := <-h.heard:
			if got == what {
				return true
			}
			s.err = fmt.Errorf("%v: heard %q, expected %q", h, got, what)
			return false
		case <-ctx.Done():
			s.err = fmt.Errorf("%v: did not hear %q", h, what)
			return false
		}
	}
}

// flooded sends a request and waits until the others receive it.
func (s *story) flooded(ctx context.Context, from, target *host, others ...*host) {
	from.sendARP(layers.ARPRequest, frame.Broadcast, target.ip)
	question := "arp-request " + target.ip.String()
	for _, h := range append([]*host{target}, others...) {
		if s.hears(ctx, h, question) {
			s.tell("%-6s broadcast -> %v heard it on %s", from.site.name, h, h.site.name)
		}
	}
	if s.err == nil {
		peers := from.site.tunnel.Flood(from.vni)
		s.tell("%-6s flood list of VNI %d: %v (head-end replication)", from.site.name, from.vni, peers)
	}
}

func (s *story) answered(ctx context.Context, from, target *host) {
	if s.hears(ctx, from, fmt.Sprintf("arp-reply %v %v", target.ip, target.mac)) {
		s.tell("%-6s %v is at %v: the answer came back to %v alone", target.site.name, target.ip, target.mac, from)
	}
}

// suppressed sends a request that the host's own site answers: nothing enters the tunnel.
func (s *story) suppressed(ctx context.Context, from, target *host) {
	n := from.site
	r := n.Neighbours(from.vni)
	sent, answered := n.tunnel.Stats().Tx.Frames, r.Stats().ARP[arp.Answered]
	from.sendARP(layers.ARPRequest, frame.Broadcast, target.ip)
	if !s.hears(ctx, from, fmt.Sprintf("arp-reply %v %v", target.ip, target.mac)) {
		return
	}
	e, _ := r.Table().Lookup(target.ip)
	s.tell("%-6s %v is at %v: %s, so it answers itself", n.name, target.ip, e.MAC, e.Origin)
	switch now := n.tunnel.Stats().Tx.Frames; {
	case r.Stats().ARP[arp.Answered] != answered+1:
		s.err = fmt.Errorf("%s: did not count its answer", n.name)
	case now != sent:
		s.err = fmt.Errorf("%s: %d frames went into the tunnel", n.name, now-sent)
	default:
		s.tell("%-6s 0 packets into the tunnel", n.name)
	}
}

func (s *story) pinged(ctx context.Context, from, target *host) {
	if s.err != nil {
		return
	}
	start := time.Now()
	from.sendICMP(layers.ICMPv4TypeEchoRequest, target.mac, target.ip, 1)
	if s.ponged(ctx, from, target, 64) {
		s.tell("%-6s reply from %v in %v", from.site.name, target.ip, time.Since(start).Round(time.Microsecond))
	}
}

// ponged waits until a ping and its reply have arrived with a TTL.
func (s *story) ponged(ctx context.Context, from, target *host, ttl int) bool {
	return s.hears(ctx, target, fmt.Sprintf("ping %v ttl %d", from.ip, ttl)) &&
		s.hears(ctx, from, fmt.Sprintf("pong %v ttl %d", target.ip, ttl))
}

// routed makes two hosts of different networks resolve their gateway, each on its own site, and ping each other.
func (s *story) routed(ctx context.Context, from, target *host) {
	for _, h := range []*host{target, from} {
		if s.err != nil {
			return
		}
		gw := h.ip.As4()
		gw[3] = 254
		h.sendARP(layers.ARPRequest, frame.Broadcast, netip.AddrFrom4(gw))
		if s.hears(ctx, h, fmt.Sprintf("arp-reply %v %v", netip.AddrFrom4(gw), gatewayMAC)) {
			s.tell("%-6s the gateway %v is at %v: here, as on every VTEP", h.site.name, netip.AddrFrom4(gw), gatewayMAC)
		}
	}
	if s.err != nil {
		return
	}
	start := time.Now()
	from.sendICMP(layers.ICMPv4TypeEchoRequest, gatewayMAC, target.ip, 1)
	// The gateway first resolves its next hop.
	if s.hears(ctx, target, "arp-request "+target.ip.String()) && s.ponged(ctx, from, target, 63) {
		s.tell("%-6s routed from VNI %d to %d: reply from %v in %v, TTL 63", from.site.name, from.vni, target.vni, target.ip,
			time.Since(start).Round(time.Microsecond))
	}
}

// silent checks that hosts receive nothing for a moment.
func (s *story) silent(hosts ...*host) {
	if s.err != nil {
		return
	}
	time.Sleep(20 * time.Millisecond)
	var names []string
	for _, h := range hosts {
		if len(h.heard) > 0 {
			s.err = fmt.Errorf("%v: heard %q, and should have heard nothing", h, <-h.heard)
			return
		}
		names = append(names, h.name)
	}
	s.tell("%-6s heard nothing", strings.Join(names, ", "))
}

// learned waits until a site's FDB has h at where: a port or a VTEP.
func (s *story) learned(ctx context.Context, h *host, at int, where string) {
	n := s.f.sites[at]
	vsi, err := n.Switch().VSI(h.vni, nil)
	if s.err = errors.Join(s.err, err); s.err != nil {
		return
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if d, ok := vsi.FDB().Lookup(h.mac); ok {
			if name := n.Switch().Name(d); name == where || strings.HasPrefix(name, where+":") {
				s.tell("%-6s %v in VNI %d is at %s", n.name, h.mac, h.vni, where)
				return
			}
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			s.err = fmt.Errorf("%s: does not know that %v is at %s", n.name, h, where)
			return
		}
	}
}

// moved moves h to another port; a gratuitous ARP announces it.
func (s *story) moved(ctx context.Context, h *host, to int) {
	if s.err != nil {
		return
	}
	from := h.site
	if s.err = h.segment.Remove(h.port); s.err != nil {
		return
	}
	if s.err = s.f.plug(h, to); s.err != nil {
		return
	}
	h.sendARP(layers.ARPRequest, frame.Broadcast, h.ip)
	s.tell("%-6s port down; %s: port up", from.name, h.site.name)
	for _, o := range s.f.hosts {
		if o != h && o.vni == h.vni {
			s.hears(ctx, o, "arp-request "+h.ip.String())
		}
	}
	if s.err == nil && !slices.Contains(s.f.movesSeen(s.f.sites[0]), h.mac) {
		s.err = fmt.Errorf("vtep1: no event that %v moved", h)
	}
}

// movesSeen returns the MACs that a site has reported as moved since the last call.
func (f *fabric) movesSeen(n *site) (macs []frame.MAC) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	for {
		ev, err := n.events.Next(ctx)
		if err != nil {
			return macs
		}
		if ev.Kind == frame.EventMACMoved {
			macs = append(macs, ev.MAC)
		}
	}
}
