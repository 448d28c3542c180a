package vtep

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// hooks is what a test does with packets, and what it has seen.
type hooks struct {
	oam  []string
	seen []string
	say  frame.Verdict
	cut  int    // bytes that Receive removes
	add  []byte // NSH of frames sent; nil = none
}

func (h *hooks) OAM(p OAMPacket) {
	h.oam = append(h.oam, fmt.Sprintf("%v VNI %d protocol %d: %s", p.From.AddrPort().Addr(), p.VNI, p.Next, p.Data))
}

func (h *hooks) Receive(f *frame.Frame, n encap.NSH, from frame.Endpoint) frame.Verdict {
	h.seen = append(h.seen, fmt.Sprintf("%v VNI %d path %d index %d TTL %d %q kind %d, %d bytes", from.AddrPort().Addr(), f.VNI, n.Path(), n.Index(), n.TTL(), n.Metadata(), f.Kind, f.Len()))
	f.Pull(h.cut)
	return h.say
}

func (h *hooks) Send(b []byte, _ *frame.Frame, _ frame.VNI) []byte { return append(b, h.add...) }

func gpeNext(next encap.NextProtocol, flags byte, n frame.VNI, parts ...[]byte) []byte {
	p := gpe(n, frame.Ethernet, false, slices.Concat(parts...))
	p[0] |= flags
	p[3] = byte(next)
	return p
}

func nsh(index uint8, kind frame.Kind, metadata string) []byte {
	return encap.AppendNSH(nil, 7, index, kind, encap.MDVariable, []byte(metadata))
}

// OAM packets of peers that may send go to the handler and leave no trace in the batch. Without a handler they are dropped.
func TestOAM(t *testing.T) {
	u := fake4()
	v := gpeVTEP(t, Config{Peers: ListedOnly}, u)
	n, h := addPeer(t, v, at(1)), &hooks{}
	r := v.Readers()[0]
	oam, plain := gpeNext(0x80, 1, vni, []byte("oam")), gpe(vni, frame.Ethernet, false, inner(1))
	fs := u.hear(t, r, at(1), oam, plain)
	check.True(t, fs[0].Drop == frame.GPEOAM && fs[1].Drop == 0, "%v", fs)
	check.OK(t, v.SetOAM(h))
	withoutP := bytes.Clone(oam)
	withoutP[0] &^= 4
	fs = u.hear(t, r, at(1), oam, plain, withoutP, gpeNext(1, 1, 5), plain[:7], oam[:8])
	check.Need(t, len(fs) == 3, "%d frames", len(fs))
	check.True(t, fs[0].Drop == 0 && fs[0].From.Peer() == n && fs[1].Drop == frame.UnknownVNI && fs[2].Drop == frame.Short, "%v", fs)
	want := []string{"198.51.0.1 VNI 100 protocol 128: oam", "198.51.0.1 VNI 100 protocol 0: oam", "198.51.0.1 VNI 100 protocol 128: "}
	check.True(t, slices.Equal(h.oam, want), "%q", h.oam)
	fs = u.hear(t, r, at(2), oam)
	check.True(t, len(fs) == 1 && fs[0].Drop == frame.UnknownPeer, "%v", fs)

	u.in = append(u.in, packetIn{src: endpoint(t, at(1)), data: bytes.Clone(oam)})
	check.True(t, r.Read(frame.NewBatch(nil)) != nil, "a batch without frames") // the fake ends
	check.True(t, len(h.oam) == 4 && v.Stats().Handled == 4, "%q, %d counted", h.oam, v.Stats().Handled)
	check.OK(t, v.SetOAM(nil))
	check.True(t, u.hear(t, r, at(1), oam)[0].Drop == frame.GPEOAM, "handled without a handler")
}

