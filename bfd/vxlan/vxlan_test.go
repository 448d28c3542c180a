package vxlan

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// end is a Path with a Speaker, and what it sends.
type end struct {
	path *Path
	s    *bfd.Speaker
	peer bfd.Peer
	sent []frame.Frame
	full bool
}

// newEnd returns an end that has its peer as number 7.
func newEnd(t testing.TB, local, remote string) *end {
	e := &end{s: bfd.New()}
	t.Cleanup(func() { e.s.Close() })
	e.path = New(e.s, func(peer uint16, f *frame.Frame) bool {
		check.Equal(t, "to peer", peer, 7)
		e.sent = append(e.sent, f.Clone())
		return !e.full
	})
	e.peer = bfd.Peer{Path: e.path, Local: netip.MustParseAddr(local), Remote: netip.MustParseAddr(remote)}
	e.path.SetPeers(map[uint16]bfd.Peer{7: e.peer})
	check.OK(t, e.s.Add(e.peer, &bfd.SessionConfig{Passive: true}))
	return e
}

// control has gopacket write a frame with a control packet.
func control(t testing.TB, v6 bool, edit func(ip4 *layers.IPv4, ip6 *layers.IPv6, udp *layers.UDP)) []byte {
	eth := &layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: MAC.HardwareAddr(), EthernetType: layers.EthernetTypeIPv4}
	ip4 := &layers.IPv4{Version: 4, TTL: 255, Protocol: layers.IPProtocolUDP, SrcIP: []byte{192, 0, 2, 2}, DstIP: []byte{127, 0, 0, 1}}
	ip6 := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolUDP, SrcIP: netip.MustParseAddr("2001:db8::2").AsSlice(), DstIP: netip.MustParseAddr("::ffff:127.0.0.1").AsSlice()}
	ip6.DstIP = []byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}
	udp := &layers.UDP{SrcPort: 50000, DstPort: 3784}
	c := bfd.Control{State: bfd.Down, Multiplier: 3, My: 9, MinTx: 1e9, MinRx: 1e9}
	if edit != nil {
		edit(ip4, ip6, udp)
	}
	var ip gopacket.SerializableLayer = ip4
	if v6 {
		eth.EthernetType, ip = layers.EthernetTypeIPv6, ip6
		udp.SetNetworkLayerForChecksum(ip6)
	} else {
		udp.SetNetworkLayerForChecksum(ip4)
	}
	b := gopacket.NewSerializeBuffer()
	check.OK(t, gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip, udp, gopacket.Payload(c.Append(nil))))
	return b.Bytes()
}

func (e *end) takes(b []byte, from uint16, gso frame.GSO) frame.Verdict {
	f := frame.Make(append([]byte(nil), b...))
	f.From, f.GSO = frame.NewDest(3, from), gso.Moved(f.Headroom())
	return e.path.Process(&f, frame.At{})
}

