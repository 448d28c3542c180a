package model

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/underlay/memory"
)

var cutLink = memory.Link{Cut: true}

// An op is one thing that happens, in words and as a function that fits any state.
type op struct {
	words string
	do    func(w *world) error
}

// draw chooses the next op, looking at the model for ones that mean something.
func (w *world) draw(r *rand.Rand, k int) op {
	t := w.t
	i, net := r.IntN(len(t.nodes)), r.IntN(len(t.nets))
	if m := t.nets[net].members; len(m) > 0 && !one(r, 10) {
		i = pick(r, m...)
	}
	id := firstHost + r.IntN(t.hosts)
	where := fmt.Sprintf("node%d VNI %d", i, t.nets[net].vni)
	switch x := r.IntN(100); {
	case x < 58:
		return w.drawSend(r, id, k)
	case x < 61:
		b := w.drawFrame(r, i, net, -1, k)
		return op{fmt.Sprintf("%s injects %x", where, b), func(w *world) error { return w.inject(i, net, b) }}
	case x < 68:
		return w.drawRaw(r, i, net, k)
	case x < 70:
		return op{fmt.Sprintf("host%d's port fails", id), func(w *world) error {
			if p := w.place[id]; p != nil && p.node >= 0 {
				return w.fail(p.node, id)
			}
			return nil
		}}
	case x < 73:
		if a := w.someone(r, i, net, 8); a != nil {
			port := a.port.id
			return op{fmt.Sprintf("%s detaches port %d", where, port), func(w *world) error { return w.detach(i, net, port) }}
		}
		fallthrough
	case x < 80:
		return w.drawAttach(r, i, net, id)
	case x < 82:
		if a := w.someone(r, i, net, 3); a != nil {
			port, cfg := a.port.id, randomAttach(r)
			if port == vtepPort {
				cfg = t.tunnelAttach(r, i, net)
				cfg.Hub = cfg.Hub && !one(r, 3)
			}
			return op{fmt.Sprintf("%s configures port %d %+v", where, port, cfg), func(w *world) error { return w.reattach(i, net, port, cfg) }}
		}
		fallthrough
	case x < 83:
		cfg := randomVSI(r)
		return op{fmt.Sprintf("%s configures VSI %+v", where, cfg), func(w *world) error { return w.configure(i, net, cfg) }}
	case x < 86:
		to := t.floodList(r, i, net, true)
		return op{fmt.Sprintf("%s floods to %v", where, to), func(w *world) error { return w.setFlood(i, net, to) }}
	case x < 89:
		return w.drawLink(r, i)
	case x < 93:
		return w.drawSet(r, i, net, where)
	case x < 95:
		mac := w.drawMAC(r, i, net)
		return op{fmt.Sprintf("%s deletes %v", where, mac), func(w *world) error { return w.remove(i, net, mac) }}
	case x < 96:
		return op{where + " flushes", func(w *world) error { return w.flush(i, net) }}
	case x < 98:
		d := time.Duration(1+r.IntN(12)) * time.Second
		if one(r, 60) {
			d = 301 * time.Second
		}
		return op{fmt.Sprintf("%v pass", d), func(w *world) error { return w.sleep(d) }}
	case x < 99:
		return op{where + " deletes the VSI", func(w *world) error { return w.deleteVSI(i, net) }}
	}
	return op{fmt.Sprintf("node%d's VTEP fails", i), func(w *world) error { return w.fail(i, vtepPort) }}
}

// someone returns a member of a VSI, the VTEP once in n.
func (w *world) someone(r *rand.Rand, i, net, n int) *gatt {
	v := w.g.nodes[i].vsis[w.vsiOf(i, net)]
	if v == nil || len(v.members) == 0 {
		return nil
	}
	a := pick(r, v.members...)
	if a.port.id == vtepPort && !one(r, n) {
		a = pick(r, v.members...)
	}
	return a
}

