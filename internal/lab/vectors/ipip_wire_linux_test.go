package vectors

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// A wireEnd is a VTEP for IP-in-IP on a host of its own, whose only peer is a host that
// knows nothing of it.
type wireEnd struct {
	t         *testing.T
	us, other *netns.Host
	ip6       bool
	at, to    netip.Addr
	v         *vtep.VTEP
	peer      uint16
}

func newWireEnd(t *testing.T, s side, h vtep.Header) *wireEnd {
	t.Helper()
	n := netns.New(t)
	x := &wireEnd{t: t, us: n.Host("a"), other: n.Host("b"), ip6: s.ip6}
	x.at, x.to = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	if s.ip6 {
		x.at, x.to = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
	}
	n.Link(x.us, "10.0.0.1/24,fd00::1/64", x.other, "10.0.0.2/24,fd00::2/64")
	x.us.Ready()
	x.other.Ready()
	x.us.Ping(x.to.String(), 1)
	var err error
	x.us.Do(func() {
		var u *underlay.IP
		if u, err = underlay.ListenIP(x.at, nil); err == nil {
			x.v, err = vtep.New(&vtep.Config{Type: encap.TypeIPIP, Header: h}, u)
		}
	})
	check.OK(t, err)
	t.Cleanup(func() { x.v.Close() })
	if err = x.v.Control().Open(0); err == nil {
		x.peer, err = x.v.AddPeer(netip.AddrPortFrom(x.to, 0))
	}
	check.OK(t, err)
	return x
}

// send sends packets and returns what tshark says of each on the wire, in the order of the
// fields: of two headers of one kind the outer one's.
func (x *wireEnd) send(packets [][]byte, fields ...string) (rows [][]string) {
	x.t.Helper()
	c := x.other.Capture("eth0", "ip proto 4 or ip proto 41 or ip6 proto 4 or ip6 proto 41")
	w := x.v.Writer(0)
	for _, p := range packets {
		f := frame.Make(p)
		if f.Kind = frame.IPv4; p[0]>>4 == 6 {
			f.Kind = frame.IPv6
		}
		out := []frame.Out{{F: &f, Peer: x.peer}}
		if err := w.Write(out); err != nil || out[0].Drop != 0 {
			x.t.Fatal(err, out[0].Drop)
		}
	}
	c.Want(len(packets), func(netns.Packet) bool { return true })
	ps := c.Stop()
	rows = netns.Fields(x.t, ps, "", fields...)
	check.Need(x.t, len(rows) == len(packets), "%d packets, want %d", len(rows), len(packets))
	for _, row := range rows {
		for i := range row {
			row[i], _, _ = strings.Cut(row[i], ",")
		}
	}
	return rows
}

// hears has the other host send an outer packet, and returns what the VTEP reads: under
// protocol 4 with its first reader, under 41 with its second.
func (x *wireEnd) hears(protocol byte, option bool, inner []byte) *frame.Frame {
	x.t.Helper()
	mac := func(h *netns.Host) []byte {
		b := check.Must(hex.DecodeString(strings.ReplaceAll(h.MAC("eth0"), ":", "")))(x.t)
		return b
	}
	eth := &layers.Ethernet{SrcMAC: mac(x.other), DstMAC: mac(x.us), EthernetType: layers.EthernetTypeIPv4}
	var all []gopacket.SerializableLayer
	switch {
	case !x.ip6:
		all = append(all, eth, &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocol(protocol), SrcIP: x.to.AsSlice(), DstIP: x.at.AsSlice()})
	default:
		eth.EthernetType = layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocol(protocol), SrcIP: x.to.AsSlice(), DstIP: x.at.AsSlice()}
		if all = append(all, eth, ip); option {
			ip.NextHeader = layers.IPProtocolIPv6Destination
			all = append(all, gopacket.Payload([]byte{protocol, 0, 4, 1, 4, 1, 1, 0})) // a limit of 4, padded
		}
	}
	x.other.Inject("eth0", packets.Of(append(all, gopacket.Payload(inner))...))
	timer := time.AfterFunc(5*time.Second, x.v.Pause)
	defer timer.Stop()
	b := frame.NewBatch(nil)
	if err := x.v.Readers()[map[byte]int{4: 0, 41: 1}[protocol]].Read(b); err != nil || len(b.Frames) != 1 {
		x.t.Fatal(err, len(b.Frames))
	}
	return &b.Frames[0]
}