// What the Path takes from the wire, and what it drops.
func TestProcess(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		e := newEnd(t, "192.0.2.1", "192.0.2.2")
		if v6 {
			e = newEnd(t, "2001:db8::1", "2001:db8::2")
		}
		udp := 34
		if v6 {
			udp = 54
		}
		good := control(t, v6, nil)
		check.Equal(t, "a packet", e.takes(good, 7, frame.GSO{}), frame.Consume)
		x := check.Must(e.s.Session(e.peer))(t)
		check.True(t, x.Stats.Received == 1 && x.State == bfd.Init, "%+v", x)
		change := func(at int, b ...byte) []byte {
			c := append([]byte(nil), good...)
			copy(c[at:], b)
			return c
		}
		for _, c := range []struct {
			name string
			b    []byte
			from uint16
			gso  frame.GSO
			want frame.Verdict
		}{
			{"short", good[:13], 7, frame.GSO{}, frame.Drop(frame.Short)},
			{"cut", good[:40], 7, frame.GSO{}, frame.Drop(frame.BadHeader)},
			{"ARP", change(12, 8, 6), 7, frame.GSO{}, frame.Drop(frame.BadHeader)},
			{"length", change(udp+4, 1), 7, frame.GSO{}, frame.Drop(frame.BadHeader)},
			{"checksum", change(udp+8, 0xff), 7, frame.GSO{}, frame.Drop(frame.BadChecksum)},
			{"to be completed", change(udp+6, 1, 2), 7, frame.GSO{Flags: frame.NeedsCsum}, frame.Consume},
			{"superframe", good, 7, frame.GSO{Type: frame.GSOUDP, Size: 8}, frame.Drop(frame.BadHeader)},
			{"port", control(t, v6, func(_ *layers.IPv4, _ *layers.IPv6, u *layers.UDP) { u.DstPort = 53 }), 7, frame.GSO{}, frame.Drop(frame.NoRoute)},
			{"TCP", control(t, v6, func(a *layers.IPv4, b *layers.IPv6, _ *layers.UDP) {
				a.Protocol, b.NextHeader = layers.IPProtocolTCP, layers.IPProtocolTCP
			}), 7, frame.GSO{}, frame.Drop(frame.BadHeader)},
			{"stranger", good, 8, frame.GSO{}, frame.Drop(frame.UnknownPeer)},
			{"forwarded", control(t, v6, func(a *layers.IPv4, b *layers.IPv6, _ *layers.UDP) { a.TTL, b.HopLimit = 254, 254 }), 7, frame.GSO{}, frame.Consume},
		} {
			check.Equal(t, c.name, e.takes(c.b, c.from, c.gso), c.want)
		}
		if !v6 {
			fragment := control(t, v6, func(a *layers.IPv4, _ *layers.IPv6, _ *layers.UDP) { a.Flags = layers.IPv4MoreFragments })
			check.Equal(t, "fragment", e.takes(fragment, 7, frame.GSO{}), frame.Drop(frame.BadHeader))
			check.Equal(t, "IP checksum", e.takes(change(24, 1, 2), 7, frame.GSO{}), frame.Drop(frame.BadHeader))
		}
		st := e.s.Stats()
		check.True(t, st.Received == 2 && st.Discarded[bfd.BadTTL] == 1, "%+v", st)
	}
}

// What it sends arrives at the other end's Process.
func TestSend(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		a, b := newEnd(t, "192.0.2.1", "192.0.2.2"), newEnd(t, "192.0.2.2", "192.0.2.1")
		if v6 {
			a, b = newEnd(t, "2001:db8::1", "2001:db8::2"), newEnd(t, "2001:db8::2", "2001:db8::1")
		}
		c := bfd.Control{State: bfd.Down, Multiplier: 3, My: 9, MinTx: 1e9, MinRx: 1e9}
		m := &bfd.Packet{Peer: a.peer, SrcPort: 50000, DstPort: bfd.Port, Payload: c.Append(nil)}
		check.OK(t, a.path.Send(m))
		check.Equal(t, "sent", len(a.sent), 1)
		check.Equal(t, "verdict", b.takes(a.sent[0].Bytes(), 7, frame.GSO{}), frame.Consume)
		check.Equal(t, "received", b.s.Stats().Received, 1)
		a.full = true
		check.True(t, errors.Is(a.path.Send(m), errFull), "a full queue")
		a.path.SetPeers(nil)
		check.True(t, errors.Is(a.path.Send(m), errNoPeer), "no peer")
	}
}

func FuzzProcess(f *testing.F) {
	f.Add(control(f, false, nil))
	f.Add(control(f, true, nil))
	e := newEnd(f, "192.0.2.1", "192.0.2.2")
	f.Fuzz(func(t *testing.T, b []byte) {
		if v := e.takes(b, 7, frame.GSO{}); v == frame.Continue {
			t.Error("a frame went on")
		}
	})
}
