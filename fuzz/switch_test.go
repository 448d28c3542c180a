package fuzz

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

const (
	maxMACs  = 16
	maxPeers = 4
)

// FuzzSwitch feeds a switch with whatever comes: an access port, a trunk, and an
// underlay with many senders. No input may make it panic, hang or grow; and every
// frame that enters must be delivered or counted under a name.
//
// The input is a list of packets: where it enters (1 byte), length (2 bytes), bytes.
func FuzzSwitch(f *testing.F) {
	eth := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0}
	tagged := append(append(append([]byte{}, eth[:12]...), 0x81, 0, 0, 20), eth[12:]...)
	vxlan := append([]byte{8, 0, 0, 0, 0, 0, 100, 0}, eth...)
	add := func(packets ...[]byte) {
		var in []byte
		for i, p := range packets {
			in = append(append(in, byte(i), byte(len(p)>>8), byte(len(p))), p...)
		}
		f.Add(in, byte(len(packets)))
	}
	add(eth, tagged, vxlan)
	add(eth, eth, vxlan, vxlan, vxlan, vxlan, vxlan, vxlan)
	add(eth[:13], tagged[:14], vxlan[:9], vxlan[:8], vxlan[:7], nil)
	add(make([]byte, 3000), make([]byte, 700), append(vxlan, make([]byte, 600)...))
	// A TCP superframe to a MAC behind the tunnel, as a device hands it over; an oversize
	// frame with DF; an ICMP error of the underlay.
	ip := []byte{0x45, 2, 2, 188, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 168, 7, 1, 192, 168, 7, 2}
	sum := wire.Checksum(wire.Sum(ip, 0))
	ip[10], ip[11] = byte(sum>>8), byte(sum)
	tcp := append(append(append([]byte{}, eth[:14]...), ip...), make([]byte, 680)...)
	tcp[14+20+12] = 0x50
	learn := append([]byte{8, 0, 0, 0, 0, 0, 100, 0}, eth[6:12]...)
	learn = append(append(learn, eth[:6]...), eth[12:]...)
	f.Add(slices.Concat(
		[]byte{7, 0, byte(len(learn))}, learn,
		[]byte{5, byte((4 + len(tcp)) >> 8), byte(4 + len(tcp)), 3, 200, 34, 16}, tcp,
		[]byte{0, byte(len(tcp) >> 8), byte(len(tcp))}, tcp,
		[]byte{0xff, 0, 8, 8, 0, 0, 0, 0, 0, 100, 0},
		[]byte{5, byte((4 + len(tcp)) >> 8), byte(4 + len(tcp)), 3, 200, 34, 16}, tcp,
	), byte(0))
	f.Fuzz(func(t *testing.T, in []byte, settings byte) {
		r := newRig(t, settings)
		defer r.close()
		for len(in) >= 3 {
			where, n := in[0], min(int(in[1]&15)<<8|int(in[2]), len(in)-3)
			r.enter(where, in[3:3+n])
			in = in[3+n:]
		}
		r.check()
	})
}

type rig struct {
	t      *testing.T
	sw     *vswitch.Switch
	access *localPort
	trunk  *localPort
	under  *underlay
	v      *vtep.VTEP
	done   chan struct{}
	in     uint64
}

