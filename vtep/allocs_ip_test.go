package vtep

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Reading and writing packets, superframes and what is refused allocates nothing, whatever
// the type.
func TestPacketsAllocateNothing(t *testing.T) {
	u, r := fake4(), raw4()
	u.send = func([]frame.Datagram) error { return nil }
	r.send = u.send
	v, w := gpeVTEP(t, Config{}, u), ipipVTEP(t, Config{}, r)
	n, m := addPeer(t, v, at(1)), addPeer(t, w, host(at(1)))
	flood(t, v, vni, at(1), at(2))

	var gpeIn, rawIn []packetIn
	var kinds []frame.Kind
	long := tcpPacket(t, false, 5000).unfinish()
	for i := range frame.MaxBatch {
		p := bare4(0, byte(i), true) // a TTL of 0 among them
		if i%3 == 1 {
			p = bare6(ect0, 9)
		}
		x := gpe(vni, p.kind, false, p.data)
		switch i % 8 {
		case 2:
			x = gpe(vni, frame.Ethernet, true, inner(i))
		case 3:
			x = x[:4]
		case 4:
			x = gpe(5, p.kind, false, p.data)
		}
		gpeIn = append(gpeIn, packetIn{src: endpoint(t, at(1)), data: x, tos: ect0})
		if i == 7 {
			p = long
		}
		from := host(at(1))
		if i%9 == 5 {
			from = host(at(7))
		}
		rawIn = append(rawIn, packetIn{src: endpoint(t, from), data: p.data, tos: ce})
		kinds = append(kinds, p.kind)
	}
	super4, super6 := tcpPacket(t, false, 60000).superframe(1400), tcpPacket(t, true, 60000).superframe(1400)
	eth := frame.Make(inner(1))
	both := func(peer uint16, tag uint32) []frame.Out {
		return []frame.Out{bare4(0, 9, true).out(peer, tag), bare6(0, 9).out(peer, tag), {F: &super4, Peer: peer, Tag: tag}, {F: &super6, Peer: peer, Tag: tag},
			{F: &eth, Peer: peer, Tag: tag}, {F: &eth, Tag: tag}, bare4(0, 9, true).out(0, tag), bare4(0, 0, true).out(peer, tag), between(t, "10.0.0.1", "198.51.0.1").out(peer, tag)}
	}
	gpeOut, rawOut := both(n, vni), both(m, 0)
	gr, rr, gw, rw := v.Readers()[0], w.Readers()[0], v.Writer(0), w.Writer(0)
	b := frame.NewBatch(nil)
	for name, pass := range map[string]func() error{
		"reading VXLAN-GPE": func() error { u.in = append(u.in, gpeIn...); return gr.Read(b) },
		"reading IP in IP": func() error {
			r.in, r.kinds = append(r.in, rawIn...), append(r.kinds, kinds...)
			return rr.Read(b)
		},
		"writing VXLAN-GPE": func() error {
			for i := range gpeOut {
				gpeOut[i].F.Hash = 0
			}
			return gw.Write(gpeOut)
		},
		"writing IP in IP": func() error {
			for i := range rawOut {
				rawOut[i].F.Hash = 0
			}
			return rw.Write(rawOut)
		},
		"asking for failures": func() error {
			r.unreachable(endpoint(t, host(at(1))), nil)
			check.Need(t, w.Failed(m) && !w.Failed(m), "not told once")
			return nil
		},
	} {
		if k := testing.AllocsPerRun(100, func() {
			check.OK(t, pass())
		}); k != 0 {
			t.Errorf("%s: %v allocations", name, k)
		}
	}
}
