package datapath

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A rig is the programs and a VTEP in user space, which are told the same: the VTEP's address, a peer for each mode of
// the outer headers and family, and guests with these MACs:
//
//	guest of mode m, 02:00:00:00:01:m  --->  far   by table out
//	far  --->  near                                by table in, from the peer of mode 0
type rig struct {
	t     testing.TB
	kind  encap.Type
	d     *Datapath
	modes []mode
	peers [2][]uint16 // of v, by family and mode
	v     *vtep.VTEP
	taps  [2]*tap
	far   [2]*memory.Underlay // of the peer of mode 0
	batch *frame.Batch
	sent  []frame.Datagram
}

type mode struct {
	ttl, tos vtep.Value
	df       vtep.DF
	ecn      vtep.ECN
}

var (
	macFar, macNear = frame.MAC{2, 0, 0, 0, 0, 9}, frame.MAC{2, 0, 0, 0, 0, 8}
	srcPorts        = [16]uint16{50001, 50002, 50003, 50004, 50005, 50006, 50007, 50008, 50009, 50010, 50011, 50012, 50013, 50014, 50015, 50016}
	locals          = [2]netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
)

const (
	vni     = 4100
	maxLen  = 1514  // of a frame
	tunMTU  = 16000 // of the underlays
	oif     = 1
	tooLong = 15000 // that the rig's VTEP sends anyway
)

func macOf(mode int) frame.MAC { return frame.MAC{2, 0, 0, 0, 1, byte(mode)} }

func peerOf(fam, mode int) netip.Addr {
	if fam == 0 {
		return netip.AddrFrom4([4]byte{192, 0, 2, byte(100 + mode)})
	}
	return netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", 100+mode))
}

// tap records what is sent.
type tap struct {
	*memory.Underlay
	r *rig
}

func (u *tap) Sender(int) frame.Sender { return u }

func (u *tap) Send(ds []frame.Datagram) error {
	for _, d := range ds {
		d.Parts = [][]byte{bytes.Join(d.Parts, nil)}
		u.r.sent = append(u.r.sent, d)
	}
	return nil
}

func newRig(t testing.TB) *rig { t.Helper(); return newRigOf(t, encap.TypeVXLAN) }

func newRigOf(t testing.TB, kind encap.Type) *rig {
	t.Helper()
	r := &rig{t: t, kind: kind, batch: frame.NewBatch(nil)}
	for _, ttl := range []vtep.Value{0, vtep.Inherit, 7} {
		for _, tos := range []vtep.Value{0, vtep.Inherit, 0x48} {
			for _, df := range []vtep.DF{vtep.DFSet, vtep.DFUnset, vtep.DFInherit} {
				for _, ecn := range []vtep.ECN{vtep.ECNNormal, vtep.ECNCompat, vtep.ECNRFC3168} {
					r.modes = append(r.modes, mode{ttl, tos, df, ecn})
				}
			}
		}
	}
	r.d = loadFor(t, 1024)
	net := memory.NewNetwork(&memory.NetworkConfig{MTU: tunMTU})
	t.Cleanup(func() { net.Close() })
	listen := func(a netip.Addr) *memory.Underlay {
		u := check.Must(net.Listen(netip.AddrPortFrom(a, 4789), nil))(t)
		return u
	}
	for fam, a := range locals {
		r.taps[fam] = &tap{listen(a), r}
		r.far[fam] = listen(peerOf(fam, 0))
	}
	v := check.Must(vtep.New(&vtep.Config{Type: kind}, r.taps[0], r.taps[1]))(t)
	t.Cleanup(func() { v.Close() })
	r.v = v
	check.OK(t, v.Control().Open(vni))
	var cfgs []vtep.PeerConfig
	for fam := range locals {
		for m, c := range r.modes {
			cfgs = append(cfgs, vtep.PeerConfig{Address: peerOf(fam, m), Header: vtep.Header{TTL: c.ttl, TOS: c.tos, DF: c.df, ECN: c.ecn}})
		}
	}
	check.OK(t, v.SetPeers(cfgs))
	slot := uint32(0)
	valid := func() uint32 {
		r.d.Slot(slot).Validate(Validity{1, 0, 0})
		slot++
		return slot - 1
	}
	for fam := range locals {
		for m := range r.modes {
			p := check.Must(v.AddPeer(netip.AddrPortFrom(peerOf(fam, m), 4789)))(t)
			r.peers[fam] = append(r.peers[fam], p)
			r.out(r.key(fam, m), r.flow(valid(), fam, m))
		}
		in := r.flow(valid(), fam, 0)
		in.How = Egress
		in.Outer.ZeroChecksum = true
		check.OK(t, r.d.Put(r.inKey(fam), in))
	}
	return r
}