// What is behind an NSH goes on as the handler says, without it; what has no right NSH, service or TTL is dropped by name.
func TestServicesReceive(t *testing.T) {
	four, six := bare4(0, 9, true).data, bare6(0, 9).data
	ttl1 := nsh(3, frame.Ethernet, "")
	ttl1[0], ttl1[1] = 0, 1<<6|2
	ttl0 := bytes.Clone(ttl1)
	ttl0[1] = 2
	edit := func(b []byte, at int, x byte) []byte { b = bytes.Clone(b); b[at] = x; return b }
	in := func(parts ...[]byte) []byte { return gpeNext(encap.NextNSH, 0, vni, parts...) }
	for _, x := range []struct {
		name string
		data []byte
		say  frame.Verdict
		cut  int
		drop frame.Reason
		kind frame.Kind
		want []byte // the frame; nil with neither it nor a drop: it is gone
		seen string
	}{
		{"Ethernet", in(nsh(3, frame.Ethernet, "data"), inner(1)), frame.Continue, 0, 0, frame.Ethernet, inner(1), `198.51.0.1 VNI 100 path 7 index 3 TTL 62 "data" kind 0, 60 bytes`},
		{"IPv4 with padding", in(nsh(1, frame.IPv4, ""), four, []byte("pad")), frame.Continue, 0, 0, frame.IPv4, four, fmt.Sprintf(`198.51.0.1 VNI 100 path 7 index 1 TTL 62 "" kind 1, %d bytes`, len(four))},
		{"IPv6", in(nsh(255, frame.IPv6, ""), six), frame.Continue, 0, 0, frame.IPv6, six, fmt.Sprintf(`198.51.0.1 VNI 100 path 7 index 255 TTL 62 "" kind 2, %d bytes`, len(six))},
		{"TTL 0", in(ttl0, inner(1)), frame.Continue, 0, 0, frame.Ethernet, inner(1), `198.51.0.1 VNI 100 path 7 index 3 TTL 63 "" kind 0, 60 bytes`},
		{"refused", in(nsh(3, frame.Ethernet, ""), inner(1)), frame.Drop(frame.Policy), 0, frame.Policy, 0, nil, `198.51.0.1 VNI 100 path 7 index 3 TTL 62 "" kind 0, 60 bytes`},
		{"consumed", in(nsh(3, frame.Ethernet, ""), inner(1)), frame.Consume, 0, 0, 0, nil, `198.51.0.1 VNI 100 path 7 index 3 TTL 62 "" kind 0, 60 bytes`},
		{"dropped for no reason there is", in(nsh(3, frame.Ethernet, ""), inner(1)), frame.Drop(frame.NumReasons), 0, frame.BadHeader, 0, nil, ""},
		{"dropped for none", in(nsh(3, frame.Ethernet, ""), inner(1)), frame.Drop(frame.NotDropped), 0, frame.NotDropped + 1, 0, nil, ""},
		{"forwarded", in(nsh(3, frame.Ethernet, ""), inner(1)), frame.Forward(7), 0, frame.GPEProtocol, 0, nil, ""},
		{"too little left", in(nsh(3, frame.Ethernet, ""), inner(1)), frame.Continue, 50, frame.Short, 0, nil, `198.51.0.1 VNI 100 path 7 index 3 TTL 62 "" kind 0, 60 bytes`},
		{"TTL 1", in(ttl1, inner(1)), frame.Continue, 0, frame.TTL, 0, nil, ""},
		{"index 0", in(nsh(0, frame.Ethernet, ""), inner(1)), frame.Continue, 0, frame.ServiceIndex, 0, nil, ""},
		{"version", in(edit(nsh(3, frame.Ethernet, ""), 0, 0x4f), inner(1)), frame.Continue, 0, frame.BadHeader, 0, nil, ""},
		{"longer than the packet", in(edit(nsh(3, frame.Ethernet, ""), 1, 0xff), inner(1)), frame.Continue, 0, frame.Short, 0, nil, ""},
		{"MPLS inside", in(edit(nsh(3, frame.Ethernet, ""), 3, 5), inner(1)), frame.Continue, 0, frame.GPEProtocol, 0, nil, ""},
		{"NSH inside", in(edit(nsh(3, frame.Ethernet, ""), 3, 4), inner(1)), frame.Continue, 0, frame.GPEProtocol, 0, nil, ""},
		{"nothing", in(), frame.Continue, 0, frame.Short, 0, nil, ""},
		{"nothing inside", in(nsh(3, frame.Ethernet, "")), frame.Continue, 0, frame.Short, 0, nil, ""},
		{"IPv6 as IPv4", in(nsh(3, frame.IPv4, ""), six), frame.Continue, 0, frame.BadHeader, 0, nil, ""},
		{"VNI", gpeNext(encap.NextNSH, 0, 5, nsh(3, frame.Ethernet, ""), inner(1)), frame.Continue, 0, frame.UnknownVNI, 0, nil, ""},
		{"MPLS", gpeNext(5, 0, vni, inner(1)), frame.Continue, 0, frame.GPEProtocol, 0, nil, ""},
	} {
		u := fake4()
		v := gpeVTEP(t, Config{}, u)
		h := &hooks{say: x.say, cut: x.cut}
		r := v.Readers()[0]
		if f := u.hear(t, r, at(1), x.data)[0]; x.drop == 0 && f.Drop != frame.GPEProtocol {
			t.Errorf("%s: %v without a handler", x.name, f.Drop)
		}
		check.OK(t, v.SetServices(h))
		fs := u.hear(t, r, at(1), x.data, gpe(vni, frame.Ethernet, false, inner(2)))
		if x.drop == 0 && x.want == nil {
			check.True(t, len(fs) == 1 && bytes.Equal(fs[0].Bytes(), inner(2)), "%s: %v", x.name, fs)
		} else if check.Need(t, len(fs) == 2, "%s: %d frames", x.name, len(fs)); fs[0].Drop != x.drop || x.drop == 0 && (fs[0].Kind != x.kind || !bytes.Equal(fs[0].Bytes(), x.want) || fs[0].VNI != vni || fs[0].From.Peer() == 0) {
			t.Errorf("%s: %v, % x", x.name, fs[0].Drop, fs[0].Bytes())
		}
		if got := fmt.Sprint(h.seen); got != fmt.Sprint([]string{x.seen}) && x.seen != "" || x.seen == "" && h.seen != nil && x.say == frame.Continue {
			t.Errorf("%s: %s\nwant %s", x.name, got, x.seen)
		}
	}
}

