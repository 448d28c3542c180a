package vectors

import (
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// isolatedRows are packets that an isolated port sends to another by way of the gateway.
func isolatedRows() (rows []row) {
	type hosts struct {
		*site
		c, d, e *mem.Host // isolated: two in VNI 100, and one in VNI 200
	}
	start := func(l *lab, v6, allowed bool) *hosts {
		l.T.Helper()
		s := &hosts{site: l.site(v6, false)}
		iso := vswitch.AttachConfig{Group: vswitch.GroupIsolated}
		s.c, s.d, s.e = s.HostWith(vni, 0, iso), s.HostWith(vni, 0, iso), s.HostWith(vni2, 0, iso)
		s.c.IP, s.d.IP, s.e.IP = s.ip(vni, 11), s.ip(vni, 12), s.ip(vni2, 13)
		s.configure(vni, func(c *node.Segment) { c.RouteIsolated = allowed })
		for _, h := range []*mem.Host{s.c, s.e} {
			h.Send(here(h.MAC, h.IP))
		}
		l.forget()
		return s
	}
	for _, allowed := range []bool{false, true} {
		name := map[bool]string{false: "refused", true: "allowed"}[allowed]
		want := func(l *lab, s *hosts, n uint64, bs ...[]byte) {
			l.T.Helper()
			if allowed {
				s.d.Want(bs...)
				l.drops(nil)
			} else {
				s.d.Want()
				l.drops(map[string]uint64{"isolated": n})
			}
		}
		rows = append(rows, inside("5.isolated-routed", name+", to a known host", func(l *lab, v6 bool) {
			s := start(l, v6, allowed)
			s.d.Send(here(s.d.MAC, s.d.IP))
			l.forget()
			p := packetOf(s.c.MAC, s.c.IP, gwMAC, s.d.IP)
			s.c.Send(p.bytes())
			want(l, s, 1, p.routed(gwMAC, s.d.MAC).bytes())
			// Others are reached, and reach it, in its segment and in another.
			for _, to := range []*mem.Host{s.a, s.b, s.e} {
				p := packetOf(s.c.MAC, s.c.IP, gwMAC, to.IP)
				s.c.Send(p.bytes())
				p.reaches(to)
				p = packetOf(to.MAC, to.IP, gwMAC, s.c.IP)
				to.Send(p.bytes())
				p.reaches(s.c)
			}
		})...)
		rows = append(rows, inside("5.isolated-routed", name+", after a question", func(l *lab, v6 bool) {
			s := start(l, v6, allowed)
			p := packetOf(s.c.MAC, s.c.IP, gwMAC, s.d.IP)
			s.c.Send(p.bytes())
			q := whoHas(s.d.IP, gwMAC, asker(v6, gwMAC, vni))
			s.d.Want(q.bytes())
			s.d.Send(isAt(q, s.d.MAC).bytes())
			want(l, s, 1, p.routed(gwMAC, s.d.MAC).bytes())
		})...)
		rows = append(rows, inside("5.isolated-routed", name+", to nobody: it is told so", func(l *lab, v6 bool) {
			s := start(l, v6, allowed)
			s.c.Send(packetOf(s.c.MAC, s.c.IP, gwMAC, s.ip(vni, 77)).bytes())
			l.forget()
			l.pass(5 * time.Second)
			s.d.Got()
			told := 0
			for _, b := range s.c.Got() {
				if frame.MAC(b) == s.c.MAC {
					told++
				}
			}
			l.check(told == 1, "told %d times", told)
		})...)
		rows = append(rows, row{id: "5.isolated-routed", name: name + ", in pieces, flooded", wire: func(l *lab) {
			s := start(l, false, allowed)
			s.d.Send(here(s.d.MAC, s.d.IP))
			small := port.NewPipe(&port.PipeConfig{MTU: 700})
			_, err := s.Segment(vni).Attach(small, 0)
			l.must(err)
			s.Segment(vni).Flush()
			l.forget()
			p := packetOf(s.c.MAC, s.c.IP, gwMAC, s.d.IP).long(1000)
			p.df = false
			s.c.Send(p.bytes())
			p = p.routed(gwMAC, s.d.MAC)
			if pieces := p.pieces(700 - 14); allowed {
				s.d.Want(append([][]byte{p.bytes()}, pieces...)...)
			} else {
				s.d.Want()
			}
			n := len(s.a.Got())
			l.check(n >= 2, "%d frames flooded to a port that is not isolated", n)
		}})
	}
	return rows
}