// ipipWireRows are what only a real network shows: the outer header.
var ipipWireRows = []row{
	{id: "8.table", name: "protocols on the wire", sockets: func(t *testing.T, s side) {
		x := newWireEnd(t, s, vtep.Header{})
		field := pick(s.ip6, "ip.proto", "ipv6.nxt")
		for protocol, p := range map[byte][]byte{4: bareIP(false), 41: bareIP(true)} {
			whole := 14 + 20 + len(p)
			if s.ip6 {
				whole += 20
			}
			got, want := x.send([][]byte{p}, field, "frame.len")[0], []string{strconv.Itoa(int(protocol)), strconv.Itoa(whole)}
			check.True(t, slices.Equal(got, want), "protocol and length %q, want %q", got, want)
			f := x.hears(protocol, false, p)
			check.True(t, f.Drop == 0 && bytes.Equal(f.Bytes(), p), "%v: % x", f.Drop, f.Bytes())
		}
	}},
	{id: "8.nibble", name: "on the wire", sockets: func(t *testing.T, s side) {
		x := newWireEnd(t, s, vtep.Header{})
		for protocol, v6 := range map[byte]bool{4: true, 41: false} {
			f := x.hears(protocol, false, bareIP(v6))
			check.True(t, f.Drop == frame.BadHeader, "protocol %d: %v", protocol, f.Drop)
			f = x.hears(protocol, false, bareIP(!v6))
			check.True(t, f.Drop == 0, "protocol %d: %v", protocol, f.Drop)
		}
	}},
	{id: "8.encap-limit", name: "on the wire", only: "IPv6", sockets: func(t *testing.T, s side) {
		x := newWireEnd(t, s, vtep.Header{})
		for protocol, v6 := range map[byte]bool{4: false, 41: true} {
			p := bareIP(v6)
			f := x.hears(protocol, true, p)
			check.True(t, f.Drop == 0 && bytes.Equal(f.Bytes(), p), "protocol %d: %v, % x", protocol, f.Drop, f.Bytes())
		}
	}},
	{id: "8.df", name: "on the wire", only: "IPv4", sockets: func(t *testing.T, s side) {
		for mode, want := range map[vtep.DF]string{vtep.DFSet: "11", vtep.DFUnset: "10", vtep.DFInherit: "10"} {
			x := newWireEnd(t, s, vtep.Header{DF: mode})
			got := ""
			for _, df := range []bool{true, false} {
				p := packetOf(frame.MAC{}, ipOf(false, vni, 1), frame.MAC{}, ipOf(false, vni2, 2)).naked()
				p.df = df
				switch x.send([][]byte{p.bytes()}, "ip.flags.df")[0][0] {
				case "1", "True":
					got += "1"
				default:
					got += "0"
				}
			}
			check.True(t, got == want, "mode %d: DF %s, want %s", mode, got, want)
		}
	}},
	{id: "8.identification", name: "on the wire", only: "IPv4", sockets: func(t *testing.T, s side) {
		x := newWireEnd(t, s, vtep.Header{DF: vtep.DFUnset})
		p := packetOf(frame.MAC{}, ipOf(false, vni, 1), frame.MAC{}, ipOf(false, vni2, 2)).naked()
		p.df = false
		var all [][]byte
		for range 16 {
			all = append(all, p.bytes())
		}
		seen := map[string]bool{}
		for _, row := range x.send(all, "ip.id") {
			seen[row[0]] = true
		}
		check.True(t, len(seen) == 16 && !seen["0x0000"], "identifications %v", seen)
	}},
}
