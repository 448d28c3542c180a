package fuzz

import (
	"net/netip"
	"slices"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
)

const (
	maxOps   = 64
	maxSpent = 400    // seconds
	maxFrame = 60_000 // bytes
	mostOut  = 20_000 // frames that may come of one batch
)

// settle waits until nothing moves any more.
func (r *rig) settle() { synctest.Wait() }

// frameOf makes a frame, one that means nothing while a model follows.
func (r *rig) frameOf(d *draw) []byte {
	if r.g != nil {
		return r.plainFrame(d)
	}
	return frameOf(d)
}

// An op is one thing that happens. Packets come first, and most often.
var ops = []func(r *rig, d *draw){
	(*rig).fromLocal, (*rig).fromLocal, (*rig).fromLocal, (*rig).fromLocal,
	(*rig).fromWire, (*rig).fromWire, (*rig).fromWire, (*rig).fromWire,
	(*rig).superframe, (*rig).rawDatagram, (*rig).rawFrame, (*rig).inject,
	(*rig).pass, (*rig).flush, (*rig).detach, (*rig).reattach,
	(*rig).configure, (*rig).reconfigure, (*rig).setFlood, (*rig).peers,
	(*rig).entry, (*rig).networkError, (*rig).policyUpdate, (*rig).routes,
	(*rig).fill, (*rig).tracing, (*rig).limits, (*rig).leave,
}

func (r *rig) play(d *draw) {
	ops := ops
	if r.g != nil {
		ops = plainOps
		r.agree()
	}
	for r.played = range maxOps {
		if len(d.in) == 0 || r.closed || r.t.Failed() {
			return
		}
		ops[d.under(len(ops))](r, d)
		r.compare()
	}
}

// compare waits until nothing moves any more, and looks at what has happened.
func (r *rig) compare() {
	r.settle()
	if n := r.emitted.Swap(0); n > mostOut {
		r.errorf("%d frames came of one operation", n)
	}
	r.mu.Lock()
	r.entered = r.entered[:0]
	r.mu.Unlock()
	if r.g != nil && !r.closed {
		r.g.pass(time.Since(r.began))
		r.agree()
	}
}

// give hands a batch to a feed, if somebody reads it.
func (r *rig) give(f *feed, ps ...packet) bool {
	select {
	case f.in <- ps:
		return true
	default:
		return false
	}
}

// local enters frames by a local port.
func (r *rig) local(port int, ps ...packet) {
	p := r.ports[port]
	for _, x := range ps {
		r.enter(entering{port: port, data: x.data, kind: x.kind})
	}
	given := r.give(p.feed, ps...)
	if given {
		p.entered += uint64(len(ps))
	}
	if r.g != nil {
		in := r.g.ports[port]
		if given != (in != nil) {
			r.errorf("port %d is read: %v", port, given)
		}
		for _, x := range ps {
			if in != nil {
				r.g.fromHost(in, x.data)
			}
		}
	}
}

func (r *rig) fromLocal(d *draw) {
	port, n := d.under(4), 1+d.under(3)
	if r.g != nil {
		port = r.member(port)
	}
	var ps []packet
	for range n {
		b := r.frameOf(d)
		if port == tunPort {
			ps = append(ps, bare(b))
			continue
		}
		tag := uint32(0)
		if k := d.under(4); k > 0 {
			tag = []uint32{10, 20, 30}[k-1]
		} else if port == 2 {
			tag = vlans[d.under(2)][2]
		}
		if r.g != nil {
			if v := vlans[d.under(2)][port]; v != noVLAN && d.under(8) != 7 {
				tag = v
			}
			tag |= pick[uint32](d, 0, 0, 0, 0xf000) // a priority, and a bit that says it may be dropped
		}
		ps = append(ps, packet{data: tagged(b, tag)})
	}
	r.local(port, ps...)
}

// bare is the packet in a frame, without its Ethernet header.
func bare(b []byte) packet {
	b = b[min(14, len(b)):]
	p := packet{data: b, kind: frame.IPv4}
	if len(b) > 0 && b[0]>>4 == 6 {
		p.kind = frame.IPv6
	}
	return p
}

func (r *rig) rawFrame(d *draw) {
	port := d.under(4)
	p := packet{data: r.raw(d)}
	if r.g != nil {
		port = r.member(port)
	}
	if port == tunPort {
		p.kind = frame.Kind(1 + d.under(2))
	}
	r.local(port, p)
}

