package vswitch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A flow is a kind of packets; the zero value is TCP over IPv4 over Ethernet.
type flow struct {
	v6, udp, bare bool
	vlan          uint16 // a tag in the frame
}

func (k flow) String() string {
	return fmt.Sprintf("v6 %v, udp %v, bare %v, vlan %d", k.v6, k.udp, k.bare, k.vlan)
}

func flows() (ks []flow) {
	for i := range 4 {
		for _, vlan := range []uint16{0, 99} {
			ks = append(ks, flow{v6: i&1 != 0, udp: i&2 != 0, vlan: vlan})
		}
		ks = append(ks, flow{v6: i&1 != 0, udp: i&2 != 0, bare: true})
	}
	return ks
}

func (k flow) kind() frame.Kind {
	switch {
	case !k.bare:
		return frame.Ethernet
	case k.v6:
		return frame.IPv6
	}
	return frame.IPv4
}

// segments are n packets with size bytes each and a shorter one, as gopacket makes them.
func (k flow) segments(t testing.TB, n, size int) (segments [][]byte) {
	t.Helper()
	at := 0
	for i := range n + 1 {
		payload := make([]byte, size)
		if i == n {
			payload = payload[:size/2]
		}
		for j := range payload {
			payload[j] = byte(7*i + j)
		}
		proto := layers.IPProtocolTCP
		if k.udp {
			proto = layers.IPProtocolUDP
		}
		var ls []gopacket.SerializableLayer
		e := &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, EthernetType: layers.EthernetTypeIPv4}
		if k.v6 {
			e.EthernetType = layers.EthernetTypeIPv6
		}
		if !k.bare {
			ls = append(ls, e)
		}
		if k.vlan != 0 {
			ls = append(ls, &layers.Dot1Q{VLANIdentifier: k.vlan, Type: e.EthernetType})
			e.EthernetType = layers.EthernetTypeDot1Q
		}
		var ip gopacket.NetworkLayer = &layers.IPv4{Version: 4, TTL: 64, Id: uint16(i), Protocol: proto, SrcIP: net.IP{10, 9, 0, 2}, DstIP: net.IP{10, 9, 0, 1}}
		if k.v6 {
			ip = &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: proto, SrcIP: net.ParseIP("fd09::2"), DstIP: net.ParseIP("fd09::1")}
		}
		ls = append(ls, ip.(gopacket.SerializableLayer))
		if k.udp {
			u := &layers.UDP{SrcPort: 7000, DstPort: 7001}
			u.SetNetworkLayerForChecksum(ip)
			ls = append(ls, u)
		} else {
			tcp := &layers.TCP{SrcPort: 7000, DstPort: 7001, Seq: uint32(at), Ack: 1, ACK: true, PSH: i == n, Window: 1000}
			tcp.SetNetworkLayerForChecksum(ip)
			ls = append(ls, tcp)
		}
		at += len(payload)
		segments = append(segments, packets.Of(append(ls, gopacket.Payload(payload))...))
	}
	return segments
}

// super is the segments as one superframe.
func (k flow) super(t testing.TB, segments [][]byte) *frame.Frame {
	t.Helper()
	out := make([]frame.Out, len(segments))
	for i, s := range segments {
		f := frame.Make(s)
		f.Kind = k.kind()
		out[i].F = &f
	}
	j := gso.Joiner{UDP: true}
	n, g, parts := j.Join(out)
	check.Need(t, n == len(segments), "%v: %d of %d segments were joined", k, n, len(segments))
	f := frame.Make(bytes.Join(parts, nil))
	f.GSO, f.Kind = g.Moved(frame.Headroom), k.kind()
	f.VNI, f.From, f.Hash = 5, frame.NewDest(3, 4), 77
	return &f
}

// unfinished is a packet whose checksum is to be completed.
func (k flow) unfinished(t testing.TB, segment []byte) *frame.Frame {
	t.Helper()
	f := frame.Make(segment)
	f.Kind = k.kind()
	if r := gso.Unfinished(&f); r != frame.NotDropped {
		t.Fatal(r)
	}
	// In its place is the sum of the pseudo header: the complete sum without that of the rest.
	b := f.Bytes()
	at := int(f.GSO.CsumStart) - f.Headroom()
	field := b[at+int(f.GSO.CsumOffset):][:2]
	complete := ^binary.BigEndian.Uint16(field)
	clear(field)
	binary.BigEndian.PutUint16(field, wire.Fold(uint64(complete)+uint64(^wire.Fold(wire.Sum(b[at:], 0)))))
	return &f
}

// A far is the writer of a port that says what it takes, and what it got.
type far struct {
	stub
	takes  frame.Offloads
	refuse map[int]frame.Reason // by count of frames
	err    error
	writes int
	got    []frame.Out
}

func (p *far) Offloads() frame.Offloads { return p.takes }

func (p *far) Writer(int) frame.Writer { return p }

func (p *far) Write(out []frame.Out) error {
	p.writes++
	for i := range out {
		if p.err != nil {
			out[i].Drop = frame.PortDown
			continue
		}
		out[i].Drop = p.refuse[len(p.got)]
		c := out[i].F.Clone()
		p.got = append(p.got, frame.Out{F: &c, Peer: out[i].Peer, Tag: out[i].Tag})
	}
	return p.err
}

// to returns the way of a worker to p, as the switch makes it.
func to(p Port) (frame.Writer, *worker) {
	w := &worker{sw: &Switch{}}
	x := &port{p: p}
	x.tunnel, _ = p.(Tunnel)
	if o, ok := p.(Offloader); ok {
		x.takes = o.Offloads()
	}
	return x.writer(w), w
}

func tag8021Q(p []byte, tag uint32) []byte {
	if tag == 0 {
		return p
	}
	return bytes.Join([][]byte{p[:12], {0x81, 0, byte(tag >> 8), byte(tag)}, p[12:]}, nil)
}

// plainly returns what out is when everything is cut, completed and tagged.
func plainly(t testing.TB, out []frame.Out) (all [][]byte) {
	t.Helper()
	for _, o := range out {
		var c gso.Cutter
		parts, _ := c.Cut(nil, nil, o.F)
		check.Need(t, len(parts) != 0, "cannot be cut: %+v", o.F.GSO)
		for ; len(parts) > 0; parts = parts[2:] {
			all = append(all, tag8021Q(bytes.Join(parts[:2], nil), o.Tag))
		}
	}
	return all
}
