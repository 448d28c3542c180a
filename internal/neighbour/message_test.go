package neighbour

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/mdlayher/arp"
	"github.com/mdlayher/ethernet"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/wire"
)

var (
	here, there     = frame.MAC{2, 0, 0, 0, 0, 1}, frame.MAC{2, 0, 0, 0, 0, 2}
	here4, there4   = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	here6, there6   = netip.MustParseAddr("fe80::1"), netip.MustParseAddr("2001:db8::12:3456")
	solicited       = netip.MustParseAddr("ff02::1:ff12:3456")
	all             = netip.MustParseAddr("ff02::1")
	solicitedMAC    = frame.MAC{0x33, 0x33, 0xff, 0x12, 0x34, 0x56}
	allMAC, nobody  = frame.MAC{0x33, 0x33, 0, 0, 0, 1}, netip.IPv6Unspecified()
	solicitAdvertNA = uint8(wire.NASolicited | wire.NAOverride)
)

// What is written is read as it was meant, dirty or not what was there before.
func TestMessages(t *testing.T) {
	in := func(n int, put func(b []byte)) []byte {
		b := bytes.Repeat([]byte{0xee}, n)
		put(b)
		return b
	}
	for name, c := range map[string]struct {
		b    []byte
		want Message
	}{
		"ARP request": {Ask(there4, frame.MAC{}, here4, here),
			Message{Kind: Question, Told: true, Dst: frame.Broadcast, Src: here, SenderMAC: here, Sender: here4, Target: there4, To: there4}},
		"to one": {Ask(there4, there, here4, here),
			Message{Kind: Question, Told: true, Dst: there, Src: here, SenderMAC: here, Sender: here4, Target: there4, To: there4}},
		"ARP reply": {in(Len4, func(b []byte) { PutARP(b, wire.ARPReply, there, here, here4, there, there4) }),
			Message{Kind: Answer, Told: true, Dst: there, Src: here, SenderMAC: here, Sender: here4, Target: there4, To: there4}},
		"RARP": {in(Len4, func(b []byte) { PutARP(b, 3, there, here, here4, there, there4) }),
			Message{Kind: Malformed, Told: true, Dst: there, Src: here, SenderMAC: here, Sender: here4, Target: there4, To: there4}},
		"solicitation": {Ask(there6, frame.MAC{}, here6, here),
			Message{Kind: Question, V6: true, Told: true, Dst: solicitedMAC, Src: here, SenderMAC: here, Sender: here6, Target: there6, To: solicited}},
		"solicitation to one": {Ask(there6, there, here6, here),
			Message{Kind: Question, V6: true, Told: true, Dst: there, Src: here, SenderMAC: here, Sender: here6, Target: there6, To: there6}},
		"advertisement": {in(Len6, func(b []byte) { PutAdvert(b, here6, here, wire.NAOverride, there6, there) }),
			Message{Kind: Answer, V6: true, Told: true, Flags: solicitAdvertNA, Dst: there, Src: here, SenderMAC: here, Sender: here6, Target: here6, To: there6}},
		"to nobody": {in(Len6, func(b []byte) { PutAdvert(b, here6, here, wire.NARouter, nobody, there) }),
			Message{Kind: Answer, V6: true, Told: true, Flags: wire.NARouter, Dst: allMAC, Src: here, SenderMAC: here, Sender: here6, Target: here6, To: all}},
		"short": {make([]byte, 13), Message{}},
		"IPv4":  {append(make([]byte, 12), 8, 0, 0x45), Message{}},
	} {
		m := Message{Kind: Solicit, V6: true, Told: true, Flags: 9}
		if got := m.Parse(c.b, false); got != c.want.Kind || m != c.want {
			t.Errorf("%s:\n%+v, want\n%+v", name, m, c.want)
		}
		if m.V6 && m.Kind != None {
			if c.b[wire.EthernetLen+wire.IPv6Len+2]++; m.Parse(c.b, false) != Malformed || m.Parse(c.b, true) != c.want.Kind {
				t.Errorf("%s: a wrong checksum", name)
			}
		}
		if m.Solicited() != (m.To == solicited) || m.Multicast() != (m.To == solicited || m.To == all) {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if b := Ask(there4, frame.MAC{}, here6, here); b != nil {
		t.Errorf("asked across families: % x", b)
	}
}

// mdlayher's packages write the same bytes.
func TestARPFrame(t *testing.T) {
	p := check.Must(arp.NewPacket(arp.OperationRequest, here[:], here4, make([]byte, 6), there4))(t)
	body, _ := p.MarshalBinary()
	want, _ := (&ethernet.Frame{Destination: frame.Broadcast.HardwareAddr(), Source: here[:], EtherType: ethernet.EtherTypeARP, Payload: body}).MarshalBinary()
	if got := Ask(there4, frame.MAC{}, here4, here); !bytes.Equal(got, want) {
		t.Errorf("% x, want\n% x", got, want)
	}
}

func TestSpoofed(t *testing.T) {
	for mac, want := range map[frame.MAC]bool{
		here: false, there: true, {0, 0, 0x5e, 0, 0, 1}: true, {0, 0, 0x5e, 0, 1, 9}: false, {0, 0, 0x5e, 0, 2, 9}: false, {0, 0, 0x5e, 0, 3, 9}: true,
	} {
		if m := (Message{Src: here, SenderMAC: mac, Told: true}); m.Spoofed() != want {
			t.Errorf("%v: %v", mac, !want)
		}
	}
}

func TestGroupMAC(t *testing.T) {
	for ip, want := range map[string]frame.MAC{"ff02::1:ff12:3456": solicitedMAC, "239.255.1.2": {1, 0, 0x5e, 0x7f, 1, 2}} {
		if got := GroupMAC(netip.MustParseAddr(ip).As16()); got != want {
			t.Errorf("%s: %v, want %v", ip, got, want)
		}
	}
}
