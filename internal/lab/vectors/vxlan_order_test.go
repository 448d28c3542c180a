package vectors

import (
	"net/netip"
	"strings"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/vtep"
)

// orderRows have several defects at once; the first in the order names the drop.
var orderRows = []row{
	refused("1.order", "no bytes at all", nil, "short"),
	refused("1.order", "short header, no I", make([]byte, 7), "short"),
	refused("1.order", "short header, I", []byte{8, 0, 0, 0, 0, 0, vni}, "short"),
	refused("1.order", "header only, no I, unknown VNI", make([]byte, 8), "no-vni-flag"),
	refused("1.order", "no I, unknown VNI", header([8]byte{0, 0, 0, 0, 0, 9, 9, 0}, in1), "no-vni-flag"),
	refused("1.order", "no I, short inner", header([8]byte{0, 0, 0, 0, 0, 0, vni, 0}, in1[:5]), "no-vni-flag"),
	refused("1.order", "no I, unknown VNI, bad source, tag", header([8]byte{0xf7, 1, 2, 3, 9, 9, 9, 9}, mem.Tagged(5, eth(nobody, mcast, ""))), "no-vni-flag"),
	refused("1.order", "unknown VNI, short inner", vx(77, in1[:13]), "unknown-vni"),
	refused("1.order", "unknown VNI, bad source", vx(77, eth(nobody, mcast, "")), "unknown-vni"),
	refused("1.order", "unknown VNI, reserved bits", header([8]byte{0xff, 1, 2, 3, 0, 0, 77, 4}, in1), "unknown-vni"),
	refused("1.order", "short inner, bad source", vx(vni, eth(nobody, frame.Broadcast, "")[:13]), "short"),
	refused("1.order", "short inner, bad source, reserved bits", header([8]byte{0xff, 1, 2, 3, 0, 0, vni, 4}, eth(nobody, mcast, "")[:13]), "short"),
	refused("1.order", "bad source, tag", vx(vni, mem.Tagged(5, eth(nobody, mcast, ""))), "bad-source-mac"),
	refused("1.order", "bad source, to a bridge group", vx(vni, eth(frame.MAC{1, 0x80, 0xc2}, mcast, "")), "bad-source-mac"),
	{id: "1.order", name: "bad source, tag, of a known peer", wire: func(l *lab) {
		h, f := l.pair()
		f.send(vx(vni, in1))
		f.send(vx(vni, mem.Tagged(5, eth(nobody, mcast, ""))))
		h.Want(in1)
		l.drops(one("bad-source-mac"))
	}},
	{id: "1.order", name: "own address, everything else", wire: func(l *lab) {
		l.start()
		f := l.farAt(netip.AddrPortFrom(l.addr(1), 5000), nil)
		f.send(nil)
		f.send(make([]byte, 8))
		l.drops(map[string]uint64{"own-address": 2})
	}},
	{id: "1.order", name: "unknown peer, everything else", wire: func(l *lab) {
		l.start(&vtep.Config{Peers: vtep.ListedOnly})
		f := l.far(2)
		f.send(nil)
		f.send(make([]byte, 8))
		f.send(vx(77, in1))
		l.drops(map[string]uint64{"unknown-peer": 3})
	}},
	{id: "1.order", name: "own MAC, filtered destination", wire: func(l *lab) {
		l.start()
		f := l.far(2)
		l.set(rmac(1), 0, fdb.Static)
		l.set(nobody, 0, fdb.Filter)
		f.send(vx(vni, in1))
		l.drops(one("own-mac"))
	}},
	{id: "1.order", name: "pinned source, to a bridge group", wire: func(l *lab) {
		h, f := l.pair()
		l.set(rmac(1), h.At.Dest(0), fdb.Static)
		f.send(vx(vni, eth(frame.MAC{1, 0x80, 0xc2}, rmac(1), "")))
		l.drops(one("mac-pinned"))
	}},
	{id: "1.order", name: "learned, then dropped on the way out", wire: func(l *lab) {
		l.start()
		f := l.far(2)
		f.send(vx(vni, eth(frame.MAC{1, 0x80, 0xc2}, rmac(1), "")))
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		l.drops(one("reserved-mac"))
	}},
	{id: "1.order", name: "drops are counted in their segment", wire: func(l *lab) {
		l.start()
		f := l.far(2)
		l.join(0)
		f.send(make([]byte, 8))  // no I: in no segment
		f.send(vx(77, in1))      // unknown
		f.send(vx(vni, in1[:5])) // short, in VNI 100
		want := map[frame.VNI]string{0: "", vni: "short 1"}
		for _, v := range l.Stats().VSIs {
			var s []string
			for r, n := range v.Drops.All() {
				s = append(s, r.String()+" "+string(rune('0'+n)))
			}
			got := strings.Join(s, ",")
			l.check(got == want[v.VNI], "VNI %d counts %q, want %q", v.VNI, got, want[v.VNI])
		}
	}},
}
