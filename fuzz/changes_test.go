package fuzz

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

func (r *rig) pass(d *draw) {
	s := pick(d, 1, 1, 2, 5, 11, 31, 301)
	if r.g != nil && s > 2 && !d.one(20) {
		s = 3 + d.under(9)
	}
	if r.spent += s; r.spent <= maxSpent || r.g != nil {
		time.Sleep(time.Duration(s) * time.Second)
	}
}

func (r *rig) flush(d *draw) {
	x, port := r.segs[d.under(2)], d.under(5)
	all := func(dest) bool { return true }
	switch d.under(4) {
	case 0:
		r.sw.Flush()
		r.forgotten(nil, noPort, "switch", all)
	case 1:
		if x != nil {
			x.vsi.Flush()
			r.forgotten(x, noPort, "switch", all)
		}
	case 2:
		p := vswitch.Port(r.vtep)
		if port != farPort {
			p = r.ports[port]
		}
		if r.sw.FlushPort(p) == nil {
			r.forgotten(nil, port, portName(port), func(d dest) bool { return d.port == port })
		}
	default:
		if x != nil && x.at[farPort] != nil {
			to := x.at[farPort].Dest(uint16(d.byte()))
			if r.g != nil {
				to = x.at[farPort].Dest(1 + to.Peer()%8)
			}
			if r.sw.FlushPeer(to) == nil {
				r.forgotten(nil, farPort, r.called(to), func(d dest) bool { return d.port == farPort && d.String() == r.peerName(to) })
			}
		}
	}
}

// forgotten has the model forget what is learned at some places of a segment, nil for all.
func (r *rig) forgotten(x *segment, port int, name string, at func(d dest) bool) {
	if r.g == nil {
		return
	}
	vs := slices.Collect(maps.Values(r.g.vsis))
	if x != nil {
		vs = []*gvsi{r.g.vsis[x.vsi.VNI()]}
	}
	r.g.flush(vs, port, name, at)
}

func (r *rig) detach(d *draw) {
	x, port := r.segs[d.under(2)], d.under(5)
	if x == nil || x.at[port] == nil {
		return
	}
	r.remember()
	r.must(x.at[port].Detach())
	x.at[port] = nil
	if r.g != nil {
		r.g.gone(x.vsi.VNI(), port)
	}
	r.forget()
}

func (r *rig) reattach(d *draw) { r.attach(d.under(2), d.under(5)) }

func (r *rig) configure(d *draw) {
	i := d.under(2)
	c := r.set.segments[i].vsi
	if r.g != nil {
		c = plainVSI(d)
	} else {
		drawVSI(&c, d)
	}
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
	if r.g != nil {
		r.g.vsis[x.vsi.VNI()].cfg = c
	}
	r.set.segments[i].vsi = c
	r.must(x.vsi.Configure(c))
}

func (r *rig) reconfigure(d *draw) {
	x, port := r.segs[d.under(2)], d.under(5)
	var c vswitch.AttachConfig
	if r.g != nil {
		c = plainAttachment(d, port == farPort)
	} else {
		drawAttachment(&c, d, port == farPort)
	}
	if port != farPort {
		c.Role = drawRole(d)
	}
	if x == nil || x.at[port] == nil {
		return
	}
	c.KeepOpen = x.cfg[port].KeepOpen
	blocks := blocked(&c) && !blocked(&x.cfg[port])
	x.cfg[port] = c
	if r.g != nil {
		r.g.vsis[x.vsi.VNI()].on(port).cfg = c
	}
	r.must(x.at[port].Configure(c))
	if blocks {
		r.forgotten(x, port, portName(port), func(at dest) bool { return at.port == port })
	}
}

func blocked(c *vswitch.AttachConfig) bool { return c.Role != nil && c.Role.Blocked }

func (r *rig) setFlood(d *draw) {
	vni := r.vnis[d.under(2)]
	var list []vtep.FloodPeer
	for range d.under(5) {
		b := d.byte()
		p := vtep.FloodPeer{Addr: r.peerAddr(1 + int(b%8))}
		if b&128 != 0 && r.g == nil {
			p.Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{239, 1, 1, b & 3}), 0)
		}
		if b&64 != 0 {
			p.MAC = groups[b>>3&3]
		}
		list = append(list, p)
	}
	switch {
	case r.set.tunnel.Type == encap.TypeIPIP:
	case r.g == nil:
		r.delisted = true
		_ = r.vtep.SetFloodPeers(vni, list...)
	case r.g.listening:
		err := r.vtep.SetFloodPeers(vni, list...)
		if may := r.g.may(vni, list); may != (err == nil) {
			r.errorf("flood list of VNI %d: %v", vni, err)
		} else if may {
			r.g.setFlood(vni, list)
		}
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
	if r.g != nil {
		if n = byte(d.under(7)); r.g.listening {
			r.g.added[r.peerAddr(2+int(n)).Addr()] = true
		}
		how = 0
	}
	switch vni := r.vnis[n>>7]; how {
	case 4:
		r.delisted = true
		r.move(netip.AddrPortFrom(r.peerAddr(1+int(n&7)).Addr(), r.under.own.Port()))
	case 5:
		if err := r.vtep.Allow(vni, r.peerAddr(1+int(n&7))); !errors.Is(err, vtep.ErrNotOpen) {
			r.mustOpen(err)
		}
	case 6:
		r.delisted = true
		r.vtep.Disallow(vni, r.peerAddr(1+int(n&7)))
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
		p := vtep.PeerConfig{Address: r.peerAddr(1 + int(n&7)).Addr(), Header: h}
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
	default:
		_ = r.vrf.Add(l3.Route{Prefix: p, Via: []l3.NextHop{{Interface: r.toIP}}})
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
	r.trace, err = r.sw.Trace(&vswitch.TraceConfig{Every: d.under(3), MAC: pick(d, frame.MAC{}, hostMAC(1)), Buffer: 8})
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
		r.fail(d.under(4))
		r.forget()
	case x != nil:
		r.remember()
		if x.iface != nil {
			r.must(x.iface.Close())
		}
		r.must(x.vsi.Delete())
		r.segs[i] = nil
		if r.g != nil {
			v := r.g.vsis[x.vsi.VNI()]
			for _, a := range slices.Clone(v.members) {
				r.g.gone(v.vni, a.port.id)
			}
			delete(r.g.vsis, v.vni)
			r.g.event("segment-down %d", v.vni)
		}
		r.forget()
	}
}
