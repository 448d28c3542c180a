package vectors

import (
	"fmt"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/vtep"
)

// tunnelOverheadRows are overheadRows for other tunnels: a packet that just fits, and one a
// byte longer whose sender hears what fits.
func tunnelOverheadRows() (rows []row) {
	for _, c := range []struct {
		id           string
		t            encap.Type
		mtu          int
		over4, over6 int
	}{
		{"9.overhead-gpe-ip", encap.TypeGPE, 1500, 1464, 1444},
		{"9.overhead-gpe-ip", encap.TypeGPE, 9000, 8964, 8944},
		{"9.overhead-ipip", encap.TypeIPIP, 1500, 1480, 1460},
		{"9.overhead-ipip", encap.TypeIPIP, 9000, 8980, 8960},
	} {
		rows = append(rows, inside(c.id, fmt.Sprint("underlay ", c.mtu), func(l *lab, v6 bool) {
			l.bigger(c.mtu)
			j := l.joined(vtep.Config{Type: c.t})
			fits := c.over4
			if l.ip6 {
				fits = c.over6
			}
			p := j.packet(v6).long(fits)
			j.send(p.bytes())
			j.f.want(j.wrap(p.bytes()))
			j.want()
			p = p.long(fits + 1)
			j.send(p.bytes())
			j.want(tooLong.about(p, p.dst, fits))
			l.clean()
		})...)
	}
	rows = append(rows, forIP("9.back", "through a tunnel", func(l *lab, t encap.Type, v6 bool) {
		j := l.joined(vtep.Config{Type: t})
		j.mtu = 1300
		p := j.back(v6).long(1301)
		j.f.send(j.wrap(p.bytes()))
		j.f.want(j.wrap(tooLong.about(p, p.dst, 1300)))
		l.clean()
	})...)
	for _, c := range []struct{ mtu, over4, over6 int }{{1500, 1450, 1430}, {9000, 8950, 8930}} {
		rows = append(rows, row{id: "9.overhead-gpe", name: fmt.Sprint("underlay ", c.mtu), wire: func(l *lab) {
			l.bigger(c.mtu)
			l.start(gpeVTEP)
			h, f := l.jumbo(), l.far(2)
			f.send(gpe(vni, 3, eth(frame.Broadcast, rmac(1), "here")))
			h.Got()
			n := c.over4
			if l.ip6 {
				n = c.over6
			}
			in := ip4(rmac(1), h.MAC, n, udp4)
			h.Send(in)
			f.want(gpe(vni, 3, in))
			h.Want()
			in = ip4(rmac(1), h.MAC, n+1, udp4)
			l.told(h, in, n)
			l.told(h, ip6(rmac(1), h.MAC, n+1, udp6), n)
			l.clean()
		}})
	}
	return rows
}
