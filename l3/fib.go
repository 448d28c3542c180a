package l3

import (
	"encoding/binary"

	"github.com/gaissmai/bart"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// Lookup implements vswitch.FIB: the next hop of packets that Process routes to a host on Ethernet. There is none for packets to the
// gateway itself and for those that it drops or answers, nor while the next hop's MAC is unknown. carried counts routed packets.
func (i *Interface) Lookup(dst frame.MAC, t frame.Tuple) (hop frame.Hop, carried func(frame.Count), ok bool) {
	if m := dst.Uint64(); m != i.mac && m != i.own || !i.routes(t) {
		return hop, nil, false
	}
	r, ok := i.vrf.routes.Load().Lookup(t.Dst)
	if !ok || r.kind != via && r.kind != connected {
		return hop, nil, false
	}
	h := r.one
	if h == nil && t.Protocol != 0 {
		hop.Ports = true
		h = r.steady(i.vrf.gateway.flowOf(t))
	}
	if h == nil || h.out.cfg.Port != 0 {
		return hop, nil, false
	}
	mac, from := h.mac, h.out.mac
	if mac == 0 {
		next := h.ip
		if !next.IsValid() {
			next = t.Dst
		}
		e := h.out.neighbours.Resolve(next)
		if e == 0 {
			return hop, nil, false
		}
		mac = e.MAC()
		if e.Remote() {
			from = h.out.own
		}
	}
	var in, out *filter
	if !i.keeps(r, h, t.Dst) {
		in, out = i.in.Load(), h.out.out.Load()
	}
	countIn, passIn := in.judges(t)
	countOut, passOut := out.judges(t)
	if !passIn || !passOut {
		return hop, nil, false
	}
	hop.Ports = hop.Ports || in != nil || out != nil
	hop.VNI, hop.Dst, hop.Src = h.out.cfg.VNI, frame.MACFrom(mac), frame.MACFrom(from)
	v6 := t.Dst.Is6()
	return hop, func(n frame.Count) {
		i.carried(v6, n)
		for _, count := range []func(frame.Count){countIn, countOut} {
			if count != nil {
				count(n)
			}
		}
	}, true
}

// routes reports whether packets between the addresses of t may be routed, as forward4 and forward6 decide.
func (i *Interface) routes(t frame.Tuple) bool {
	switch {
	case t.Src.Is4() && t.Dst.Is4():
		src := t.Src.As4()
		return routable4(src) && routable4(t.Dst.As4()) && src != i.ip4
	case t.Src.Is6() && t.Dst.Is6():
		src := t.Src.As16()
		return routable6(src) && routable6(t.Dst.As16()) && src != i.ip6
	}
	return false
}

// carried counts packets that an Offload has routed.
func (i *Interface) carried(v6 bool, n frame.Count) {
	if v6 {
		i.counts.Of(0).routed6.Count(n.Frames, 0)
	} else {
		i.counts.Of(0).routed4.Count(n.Frames, 0)
	}
}

// flowOf is flow4 and flow6 of a packet that is no fragment.
func (g *Gateway) flowOf(t frame.Tuple) uint64 {
	ports := uint64(t.Protocol) << 32
	if t.Protocol == wire.ProtoTCP || t.Protocol == wire.ProtoUDP {
		ports |= uint64(t.SrcPort)<<16 | uint64(t.DstPort)
	}
	addrs := append(t.Src.AsSlice(), t.Dst.AsSlice()...)
	if t.Src.Is4() {
		return g.seed.Hash128(binary.BigEndian.Uint64(addrs), ports)
	}
	w := [5]uint64{4: ports}
	for k := range 4 {
		w[k] = binary.BigEndian.Uint64(addrs[8*k:])
	}
	return g.seed.Hash320(&w)
}

// steady is pick without an effect. It returns nil if pick would have one.
func (r *route) steady(flow uint64) *nextHop {
	h, ask := r.choose(flow)
	if ask != nil {
		return nil
	}
	return h
}

// Watch implements vswitch.FIB.
func (i *Interface) Watch(f func(frame.MAC)) (stop func()) { return i.vrf.watchers.Add(f) }

// publish has packets routed by t from now on.
func (v *VRF) publish(t *bart.Table[*route]) {
	v.routes.Store(t)
	v.watchers.Tell(frame.MAC{})
}
