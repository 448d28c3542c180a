package fuzz

import (
	"errors"
	"net/netip"
	"slices"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

const (
	maxOps   = 64
	maxSpent = 400    // seconds
	maxFrame = 60_000 // bytes
	mostOut  = 20_000 // frames that may come of one batch
)

// settle waits until nothing moves any more.
func (r *rig) settle() { synctest.Wait() }

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
	for range maxOps {
		if len(d.in) == 0 || r.closed || r.t.Failed() {
			return
		}
		r.emitted.Store(0)
		ops[d.under(len(ops))](r, d)
		r.settle()
		if n := r.emitted.Load(); n > mostOut {
			r.errorf("%d frames came of one operation", n)
		}
		r.mu.Lock()
		r.entered = r.entered[:0]
		r.mu.Unlock()
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
	if r.give(p.feed, ps...) {
		p.entered += uint64(len(ps))
	}
}

func (r *rig) fromLocal(d *draw) {
	port, n := d.under(4), 1+d.under(3)
	var ps []packet
	for range n {
		b := frameOf(d)
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
	p := packet{data: slices.Clone(d.bytes(int(d.word()) % 2000))}
	if port == tunPort {
		p.kind = frame.Kind(1 + d.under(2))
	}
	r.local(port, p)
}

// superframe is one with what a device says of it, true or not.
func (r *rig) superframe(d *draw) {
	port := d.under(4)
	g := frame.GSO{Flags: d.byte() & 1, Type: frame.GSOType(d.under(6)), Size: d.word() % 1500, CsumStart: uint16(d.byte()), CsumOffset: uint16(d.byte())}
	b := frameOf(d)
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
	if r.give(r.under.feed, ps...) {
		r.under.entered += uint64(len(ps))
	}
}

func (r *rig) source(d *draw) frame.Outer {
	n := d.byte()
	src, _ := frame.EndpointFrom(netip.AddrPortFrom(peerAddr(1+int(n&7)).Addr(), 50000))
	return frame.Outer{Src: src, TOS: n >> 6, TTL: 64}
}

func (r *rig) fromWire(d *draw) {
	n := 1 + d.under(3)
	var ps []packet
	for range n {
		outer, how := r.source(d), d.byte()
		b := frameOf(d)
		vni := []frame.VNI{vnis[0], vnis[1], ipVNI, 77}[how&3]
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
	p.data = slices.Clone(d.bytes(int(d.word()) % 2000))
	r.wire(p)
}

func (r *rig) inject(d *draw) {
	x := r.segs[d.under(2)]
	f := frame.Make(frameOf(d))
	if x == nil {
		return
	}
	r.enter(entering{port: noPort, data: f.Bytes()})
	r.sw.Inject(x.vsi, &f)
}

func (r *rig) pass(d *draw) {
	s := pick(d, 1, 1, 2, 5, 11, 31, 301)
	if r.spent += s; r.spent <= maxSpent {
		time.Sleep(time.Duration(s) * time.Second)
	}
}

func (r *rig) flush(d *draw) {
	x, port := r.segs[d.under(2)], d.under(5)
	switch d.under(4) {
	case 0:
		r.sw.Flush()
	case 1:
		if x != nil {
			x.vsi.Flush()
		}
	case 2:
		if port == farPort {
			_ = r.sw.FlushPort(r.vtep)
		} else {
			_ = r.sw.FlushPort(r.ports[port])
		}
	default:
		if x != nil && x.at[farPort] != nil {
			r.sw.FlushPeer(x.at[farPort].Dest(uint16(d.byte())))
		}
	}
}

func (r *rig) detach(d *draw) {
	x, port := r.segs[d.under(2)], d.under(5)
	if x == nil || x.at[port] == nil {
		return
	}
	r.remember()
	r.must(x.at[port].Detach())
	x.at[port] = nil
	r.forget()
}

func (r *rig) reattach(d *draw) { r.attach(d.under(2), d.under(5)) }

func (r *rig) configure(d *draw) {
	i := d.under(2)
	c := r.set.segments[i].vsi
	drawVSI(&c, d)
	x := r.segs[i]
	if x == nil {
		return
	}
	c.Refuse, c.Slots = r.set.segments[i].vsi.Refuse, x.slots
	if d.flag() {
		c.Slots = vswitch.Slots{Gateway: x.slots.Gateway}
	}
	if before := &r.set.segments[i].vsi; limit(&c) < limit(before) {
		c.MaxMACs = before.MaxMACs // what is over a lowered limit stays until it ages
	}
	r.set.segments[i].vsi = c
	r.must(x.vsi.Configure(c))
}

func (r *rig) reconfigure(d *draw) {
	x, port := r.segs[d.under(2)], d.under(5)
	var c vswitch.AttachConfig
	drawAttachment(&c, d, port == farPort)
	if x == nil || x.at[port] == nil {
		return
	}
	c.KeepOpen = x.cfg[port].KeepOpen
	x.cfg[port] = c
	r.must(x.at[port].Configure(c))
}

func (r *rig) setFlood(d *draw) {
	vni := vnis[d.under(2)]
	var list []netip.AddrPort
	for range d.under(5) {
		if b := d.byte(); b&128 != 0 {
			list = append(list, netip.AddrPortFrom(netip.AddrFrom4([4]byte{239, 1, 1, b & 3}), 0))
		} else {
			list = append(list, peerAddr(1+int(b%8)))
		}
	}
	if r.set.tunnel.Type != encap.TypeIPIP {
		r.delisted = true
		_ = r.vtep.SetFlood(vni, list...)
	}
}

func (r *rig) peers(d *draw) {
	b, n := d.byte(), d.byte()
	how, ipip := int(b&3), r.set.tunnel.Type == encap.TypeIPIP
	if ipip && how != 0 {
		how = 3
	}
	if b&128 != 0 {
		how += 4
	}
	switch vni := vnis[n>>7]; how {
	case 4:
		r.delisted = true
		r.mustOpen(r.vtep.SetLocal(peerAddr(1 + int(n&7)).Addr()))
	case 5:
		if err := r.vtep.Allow(vni, peerAddr(1+int(n&7))); !errors.Is(err, vtep.ErrNotOpen) {
			r.mustOpen(err)
		}
	case 6:
		r.delisted = true
		r.vtep.Disallow(vni, peerAddr(1+int(n&7)))
	case 0:
		_, _ = r.vtep.AddPeer(r.peer(2 + int(n&7)))
	case 1:
		r.delisted = true
		r.vtep.DeletePeer(uint16(n & 15))
	case 2:
		if k, err := r.vtep.AddPeer(r.peer(2 + int(n&3))); err == nil {
			_, _ = r.vtep.Group(k, uint16(1+n>>4))
		}
	default:
		h := r.set.tunnel.Header
		h.TTL = vtep.Value(1 + int(n)%255)
		p := vtep.PeerConfig{Address: peerAddr(1 + int(n&7)).Addr(), Header: h}
		if !ipip {
			p.Port = uint16(n >> 4 & 1)
		}
		r.mustOpen(r.vtep.SetPeers([]vtep.PeerConfig{p}))
	}
}

func (r *rig) entry(d *draw) {
	x, mac, port := r.segs[d.under(2)], hostMAC(d.under(14)), d.under(5)
	flags := pick(d, fdb.Static, fdb.Control, fdb.Control|fdb.Sticky, fdb.Filter, fdb.Control|fdb.Override)
	peer := uint16(d.under(4))
	if x == nil {
		return
	}
	switch {
	case flags == fdb.Filter && d.flag():
		x.vsi.FDB().Delete(mac)
	case x.at[port] == nil:
		_ = x.vsi.FDB().Set(mac, 0, flags)
	case port == farPort:
		_ = x.vsi.FDB().Set(mac, x.at[port].Dest(peer), flags)
	default:
		_ = x.vsi.FDB().Set(mac, x.at[port].Dest(0), flags)
	}
}

// networkError is one that the underlay tells of.
func (r *rig) networkError(d *draw) {
	to, mtu := r.source(d).Src.WithPort(r.under.LocalAddr().Port()), int(d.word())
	unreachable := d.flag()
	quoted := slices.Clone(d.bytes(d.under(128)))
	if unreachable && r.under.unreachable != nil {
		r.under.unreachable(to, quoted)
	} else if !unreachable {
		r.under.path(to, mtu, quoted)
	}
}

func (r *rig) policyUpdate(d *draw) {
	k, n := d.under(len(policies)), d.byte()
	if r.policy == nil {
		return
	}
	if c := policies[k]; c != nil {
		r.must(r.policy.Update(c))
	}
	p := netip.PrefixFrom(addr4(1, int(n&15)), 32)
	if n&16 != 0 {
		_ = r.policy.AddToSet("some", p)
	} else {
		_ = r.policy.DeleteFromSet("some", p)
	}
	for _, x := range r.segs {
		if x != nil && x.guard != nil && n&32 != 0 {
			r.must(x.guard.Update(&policy.GuardConfig{Addrs: []netip.Prefix{p}, Tunnels: n&64 != 0}))
		}
	}
}

func (r *rig) routes(d *draw) {
	n, k := d.under(12), d.under(4)
	if r.vrf == nil {
		return
	}
	p := netip.PrefixFrom(addr4(n, 0), 24)
	switch k {
	case 0:
		r.vrf.Delete(p)
	case 1:
		_ = r.vrf.Add(l3.Route{Prefix: p})
	case 2:
		_ = r.vrf.Add(l3.Route{Prefix: p, Via: []l3.NextHop{{Interface: r.toIP}}})
	default:
		if r.pool != nil {
			_ = r.pool.SetMode(modes[n%len(modes)])
		}
	}
}

// fill makes one way out full, or takes that back.
func (r *rig) fill(d *draw) {
	if port := d.under(5); port == farPort {
		r.under.full = !r.under.full
	} else {
		r.ports[port].full = !r.ports[port].full
	}
}

func (r *rig) tracing(d *draw) {
	if r.trace != nil && d.flag() {
		r.trace.Close()
		r.trace = nil
		return
	}
	var err error
	r.trace, err = r.sw.Trace(vswitch.TraceConfig{Every: d.under(3), MAC: pick(d, frame.MAC{}, hostMAC(1)), Buffer: 8})
	r.must(err)
}

func (r *rig) limits(d *draw) {
	r.must(r.sw.Configure(vswitch.Config{MaxMACs: d.under(20), Injected: 64}))
	r.set.maxMACs = 0 // those beyond a lowered limit stay until they age
}

// leave deletes a segment, fails a port or closes the switch.
func (r *rig) leave(d *draw) {
	i, how := d.under(2), d.under(8)
	x := r.segs[i]
	switch {
	case how == 0:
		r.closed = true
		r.must(r.sw.Close())
	case how < 3:
		r.remember()
		port := d.under(4)
		r.ports[port].Close()
		r.settle()
		for _, x := range r.segs {
			if x != nil {
				x.at[port] = nil
			}
		}
		r.forget()
	case x != nil:
		r.remember()
		if x.iface != nil {
			r.must(x.iface.Close())
		}
		r.must(x.vsi.Delete())
		r.segs[i] = nil
		r.forget()
	}
}
