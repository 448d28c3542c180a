package vtep

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestReaderAccepts(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	check.OK(t, v.Control().Open(vni))
	r := v.Readers()[0]
	n := addPeer(t, v, at(1))
	fs := u.hear(t, r, at(1), vx(vni, inner(3)))
	f := &fs[0]
	if f.Drop != 0 || !f.Tunnel || f.VNI != vni || f.From != frame.NewDest(0, n) || f.Kind != frame.Ethernet || !bytes.Equal(f.Bytes(), inner(3)) {
		t.Errorf("%+v", f)
	}
}

// Each packet of a batch is judged for itself, whatever came before it.
func TestReaderMixedBatch(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	check.OK(t, v.Control().Open(vni))
	check.OK(t, v.Control().Open(200))
	r := v.Readers()[0]
	a, b := addPeer(t, v, at(1)), addPeer(t, v, at(2))
	bad := inner(1)
	bad[6] = 1
	rows := []struct {
		from netip.AddrPort
		data []byte
		drop frame.Reason
		peer uint16
		vni  frame.VNI
	}{
		{at(1), vx(vni, inner(0)), 0, a, vni},
		{at(1), vx(5, inner(1)), frame.UnknownVNI, 0, 5},
		{at(1), vx(200, inner(2)), 0, a, 200},
		{at(2), vx(200, inner(3)), 0, b, 200},
		{at(2), make([]byte, 8), frame.NoVNIFlag, 0, noVNI},
		{at(2), nil, frame.Short, 0, noVNI},
		{local4, vx(200, inner(4)), frame.OwnAddress, 0, 200},
		{at(1), vx(vni, inner(5)), 0, a, vni},
		{at(3), vx(vni, bad), frame.BadSourceMAC, 0, vni},
		{at(1), vx(vni, inner(6)[:13]), frame.Short, 0, vni},
		{netip.AddrPortFrom(at(2).Addr(), 1), vx(vni, inner(7)), 0, b, vni},
	}
	for _, x := range rows {
		u.in = append(u.in, packetIn{src: endpoint(t, x.from), data: x.data})
	}
	batch := frame.NewBatch(nil)
	check.OK(t, r.Read(batch))
	for i, x := range rows {
		if f := &batch.Frames[i]; f.Drop != x.drop || f.VNI != x.vni || f.From.Peer() != x.peer {
			t.Errorf("packet %d: %v from %v in VNI %v, want %v %d %v", i, f.Drop, f.From, f.VNI, x.drop, x.peer, x.vni)
		}
	}
	check.True(t, v.Stats().Learned == 0, "a refused packet made a peer of its sender")
	check.ErrorIs(t, "Read", r.Read(batch), net.ErrClosed)
}

// Open and Shut take effect at the next batch.
func TestOpenShut(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	r := v.Readers()[0]
	for range 3 {
		if fs := u.hear(t, r, at(1), vx(vni, inner(1))); fs[0].Drop != frame.UnknownVNI {
			t.Fatal(fs[0].Drop)
		}
		check.OK(t, v.Control().Open(vni))
		if fs := u.hear(t, r, at(1), vx(vni, inner(1))); fs[0].Drop != 0 {
			t.Fatal(fs[0].Drop)
		}
		v.Control().Shut(vni)
		v.Control().Shut(vni)
		v.Control().Shut(9)
	}
	// The flood list outlives Shut, and goes when it is emptied.
	check.OK(t, v.Control().Open(vni))
	flood(t, v, vni, at(1))
	v.Control().Shut(vni)
	check.True(t, len(v.Flood(vni)) == 1, "Shut took the flood list")
	check.OK(t, v.SetFlood(vni))
	check.Equal(t, "networks are left", v.networks.Len(), 0)
}

// What the underlay has refused stays refused.
func TestReaderKeepsDrop(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	check.OK(t, v.Control().Open(vni))
	u.in = []packetIn{{src: endpoint(t, at(1)), data: vx(vni, inner(1)), drop: frame.TooBig}}
	b := frame.NewBatch(nil)
	check.OK(t, v.Readers()[0].Read(b))
	check.True(t, b.Frames[0].Drop == frame.TooBig && v.Stats().Learned == 0, "%v", b.Frames[0].Drop)
}