// key is that of a frame from the guest of a mode; with IPv6 outside, to near.
func (r *rig) key(fam, m int) OutKey {
	return OutKey{Ifindex: 1, Dst: [...]frame.MAC{macFar, macNear}[fam], Src: macOf(m)}
}

func (r *rig) inKey(fam int) InKey {
	return InKey{Peer: peerOf(fam, 0).As16(), VNI: vni, Dst: macNear, Src: macFar}
}

func (r *rig) out(k OutKey, f *Flow) {
	r.t.Helper()
	check.OK(r.t, r.d.Put(k, f))
}

// flow is what a mode is for the programs.
func (r *rig) flow(slot uint32, fam, m int) *Flow {
	c := r.modes[m]
	o := Outer{Local: locals[fam], Remote: peerOf(fam, m), Port: 4789, SrcPorts: srcPorts, VNI: vni, GPE: r.kind == encap.TypeGPE, TTL: 64,
		DF:  map[vtep.DF]DF{vtep.DFSet: DFSet, vtep.DFUnset: DFUnset, vtep.DFInherit: DFInherit}[c.df],
		ECN: map[vtep.ECN]ECN{vtep.ECNNormal: ECNNormal, vtep.ECNCompat: ECNCompat, vtep.ECNRFC3168: ECNRFC3168}[c.ecn]}
	switch {
	case c.ttl == vtep.Inherit:
		o.TTL = 0
	case c.ttl > 0:
		o.TTL = uint8(c.ttl)
	}
	switch {
	case c.tos == vtep.Inherit:
		o.TOSIn = true
	case c.tos > 0:
		o.TOS = uint8(c.tos)
	}
	return &Flow{Slot: slot, SrcEpoch: 1, DstEpoch: 2, Oif: oif, How: Neigh, Max: maxLen, Outer: o}
}

// userSends returns what the VTEP makes of a frame for the peer of a mode.
func (r *rig) userSends(fam, m int, b []byte) frame.Datagram {
	r.t.Helper()
	r.sent = nil
	f := frame.Make(b)
	out := []frame.Out{{F: &f, Peer: r.peers[fam][m], Tag: vni}}
	if err := r.v.Writer(0).Write(out); err != nil || len(r.sent) != 1 {
		r.t.Fatalf("user space sends %d datagrams for %x: %v, %v", len(r.sent), b, err, out[0].Drop)
	}
	return r.sent[0]
}

// packet is a datagram of the VTEP as it is on the wire, with MACs, by gopacket.
func (r *rig) packet(fam, m int, d *frame.Datagram, macs []byte, sport, id uint16, label uint32) []byte {
	eth := &layers.Ethernet{DstMAC: macs[:6], SrcMAC: macs[6:12], EthernetType: layers.EthernetTypeIPv4}
	udp := &layers.UDP{SrcPort: layers.UDPPort(sport), DstPort: 4789}
	ttl := d.TTL
	if ttl == 0 {
		ttl = 64
	}
	var ip gopacket.SerializableLayer
	if fam == 0 {
		h := &layers.IPv4{Version: 4, TOS: d.TOS, TTL: ttl, Id: id, Protocol: layers.IPProtocolUDP, SrcIP: locals[0].AsSlice(), DstIP: peerOf(0, m).AsSlice()}
		if d.DF {
			h.Flags = layers.IPv4DontFragment
		}
		ip = h
		udp.SetNetworkLayerForChecksum(h)
	} else {
		eth.EthernetType = layers.EthernetTypeIPv6
		h := &layers.IPv6{Version: 6, TrafficClass: d.TOS, FlowLabel: label, HopLimit: ttl, NextHeader: layers.IPProtocolUDP, SrcIP: locals[1].AsSlice(), DstIP: peerOf(1, m).AsSlice()}
		ip = h
		udp.SetNetworkLayerForChecksum(h)
	}
	b := packets.Of(eth, ip, udp, gopacket.Payload(d.Parts[0]))
	at := [...]int{34, 54}[fam] + 6
	b[at], b[at+1] = 0, 0 // the checksum
	return b
}

