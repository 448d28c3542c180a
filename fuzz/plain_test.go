package fuzz

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// What a rig does while a model follows it: settings and operations are those that the model
// knows, and frames are such that their headers of IP mean nothing.

// simplify leaves of the settings what a model knows, and draws some more of that.
func (s *settings) simplify(d *draw) {
	s.plain = true
	s.tunnel = vtep.Config{Type: encap.TypeVXLAN, Peers: min(s.tunnel.Peers, vtep.ListedOnly), Header: s.tunnel.Header}
	s.underMTU, s.maxMACs = pick(d, 1500, 1300), 0
	s.vnis = pick(d, [2]frame.VNI{100, 200}, [2]frame.VNI{0, frame.MaxVNI - 5000}, [2]frame.VNI{4100, 0})
	s.shift = pick[frame.VNI](d, 0, 5000)
	s.families = d.under(3)
	s.listed = d.under(5)
	for i := range s.segments {
		x := &s.segments[i]
		*x = segmentSettings{vsi: plainVSI(d), far: plainAttachment(d, true)}
		for k := range x.members {
			x.members[k] = plainAttachment(d, false)
		}
	}
	for i := range s.segments {
		for k := range s.segments[i].members {
			s.segments[i].members[k].Role = drawRole(d)
		}
	}
}

// one is true once in n times; not where the input is at its end.
func (d *draw) one(n int) bool { return d.under(n) == n-1 }

func plainVSI(d *draw) vswitch.VSIConfig {
	c := vswitch.VSIConfig{Refuse: true, Flaps: 255, Ageing: pick[time.Duration](d, 0, -1, 5*time.Second, 20*time.Second)}
	if d.one(4) {
		c.NoFlood = vswitch.Class(d.under(8))
	}
	if d.one(5) {
		c.MaxMACs = 1 + d.under(6)
	}
	c.NoLearn, c.ForwardPinned, c.ForwardBridgeGroup = d.one(10), d.one(4), d.one(4)
	return c
}

func plainAttachment(d *draw, tunnel bool) vswitch.AttachConfig {
	c := vswitch.AttachConfig{KeepOpen: d.one(3), NoLearn: d.one(10)}
	switch {
	case tunnel && d.one(4):
		c.Hub = true
	case d.one(4):
		c.Group = pick(d, vswitch.GroupIsolated, vswitch.GroupTunnel, 7)
	}
	if d.one(6) {
		c.NoFlood = vswitch.Class(d.under(8))
	}
	if d.one(8) {
		c.MaxMACs = 1 + d.under(3)
	}
	return c
}

// Operations while a model follows.
var plainOps = []func(r *rig, d *draw){
	(*rig).fromLocal, (*rig).fromLocal, (*rig).fromLocal, (*rig).fromLocal, (*rig).fromLocal, (*rig).fromLocal, (*rig).fromLocal, (*rig).fromLocal,
	(*rig).plainWire, (*rig).plainWire, (*rig).plainWire, (*rig).plainWire, (*rig).plainWire, (*rig).rawDatagram, (*rig).rawFrame, (*rig).inject,
	(*rig).pass, (*rig).pass, (*rig).pass, (*rig).flush, (*rig).detach, (*rig).mend, (*rig).mend, (*rig).mend, (*rig).again,
	(*rig).configure, (*rig).reconfigure, (*rig).setFlood, (*rig).peers, (*rig).plainEntry, (*rig).plainEntry, (*rig).remove, (*rig).tracing, (*rig).leave,
}

// plainFrame makes a frame of no protocol, out of a few addresses and lengths.
func (r *rig) plainFrame(d *draw) []byte {
	src, dst := hostMAC(d.under(8)), hostMAC(d.under(10))
	switch how := d.byte(); how & 15 {
	case 0:
		src = pick(d, frame.MAC{}, frame.Broadcast, groups[1])
	case 1, 2, 3, 4:
		dst = groups[int(how>>4)%4]
	case 5:
		dst = frame.MACFrom(0x0180c2000000 + uint64(how>>4)*2)
	case 6:
		dst = src
	case 7:
		src = hostMAC(d.under(16))
	}
	size := 60
	switch how := d.byte(); how & 15 {
	case 0, 1, 2: // what just fits through a tunnel, or into a port, or no more
		size = pick(d, r.set.underMTU-36, r.set.underMTU-56, 1514, 1000) + d.under(3)
	case 3:
		size = d.under(20)
	}
	typ := uint16(0x88b5)
	if how := d.byte(); how&15 == 0 {
		typ = pick[uint16](d, 0x8100, 0x88a8)
	}
	b := append(append(make([]byte, 0, max(size, 64)), dst[:]...), src[:]...)
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, typ), 5) // what a tag would be, and untagged behind it
	b = append(b, byte(r.played))
	return append(b, make([]byte, max(0, size-len(b)))...)[:size]
}

// plainWire enters datagrams by one underlay: of two each has a worker.
func (r *rig) plainWire(d *draw) {
	var ps []packet
	for range 1 + d.under(3) {
		outer, b, how := r.source(d), r.plainFrame(d), d.byte()
		vni := r.vnis[how&1]
		if how&14 == 14 {
			vni = 77
		}
		h := make([]byte, encap.VXLANLen, encap.VXLANLen+len(b))
		encap.PutVXLAN(h, vni)
		switch how >> 4 {
		case 12:
			h[0] = d.byte()
		case 13:
			h[1], h[2], h[3], h[7] = d.byte(), d.byte(), d.byte(), d.byte()
		case 14:
			b = tagged(b, 20)
		case 15:
			b = b[:min(len(b), d.under(15))]
		}
		if len(ps) == 0 || outer.Src.Is4() == ps[0].outer.Src.Is4() {
			ps = append(ps, packet{data: append(h, b...), outer: outer, tight: d.flag()})
		}
	}
	r.wire(ps...)
}

