package pcapfilter

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// corpus is frames of many kinds, whole and cut off at each place, and bytes without sense.
func corpus() (list [][]byte) {
	mac := func(n byte) []byte { return []byte{2, 0, 0, 0, 0, n} }
	eth := func(dst []byte, t layers.EthernetType) *layers.Ethernet {
		return &layers.Ethernet{SrcMAC: mac(1), DstMAC: dst, EthernetType: t}
	}
	v4 := func(p layers.IPProtocol) *layers.IPv4 {
		return &layers.IPv4{Version: 4, TTL: 64, Protocol: p, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 1, 2}, Id: 7}
	}
	six := func(n byte) []byte { return []byte{0x20, 1, 0xd, 0xb8, 15: n} }
	v6 := func(p layers.IPProtocol) *layers.IPv6 {
		return &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: p, SrcIP: six(1), DstIP: six(2)}
	}
	type network interface {
		gopacket.NetworkLayer
		gopacket.SerializableLayer
	}
	tcp := func(n network, syn bool, src, dst layers.TCPPort) *layers.TCP {
		x := &layers.TCP{SrcPort: src, DstPort: dst, SYN: syn, ACK: !syn, Seq: 1, Window: 9}
		x.SetNetworkLayerForChecksum(n)
		return x
	}
	udp := func(n network, src, dst layers.UDPPort) *layers.UDP {
		x := &layers.UDP{SrcPort: src, DstPort: dst}
		x.SetNetworkLayerForChecksum(n)
		return x
	}
	add := func(l ...gopacket.SerializableLayer) { list = append(list, packets.Of(l...)) }
	const ip, ip6 = layers.EthernetTypeIPv4, layers.EthernetTypeIPv6
	all := []byte{255, 255, 255, 255, 255, 255}
	load := gopacket.Payload("some bytes to be carried")

	arp := func(op uint16, src, dst []byte) *layers.ARP {
		return &layers.ARP{AddrType: 1, Protocol: 0x800, HwAddressSize: 6, ProtAddressSize: 4, Operation: op,
			SourceHwAddress: mac(1), SourceProtAddress: src, DstHwAddress: mac(2), DstProtAddress: dst}
	}
	add(eth(all, layers.EthernetTypeARP), arp(1, []byte{10, 0, 0, 1}, []byte{10, 0, 1, 2}))
	add(eth(mac(2), layers.EthernetTypeARP), arp(2, []byte{192, 168, 0, 1}, []byte{10, 0, 0, 1}))
	add(eth(all, 0x8035), arp(3, []byte{10, 0, 0, 1}, []byte{10, 0, 0, 1}))

	for _, tags := range [][]uint16{nil, {5}, {0x6005}, {5, 100}, {4095}} {
		wrap := func(t layers.EthernetType) (l []gopacket.SerializableLayer) {
			kinds := []layers.EthernetType{0x8100, 0x8100}
			if len(tags) == 2 {
				kinds[0] = 0x88a8
			}
			if len(tags) == 0 {
				return append(l, eth(mac(2), t))
			}
			l = append(l, eth(mac(2), kinds[0]))
			for i, tci := range tags {
				next := t
				if i+1 < len(tags) {
					next = kinds[i+1]
				}
				l = append(l, &layers.Dot1Q{VLANIdentifier: tci & 0xfff, Priority: uint8(tci >> 13), Type: next})
			}
			return l
		}
		with := func(t layers.EthernetType, l ...gopacket.SerializableLayer) { add(append(wrap(t), l...)...) }
		a, b := v4(6), v6(6)
		with(ip, a, tcp(a, true, 1234, 80), load)
		with(ip, a, tcp(a, false, 443, 1234), load)
		with(ip6, b, tcp(b, true, 1234, 80), load)
		a, b = v4(17), v6(17)
		with(ip, a, udp(a, 53, 1234), load)
		with(ip6, b, udp(b, 1234, 53), load)
		a.Options = []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}, {OptionType: 1}, {OptionType: 0}}
		with(ip, a, udp(a, 80, 53), load)
		with(ip, v4(1), &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(8, 0), Id: 1, Seq: 2}, load)
		with(layers.EthernetTypeARP, arp(1, []byte{10, 0, 0, 9}, []byte{10, 0, 1, 2}))
	}
	first, later := v4(17), v4(17)
	first.Flags = layers.IPv4MoreFragments
	later.FragOffset = 3
	add(eth(mac(2), ip), first, udp(first, 53, 80), load)
	add(eth(mac(2), ip), later, gopacket.Payload("\x00\x50\x00\x35 of a later fragment"))
	add(eth(mac(2), ip), v4(1), &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(3, 4)}, load)
	group := v4(2)
	group.DstIP = []byte{224, 0, 0, 22}
	add(eth([]byte{1, 0, 0x5e, 0, 0, 22}, ip), group, gopacket.Payload("\x22\x00\xf9\x02igmp"))
	for _, p := range []layers.IPProtocol{9, 50, 51, 89, 103, 112, 132} {
		add(eth(mac(2), ip), v4(p), gopacket.Payload("\x00\x50\x01\xbb upper"))
		add(eth(mac(2), ip6), v6(p), gopacket.Payload("\x00\x50\x01\xbb upper"))
	}
	for _, typ := range []uint8{1, 128, 129, 135, 136} {
		n := v6(58)
		n.DstIP = []byte{0xff, 2, 13: 1, 14: 0xff, 15: 2}
		x := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(typ, 0)}
		x.SetNetworkLayerForChecksum(n)
		add(eth([]byte{0x33, 0x33, 0xff, 0, 0, 2}, ip6), n, x, load)
	}
	for _, next := range []string{"\x06\x00\x00\x01", "\x11\x00\x00\x18", "\x3a\x00\x00\x01"} { // fragments
		add(eth(mac(2), ip6), v6(44), gopacket.Payload(next+"\x00\x00\x00\x07\x00\x50\x00\x35 fragment of IPv6"))
	}
	add(eth(mac(2), ip6), v6(0), gopacket.Payload("\x06\x00\x01\x04\x00\x00\x00\x00\x04\xd2\x00\x50 hop by hop"))
	list = append(list, append(append(mac(2), mac(3)...), "\x00\x20\xaa\xaa\x03 LLC"...))
	list = append(list, append(append(mac(2), mac(3)...), "\x91\x00\x00\x05\x08\x00\x45\x00\x00\x14\x00\x00\x00\x00\x40\x06\x00\x00\x0a\x00\x00\x01"...))
	list = append(list, append(append(mac(2), mac(3)...), bytes.Repeat([]byte{0xff}, 1486)...))

	for _, i := range []int{0, 3, 5, 8, 11, 12, 13, 15} {
		for n := range list[i] {
			list = append(list, list[i][:n])
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for whole := list; len(list) < 1600; { // some bytes differ
		x := slices.Clone(whole[rng.IntN(len(whole))])
		for range 1 + rng.IntN(4) {
			if len(x) > 0 {
				x[rng.IntN(min(len(x), 60))] = []byte{0, 1, 2, 5, 6, 17, 0x45, 0x46, 0x60, 80, 0xff, byte(rng.Uint32())}[rng.IntN(12)]
			}
		}
		list = append(list, x)
	}
	return slices.DeleteFunc(list, func(x []byte) bool { return len(x) == 0 }) // tcpdump refuses those
}

// rawCorpus is the same without headers of Ethernet.
func rawCorpus() (list [][]byte) {
	for _, x := range corpus() {
		if len(x) > 14 {
			list = append(list, x[14:])
		}
	}
	return list
}

// An oracle is tcpdump with a file of packets.
type oracle struct {
	link    Link
	packets [][]byte
	file    string
	tool    string
}

func newOracle(t testing.TB, l Link) *oracle {
	t.Helper()
	o := &oracle{link: l, packets: corpus(), file: filepath.Join(t.TempDir(), "x.pcap")}
	kind := layers.LinkTypeEthernet
	if l == RawIP {
		o.packets, kind = rawCorpus(), layers.LinkTypeRaw
	}
	var err error
	if o.tool, err = exec.LookPath("tcpdump"); err != nil {
		t.Fatalf("%v: install the package tcpdump", err)
	}
	var b bytes.Buffer
	w := pcapgo.NewWriter(&b)
	check.OK(t, w.WriteFileHeader(262144, kind))
	for i, p := range o.packets {
		check.OK(t, w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(int64(i), 0), CaptureLength: len(p), Length: len(p)}, p))
	}
	check.OK(t, os.WriteFile(o.file, b.Bytes(), 0o600))
	return o
}