func (w *world) drawAttach(r *rand.Rand, i, net, id int) op {
	vni := w.t.nets[net].vni
	if v := w.g.nodes[i].vsis[w.vsiOf(i, net)]; v == nil || v.on(vtepPort) == nil && !one(r, 4) {
		cfg := w.t.tunnelAttach(r, i, net)
		return op{fmt.Sprintf("node%d attaches its VTEP to VNI %d %+v", i, vni, cfg), func(w *world) error { return w.attachTunnel(i, net, cfg) }}
	}
	for other := range w.place { // rather one that is nowhere
		_ = other
		if p := w.place[id]; p.node < 0 {
			break
		}
		id = firstHost + r.IntN(w.t.hosts)
	}
	if p := w.place[id]; p.node >= 0 && !one(r, 4) {
		i = p.node
	}
	tag, cfg, mtu := pick[uint32](r, 0, 0, 10, 20, 30), randomAttach(r), pick(r, 0, 0, 0, 1400, 9014)
	return op{fmt.Sprintf("node%d attaches host%d to VNI %d, tag %d %+v MTU %d", i, id, vni, tag, cfg, mtu),
		func(w *world) error { return w.attachHost(id, i, net, tag, cfg, mtu) }}
}

func (w *world) drawLink(r *rand.Rand, i int) op {
	j := r.IntN(len(w.t.nodes))
	a, ok := w.t.reach(j, i)
	b, _ := w.t.reach(i, j)
	if !ok || i == j {
		a, b = w.t.nodes[0].addrs[0], w.t.outside[0].Addr()
	}
	cut := !w.g.cut[[2]netip.Addr{a, b}]
	return op{fmt.Sprintf("link from %v to %v cut=%v", a, b, cut), func(w *world) error { return w.link(a, b, cut) }}
}

// drawSet chooses an entry somebody sets.
func (w *world) drawSet(r *rand.Rand, i, net int, where string) op {
	mac := w.drawMAC(r, i, net)
	f := pick(r, fdb.Static, fdb.Static, fdb.Control, fdb.Control, fdb.Control|fdb.Sticky, fdb.Control|fdb.Override, fdb.Filter)
	at := dest{}
	switch a := w.someone(r, i, net, 1); {
	case one(r, 6):
		f = pick(r, fdb.Static, fdb.Anycast, fdb.Control)
	case a == nil:
	case a.port.id != vtepPort:
		at = dest{port: a.port.id}
	default:
		peers := w.t.floodList(r, i, net, true)
		peers = slices.DeleteFunc(peers, func(p netip.Addr) bool { return slices.Contains(w.t.nodes[i].addrs, p) })
		if len(peers) > 0 {
			at = dest{vtepPort, peers[0]}
		}
	}
	if one(r, 10) {
		mac = groupMAC(r)
	}
	return op{fmt.Sprintf("%s sets %v at %s, flags %#x", where, mac, w.g.name(at), f), func(w *world) error { return w.set(i, net, mac, at, f) }}
}

func hostMAC(id int) frame.MAC { return frame.MACFrom(0x020000000000 + uint64(id)) }

func strayMAC(r *rand.Rand) frame.MAC { return frame.MACFrom(0x02aa00000000 + uint64(r.IntN(6))) }

func groupMAC(r *rand.Rand) frame.MAC {
	return pick(r, frame.MACFrom(0x01005e000000+uint64(r.IntN(3))), frame.MACFrom(0x333300000001))
}

// drawMAC chooses an address that may mean something in a VSI.
func (w *world) drawMAC(r *rand.Rand, i, net int) frame.MAC {
	if v := w.g.nodes[i].vsis[w.vsiOf(i, net)]; v != nil && len(v.fdb) > 0 && !one(r, 4) {
		macs := make([]frame.MAC, 0, len(v.fdb))
		for mac := range v.fdb {
			macs = append(macs, mac)
		}
		slices.SortFunc(macs, func(a, b frame.MAC) int { return int(int64(a.Uint64()) - int64(b.Uint64())) })
		return pick(r, macs...)
	}
	if one(r, 3) {
		return strayMAC(r)
	}
	return hostMAC(firstHost + r.IntN(w.t.hosts))
}

