package vectors

import (
	"slices"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/vtep"
)

// figure4 is that of RFC 6040: what is inside afterwards, by inner and outer field.
var figure4 = [4][4]struct {
	inner     byte
	odd, drop bool
}{
	notECT: {notECT: {inner: notECT}, ect0: {notECT, true, false}, ect1: {notECT, true, false}, ce: {notECT, true, true}},
	ect0:   {notECT: {inner: ect0}, ect0: {inner: ect0}, ect1: {inner: ect1}, ce: {inner: ce}},
	ect1:   {notECT: {inner: ect1}, ect0: {ect1, true, false}, ect1: {inner: ect1}, ce: {inner: ce}},
	ce:     {notECT: {inner: ce}, ect0: {inner: ce}, ect1: {ce, true, false}, ce: {inner: ce}},
}

// ecnOf sends all sixteen combinations, packet makes one, and wants what figure 4 says.
func (l *lab) ecnOf(f *far, packet func(tos byte) (sent, want []byte), want func(...[]byte)) {
	l.T.Helper()
	odd, drops := uint64(0), uint64(0)
	for inner := range byte(4) {
		for outer := range byte(4) {
			c := figure4[inner][outer]
			sent, _ := packet(0xb8 | inner)
			_, arrives := packet(0xb8 | c.inner)
			f.sendTOS(0x40|outer, sent)
			if c.odd {
				odd++
			}
			if c.drop {
				drops++
				want()
			} else {
				want(arrives) // the header checksum included
			}
		}
	}
	l.drops(map[string]uint64{"ecn": drops})
	n := l.VTEP.Stats().ECN
	l.check(n == odd && drops == 1, "%d anomalies, want %d, %d drops", n, odd, drops)
}

// tunnelECNRows are ecnRows for other tunnels.
func tunnelECNRows() (rows []row) {
	for _, c := range []struct {
		id    string
		mode  vtep.ECN
		outer [4]byte // by inner field
	}{
		{"2.send-normal", vtep.ECNNormal, [4]byte{notECT, ect1, ect0, ce}},
		{"2.send-compat", vtep.ECNCompat, [4]byte{}},
		{"2.send-rfc3168", vtep.ECNRFC3168, [4]byte{notECT, ect1, ect0, ect0}},
	} {
		sends := func(l *lab, t encap.Type, v6 bool) {
			j := l.joined(vtep.Config{Type: t, Header: vtep.Header{ECN: c.mode, TOS: 0x28}})
			for inner := range byte(4) {
				p := j.packet(v6)
				p.tos = 0xb8 | inner
				j.send(p.bytes())
				j.f.wantOuter(64, 0x28|c.outer[inner], j.wrap(p.bytes()))
			}
		}
		rows = append(rows, forIP(c.id, "packets", sends)...)
		if c.mode == vtep.ECNNormal {
			rows = append(rows, inside("8.ecn", "sent, all fields", func(l *lab, v6 bool) { sends(l, encap.TypeIPIP, v6) })...)
		}
		rows = append(rows, row{id: c.id, name: "frames, gpe", wire: func(l *lab) {
			h, f := l.pair(&vtep.Config{Type: encap.TypeGPE, Header: vtep.Header{ECN: c.mode}}, floods{2})
			for _, make := range ecnFrames {
				for in := range byte(4) {
					b := make(h.MAC, 0x20|in)
					h.Send(b)
					f.wantOuter(64, c.outer[in], bum(vni, 3, b))
				}
			}
		}})
	}
	receives := func(l *lab, t encap.Type, v6 bool) {
		j := l.joined(vtep.Config{Type: t})
		l.ecnOf(j.f, func(tos byte) (sent, want []byte) {
			p := j.back(v6)
			p.tos = tos
			return j.wrap(p.bytes()), p.bytes()
		}, j.want)
	}
	return slices.Concat(rows,
		forIP("2.receive", "all fields of packets", receives),
		inside("8.ecn", "received, all fields", func(l *lab, v6 bool) { receives(l, encap.TypeIPIP, v6) }),
		inside("2.receive", "all fields of frames, gpe", func(l *lab, v6 bool) {
			h, f := l.pair(gpeVTEP)
			l.ecnOf(f, func(tos byte) (sent, want []byte) {
				b := withTOS(v6, rmac(1), tos, 9)
				return gpe(vni, 3, b), b
			}, h.Want)
		}),
		inside("2.receive-drop", "a packet teaches no peer, gpe", func(l *lab, v6 bool) {
			l.start(gpeVTEP)
			took := l.takesIP()
			p := packetOf(frame.MAC{}, ipOf(v6, vni, 1), frame.MAC{}, ipOf(v6, vni2, 2)).naked().bytes()
			l.far(2).sendTOS(ce, wrapped(encap.TypeGPE, vni, p))
			st := l.VTEP.Stats()
			l.check(len(st.Peers) == 0 && len(*took) == 0, "%+v, %d packets", st, len(*took))
			l.drops(one("ecn"))
		}),
	)
}
