package vectors

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/vtep"
)

// peerRows are about who may send.
var peerRows = []row{
	{id: "1.own-flood", name: "left out of the list", wire: func(l *lab) {
		l.start()
		h, fs := l.host(), l.fars(2, 3)
		l.flood(2, 1, 3)
		got := l.VTEP.Flood(vni)
		l.check(len(got) == 2, "flood list %v", got)
		b := eth(frame.Broadcast, h.MAC, "")
		h.Send(b)
		for _, f := range fs {
			f.want(vx(vni, b))
		}
		l.clean()
	}},
	{id: "1.own-flood", name: "on another port", wire: func(l *lab) {
		l.start()
		l.must(l.VTEP.SetFlood(vni, netip.AddrPortFrom(l.addr(1), 9999)))
		got := l.VTEP.Flood(vni)
		l.check(len(got) == 0, "flood list %v", got)
	}},
	{id: "1.own-flood", name: "as a peer", wire: func(l *lab) {
		l.start()
		n, err := l.VTEP.AddPeer(l.at(1))
		l.check(err != nil, "own address is peer %d", n)
	}},
	{id: "1.peers-any", name: "three strangers", wire: func(l *lab) {
		l.start()
		h := l.host()
		want := table{}
		for i := byte(2); i <= 4; i++ {
			b := eth(h.MAC, rmac(i), "hello")
			l.far(i).send(vx(vni, b))
			h.Want(b)
			want[rmac(i)] = l.dest(i)
		}
		l.wantFDB(l.seg, want)
		check.Equal(l.T, "learned peers", l.VTEP.Stats().Learned, 3)
		l.drops(nil)
	}},
	{id: "1.peers-any", name: "a stranger gets no floods", wire: func(l *lab) {
		h, f, g := l.trio(floods{3})
		l.passes(f, in1, h)
		b := eth(frame.Broadcast, h.MAC, "")
		h.Send(b)
		f.want()
		g.want(vx(vni, b))
	}},
	{id: "1.peers-listed", name: "stranger", wire: func(l *lab) {
		h, f := l.pair(&vtep.Config{Peers: vtep.ListedOnly})
		f.send(vx(vni, in1), vx(vni, in1))
		h.Want()
		l.wantFDB(l.seg, table{})
		l.drops(map[string]uint64{"unknown-peer": 2})
	}},
	{id: "1.peers-listed", name: "by the flood list", wire: func(l *lab) {
		h, f, g := l.trio(&vtep.Config{Peers: vtep.ListedOnly}, floods{2})
		f.send(vx(vni, in1))
		g.send(vx(vni, in1))
		h.Want(in1)
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		l.drops(one("unknown-peer"))
	}},
	{id: "1.peers-listed", name: "by AddPeer, under traffic", wire: func(l *lab) {
		h, f := l.pair(&vtep.Config{Peers: vtep.ListedOnly})
		f.send(vx(vni, in1))
		h.Want()
		l.listed(2)
		l.passes(f, in1, h)
		l.drops(one("unknown-peer"))
	}},
	{id: "1.peers-limit", name: "one more than fit", wire: func(l *lab) {
		l.start(&vtep.Config{MaxPeers: 2})
		h := l.host()
		for i := byte(2); i <= 4; i++ {
			b := eth(h.MAC, rmac(i), "hello")
			l.far(i).send(vx(vni, b))
			h.Want(b)
		}
		l.wantFDB(l.seg, table{rmac(2): l.dest(2), rmac(3): l.dest(3)})
		st := l.VTEP.Stats()
		l.check(st.Learned == 2 && st.PeerLimit == 1, "%d learned, %d beyond the limit", st.Learned, st.PeerLimit)
		l.drops(nil)
	}},
	{id: "1.peers-limit", name: "listed ones do not count", wire: func(l *lab) {
		l.start(&vtep.Config{MaxPeers: 1})
		h := l.host()
		l.flood(2, 3)
		for i := byte(2); i <= 4; i++ {
			l.far(i).send(vx(vni, eth(h.MAC, rmac(i), "hello")))
		}
		h.Got()
		l.wantFDB(l.seg, table{rmac(2): l.dest(2), rmac(3): l.dest(3), rmac(4): l.dest(4)})
		st := l.VTEP.Stats()
		l.check(st.Learned == 1 && st.PeerLimit == 0, "%d learned, %d beyond the limit", st.Learned, st.PeerLimit)
	}},
}
