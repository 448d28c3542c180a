package datapath

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// A dice throws frames that are mostly ordinary, with something odd in some.
type dice struct{ *rand.Rand }

func (r dice) one(n int) bool { return r.IntN(n) == 0 }

// frame is a random frame between two MACs.
func (r dice) frame(dst, src frame.MAC) []byte {
	eth := &layers.Ethernet{DstMAC: dst[:], SrcMAC: src[:], EthernetType: layers.EthernetTypeIPv4}
	payload := make([]byte, r.IntN(1400))
	for i := range payload {
		payload[i] = byte(r.Uint32())
	}
	port := func() uint16 {
		if r.one(10) {
			return []uint16{67, 68, 546, 547}[r.IntN(4)]
		}
		return uint16(r.Uint32())
	}
	var ip gopacket.SerializableLayer
	var over gopacket.NetworkLayer
	protos := []layers.IPProtocol{layers.IPProtocolTCP, layers.IPProtocolUDP, layers.IPProtocolICMPv4, layers.IPProtocolICMPv6, layers.IPProtocolTCP, layers.IPProtocolUDP, layers.IPProtocolGRE, layers.IPProtocolIGMP}
	proto := protos[r.IntN(len(protos))]
	var extra []gopacket.SerializableLayer
	if r.one(2) {
		h := &layers.IPv4{Version: 4, TOS: uint8(r.Uint32()), TTL: uint8(r.IntN(4)) * 60, Id: uint16(r.Uint32()), Protocol: proto, SrcIP: make([]byte, 4), DstIP: make([]byte, 4)}
		binary.BigEndian.PutUint32(h.SrcIP, r.Uint32())
		binary.BigEndian.PutUint32(h.DstIP, r.Uint32())
		if r.one(2) {
			h.Flags = layers.IPv4DontFragment
		} else if r.one(3) {
			h.Flags, h.FragOffset = layers.IPv4MoreFragments, uint16(r.IntN(2)*r.IntN(8000))
		}
		if r.one(10) {
			h.Options = []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}}
		}
		ip, over = h, h
	} else {
		eth.EthernetType = layers.EthernetTypeIPv6
		if proto == layers.IPProtocolICMPv4 {
			proto = layers.IPProtocolICMPv6
		}
		h := &layers.IPv6{Version: 6, TrafficClass: uint8(r.Uint32()), FlowLabel: r.Uint32() & 0xfffff, HopLimit: uint8(r.IntN(4)) * 60, NextHeader: proto, SrcIP: make([]byte, 16), DstIP: make([]byte, 16)}
		binary.BigEndian.PutUint64(h.SrcIP[8:], r.Uint64())
		binary.BigEndian.PutUint64(h.DstIP[8:], r.Uint64())
		if r.one(5) {
			h.NextHeader = layers.IPProtocolIPv6Fragment
			x := make([]byte, 8)
			x[0] = byte(proto)
			if r.one(2) {
				binary.BigEndian.PutUint16(x[2:], uint16(r.Uint32()))
			}
			extra = append(extra, gopacket.Payload(x))
		} else if r.one(10) {
			h.NextHeader = []layers.IPProtocol{0, 43, 60, 51}[r.IntN(4)]
			extra = append(extra, gopacket.Payload([]byte{byte(proto), 0, 1, 4, 0, 0, 0, 0}))
		}
		ip, over = h, h
	}
	all := append([]gopacket.SerializableLayer{eth, ip}, extra...)
	switch proto {
	case layers.IPProtocolTCP:
		l := &layers.TCP{SrcPort: layers.TCPPort(port()), DstPort: layers.TCPPort(port()), Seq: r.Uint32(), ACK: true, Window: 500}
		l.SetNetworkLayerForChecksum(over)
		all = append(all, l)
	case layers.IPProtocolUDP:
		l := &layers.UDP{SrcPort: layers.UDPPort(port()), DstPort: layers.UDPPort(port())}
		l.SetNetworkLayerForChecksum(over)
		all = append(all, l)
	case layers.IPProtocolICMPv6:
		l := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(uint8(126+r.IntN(14)), 0)}
		l.SetNetworkLayerForChecksum(over)
		all = append(all, l)
	case layers.IPProtocolICMPv4:
		all = append(all, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(8, 0), Id: 1, Seq: 2})
	}
	b := packets.Of(append(all, gopacket.Payload(payload))...)
	switch r.IntN(12) {
	case 0: // cut off
		b = b[:max(14, r.IntN(len(b)))]
	case 1: // padded
		b = append(b, make([]byte, r.IntN(50))...)
	case 2: // spoilt
		b[12+r.IntN(min(60, len(b)-12))] = byte(r.Uint32())
	case 3: // at random
		for i := 14; i < len(b); i++ {
			b[i] = byte(r.Uint32())
		}
	}
	if len(b) > 3000 {
		b = b[:3000]
	}
	return b
}