// carried reports whether a run of a program on b carried it, to got. It fails the test unless that or a miss that
// changes nothing is what happened.
func (r *rig) carried(b []byte, act Action, got []byte, err error) bool {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("%d bytes: %v", len(b), err)
	}
	if act == Miss {
		if !bytes.Equal(got, b) {
			r.t.Fatalf("a miss is changed\nfrom %x\nto   %x", b, got)
		}
		return false
	}
	if act != Redirect {
		r.t.Fatalf("%x: action %d", b, act)
	}
	return true
}

// sends runs port_in on a frame and fails the test unless it is a miss that changes nothing, or what user space sends.
// It reports which.
func (r *rig) sends(fam, m int, b []byte) bool {
	r.t.Helper()
	act, got, _, err := r.d.Run(PortIn, b, Meta{})
	if errors.Is(err, unix.EINVAL) && len(b) < 54 {
		return false // BPF_PROG_TEST_RUN takes no packets without a whole IP header
	}
	if !r.carried(b, act, got, err) {
		return false
	}
	d := r.userSends(fam, m, b)
	l4 := [...]int{34, 54}[fam]
	var id uint16
	if !d.DF {
		id = binary.BigEndian.Uint16(got[18:])
	}
	sport := binary.BigEndian.Uint16(got[l4:])
	want := r.packet(fam, m, &d, b[:12], sport, id, binary.BigEndian.Uint32(got[14:])&0xfffff)
	if !bytes.Equal(got, want) || sport < srcPorts[0] || sport > srcPorts[15] {
		r.t.Fatalf("mode %+v, source port %d: frame\n%x\ngot\n%x\nwant\n%x", r.modes[m], sport, b, got, want)
	}
	return true
}

// userReads returns what the VTEP makes of a datagram of the peer of mode 0.
func (r *rig) userReads(fam int, payload []byte, tos uint8) *frame.Frame {
	r.t.Helper()
	to, err := frame.EndpointFrom(netip.AddrPortFrom(locals[fam], 4789))
	check.OK(r.t, err)
	ds := []frame.Datagram{{Parts: [][]byte{payload}, To: []frame.Endpoint{to}, TOS: tos, TTL: 64}}
	if err := r.far[fam].Sender(0).Send(ds); err != nil || ds[0].Lost > 0 {
		r.t.Fatalf("sending %d bytes: %v, lost %d", len(payload), err, ds[0].Lost)
	}
	check.OK(r.t, r.v.Readers()[fam].Read(r.batch))
	return &r.batch.Frames[0]
}

// received is a datagram of the peer of mode 0 as it is on the wire.
func received(fam int, payload []byte, tos uint8) []byte {
	eth := &layers.Ethernet{DstMAC: make([]byte, 6), SrcMAC: []byte{2, 0, 0, 0, 0, 7}, EthernetType: layers.EthernetTypeIPv4}
	udp := &layers.UDP{SrcPort: 50001, DstPort: 4789}
	var ip gopacket.SerializableLayer
	if fam == 0 {
		h := &layers.IPv4{Version: 4, TOS: tos, TTL: 64, Flags: layers.IPv4DontFragment, Protocol: layers.IPProtocolUDP, SrcIP: peerOf(0, 0).AsSlice(), DstIP: locals[0].AsSlice()}
		ip = h
		udp.SetNetworkLayerForChecksum(h)
	} else {
		eth.EthernetType = layers.EthernetTypeIPv6
		h := &layers.IPv6{Version: 6, TrafficClass: tos, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: peerOf(1, 0).AsSlice(), DstIP: locals[1].AsSlice()}
		ip = h
		udp.SetNetworkLayerForChecksum(h)
	}
	b := packets.Of(eth, ip, udp, gopacket.Payload(payload))
	at := [...]int{34, 54}[fam] + 6
	b[at], b[at+1] = 0, 0
	return b
}