// takes returns which packets tcpdump takes, or what it says against the filter.
func (o *oracle) takes(t testing.TB, filter string, flags ...string) (taken []bool, refused string) {
	t.Helper()
	var out, errs bytes.Buffer
	c := exec.CommandContext(t.Context(), o.tool, append(flags, "-n", "-r", o.file, "-w", "-", "--", filter)...)
	c.Stdout, c.Stderr = &out, &errs
	taken = make([]bool, len(o.packets))
	if err := c.Run(); err != nil {
		if strings.Contains(errs.String(), "expression rejects all packets") {
			return taken, ""
		}
		_, text, _ := strings.Cut(errs.String(), "tcpdump: ")
		return nil, strings.TrimSpace(text) + " "
	}
	r, err := pcapgo.NewReader(&out)
	if err != nil {
		t.Fatalf("%s: %v %s", filter, err, errs.String())
	}
	for {
		_, info, err := r.ReadPacketData()
		if err == io.EOF {
			return taken, ""
		}
		check.OK(t, err)
		taken[info.Timestamp.Unix()] = true
	}
}

// overcautious is what libpcap 1.10.3 says against a right side that begins with such a number: "ip[8] / ip[0]" begins with
// 0. We take these filters, and refuse such numbers alone.
var overcautious = []string{"shift by more than 31 bits", "division by zero", "modulus by zero"}

