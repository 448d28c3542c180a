package l3

import (
	"net/netip"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// A Filter decides about packets that a gateway routes: frame.Continue lets one pass, any other verdict is the gateway's. It sees the
// packet as from an IP port, without an Ethernet header, and writes nothing into it. The stages of a policy.Policy are Filters.
//
// If it is a vswitch.Judge, too, an Offload may carry packets past it. If it is a vswitch.Housekeeper, the Interface calls Housekeep.
type Filter interface {
	Process(f *frame.Frame, at frame.At) frame.Verdict
}

// A judge is a Filter that says what Process would do; see vswitch.Judge.
type judge interface {
	Judge(src, dst frame.MAC, t frame.Tuple) (carried func(frame.Count), pass bool)
	Watch(f func()) (stop func())
}

// A filter is a Filter in place.
type filter struct {
	Filter
	judge        // nil if it is none
	stop  func() // of Watch
}

// SetFilters has packets pass in when they are routed from the interface's segment, and out when they are routed to it; nil is none.
// Neither sees packets for the gateway itself, its ICMP errors, nor what stays in the segment, even if the gateway passes it on from host to
// host, as in mode arp.Proxy: stages of the VSI's slots do. A change takes effect with the next packet.
func (i *Interface) SetFilters(in, out Filter) {
	i.filtering.Lock()
	defer i.filtering.Unlock()
	i.setFilter(&i.in, in)
	i.setFilter(&i.out, out)
	i.vrf.watchers.Tell(frame.MAC{})
}

func (i *Interface) setFilter(at *atomic.Pointer[filter], is Filter) {
	var f *filter
	if is != nil {
		f = &filter{Filter: is}
		if j, ok := is.(judge); ok {
			f.judge, f.stop = j, j.Watch(func() { i.vrf.watchers.Tell(frame.MAC{}) })
		}
	}
	if was := at.Swap(f); was != nil && was.stop != nil {
		was.stop()
	}
}

// judge shows a packet to dst that is routed to a next hop to the filters of the interfaces where it came in and goes out.
func (i *Interface) judge(x *packet, r *route, h *nextHop, dst netip.Addr) frame.Verdict {
	if x.own || i.keeps(r, h, dst) {
		return frame.Continue
	}
	if !x.passed {
		if v := i.in.Load().pass(x, i.cfg.VNI); v != frame.Continue {
			return v
		}
		x.passed = true
	}
	return x.out.out.Load().pass(x, x.out.cfg.VNI)
}

// keeps reports whether packets of the segment to a host in it stay there: the gateway only passes them on.
func (i *Interface) keeps(r *route, h *nextHop, dst netip.Addr) bool {
	return h.out == i && (r.kind == connected || h.ip == dst)
}

// pass shows a packet to a filter, as one of a segment.
func (f *filter) pass(x *packet, vni frame.VNI) frame.Verdict {
	if f == nil {
		return frame.Continue
	}
	kind, from := x.f.Kind, x.f.VNI
	x.f.Pull(x.ip)
	x.f.Kind, x.f.VNI = frame.IPv4, vni
	if x.v6 {
		x.f.Kind = frame.IPv6
	}
	v := f.Process(x.f, frame.At{Tick: x.tick, Worker: x.worker, From: x.f.Origin()})
	x.f.Push(x.ip)
	x.f.Kind, x.f.VNI = kind, from
	return v
}

// judges reports whether a filter lets all packets with a tuple pass; carried counts those that passed by, and may be nil.
func (f *filter) judges(t frame.Tuple) (carried func(frame.Count), pass bool) {
	if f == nil {
		return nil, true
	}
	if f.judge == nil || t.Protocol == 0 {
		return nil, false
	}
	return f.Judge(frame.MAC{}, frame.MAC{}, t)
}

// housekeep calls Housekeep of a filter that has it.
func (f *filter) housekeep(now frame.Tick) {
	if f == nil {
		return
	}
	if h, ok := f.Filter.(interface{ Housekeep(frame.Tick) }); ok {
		h.Housekeep(now)
	}
}
