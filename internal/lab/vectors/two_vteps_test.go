package vectors

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// fabric gives the switch another VTEP, in VNI 100: of a type, on a UDP port, and if other,
// of the other address family.
func (l *lab) fabric(t encap.Type, port uint16, other bool, at vswitch.AttachConfig) *vtep.VTEP {
	l.T.Helper()
	u := check.Must(l.Net.Listen(netip.AddrPortFrom(l.addrOf(other, 1), port), nil))(l.T)
	v := check.Must(vtep.New(&vtep.Config{Name: "other", Type: t}, u))(l.T)
	check.Must(l.seg.AttachWith(v, vni, &at))(l.T)
	return v
}

// addrOf is addr, of the other family if other.
func (l *lab) addrOf(other bool, i byte) netip.Addr {
	l.ip6 = l.ip6 != other
	defer func() { l.ip6 = l.ip6 != other }()
	return l.addr(i)
}

// vtepRows are of a segment in two fabrics: its first VTEP is VXLAN on 4789, whose peers are 2
// and 3; those of the other are 12 and 13.
func vtepRows() (rows []row) {
	for _, c := range []struct {
		name  string
		t     encap.Type
		port  uint16
		other bool
	}{
		{"4789 and 8472", encap.TypeVXLAN, 8472, false},
		{"IPv4 and IPv6", encap.TypeVXLAN, 4789, true},
		{"VXLAN and GPE", encap.TypeGPE, 4790, false},
		{"VXLAN and GPE, of the other family", encap.TypeGPE, 4790, true},
	} {
		// one and all are what the other fabric has of a frame for one peer, and of a copy.
		one, all := vx, vx
		if c.t == encap.TypeGPE {
			one = func(n frame.VNI, b []byte) []byte { return gpe(n, 3, b) }
			all = func(n frame.VNI, b []byte) []byte { return bum(n, 3, b) }
		}
		for _, x := range []struct {
			id, name   string
			a, b       vswitch.AttachConfig
			joined     bool
			hubA, hubB bool
		}{
			{id: "5.vteps-apart", name: "one group"},
			{id: "5.vteps-apart", name: "one group of a number", a: vswitch.AttachConfig{Group: 7}, b: vswitch.AttachConfig{Group: 7}},
			{id: "5.vteps-joined", name: "two groups", b: vswitch.AttachConfig{Group: 9}, joined: true},
			{id: "5.vteps-hubs", name: "a hub in one", b: vswitch.AttachConfig{Hub: true}, joined: true, hubB: true},
			{id: "5.vteps-hubs", name: "a hub in each", a: vswitch.AttachConfig{Hub: true}, b: vswitch.AttachConfig{Hub: true}, joined: true, hubA: true, hubB: true},
		} {
			rows = append(rows, row{id: x.id, name: c.name + ", " + x.name, wire: func(l *lab) {
				l.start(x.a)
				v := l.fabric(c.t, c.port, c.other, x.b)
				l.flood(2, 3)
				far := func(i byte) *far {
					u, err := l.Net.Listen(netip.AddrPortFrom(l.addrOf(c.other, i), c.port), &memory.Config{})
					l.must(err)
					return l.hear(u, netip.AddrPortFrom(l.addrOf(c.other, 1), c.port))
				}
				h, a2, a3, b2, b3 := l.host(), l.far(2), l.far(3), far(12), far(13)
				l.must(v.SetFlood(vni, b2.u.LocalAddr(), b3.u.LocalAddr()))

				// What a host floods is in both fabrics, once for each peer.
				b := eth(frame.Broadcast, h.MAC, "from a host")
				l.passes(h, b, a2, a3)
				b2.want(all(vni, b))
				b3.want(all(vni, b))

				// What a peer floods, a copy of its own head-end replication included.
				b = eth(frame.Broadcast, rmac(1), "from the first")
				l.passes(a2, b, h)
				a2.want()
				a3.want(when(x.hubA, vx(vni, b))...)
				b2.want(when(x.joined, all(vni, b))...)
				b3.want(when(x.joined, all(vni, b))...)
				b = eth(frame.Broadcast, rmac(2), "from the other")
				b2.send(all(vni, b))
				h.Want(b)
				a2.want(when(x.joined, vx(vni, b))...)
				a3.want(when(x.joined, vx(vni, b))...)
				b2.want()
				b3.want(when(x.hubB && c.t == encap.TypeVXLAN, all(vni, b))...)

				// Known unicast between them, both ways.
				b = eth(rmac(2), rmac(1), "to the other")
				a2.send(vx(vni, b))
				b2.want(when(x.joined, one(vni, b))...)
				b = eth(rmac(1), rmac(2), "to the first")
				b2.send(one(vni, b))
				a2.want(when(x.joined, vx(vni, b))...)
				l.quiet()
				if x.joined {
					l.drops(nil)
				} else {
					l.drops(map[string]uint64{"split-horizon": 2})
				}

				// Hosts behind each are known behind its port and peer.
				l.wantFDB(l.seg, table{h.MAC: h.At.Dest(0), rmac(1): l.dest(2), rmac(2): l.seg.Attachments()[1].Dest(v.Stats().Peers[0].Peer)})
			}})
		}
	}
	return rows
}

// when is the payloads that are wanted if so.
func when(so bool, payload []byte) [][]byte {
	if so {
		return [][]byte{payload}
	}
	return nil
}