// raw is bytes of the input as they are.
func (r *rig) raw(d *draw) []byte {
	if r.g == nil {
		return slices.Clone(d.bytes(int(d.word()) % 2000))
	}
	b := slices.Clone(d.bytes(int(d.word()) % 40))
	for at := 12; at < len(b); at += 2 { // no type of IP, wherever one may be
		b[at] |= 1
	}
	return b
}

// superframe is one with what a device says of it, true or not.
func (r *rig) superframe(d *draw) {
	port := d.under(4)
	g := frame.GSO{Flags: d.byte() & 1, Type: frame.GSOType(d.under(6)), Size: d.word() % 1500, CsumStart: uint16(d.byte()), CsumOffset: uint16(d.byte())}
	b := r.frameOf(d)
	if d.flag() { // true
		g = frame.GSO{Flags: frame.NeedsCsum, Size: 1 + g.Size%700}
		v6 := len(b) > 60 && b[12] == 0x86
		g.Type, g.CsumStart, g.CsumOffset = frame.GSOTCP4, 34, 16
		proto := 23
		if v6 {
			g.Type, g.CsumStart, proto = frame.GSOTCP6, 54, 20
		}
		if len(b) > proto && b[proto] == 17 {
			g.Type, g.CsumOffset = frame.GSOUDP, 6
		}
	}
	p := packet{data: b}
	if port == tunPort {
		p = bare(b)
		g.CsumStart -= min(14, g.CsumStart)
	}
	p.gso = g
	r.local(port, p)
}

// wire enters datagrams by the underlay.
func (r *rig) wire(ps ...packet) {
	for i := range ps {
		x := entering{port: farPort, data: ps[i].data, kind: ps[i].kind, from: ps[i].outer.Src}
		r.enter(x)
	}
	u := r.under
	if r.under6 != nil && !ps[0].outer.Src.Is4() {
		u = r.under6
	}
	given := r.give(u.feed, ps...)
	if given {
		u.entered += uint64(len(ps))
	}
	if r.g != nil && given != (r.g.ports[farPort] != nil) {
		r.errorf("the VTEP is read: %v", given)
	}
	for i := range ps {
		if r.g != nil && given {
			r.g.fromWire(ps[i].outer.Src.AddrPort().Addr(), ps[i].data)
		}
	}
}

func (r *rig) source(d *draw) frame.Outer {
	n := d.byte()
	src, _ := frame.EndpointFrom(netip.AddrPortFrom(r.peerAddr(1+int(n&7)).Addr(), 50000))
	return frame.Outer{Src: src, TOS: n >> 6, TTL: 64}
}

func (r *rig) fromWire(d *draw) {
	n := 1 + d.under(3)
	var ps []packet
	for range n {
		outer, how := r.source(d), d.byte()
		b := r.frameOf(d)
		vni := []frame.VNI{r.vnis[0], r.vnis[1], ipVNI, 77}[how&3]
		h := make([]byte, encap.VXLANLen, encap.VXLANLen+len(b))
		p := packet{outer: outer, tight: how&4 != 0}
		switch r.set.tunnel.Type {
		case encap.TypeGPE:
			kind := frame.Ethernet
			if vni == ipVNI || how&8 != 0 {
				x := bare(b)
				b, kind = x.data, x.kind
			}
			encap.PutGPE(h, vni, kind, how&16 != 0)
			p.data = append(h, b...)
		case encap.TypeIPIP:
			x := bare(b)
			p.data, p.kind = x.data, x.kind
			if how&16 != 0 {
				p.kind = frame.Kind(1 + how>>5&1)
			}
		default:
			encap.PutVXLAN(h, vni)
			if how&16 != 0 {
				h[how>>5&1] |= 1 << (how >> 5) // of flags, reserved bits, or the mark of a group
			}
			for k := how >> 6; k > 0; k-- {
				b = tagged(b, uint32(10*k))
			}
			p.data = append(h, b...)
		}
		ps = append(ps, p)
	}
	r.wire(ps...)
}

func (r *rig) rawDatagram(d *draw) {
	p := packet{outer: r.source(d), tight: d.flag()}
	if r.set.tunnel.Type == encap.TypeIPIP {
		p.kind = frame.Kind(1 + d.under(2))
	}
	p.data = r.raw(d)
	r.wire(p)
}

func (r *rig) inject(d *draw) {
	x := r.segs[d.under(2)]
	f := frame.Make(r.frameOf(d))
	if x == nil {
		return
	}
	r.enter(entering{port: noPort, data: f.Bytes()})
	if ok := r.sw.Inject(x.vsi, &f); r.g != nil {
		if !ok {
			r.errorf("nothing more is injected")
		}
		r.g.inject(x.vsi.VNI(), f.Bytes())
	}
}