// differs compares our filter with tcpdump. It returns how many packets are taken, and the first that is treated differently.
// A packet that ends before what the filter loads is rejected by the program as it was written, and may be taken by what the
// optimizer of libpcap makes of it, without the load. For those, the program without the optimizer decides.
func (o *oracle) differs(t testing.TB, f *Filter, text string) (n int, packet []byte) {
	t.Helper()
	want, refused := o.takes(t, text)
	if want == nil && slices.Contains(overcautious, strings.TrimSpace(refused)) {
		return 0, nil
	}
	if want == nil {
		t.Errorf("%v: %q: we take it, tcpdump says: %s", o.link, text, refused)
		return 0, nil
	}
	var plain []bool
	for i, p := range o.packets {
		if got := f.Match(p); got != want[i] {
			if plain == nil {
				plain, _ = o.takes(t, text, "-O")
			}
			if plain == nil || got || plain[i] {
				return n, p
			}
		}
		if want[i] {
			n++
		}
	}
	return n, nil
}

// filters is what people write, and how many of them take something.
var filters = []string{
	"", "ip", "ip6", "arp", "rarp", "tcp", "udp", "sctp", "icmp", "icmp6", "igmp", "igrp", "pim", "vrrp", "carp", "esp", "ah",
	"not arp", "! arp", "not not arp", "ip or ip6", "ip || ip6", "arp or icmp and tcp", "tcp and port 80", "tcp && port 80",
	"host 10.0.0.1", "src host 10.0.0.1", "dst host 10.0.0.1", "src 10.0.0.1", "dst 10.0.1.2", "src or dst host 10.0.0.1", "src and dst host 10.0.0.1",
	"ip host 10.0.0.1", "arp host 10.0.0.1", "rarp host 10.0.0.1", "arp src 10.0.0.9", "host 10.0.0.1 or 10.0.0.9", "host 10.0.0.1 and not 10.0.1.2",
	"host (10.0.0.1 or 10.0.0.9)", "not host 10.0.0.1", "net 10", "net 10.0", "net 10.0.1", "net 10.0.0.0/16", "net 10.0.0.0/8", "net 0.0.0.0/0", "src net 10.0.0.0/24",
	"net 10.0.0.0 mask 255.255.0.0", "dst net 10.0.1.0 mask 255.255.255.0", "ip net 10.0.0.0/24", "arp net 10.0.0.0/24", "net 224.0.0.0/4", "net 10.0/16",
	"host 2001:db8::1", "src host 2001:db8::1", "ip6 host 2001:db8::2", "net 2001:db8::/32", "ip6 net 2001:db8::/127", "dst net ff02::/16", "net ::/0", "not net 2001:db8::/32",
	"host ff02::1:ff00:2", "not host 2001:db8::1", "host ::ffff:10.0.0.1",
	"port 80", "src port 80", "dst port 80", "src or dst port 53", "src and dst port 53", "tcp port 80", "udp port 53", "sctp port 80", "port 80 or 443", "tcp port 80 or 443",
	"port (80 or 443)", "tcp dst port (80 or 443)", "not port 53", "portrange 50-90", "udp portrange 50-60", "src portrange 1000-2000", "portrange 80", "port 0x50", "port 0120",
	"ether host 02:00:00:00:00:01", "ether src 02:00:00:00:00:01", "ether dst 2:0:0:0:0:2", "ether src host 02:00:00:00:00:03", "not ether host 02:00:00:00:00:01",
	"link host 02:00:00:00:00:01", "ether src or dst 02:00:00:00:00:02", "ether broadcast", "broadcast", "ether multicast", "multicast", "ip multicast", "ip6 multicast", "not multicast",
	`ether proto 0x0806`, `ether proto \ip`, `ether proto \arp`, `ether proto \ip6`, "ether proto 0x86dd", "ether proto 2054", "ether proto 1501",
	"ip proto 17", `ip proto \tcp`, `ip6 proto \udp`, "ip6 proto 6", "proto 58", `proto \icmp`, "ip proto 1 or 2", "proto 89", "ip proto 50",
	"vlan", "vlan 5", "vlan 4095", "not vlan", "vlan and tcp", "vlan 5 and tcp port 80", "vlan and vlan", "vlan 5 and vlan 100 and udp", "vlan and host 10.0.0.1", "vlan and arp",
	"arp or vlan", "tcp or vlan 5 and udp", "vlan and ether src 02:00:00:00:00:01", "vlan 5 and ip6", "vlan and ip[8] = 64", "vlan and tcp[13] & 2 != 0", "vlan 5 or vlan 5 and udp", "not vlan and ip",
	"less 60", "greater 60", "len > 60", "len <= 42", "length = 42", "len - 14 > 40", "greater 60 and less 90",
	"tcp[13] & 2 != 0", "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0", "tcp[tcpflags] == tcp-syn", "tcp[tcpflags] & tcp-ack = tcp-ack", "icmp[icmptype] = icmp-echo", "icmp[icmptype] != icmp-echoreply",
	"icmp[icmptype] = icmp-unreach and icmp[icmpcode] = 4", "icmp6[icmp6type] = icmp6-echo", "icmp6[icmp6type] == icmp6-neighborsolicit", "icmp6[0] = 136",
	"ip[0] & 0xf != 5", "ip[6:2] & 0x1fff != 0", "ip[6:2] & 0x2000 != 0 or ip[6:2] & 0x1fff != 0", "ip[2:2] > 60", "ip[8] < 65", "ip[12:4] = 0x0a000001", "ip[16:4] = 10 * 16777216 + 258",
	"ether[0] & 1 = 1", "ether[12:2] = 0x800", "ether[12:2] > 0x0800", "udp[0:2] = 53", "udp[4:2] - 8 > 20", "udp[8:4] = 0x736f6d65", "ip6[6] = 17", "ip6[4:2] > 30", "arp[6:2] = 1", "arp[14:4] = 0x0a000001",
	"tcp[((tcp[12] & 0xf0) >> 2):4] = 0x736f6d65", "tcp[(tcp[12] >> 4) * 4:4] = 0x736f6d65", "ip[ip[0] & 0xf] > 3", "ether[len - 4:4] = 0x72696564", "ether[len - 1] = 0x64",
	"ip[1000] = 5", "not ip[1000] = 5", "ip[20] != 5 or arp", "tcp[100] = 0", "ip[ip[8] - 64] = 0x45", "ip[ip[8] * 1000000000] = 1",
	"ip[0] - 0x40 = 5", "-ip[8] = -64", "(ip[0] ^ 0x40) = 5", "ip[8] % 10 = 4", "(ip[8] % 10) * 2 = 8", "ip[8] / 2 = 32", "ip[8] << 2 = 256", "ip[8] >> ip[9] = 1", "ip[8] | 1 = 65", "ip[8] / ip[9] = 10", "tcp[tcp[12] / 4 - 8] = 8", "icmp[ip[8] - 84] = 0x45", "ip[9] & 1 = 1",
	"ip[8] | 5 & 80 = 64", "ip[8] & 5 | 80 = 80", "ip[8] | 5 + 80 = 85", "ip[8] << 5 & 2048 = 2048", "ip[8] & 16 << 2 = 64", "ip[8] + 5 << 2 = 276", "ip[8] << 2 + 1 = 512",
	"ip[8] - 5 - 1 = 58", "ip[8] - 5 + 1 = 60", "ip[8] / 5 * 3 = 36", "ip[8] * 3 / 5 = 38", "ip[8] << 1 >> 2 = 32", "ip[8] + 2 * 3 = 70", "ip[8] * 3 + 2 = 194", "ip[8] & 80 | 5 & 80 = 64", "-ip[9] + ip[8] = 58",
	"ip[0] + ip[1] * 2 = 69", "ip[8] - ip[9] > 50", "5 = ip[0] & 0xf", "64 > ip[9]", "ip[8] = ip[9]", "ip[9] >= ip[1]", "ip[2:2] <= ip[4:2]", "(ip[8] + 1) > 60", "((ip[8])) = 64", "tcp[0:2] > tcp[2:2]",
	"(tcp or udp) and not port 53", "(arp or icmp) and not host 10.0.0.9", "not (tcp or udp)", "not (host 10.0.0.1 and (port 80 or port 53))", "((tcp))", "tcp and (port 80 or (port 443 and not host 10.0.0.1))",
	"ip and udp[0:2] = 53 or tcp[13] = 2", "igmp[0] = 0x22", "pim[0] = 0", "sctp[0:2] = 80", "vrrp[0] = 0", "igrp[1] = 80",
	"udp and ip[6:2] & 0x3fff != 0", "ip6 and not icmp6", "ether[6:4] = 0x02000000 and ether[10:2] = 1",
}

// Filters of people take what tcpdump takes.
func TestLikeTcpdump(t *testing.T) {
	for _, l := range []Link{Ethernet, RawIP} {
		o, some := newOracle(t, l), 0
		for _, text := range filters {
			f, err := New(text, l)
			if err != nil {
				if want, refused := o.takes(t, text); l == Ethernet || want != nil && !slices.Contains(want, true) && refused != "" {
					t.Errorf("%q: %v", text, err)
				} else if slices.Contains(want, true) {
					t.Errorf("%v: %q: %v, and tcpdump takes packets", l, text, err)
				}
				continue
			}
			n, packet := o.differs(t, f, text)
			if packet != nil {
				t.Errorf("%v: %q: we say %v for %x", l, text, f.Match(packet), packet)
			}
			if n > 0 {
				some++
			}
		}
		t.Logf("%v: %d packets, %d filters, of which %d take some", l, len(o.packets), len(filters), some)
		if some < 100 {
			t.Errorf("only %d filters take something", some)
		}
	}
}