// mend makes a segment or an attachment that is missing.
func (r *rig) mend(d *draw) {
	for n, first := 0, d.under(10); n < 10; n++ {
		i, port := (first+n)%2, (first+n)/2%5
		if r.segs[i] == nil {
			r.makeSegment(i)
			return
		}
		if r.segs[i].at[port] == nil {
			if r.attach(i, port); r.segs[i].at[port] != nil {
				return
			}
		}
	}
}

// member returns a local port that is in a segment, this one rather than others.
func (r *rig) member(port int) int {
	for n := range tunPort {
		if r.g.ports[(port+n)%tunPort] != nil {
			return (port + n) % tunPort
		}
	}
	return port % tunPort
}

// again attaches a port to a segment that it is in, by the same tag if it may have several.
func (r *rig) again(d *draw) {
	x, port := r.segs[d.under(2)], d.under(5)
	if x == nil || x.at[port] == nil {
		return
	}
	tag := uint32(d.byte())
	if port != farPort {
		tag = x.at[port].Tag()
	}
	if _, err := x.vsi.AttachWith(x.at[port].Port(), tag, &vswitch.AttachConfig{}); err == nil {
		r.errorf("port %d is in a segment twice", port)
	}
}

// set0 makes an entry in the table of a segment and of its model.
func (r *rig) set0(i int, mac frame.MAC, at dest, flags fdb.Flags) {
	x := r.segs[i]
	var to frame.Dest
	if at.port != noPort {
		peer := uint16(0)
		if at.peer.IsValid() {
			peer = check.Must(r.vtep.AddPeer(netip.AddrPortFrom(at.peer, 4789)))(r.t)
			r.g.added[at.peer] = true
		}
		to = x.at[at.port].Dest(peer)
	}
	got := x.vsi.FDB().Set(mac, to, flags)
	if r.g == nil {
		r.must(got)
		return
	}
	v := r.g.vsis[x.vsi.VNI()]
	was := v.fdb[mac]
	want := v.set(mac, at, flags)
	if want == nil {
		r.g.deleted(v, mac, was)
	}
	if !errors.Is(got, want) {
		r.errorf("set: got %v, want %v", got, want)
	}
}

func (r *rig) plainEntry(d *draw) {
	i, mac, port, peer := d.under(2), hostMAC(d.under(10)), d.under(8), 2+d.under(7)
	flags := pick(d, fdb.Static, fdb.Control, fdb.Control|fdb.Sticky, fdb.Control|fdb.Override, fdb.Filter)
	if d.under(8) == 7 {
		mac = groups[1]
	}
	at := dest{port: noPort}
	switch x := r.segs[i]; {
	case x == nil:
		return
	case port > farPort:
		flags = pick(d, flags, fdb.Anycast)
	case x.at[port] == nil:
		return
	case port == farPort:
		a := r.peerAddr(peer).Addr()
		at = dest{port, a}
	default:
		at = dest{port: port}
	}
	r.set0(i, mac, at, flags)
}

func (r *rig) remove(d *draw) {
	x, mac := r.segs[d.under(2)], hostMAC(d.under(10))
	if x == nil {
		return
	}
	v := r.g.vsis[x.vsi.VNI()]
	want := v.fdb[mac] != nil
	r.g.deleted(v, mac, v.fdb[mac])
	delete(v.fdb, mac)
	if got := x.vsi.FDB().Delete(mac); got != want {
		r.errorf("delete: got %v, want %v", got, want)
	}
}

// deleted tells of an entry that was learned.
func (g *golden) deleted(v *gvsi, mac frame.MAC, e *gentry) {
	if e != nil && e.origin == learned {
		g.event("mac-deleted %d %v %s", v.vni, mac, e.at)
	}
}

// setFlood sets a list as the VTEP does: nobody twice, and not itself.
func (g *golden) setFlood(vni frame.VNI, to []vtep.FloodPeer) {
	var list []vtep.FloodPeer
	for _, p := range to {
		if !slices.ContainsFunc(list, func(x vtep.FloodPeer) bool { return x.Addr.Addr() == p.Addr.Addr() && x.MAC == p.MAC }) {
			list = append(list, p)
		}
	}
	g.flooded[vni] = list
}

// may reports whether the VTEP takes a flood list for a VNI: it is in it, or the list is empty.
func (g *golden) may(vni frame.VNI, list []vtep.FloodPeer) bool {
	return len(list) == 0 || g.ports[farPort] != nil && g.ports[farPort].tagged(uint32(vni)) != nil
}

// gone has the model do what became of a port: it leaves one segment, or the switch.
func (g *golden) gone(vni frame.VNI, port int) {
	if p := g.ports[port]; len(p.members) == 1 {
		g.leave(p, "")
	} else {
		g.detach(g.vsis[vni].on(port))
	}
}

// fail has a port, or the VTEP, close by itself.
func (r *rig) fail(port int) {
	if port == tunPort && r.g != nil {
		if err := r.vtep.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			r.must(err)
		}
		port = farPort
	} else {
		r.ports[port].Close()
	}
	r.settle()
	for _, x := range r.segs {
		if x != nil {
			x.at[port] = nil
		}
	}
	if r.g == nil {
		return
	}
	if p := r.g.ports[port]; p != nil {
		r.g.leave(p, "closed")
	} else if port == farPort {
		r.g.listening = false
	}
}