func TestReaderAllocatesNothing(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	check.OK(t, v.Control().Open(vni))
	var ins []packetIn
	for i := range frame.MaxBatch {
		p := packetIn{src: endpoint(t, at(i%5+1)), data: vx(vni, inner(i))}
		switch {
		case i%8 == 3:
			p.data = vx(77, inner(i))
		case i%8 == 5:
			p.data = p.data[:4]
		}
		ins = append(ins, p)
	}
	r, b := v.Readers()[0], frame.NewBatch(nil)
	u.in = append(u.in, ins...)
	check.OK(t, r.Read(b)) // learns the peers
	if n := testing.AllocsPerRun(100, func() {
		u.in = append(u.in, ins...)
		check.OK(t, r.Read(b))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// gopacket is the oracle both ways: it reads what the writer sends, and the reader
// takes what it writes.
func TestAgainstGopacket(t *testing.T) {
	u := fake4()
	v := newVTEP(t, nil, u)
	peer := addPeer(t, v, at(1))
	r := v.Readers()[0]
	for _, n := range []frame.VNI{0, 1, 0x010203, 4100, 1<<23 | 5, frame.MaxVNI} {
		check.OK(t, v.Control().Open(uint32(n)))
		f := frame.Make(inner(7))
		check.OK(t, v.Writer(0).Write([]frame.Out{{F: &f, Peer: peer, Tag: uint32(n)}}))
		b := u.sent[len(u.sent)-1].payload
		p := gopacket.NewPacket(b, layers.LayerTypeVXLAN, gopacket.Default)
		h, _ := p.Layer(layers.LayerTypeVXLAN).(*layers.VXLAN)
		e, _ := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
		check.Need(t, h != nil && e != nil, "VNI %d: %v", n, p)
		if !h.ValidIDFlag || h.VNI != uint32(n) || h.GBPExtension || h.GBPApplied || h.GBPDontLearn || h.GBPGroupPolicyID != 0 {
			t.Errorf("VNI %d: %+v", n, h)
		}
		if frame.MAC(e.DstMAC) != frame.MAC(inner(7)) || frame.MAC(e.SrcMAC) != frame.MAC(inner(7)[6:]) || uint16(e.EthernetType) != 0x88b5 ||
			!bytes.Equal(e.Payload, inner(7)[14:]) {
			t.Errorf("VNI %d: %+v", n, e)
		}
		buf := gopacket.NewSerializeBuffer()
		check.OK(t, gopacket.SerializeLayers(buf, gopacket.SerializeOptions{}, &layers.VXLAN{ValidIDFlag: true, VNI: uint32(n)}, e, gopacket.Payload(e.Payload)))
		check.True(t, bytes.Equal(buf.Bytes(), b), "VNI %d: % x, gopacket writes % x", n, b, buf.Bytes())
		fs := u.hear(t, r, at(1), buf.Bytes())
		if fs[0].Drop != 0 || fs[0].VNI != n || !bytes.Equal(fs[0].Bytes(), inner(7)) {
			t.Errorf("VNI %d: %+v", n, fs[0])
		}
	}
}

// FuzzReader cuts its input into packets: a byte that picks a source, one for the
// length, and the bytes. Every frame ends with a reason or is a valid one.
func FuzzReader(f *testing.F) {
	pack := func(packets ...[]byte) (b []byte) {
		for i, p := range packets {
			b = append(append(b, byte(i), byte(len(p))), p...)
		}
		return b
	}
	f.Add(pack(vx(vni, inner(1)), vx(0, inner(2)), vx(frame.MaxVNI, inner(3))), uint8(0), uint64(0))
	f.Add(pack(vx(77, inner(1)), nil, make([]byte, 8), vx(vni, nil), vx(vni, inner(1)[:14])), uint8(1), uint64(0))
	for _, k := range allLeft(9) {
		_, unfinished := k.packet(f)
		f.Add(pack(nil, vx(vni, append(unfinished, 1, 2, 3)), vx(0, inner(2))), uint8(0), uint64(0))
	}
	f.Add(pack(nil, append([]byte{0x88, 0x48, 1, 2, 0, 0, vni, 0}, inner(1)...), vx(0, inner(2))), uint8(2|4), uint64(ReservedStrict))
	f.Add(pack(nil, append([]byte{0x0c, 0, 0, 3, 0, 0, vni, 0}, inner(1)...), vx(0, inner(2))), uint8(0), uint64(1<<58))
	f.Fuzz(func(t *testing.T, in []byte, settings uint8, reserved uint64) {
		const bound = 4
		cfg := &Config{MaxPeers: bound, Peers: PeerPolicy(settings & 3 % 3), GBP: settings&4 != 0, Reserved: Reserved(reserved)}
		listed := cfg.Peers != AnyPeer
		mask, err := cfg.Reserved.Mask(cfg.Type, cfg.GBP)
		u := fake4()
		if err != nil {
			if _, err := New(cfg, u); err == nil {
				t.Fatalf("%+v", cfg)
			}
			return
		}
		v := newVTEP(t, cfg, u)
		open := map[frame.VNI]bool{0: true, vni: true, frame.MaxVNI: true}
		for n := range open {
			check.OK(t, v.Control().Open(uint32(n)))
		}
		known := addPeer(t, v, at(1))
		if cfg.Peers == ListedPerVNI {
			check.OK(t, v.Allow(vni, at(1)))
		}
		r, batch := v.Readers()[0], frame.NewBatch(nil)
		accepted, rx := 0, 0
		for len(in) >= 2 {
			for len(in) >= 2 && len(u.in) < frame.MaxBatch {
				from, n := int(in[0]), min(int(in[1]), len(in)-2)
				src := at(from)
				if from == 0 {
					src = local4
				}
				u.in = append(u.in, packetIn{src: endpoint(t, src), data: bytes.Clone(in[2 : 2+n])})
				in = in[2+n:]
			}
			sent := append([]packetIn(nil), u.in...)
			check.OK(t, r.Read(batch))
			for i := range batch.Frames {
				f, p := &batch.Frames[i], sent[i]
				switch f.Drop {
				case frame.NotDropped:
				case frame.OwnAddress, frame.UnknownPeer, frame.Short, frame.NoVNIFlag, frame.UnknownVNI, frame.BadSourceMAC:
					check.Need(t, f.From.Peer() == 0, "refused for %v, and from %v", f.Drop, f.From)
					continue
				case frame.ReservedBits:
					if binary.BigEndian.Uint64(p.data)&mask == 0 {
						t.Fatalf("% x: %v, the mask is %#x", p.data, f.Drop, mask)
					}
					check.Need(t, f.From.Peer() == 0, "refused for %v, and from %v", f.Drop, f.From)
					continue
				default:
					t.Fatalf("reason %v", f.Drop)
				}
				accepted++
				if f.From.Peer() != 0 {
					rx++
				}
				if f.GSO.Flags != 0 { // padding goes, and has no part in the checksum
					p.data = p.data[:min(len(p.data), 8+f.Len())]
				}
				if p.data[0]&8 == 0 || len(f.Bytes()) < 14 || !bytes.Equal(f.Bytes(), p.data[8:]) ||
					f.VNI != frame.VNI(binary.BigEndian.Uint32(p.data[4:])>>8) || !open[f.VNI] || !f.Tunnel {
					t.Fatalf("% x became %+v", p.data, f)
				}
				if listed && f.From.Peer() != known || cfg.Peers == ListedPerVNI && f.VNI != vni {
					t.Fatalf("from %v in VNI %v", f.From, f.VNI)
				}
				mark := frame.GBP{}
				if cfg.GBP && p.data[0]&0x80 != 0 {
					mark = frame.GBP{ID: binary.BigEndian.Uint16(p.data[2:]), DontLearn: p.data[1]&0x40 != 0, Applied: p.data[1]&8 != 0}
				}
				if binary.BigEndian.Uint64(p.data)&mask != 0 || f.GBP != mark {
					t.Fatalf("% x: %+v, the mask is %#x", p.data, f.GBP, mask)
				}
			}
		}
		st := v.Stats()
		total := 0
		for _, p := range st.Peers {
			total += int(p.Rx.Frames)
		}
		if st.Learned > bound || len(st.Peers) > bound+1 || total != rx || uint64(accepted-rx) != st.PeerLimit {
			t.Fatalf("%d learned, %d of %d frames counted, %d of %d beyond the limit", st.Learned, total, rx, st.PeerLimit, accepted-rx)
		}
	})
}

// pump is an underlay whose Read makes packets until it is closed.
type pump struct {
	*fake
	packets []packetIn
	mu      sync.Mutex
	done    bool
}

func (u *pump) Readers() []frame.Reader { return []frame.Reader{&pumpReader{u: u}} }
func (u *pump) Sender(int) frame.Sender { return discard{} }

type pumpReader struct {
	u *pump
	n int
}

func (r *pumpReader) Read(b *frame.Batch) error {
	r.u.mu.Lock()
	done := r.u.done
	r.u.mu.Unlock()
	if done {
		return net.ErrClosed
	}
	b.Reset()
	for range 16 {
		p := &r.u.packets[r.n%len(r.u.packets)]
		r.n++
		b.Borrow(p.data, 0, len(p.data))
		b.Outer[len(b.Outer)-1] = frame.Outer{Src: p.src}
	}
	return nil
}

type discard struct{}

func (discard) Send([]frame.Datagram) error { return nil }

// Tables change while readers and writers run; -race watches.
func TestConcurrent(t *testing.T) {
	u := &pump{fake: fake4()}
	for i := range 40 {
		u.packets = append(u.packets, packetIn{src: endpoint(t, at(i%13+1)), data: vx(frame.VNI(vni+i%2), inner(i))})
	}
	v := newVTEP(t, &Config{MaxPeers: 5}, u)
	check.OK(t, v.Control().Open(vni))
	keep := addPeer(t, v, at(50))
	var workers, control sync.WaitGroup
	for range 3 {
		r := v.Readers()[0]
		workers.Go(func() {
			for b := frame.NewBatch(nil); r.Read(b) == nil; {
				for i := range b.Frames {
					if f := &b.Frames[i]; f.Drop != 0 && f.Drop != frame.UnknownVNI {
						t.Errorf("%v", f.Drop)
						return
					}
				}
			}
		})
	}
	for k := range 2 {
		w, outs := v.Writer(k), out(0, 16)
		workers.Go(func() {
			for n := 0; ; n++ {
				u.mu.Lock()
				done := u.done
				u.mu.Unlock()
				if done {
					return
				}
				for i := range outs {
					outs[i].Peer, outs[i].Drop, outs[i].Skip = uint16((n+i)%20), 0, uint16(n%5)
				}
				if err := w.Write(outs); err != nil {
					t.Error(err)
				}
				for i := range outs {
					if outs[i].Peer == keep && outs[i].Drop != 0 {
						t.Errorf("%v", outs[i].Drop)
					}
				}
			}
		})
	}
	const rounds = 300
	control.Go(func() {
		for i := range rounds {
			flood(t, v, vni, at(i%7+1), at(i%5+20), at(30))
			v.Flood(vni)
		}
	})
	control.Go(func() {
		for i := range rounds {
			a, err := v.AddPeer(at(i%9 + 60))
			if err != nil {
				t.Error(err)
				return
			}
			b, err := v.NextHop(at(i%3+1), 7)
			if err != nil {
				t.Error(err)
				return
			}
			if g, err := v.Group(keep, b); err == nil {
				v.DeletePeer(g)
			}
			v.DeletePeer(a)
			v.DeletePeer(b)
		}
	})
	control.Go(func() {
		for range rounds {
			v.Control().Free(v.Control().Retire(func(n uint16) bool { return n%3 == 0 }))
		}
	})
	control.Go(func() {
		for i := range rounds {
			if i%2 == 0 {
				check.OK(t, v.Control().Open(vni+1))
			} else {
				v.Control().Shut(vni + 1)
			}
			v.Stats()
			v.PeerName(uint16(i % 30))
			v.MTU(uint16(i % 30))
		}
	})
	control.Wait()
	u.mu.Lock()
	u.done = true
	u.mu.Unlock()
	workers.Wait()
	// All quiet: what nobody lists goes, and the count comes out even.
	check.OK(t, v.SetFlood(vni))
	for range 4 {
		v.Control().Free(v.Control().Retire(func(uint16) bool { return false }))
	}
	if st := v.Stats(); st.Learned != 0 || len(st.Peers) != 1 {
		t.Errorf("%+v", st)
	}
}
