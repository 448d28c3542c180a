package kernel

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

func hw(s string) net.HardwareAddr {
	m, err := net.ParseMAC(s)
	if err != nil {
		panic(err)
	}
	return m
}

// ethernet is a header of 14 bytes.
func ethernet(dst, src string, typ uint16) []byte {
	return binary.BigEndian.AppendUint16(append(append([]byte(nil), hw(dst)...), hw(src)...), typ)
}

// inner is an inner frame to be made.
type inner struct {
	src, dst string // MACs
	v6       bool
	tos, ttl uint8
	df       bool
	flow     uint16 // source port of UDP
}

func (in inner) family() string {
	if in.v6 {
		return "IPv6"
	}
	return "IPv4"
}

// frame makes the frame: UDP over IP.
func (in inner) frame() []byte {
	e := &layers.Ethernet{SrcMAC: hw(in.src), DstMAC: hw(in.dst), EthernetType: layers.EthernetTypeIPv4}
	u := &layers.UDP{SrcPort: layers.UDPPort(1000 + in.flow), DstPort: 9}
	data := gopacket.Payload("inner payload")
	if in.v6 {
		e.EthernetType = layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, TrafficClass: in.tos, HopLimit: in.ttl, NextHeader: layers.IPProtocolUDP,
			SrcIP: net.ParseIP("fd07::1"), DstIP: net.ParseIP("fd07::2")}
		u.SetNetworkLayerForChecksum(ip)
		return packets.Of(e, ip, u, data)
	}
	ip := &layers.IPv4{Version: 4, TOS: in.tos, TTL: in.ttl, Id: 77, Protocol: layers.IPProtocolUDP,
		SrcIP: net.IPv4(192, 168, 7, 1), DstIP: net.IPv4(192, 168, 7, 2)}
	if in.df {
		ip.Flags = layers.IPv4DontFragment
	}
	u.SetNetworkLayerForChecksum(ip)
	return packets.Of(e, ip, u, data)
}

// arpRequest is a broadcast of a host.
func arpRequest(src string) []byte {
	return packets.Of(&layers.Ethernet{SrcMAC: hw(src), DstMAC: hw("ff:ff:ff:ff:ff:ff"), EthernetType: layers.EthernetTypeARP},
		&layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: 1,
			SourceHwAddress: hw(src), SourceProtAddress: []byte{192, 168, 7, 1}, DstHwAddress: make([]byte, 6), DstProtAddress: []byte{192, 168, 7, 2}})
}

// tagged puts an 802.1Q tag into a frame.
func tagged(f []byte, vlan uint16) []byte {
	tag := binary.BigEndian.AppendUint16([]byte{0x81, 0x00}, vlan)
	return slices.Concat(f[:12], tag, f[12:])
}

// vxlan puts a header in front of a frame.
func vxlan(f []byte) []byte {
	return append([]byte{8, 0, 0, 0, vni >> 16, vni >> 8 & 0xff, vni & 0xff, 0}, f...)
}

// outerIP is what of an outer header a test chooses.
type outerIP struct {
	tos      uint8
	src      string // "" = the peer
	checksum int    // of UDP: right, zero, wrong
	port     uint16 // of destination, 0 = that of VXLAN
}

const (
	right = iota
	zero
	wrong
)