func newRig(t *testing.T, settings byte) *rig {
	r := &rig{
		t: t, access: &localPort{feed: newFeed(), mtu: 1514}, trunk: &localPort{feed: newFeed(), mtu: 1000},
		under: &underlay{feed: newFeed()}, done: make(chan struct{}),
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	r.v, err = vtep.New(&vtep.Config{
		MaxPeers: maxPeers, Peers: vtep.PeerPolicy(settings & 1),
		Header: vtep.Header{TTL: vtep.Inherit, TOS: vtep.Inherit, DF: vtep.DFInherit},
	}, r.under)
	must(err)
	tooBig, err := l3.NewTooBig(nil)
	must(err)
	r.sw, err = vswitch.New(nil)
	must(err)
	for i, vni := range []frame.VNI{100, 200} {
		vsi, err := r.sw.VSI(vni, &vswitch.VSIConfig{
			MaxMACs: maxMACs, Evict: settings&2 != 0, NoFlood: vswitch.Class(settings >> 2 & 7), ForwardPinned: settings&32 != 0,
			Slots: vswitch.Slots{TooBig: tooBig},
		})
		must(err)
		_, err = vsi.AttachWith(r.v, uint32(vni), vswitch.AttachConfig{Hub: settings&64 != 0})
		must(err)
		_, err = vsi.AttachWith(r.trunk, uint32(10*(i+1)), vswitch.AttachConfig{NoLearn: settings&128 != 0})
		must(err)
		must(vsi.FDB().Set(frame.MAC{2, 0, 0, 0, 0, 9}, 0, fdb.Static))
		must(vsi.FDB().Set(frame.MAC{2, 0, 0, 0, 0, 8}, 0, fdb.Filter))
		must(r.v.SetFlood(vni, netip.MustParseAddrPort("192.0.2.2:4789"), netip.MustParseAddrPort("192.0.2.3:4789")))
		if i == 0 {
			_, err = vsi.Attach(r.access, 0)
			must(err)
		}
	}
	go func() { r.sw.Run(context.Background()); close(r.done) }()
	for _, f := range []*feed{r.access.feed, r.trunk.feed, r.under.feed} {
		<-f.idle
	}
	return r
}

func (r *rig) close() {
	r.sw.Close()
	<-r.done
}

// enter sends one packet in: by the access port, the trunk, one of them with what a
// device says of a superframe, or the underlay from one of many senders, half the time
// behind a good VXLAN header. Now and then it is an ICMP error of the underlay instead.
func (r *rig) enter(where byte, p []byte) {
	src, _ := frame.EndpointFrom(netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, where >> 3}), 50000))
	if where == 0xff {
		r.under.path(src, len(p), p)
		return
	}
	r.in++
	switch where % 8 {
	case 0:
		r.access.give(p, frame.Endpoint{}, 0)
		return
	case 1:
		r.trunk.give(p, frame.Endpoint{}, 0)
		return
	case 5:
		if len(p) < 4 {
			break
		}
		g := frame.GSO{
			Flags: p[0] & 1, Type: frame.GSOType(p[0] >> 1 & 7), Size: uint16(p[1]), CsumStart: uint16(p[2]), CsumOffset: uint16(p[3]),
		}
		to := r.access.feed
		if where&8 != 0 {
			to = r.trunk.feed
		}
		to.giveSuper(p[4:], g)
		return
	case 2, 3, 4:
		h := make([]byte, encap.VXLANLen, encap.VXLANLen+len(p))
		encap.PutVXLAN(h, frame.VNI(100+100*(where>>3&1)))
		p = append(h, p...)
	}
	r.under.give(p, src, where>>6)
}

func (r *rig) check() {
	st := r.sw.Stats()
	var in uint64
	for _, p := range st.Ports {
		in += p.Rx.Frames
		if sum := p.Forwarded + p.Replied + p.Consumed + p.Flood.Broadcast + p.Flood.Multicast + p.Flood.Unknown + p.RxDrops.Total(); sum != p.Rx.Frames {
			r.t.Errorf("port %s: %d frames in, %d accounted for", p.Name, p.Rx.Frames, sum)
		}
	}
	if in != r.in {
		r.t.Errorf("%d frames entered, %d counted", r.in, in)
	}
	for _, v := range r.sw.VSIs() {
		if n := v.FDB().Stats().LearnedEntries; n > maxMACs {
			r.t.Errorf("VSI %d: %d MACs, limit %d", v.VNI(), n, maxMACs)
		}
		for e := range v.FDB().All() {
			if e.MAC.IsGroup() || e.MAC.IsZero() {
				r.t.Errorf("VSI %d: learned %v", v.VNI(), e.MAC)
			}
		}
	}
	if s := r.v.Stats(); s.Learned > maxPeers {
		r.t.Errorf("%d learned peers, limit %d", s.Learned, maxPeers)
	}
	for _, p := range st.Ports[1:] {
		var got int
		switch p.Port {
		case 1: // the VTEP counts frames, the wire copies
			continue
		case 2:
			got = r.trunk.got
		case 3:
			got = r.access.got
		}
		if uint64(got) != p.Tx.Frames {
			r.t.Errorf("port %s: %d frames out, %d counted", p.Name, got, p.Tx.Frames)
		}
	}
}