// reads runs tunnel_in on a datagram of the peer, and fails the test unless it is a miss that changes nothing, or the
// frame that user space reads. It reports which.
func (r *rig) reads(fam int, payload []byte, tos uint8) bool {
	r.t.Helper()
	return r.readsPacket(fam, received(fam, payload, tos))
}

// readsPacket is reads for a packet in which anything may be. What is carried is as the peer sends it, but for what
// makes no difference to a socket.
func (r *rig) readsPacket(fam int, b []byte) bool {
	r.t.Helper()
	act, got, _, err := r.d.Run(TunnelIn, b, Meta{Complete: len(b)%2 == 0 && r.d.sums()})
	if !r.carried(b, act, got, err) {
		return false
	}
	udp, tos := 34, b[15]
	if fam == 1 {
		udp, tos = 54, b[14]<<4|b[15]>>4
	}
	payload := b[udp+8:]
	plain := received(fam, payload, tos)
	copy(plain[6:12], b[6:12])      // MAC of the router
	copy(plain[udp:udp+2], b[udp:]) // source port
	if fam == 0 {
		copy(plain[18:20], b[18:])               // identification
		plain[20], plain[22] = b[20]&0xc0, b[22] // flags, TTL
		sealed(plain)
	} else {
		plain[15] |= b[15] & 15
		copy(plain[16:18], b[16:]) // flow label
		plain[21] = b[21]          // hop limit
	}
	if !bytes.Equal(b, plain) {
		r.t.Fatalf("carried\n%x, which is not\n%x", b, plain)
	}
	f := r.userReads(fam, payload, tos)
	want := f.Bytes()
	if f.GSO != (frame.GSO{}) && len(got) > len(want) {
		got = got[:len(want)] // unfinished: padding is cut off
	}
	if f.Drop != frame.NotDropped || !bytes.Equal(got, want) {
		r.t.Fatalf("TOS %#x: datagram\n%x\ngot\n%x\nwant\n%x (%v)", tos, payload, got, want, f.Drop)
	}
	return true
}

// wrap is a frame with the tunnel header of the rig.
func (r *rig) wrap(b []byte) []byte {
	h := make([]byte, encap.VXLANLen)
	if r.kind == encap.TypeGPE {
		encap.PutGPE(h, vni, frame.Ethernet, false)
	} else {
		encap.PutVXLAN(h, vni)
	}
	return append(h, b...)
}

// vxlan is a VXLAN header with a frame.
func vxlan(b []byte) []byte {
	return append([]byte{8, 0, 0, 0, 0, vni >> 8, vni & 0xff, 0}, b...)
}

// sums reports whether the kernel knows Meta.Complete.
func (d *Datapath) sums() bool {
	_, _, _, err := d.Run(TunnelIn, received(0, vxlan(shape{}.bytes()), 0), Meta{Complete: true})
	return !errors.Is(err, unix.EINVAL)
}

// why runs a program and returns the cause of the miss, NumCauses if it is carried or not counted.
func (d *Datapath) why(t testing.TB, p Program, b []byte, m Meta) Cause {
	t.Helper()
	before := check.Must(d.Misses())(t)
	act, got, after, err := d.Run(p, b, m)
	if err != nil {
		t.Fatalf("%d bytes: %v", len(b), err)
	}
	now := check.Must(d.Misses())(t)
	found := NumCauses
	for c := range NumCauses {
		if now[c] != before[c] {
			found = c
		}
	}
	if (act == Redirect) == (found < NumCauses) && act != Miss || act == Miss && (!bytes.Equal(got, b) || after.Mark != m.Mark || after.GSOSize != m.GSOSize) {
		t.Fatalf("action %d, cause %v, changed %v", act, found, !bytes.Equal(got, b))
	}
	return found
}