// packet makes a packet from the peer, from the Ethernet header on.
func (fam family) packet(o outerIP, payload []byte) []byte {
	e := &layers.Ethernet{SrcMAC: hw(farOuter), DstMAC: hw(nearOuter), EthernetType: layers.EthernetTypeIPv4}
	u := &layers.UDP{SrcPort: 55555, DstPort: 4789}
	if o.src == "" {
		o.src = fam.far
	}
	if o.port != 0 {
		u.DstPort = layers.UDPPort(o.port)
	}
	var b []byte
	at := 14 + 20 + 6
	if fam.v6 {
		e.EthernetType = layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, TrafficClass: o.tos, HopLimit: 64, NextHeader: layers.IPProtocolUDP,
			SrcIP: net.ParseIP(o.src), DstIP: net.ParseIP(fam.near)}
		u.SetNetworkLayerForChecksum(ip)
		b = packets.Of(e, ip, u, gopacket.Payload(payload))
		at = 14 + 40 + 6
	} else {
		ip := &layers.IPv4{Version: 4, TOS: o.tos, TTL: 64, Flags: layers.IPv4DontFragment, Protocol: layers.IPProtocolUDP,
			SrcIP: net.ParseIP(o.src), DstIP: net.ParseIP(fam.near)}
		u.SetNetworkLayerForChecksum(ip)
		b = packets.Of(e, ip, u, gopacket.Payload(payload))
	}
	switch o.checksum {
	case zero:
		b[at], b[at+1] = 0, 0
	case wrong:
		b[at+1] ^= 0x55
	}
	return b
}

// outer is what a VTEP sent.
type outer struct {
	ttl, tos     uint8
	df           bool
	label        uint32 // IPv6 flow label
	sport, dport uint16
	checksum     string // of UDP: zero, right, wrong
	header       [8]byte
	inner        []byte
}

func parseOuter(t *testing.T, b []byte) (o outer) {
	t.Helper()
	p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.DecodeOptions{NoCopy: true})
	var sum uint64
	switch ip := p.NetworkLayer().(type) {
	case *layers.IPv4:
		o.ttl, o.tos, o.df = ip.TTL, ip.TOS, ip.Flags&layers.IPv4DontFragment != 0
		sum = words(ip.SrcIP.To4()) + words(ip.DstIP.To4())
		check.True(t, folded(words(ip.Contents)) == 0xffff, "IPv4 header checksum wrong: %x", ip.Contents)
	case *layers.IPv6:
		o.ttl, o.tos, o.label = ip.HopLimit, ip.TrafficClass, ip.FlowLabel
		sum = words(ip.SrcIP) + words(ip.DstIP)
	default:
		t.Fatalf("no IP: %x", b)
	}
	u, ok := p.TransportLayer().(*layers.UDP)
	check.Need(t, ok && len(u.Payload) >= 8 && int(u.Length) == 8+len(u.Payload), "no VXLAN: %x", b)
	o.sport, o.dport = uint16(u.SrcPort), uint16(u.DstPort)
	switch sum += 17 + uint64(u.Length) + words(u.Contents) + words(u.Payload); {
	case u.Checksum == 0:
		o.checksum = "zero"
	case folded(sum) == 0xffff:
		o.checksum = "right"
	default:
		o.checksum = "wrong"
	}
	o.header = [8]byte(u.Payload)
	o.inner = u.Payload[8:]
	return o
}

// words adds up 16-bit words (RFC 1071).
func words(b []byte) (sum uint64) {
	for i, c := range b {
		if i%2 == 0 {
			sum += uint64(c) << 8
		} else {
			sum += uint64(c)
		}
	}
	return sum
}

func folded(sum uint64) uint16 {
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// fields names what of an outer packet is compared.
func (o outer) fields(in []byte) map[string]string {
	payload := "unchanged"
	if string(o.inner) != string(in) {
		payload = fmt.Sprintf("%x", o.inner)
	}
	label := "0"
	if o.label != 0 {
		label = "set"
	}
	return map[string]string{
		"TTL": fmt.Sprint(o.ttl), "DSCP": fmt.Sprint(o.tos >> 2), "ECN": ecnName[o.tos&3], "DF": fmt.Sprint(o.df),
		"checksum": o.checksum, "port": fmt.Sprint(o.dport), "VXLAN header": fmt.Sprintf("%x", o.header), "inner frame": payload, "flow label": label,
	}
}

var ecnName = [4]string{"Not-ECT", "ECT(1)", "ECT(0)", "CE"}