// For random frames in every mode, the programs and user space do the same, or it is a miss. So that misses are not all
// there is, their number is counted.
func TestRandomFrames(t *testing.T) {
	for _, kind := range []encap.Type{encap.TypeVXLAN, encap.TypeGPE} {
		t.Run(kind.String(), func(t *testing.T) { randomFrames(t, kind) })
	}
}

func randomFrames(t *testing.T, kind encap.Type) {
	g := newRigOf(t, kind)
	r := dice{rand.New(rand.NewPCG(1, 2))}
	carried := [2][2]int{}
	const rounds = 20000
	for range rounds {
		fam, m := r.IntN(2), r.IntN(len(g.modes))
		k := g.key(fam, m)
		if g.sends(fam, m, r.frame(k.Dst, k.Src)) {
			carried[0][fam]++
		}
		payload := g.wrap(r.frame(macNear, macFar))
		switch r.IntN(20) {
		case 0:
			payload[r.IntN(8)] ^= 1 << r.IntN(8)
		case 1:
			payload = payload[:r.IntN(len(payload))]
		}
		tos := uint8(r.Uint32())
		if g.reads(fam, payload, tos) {
			carried[1][fam]++
		}
		whole := received(fam, payload, tos)
		whole[r.IntN(min(100, len(whole)))] = byte(r.Uint32())
		if fam == 0 && r.one(2) {
			whole[14] = 0x45
			sealed(whole)
		}
		g.readsPacket(fam, whole)
	}
	for way, by := range carried {
		for fam, n := range by {
			if n < rounds/10 {
				t.Errorf("way %d, family %d: %d of about %d carried", way, fam, n, rounds/2)
			}
		}
	}
	t.Log(carried)
}

// FuzzDatapath is TestRandomFrames with the frames of the fuzzer: what either program carries is what user space
// makes of it, also with a byte of the outer packet changed, or with a tag.
func FuzzDatapath(f *testing.F) {
	r := dice{rand.New(rand.NewPCG(3, 4))}
	for i := range 64 {
		f.Add(r.frame(macFar, macNear)[12:], uint16(i)|uint16(i)<<15, uint8(i), uint16(i), uint8(i))
	}
	rigs, tags := [...]*rig{newRig(f), newRigOf(f, encap.TypeGPE)}, newTrunk(f)
	f.Fuzz(func(t *testing.T, b []byte, how uint16, tos uint8, at uint16, to uint8) {
		if len(b) < 2 || len(b) > 3000 {
			return
		}
		g := rigs[how>>15]
		g.t, tags.t = t, t
		fam, m := int(how&1), int(how&0x7fff>>1)%len(g.modes)
		k := g.key(fam, m)
		g.sends(fam, m, append(append(k.Dst[:], k.Src[:]...), b...))
		payload := g.wrap(append(append(macNear[:], macFar[:]...), b...))
		g.reads(fam, payload, tos)
		whole := received(fam, payload, tos)
		whole[int(at)%min(len(whole), 100)] = to
		g.readsPacket(fam, whole)
		tag := [...]uint32{dot1q | uint32(at), 0x88a8<<16 | uint32(at), 0}[how%3]
		tags.sends(Program(fam), append(append(macFar[:], macNear[:]...), b...), tag)
		tags.reads(append(append(macNear[:], macFar[:]...), b...))
	})
}