// drawFrame makes a frame somebody could send into a VSI: a host, or for a negative
// id somebody else.
func (w *world) drawFrame(r *rand.Rand, i, net, id, k int) []byte {
	src := strayMAC(r)
	if id >= 0 && !one(r, 5) {
		src = hostMAC(id)
	}
	switch r.IntN(25) {
	case 0:
		src = pick(r, frame.MAC{}, frame.Broadcast, groupMAC(r))
	case 1, 2, 3:
		src = w.drawMAC(r, i, net)
	}
	dst := w.drawMAC(r, i, net)
	switch r.IntN(20) {
	case 0, 1, 2:
		dst = frame.Broadcast
	case 3, 4:
		dst = groupMAC(r)
	case 5:
		dst = strayMAC(r)
	case 6:
		dst = frame.MACFrom(0x0180c2000000 + uint64(r.IntN(20)))
	case 7:
		dst = src
	case 8:
		dst = frame.MACFrom(r.Uint64() &^ (1 << 40) & (1<<48 - 1))
	}
	size := pick(r, 60, 60, 60, 60+r.IntN(100))
	switch r.IntN(20) {
	case 0:
		size = pick(r, 1400, 1401, 1444, 1445, 1464, 1465, 1514, 1515, 1518, 1519)
	case 1:
		size = r.IntN(20)
	}
	etherType := uint16(0x88b5)
	if one(r, 25) {
		etherType = pick[uint16](r, 0x8100, 0x88a8)
		if src[0]&1 != 0 || src == (frame.MAC{}) {
			src = strayMAC(r)
		}
	}
	b := append(append([]byte(nil), dst[:]...), src[:]...)
	b = binary.BigEndian.AppendUint16(b, etherType)
	b = binary.BigEndian.AppendUint32(b, 5) // what a VLAN tag would be, and untagged behind it
	b = binary.BigEndian.AppendUint32(b, uint32(w.t.seed))
	b = binary.BigEndian.AppendUint32(b, uint32(k))
	b = append(b, make([]byte, max(0, size-len(b)))...)
	return b[:size]
}

func tagged(vid uint16, b []byte) []byte {
	if len(b) < 12 {
		return b
	}
	t := append(slices.Clone(b[:12]), 0x81, 0, byte(vid>>8), byte(vid))
	return append(t, b[12:]...)
}

// drawSend is a host that sends, mostly in a network it is in.
func (w *world) drawSend(r *rand.Rand, id, k int) op {
	for range 3 {
		if p := w.place[id]; p.node < 0 {
			id = firstHost + r.IntN(w.t.hosts)
		}
	}
	i, net, tag := 0, 0, uint32(0)
	if p := w.place[id]; p.node >= 0 {
		i = p.node
		a := pick(r, w.g.nodes[i].ports[id].members...)
		tag = a.tag
		for x := range w.t.nets {
			if w.vsiOf(i, x) == a.vsi.vni {
				net = x
			}
		}
	}
	b := w.drawFrame(r, i, net, id, k)
	switch r.IntN(12) {
	case 0:
		tag = pick[uint32](r, 0, 10, 20, 30, 99)
	case 1:
		b = tagged(pick[uint16](r, 0, 0x2000, 5), b) // priority only, or a tag within the tag
	}
	if tag != 0 {
		b = tagged(uint16(tag)|uint16(r.IntN(8))<<13, b)
	}
	return op{fmt.Sprintf("host%d sends %x in VNI %d (node%d)", id, b, w.t.nets[net].vni, i), func(w *world) error { return w.send(id, b) }}
}

// drawRaw is a datagram from somebody who need not play by the rules.
func (w *world) drawRaw(r *rand.Rand, i, net, k int) op {
	from := r.IntN(len(w.t.outside))
	to := pick(r, w.t.nodes[i].addrs...)
	if w.t.outside[from].Addr().Is4() != to.Is4() {
		from = 3
		i = 0
		to = w.t.nodes[0].addrs[0]
	}
	vni := w.t.nets[net].vni
	if one(r, 10) {
		vni = 777
	}
	head := binary.BigEndian.AppendUint64(nil, 8<<56|uint64(vni)<<8)
	inner := w.drawFrame(r, i, net, -1, k)
	switch r.IntN(8) {
	case 0:
		head[0] &^= 8
	case 1:
		head[0] |= byte(r.Uint32())&^8 | 0x40
		head[1], head[2], head[3], head[7] = byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())
	case 2:
		inner = inner[:min(len(inner), r.IntN(15))]
	case 3:
		inner = append(inner, make([]byte, r.IntN(600))...)
	}
	payload := append(head, inner...)
	if one(r, 10) {
		payload = payload[:r.IntN(8)]
	}
	return op{fmt.Sprintf("%v sends node%d %x", w.t.outside[from], i, payload), func(w *world) error { return w.raw(from, to, payload) }}
}