// Frames and each segment of a superframe leave with the NSH that the handler adds, and are read again; with a wrong one, or when
// they do not fit with it, they are dropped by name.
func TestServicesSend(t *testing.T) {
	u := fake4()
	v := gpeVTEP(t, Config{}, u)
	n, h := addPeer(t, v, at(1)), &hooks{add: nsh(9, 0, "metadata")}
	flood(t, v, vni, at(1), at(2))
	check.OK(t, v.SetServices(h))
	w := v.Writer(0)
	frames := func() []frame.Out {
		f, g := frame.Make(inner(1)), frame.Make(inner(2))
		return []frame.Out{{F: &f, Peer: n, Tag: vni}, {F: &g, Tag: vni}, bare6(0, 9).out(n, vni)}
	}
	for range 2 {
		outs := frames()
		check.OK(t, w.Write(outs))
		check.Need(t, len(u.sent) == 3, "%d datagrams", len(u.sent))
		for i, o := range outs {
			want := slices.Concat([]byte{0x0c | byte(i%2)<<1, 0, 0, 4, 0, 0, vni, 0}, nsh(9, o.F.Kind, "metadata"), o.F.Bytes())
			check.True(t, o.Drop == 0 && bytes.Equal(u.sent[i].payload, want), "%v % x, want % x", o.Drop, u.sent[i].payload, want)
			check.True(t, u.sent[i].flow == uint16(o.F.Hash) && o.F.Hash != 0, "no entropy")
		}
		u.sent = nil
	}
	super := tcpPacket(t, false, 4000).out(n, vni)
	super.F.GSO = frame.GSO{Type: frame.GSOTCP4, Size: 1000, Flags: frame.NeedsCsum, CsumStart: uint16(super.F.Headroom()) + 20, CsumOffset: 16, DataStart: uint16(super.F.Headroom()) + 40}
	check.OK(t, w.Write([]frame.Out{super}))
	check.Need(t, len(u.sent) == 1 && super.Drop == 0, "%d datagrams", len(u.sent))
	seg := u.sent[0].seg
	check.True(t, seg == 8+16+40+1000 && len(u.sent[0].payload) == 4*seg, "segments of %d bytes, %d", seg, len(u.sent[0].payload))
	for k := range 4 {
		p := u.sent[0].payload[k*seg:]
		check.True(t, p[3] == 4 && bytes.Equal(p[8:24], nsh(9, frame.IPv4, "metadata")) && p[24] == 0x45, "% x", p[:48])
	}
	u.sent = nil

	long := frame.Make(append(inner(1), make([]byte, v.MTU(n)-60-15)...))
	for name, x := range map[string]struct {
		f    *frame.Frame
		add  []byte
		want frame.Reason
	}{
		"a byte too long":  {&long, nsh(9, 0, "metadata"), frame.TooBig},
		"fits":             {&long, nsh(9, 0, "data"), 0},
		"index 0":          {frames()[0].F, nsh(0, 0, ""), frame.ServiceIndex},
		"cut":              {frames()[0].F, nsh(1, 0, "")[:7], frame.BadHeader},
		"more than an NSH": {frames()[0].F, append(nsh(1, 0, ""), 1), frame.BadHeader},
		"none":             {frames()[0].F, nil, 0},
	} {
		h.add = x.add
		for _, peer := range []uint16{n, 0} {
			o := []frame.Out{{F: x.f, Peer: peer, Tag: vni}}
			check.OK(t, w.Write(o))
			check.True(t, o[0].Drop == x.want, "%s: %v, want %v", name, o[0].Drop, x.want)
		}
		if x.add == nil {
			check.True(t, u.sent[len(u.sent)-1].payload[3] == 3, "% x", u.sent[len(u.sent)-1].payload)
		}
	}
	u.sent, h.add = nil, nsh(9, 0, "metadata")
	outs := frames()
	u.send = func([]frame.Datagram) error { return nil }
	if a := testing.AllocsPerRun(20, func() { check.OK(t, w.Write(outs)) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
	u.send = nil
	check.OK(t, v.SetServices(nil))
	check.OK(t, w.Write(outs))
	check.True(t, u.sent[0].payload[3] == 3, "% x", u.sent[0].payload)
}

// An offload, which knows no NSH, carries nothing while there are services; a quoted packet with NSH is known as the VTEP's own.
func TestServicesPath(t *testing.T) {
	u := fake4()
	v := gpeVTEP(t, Config{}, u)
	n, told := addPeer(t, v, at(1)), 0
	defer v.Watch(func() { told++ })()
	check.Must(v.Path(n, vni))(t)
	quoted := gpeNext(encap.NextNSH, 0, vni, nsh(1, 0, ""))
	check.True(t, !v.sends(quoted), "NSH of nobody")
	check.OK(t, v.SetServices(&hooks{}))
	_, err := v.Path(n, vni)
	check.True(t, err == ErrEncapsulation && told == 1 && v.sends(quoted), "%v, told %d times", err, told)
	check.OK(t, v.SetServices(nil))
	check.Must(v.Path(n, vni))(t)
	check.True(t, told == 2, "told %d times", told)
}

func TestServicesOfOtherTypes(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	check.ErrorHas(t, v.SetOAM(&hooks{}), "vtep: SetOAM: ", "Config.Type: vxlan has no such packets")
	check.ErrorHas(t, v.SetServices(&hooks{}), "vtep: SetServices: ", "Config.Type: vxlan")
	v = gpeVTEP(t, Config{}, fake4())
	check.ErrorHas(t, v.SetOAM((*hooks)(nil)), "vtep: SetOAM: ", "the handler is ")
}

// Whatever is behind the O bit or an NSH: nothing panics, and each packet is in the batch, or with a handler.
func FuzzServices(f *testing.F) {
	f.Add(gpeNext(encap.NextNSH, 0, vni, nsh(3, frame.Ethernet, "data"), inner(1)), uint8(0))
	f.Add(gpeNext(encap.NextNSH, 0, vni, nsh(1, frame.IPv4, ""), bare4(0, 9, true).data), uint8(1))
	f.Add(gpeNext(1, 1, vni, []byte("oam")), uint8(60))
	f.Fuzz(func(t *testing.T, p []byte, cut uint8) {
		u := fake4()
		v := gpeVTEP(t, Config{}, u)
		h := &cutter{n: int(cut)}
		check.OK(t, v.SetServices(h))
		check.OK(t, v.SetOAM(h))
		fs := u.hear(t, v.Readers()[0], at(1), p, gpe(vni, frame.Ethernet, false, inner(1)))
		if n := len(fs); n != 2-h.took || fs[n-1].Drop != 0 {
			t.Fatalf("%d frames, %d taken", n, h.took)
		}
		if g := &fs[0]; g.Drop == 0 && g.Kind == frame.Ethernet && g.Len() < encap.EthernetLen {
			t.Fatalf("a frame of %d bytes", g.Len())
		}
	})
}

// cutter shortens frames, as far as they go, and takes those of an even length.
type cutter struct{ n, took int }

func (c *cutter) OAM(OAMPacket) { c.took++ }

func (c *cutter) Receive(f *frame.Frame, _ encap.NSH, _ frame.Endpoint) frame.Verdict {
	f.Pull(min(c.n, f.Len()))
	if f.Len()%2 == 0 {
		c.took++
		return frame.Consume
	}
	return frame.Continue
}

func (c *cutter) Send(b []byte, _ *frame.Frame, _ frame.VNI) []byte { return b }

// A flooded frame with an NSH goes to the peers that it fits to with it; the other copies are lost by name.
func TestServicesFlood(t *testing.T) {
	for _, group := range []bool{false, true} {
		u := &groupFake{fake: fake4()}
		v := gpeVTEP(t, Config{}, u)
		a, b := at(1), at(2)
		if group {
			b = groupAt(1)
		}
		flood(t, v, vni, a, b)
		check.OK(t, v.SetServices(&hooks{add: nsh(9, 0, "metadata")}))
		u.path(endpoint(t, a), 1000, nil)
		w := v.Writer(0)
		least := 1000 - (1500 - v.MTU(0))
		for n, want := range map[int]int{least - 16: 2, least - 15: 1, v.MTU(0) - 16: 1, v.MTU(0) - 15: 0} {
			f := frame.Make(append(inner(1), make([]byte, n-60)...))
			o, lost := []frame.Out{{F: &f, Tag: vni}}, v.lost[frame.TooBig].Load()
			u.sent = nil
			check.OK(t, w.Write(o))
			copies := 0
			for _, s := range u.sent {
				copies += len(s.to)
			}
			check.Equal(t, fmt.Sprintf("copies of %d bytes, group %v", n, group), copies, want)
			drop, gone := frame.NotDropped, uint64(0)
			switch want {
			case 0:
				drop = frame.TooBig
			case 1:
				gone = 1
			}
			check.Equal(t, "drop", o[0].Drop, drop)
			check.Equal(t, "lost", v.lost[frame.TooBig].Load()-lost, gone)
		}
	}
}

// Of two address families, one takes longer frames: a frame that fits there only goes there, with an NSH, too.
func TestServicesFloodFamilies(t *testing.T) {
	u, u6 := fake4(), fake6()
	v := gpeVTEP(t, Config{}, u, u6)
	flood(t, v, vni, at(1), at6(2))
	check.OK(t, v.SetServices(&hooks{add: nsh(9, 0, "metadata")}))
	some, all := v.FloodMTU(vni)
	check.Equal(t, "difference", some-all, 20)
	f := frame.Make(append(inner(1), make([]byte, some-16-60)...))
	o := []frame.Out{{F: &f, Tag: vni}}
	check.OK(t, v.Writer(0).Write(o))
	check.Equal(t, "drop", o[0].Drop, frame.NotDropped)
	check.Equal(t, "to IPv4", len(u.sent), 1)
	check.Equal(t, "to IPv6", len(u6.sent), 0)
	check.Equal(t, "lost", v.lost[frame.TooBig].Load(), 1)
}

// Reserved bits are judged in OAM packets, too.
func TestOAMReserved(t *testing.T) {
	u := fake4()
	v := gpeVTEP(t, Config{Reserved: ReservedStrict}, u)
	h := &hooks{}
	check.OK(t, v.SetOAM(h))
	p := gpeNext(0x80, 1, vni, []byte("oam"))
	p[1] = 1
	fs := u.hear(t, v.Readers()[0], at(1), p, gpe(vni, frame.Ethernet, false, inner(1)))
	check.True(t, len(fs) == 2 && fs[0].Drop == frame.ReservedBits && h.oam == nil, "%v, %q", fs, h.oam)
}
